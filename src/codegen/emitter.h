// Writes one kernel as LLVM IR over W lanes. One class, because every construct shares the builder, the lanes' values
// and the mask. Classes of their own write the parts that need only the builder: Lanes (lanes.h), Conversions
// (conversions.h), AliasScopes (alias_scopes.h), DebugLines (debug_lines.h). The rest is one file per concern:
//
//   emit_function.cpp   arguments, regions, dispatch of operations
//   emit_lanes.cpp      leaves as vectors, phis, loops over active lanes: used by all the other files
//   emit_scalar.cpp     operations on numbers, component by component; select and casts
//   emit_arithmetic.cpp the same operations for one component
//   emit_math.cpp       transcendental functions
//   emit_parts.cpp      aggregates: make, extract, insert, matmul, ...
//   emit_memory.cpp     addresses, loads and stores; single_access.cpp: gathers and scatters in scalar accesses
//   emit_from_end.cpp   negative indices
//   emit_views.cpp      parts of arrays
//   emit_arrays.cpp     arrays that a kernel makes
//   emit_atomic.cpp     atomics
//   emit_branch.cpp     if under masks
//   emit_loop.cpp       for, while under masks
//   emit_checks.cpp     thread coordinates, print, bounds and other checks
//   emit_access.cpp     accesses that are reported to the runtime
//   null_arrays.cpp     arrays that may be None
//   emit_library.cpp    library functions
//   emit_native.cpp     calls of functions in C++
//   emit_call.cpp       calls of noinline functions
//
// Targets differ in the hooks of target.h; codegen/cpu/ and codegen/cuda/ implement them.
//
// The mask. `mask_` holds the lanes that take part in the code being emitted; null means all. Accesses and side effects
// require at least one active lane: code without active lanes is branched around.
#pragma once

#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/Module.h>

#include <functional>
#include <initializer_list>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "codegen/alias_scopes.h"
#include "codegen/codegen.h"
#include "codegen/conversions.h"
#include "codegen/debug_lines.h"
#include "codegen/lanes.h"
#include "codegen/native.h"
#include "codegen/target.h"
#include "codegen/value.h"
#include "ir/ir.h"
#include "transform/plan.h"

namespace weft::codegen {

// The noinline functions of a module, and the properties of them that their callers need.
struct Callees {
    std::unordered_map<const ir::Function*, llvm::Function*> functions;
    // Arrays passed to them may be None.
    bool may_get_null = false;
    std::unordered_set<const ir::Function*> reporting;  // those that raise or print, directly or through calls
    // Whether the function also takes the LaunchContext and the number of the thread: it reports, or takes arrays that
    // may be None. Its last result then says that it has reported a fault, so that the thread must leave.
    bool takes_launch(const ir::Function& function) const;
    std::unordered_set<const ir::Function*> finding;  // the same for lookups of objects
    std::vector<const ir::Operation*> checked;        // the operation of each check in them
    bool have_atomics = false, find_objects = false, ask_blocks = false;
    bool depend_on_order = false;  // KernelPlan::depends_on_order
    bool have_long_loops = false;  // KernelPlan::has_long_loops
};

class Emitter : public TargetHooks {
public:
    Emitter(const transform::KernelPlan& plan, int lanes, const Machine& machine, const Options& options,
            llvm::Module& module, NativeFunctions& natives, Callees& callees);

    // For a noinline function in place of a kernel: scalar code.
    llvm::Function* declare_callee(const std::string& symbol);
    void emit_callee(llvm::Function* callee);
    bool has_atomics() const { return has_atomics_; }
    bool finds_objects() const { return finds_objects_; }
    bool asks_blocks() const { return asks_blocks_; }
    // The operation of each emitted check, by the check's number.
    const std::vector<const ir::Operation*>& checked_operations() const { return checked_; }

protected:
    using Builder = llvm::IRBuilder<>;

    // ---- emit_function.cpp ----
    // Reads the argument block through `arguments`, in whichever memory it lies.
    void load_arguments(llvm::Value* arguments);
    // The leaves of a large parameter that the kernel uses; empty for other parameters, which are loaded whole.
    std::vector<bool> leaves_used(const ir::Value* parameter) const;
    void open_function(llvm::Function* function);
    // Stack memory, allocated in the function's entry block.
    llvm::Type* bytes_type(std::int64_t count) {
        return llvm::ArrayType::get(builder_.getInt8Ty(), static_cast<std::uint64_t>(count));
    }
    llvm::Value* stack_slot(llvm::Type* type, llvm::Align alignment, const char* name = "");

    // ---- emit_call.cpp ----
    // Whether the noinline function takes the table of objects, its last parameter.
    bool takes_objects(const ir::Function& function) const;
    void emit_call(const ir::Operation& operation);

    void emit_region(const ir::Region& region);
    void emit_in_place(const ir::Operation& operation);
    void emit_operation(const ir::Operation& operation);

    // ---- emit_lanes.cpp ----
    llvm::Type* register_type(const LeafType& leaf) const;
    llvm::Type* register_type(Scalar scalar) const;
    llvm::Type* memory_type(const LeafType& leaf) const;
    llvm::Value* vector(Leaf& leaf);
    llvm::Value* is_full(llvm::Value* mask);  // whether all lanes are on
    llvm::Value* active_lanes();              // mask_ as a vector, all true if it is null
    // Applies `make` to the operands: as scalars if all are uniform, else as vectors.
    template <typename Make>
    Leaf lift(std::initializer_list<Leaf*> operands, Make make);

    // A leaf whose value depends on the predecessor block.
    struct Phi {
        llvm::PHINode* node = nullptr;  // null: all predecessors give the same value
        Leaf leaf;
        bool as_vector = false;
        bool packed = false;
    };
    Phi open_phi(const LeafType& type, bool as_vector, std::int64_t step);
    void add_incoming(Phi& phi, Leaf value, llvm::BasicBlock* from);
    // if condition: a(); else: b(). Leaves the builder in the block behind both. Returns the last block of each, for
    // merge().
    std::pair<llvm::BasicBlock*, llvm::BasicBlock*> emit_either(llvm::Value* condition, const char* name,
                                                                const std::function<void()>& a,
                                                                const std::function<void()>& b);
    // if condition: a()
    void emit_if_true(llvm::Value* condition, const char* name, const std::function<void()>& a);
    LaneValue merge(Type type, bool varying, LaneValue& a, llvm::BasicBlock* from_a, LaneValue& b,
                    llvm::BasicBlock* from_b);
    Leaf zero_leaf(const LeafType& type, bool as_vector);
    LaneValue zero_value(Type type, bool as_vector);
    LaneValue blend(llvm::Value* condition, LaneValue& a, LaneValue& b);

    LaneValue& value(const ir::Value* v);
    Leaf& leaf(const ir::Value* v) { return value(v).leaves[0]; }
    void set(const ir::Value* v, LaneValue result);
    void set(const ir::Value* v, Leaf result);
    transform::LaneShape shape(const ir::Value* v) const {
        return lanes_.count == 1 ? transform::LaneShape{} : plan_.uniformity.shape(v);
    }
    const ir::Value* linear_but_for_end(const ir::Value* index) const;
    bool is_used(const ir::Value* v) const { return plan_.arithmetic.is_used(v); }
    bool varying(const ir::Value* v) const;
    std::int64_t step_of(const ir::Value* v) const;
    llvm::BasicBlock* new_block(const char* name);
    llvm::Value* i64(std::int64_t value) { return builder_.getInt64(static_cast<std::uint64_t>(value)); }
    // Runs `body(lane)` for each active lane in order; carries `state` along and returns its last value.
    llvm::Value* for_each_active_lane(llvm::Value* state,
                                      const std::function<llvm::Value*(llvm::Value* lane, llvm::Value* state)>& body);
    llvm::Value* lane_of(Leaf& leaf, llvm::Value* lane);
    // Runs `way`, then restores `values`: the changes of one path must not be seen on another.
    void apart(llvm::ArrayRef<ir::Value*> values, const std::function<void()>& way);
    void emit_invariant(const ir::Value* value);
    llvm::Value* pick_last_active(Leaf& leaf);

    // ---- emit_scalar.cpp ----
    llvm::Value* number(Scalar scalar, Number number);
    void emit_componentwise(const ir::Operation& operation);
    Leaf unary_leaf(ir::Op op, Scalar scalar, Leaf& a);
    Leaf binary_leaf(const ir::Operation& operation, Scalar scalar, Leaf& a, Leaf& b);
    llvm::Value* fused(llvm::Value* a, llvm::Value* b, llvm::Value* c);
    void emit_fma(const ir::Operation& operation);
    void emit_compare(const ir::Operation& operation);
    void emit_select(const ir::Operation& operation);
    void emit_cast(const ir::Operation& operation);
    void emit_bitcast(const ir::Operation& operation);
    void emit_bit_count(const ir::Operation& operation);
    llvm::Value* wide(Leaf& leaf, Scalar scalar);  // uniform or linear, as i64
    // The product that defines `v`, if an addition to it may be fused.
    const ir::Operation* fusable_product(const ir::Value* v) const;

    // ---- emit_arithmetic.cpp ----
    llvm::Value* unary(ir::Op op, Scalar scalar, llvm::Value* a);
    llvm::Value* binary(ir::Op op, Scalar scalar, llvm::Value* a, llvm::Value* b);
    llvm::Value* integer_division(ir::Op op, Scalar scalar, llvm::Value* a, llvm::Value* b);
    llvm::Value* compare(ir::Op op, Scalar scalar, llvm::Value* a, llvm::Value* b);
    llvm::Value* classify(ir::Op op, Scalar scalar, llvm::Value* a);

    // ---- emit_math.cpp ----
    llvm::Value* math(ir::Op op, Scalar scalar, llvm::Value* a, llvm::Value* b = nullptr);
    bool emit_angle(const ir::Operation& operation);
    llvm::Value* inverse_error_function(llvm::Value* a, bool complementary);

    // ---- emit_parts.cpp ----
    void emit_constant(const ir::Operation& operation);
    void emit_make(const ir::Operation& operation);
    void emit_extract(const ir::Operation& operation);
    void emit_insert(const ir::Operation& operation);
    void emit_extract_at(const ir::Operation& operation);
    void emit_insert_at(const ir::Operation& operation);
    void emit_reduce_add(const ir::Operation& operation);
    void emit_matmul(const ir::Operation& operation);
    void emit_transpose(const ir::Operation& operation);
    Leaf flat_position(const ir::Operation& operation, std::size_t first, std::size_t count);
    Leaf sum_of_products(Scalar scalar, std::vector<std::pair<Leaf*, Leaf*>> products);

    // ---- emit_memory.cpp ----
    struct Address {
        llvm::Value* base = nullptr;     // scalar pointer: data plus every uniform and linear term, of lane 0
        llvm::Value* step = nullptr;     // i64 bytes from lane to lane; null if uniform
        llvm::Value* offsets = nullptr;  // <W x i64>, in units of `unit` bytes; null if not varying
        std::int64_t unit = 1;
        llvm::Value* bases = nullptr;  // <W x ptr>: in place of `base` if the array itself is varying
        MemoryRoot root;
        std::int64_t alignment = 0;  // of the element, if above that of its numbers
        // A pointer for each lane, to load from and to store to; filled by single_pointers().
        llvm::SmallVector<llvm::Value*, 16> singles[2] = {};
        bool uniform() const { return base && !step && !offsets; }
    };
    // `data` is kDataLeaf or kGradLeaf. With fewer indices than dimensions: the start of the remaining part.
    Address address_of(const ir::Value* array, llvm::ArrayRef<ir::Value*> indices, int data = kDataLeaf);
    std::int64_t element_alignment(const ir::Value* array) const;
    llvm::Value* pointers(const Address& address, std::int64_t offset);
    llvm::Value* byte_offset(llvm::Value* pointer, std::int64_t offset);
    llvm::Value* pointer_of_lane(const Address& address, std::int64_t offset, llvm::Value* lane);
    Leaf load_leaf(Address& address, const LeafType& type);
    void store_leaf(Address& address, const LeafType& type, Leaf& value);
    llvm::Value* from_memory(llvm::Value* loaded, const LeafType& type);
    llvm::Value* to_memory(llvm::Value* value, const LeafType& type);
    // An element of every lane. Targets may override these for lanes.
    virtual LaneValue load_from(Address& address, Type type);
    virtual void store_to(Address& address, Type type, LaneValue& stored);
    void emit_load(const ir::Operation& operation);
    void emit_store(const ir::Operation& operation);
    template <typename Instruction>
    Instruction* with_alias(Instruction* instruction, MemoryRoot root);

    // ---- emit_from_end.cpp ----
    Leaf from_end(const ir::Operation& choice, llvm::Value* is_negative, Leaf& index, Leaf& extent);
    LaneValue from_end_in_lanes(llvm::Value* is_negative, LaneValue& counted, LaneValue& index);
    bool counts_from_end_in_few(const ir::Value* array, llvm::ArrayRef<ir::Value*> indices);
    std::pair<llvm::BasicBlock*, llvm::BasicBlock*> emit_without_end(const ir::Operation& operation,
                                                                     llvm::ArrayRef<ir::Value*> indices,
                                                                     const std::function<void()>& plain,
                                                                     const std::function<void()>& any);

    // ---- emit_views.cpp ----
    void make_empty_unless(llvm::Value* ok, LaneValue& array);
    Leaf moved_gradient(Leaf& gradient, const std::function<Leaf()>& move);
    void emit_view(const ir::Operation& operation);
    void emit_components(const ir::Operation& operation);
    void emit_member(const ir::Operation& operation);
    void emit_dim(const ir::Operation& operation);
    void emit_is_null(const ir::Operation& operation);
    void emit_grad_of(const ir::Operation& operation);

    // ---- emit_arrays.cpp ----
    void emit_slice(const ir::Operation& operation);
    bool takes_local_addresses();
    void emit_local_array(const ir::Operation& operation);
    void emit_stack(const ir::Operation& operation);
    void set_stack(const ir::Operation& operation, llvm::Value* memory, llvm::Value* rows);
    void emit_address(const ir::Operation& operation);
    void emit_array_at(const ir::Operation& operation);
    void emit_argument(const ir::Operation& operation);
    void emit_object(const ir::Operation& operation);
    void emit_overlay(const ir::Operation& operation);
    void append_extents(LaneValue& array, const ir::Operation& operation, std::size_t first);
    void append_packed_strides(LaneValue& array, Leaf last);
    Leaf moved(Leaf& pointer, Leaf& number, Leaf& stride);

    // ---- single_access.cpp ----
    llvm::Value* memory_for_idle_lanes(bool for_store);
    llvm::ArrayRef<llvm::Value*> single_pointers(Address& address, bool for_store);
    llvm::Value* load_singly(Address& address, const LeafType& type);
    void store_singly(Address& address, const LeafType& type, llvm::Value* stored);

    // ---- emit_atomic.cpp ----
    bool uses_result(const ir::Operation& operation) const;
    LaneValue apply_in_lanes(const ir::Operation& operation);
    void emit_atomic(const ir::Operation& operation);
    MemoryRoot memory_of(const ir::Operation& atomic) const { return plan_.atomics.at(&atomic).memory; }
    bool is_uncontended(MemoryRoot root) const { return plan_.uncontended.contains(root) || is_private(root); }
    llvm::Value* atomic_scalar(ir::Op op, Scalar scalar, llvm::Value* pointer, llvm::Value* compare,
                               llvm::Value* operand);
    struct AtomicTarget {
        llvm::Value* pointer = nullptr;
        MemoryRoot root;
    };
    llvm::Value* apply_atomic(ir::Op op, Scalar scalar, const AtomicTarget& target, llvm::Value* compare,
                              llvm::Value* operand);
    void apply_to_each_lane(const ir::Operation& operation, llvm::ArrayRef<ir::Value*> indices,
                            llvm::ArrayRef<LeafType> leaves);
    llvm::Constant* neutral(ir::Op op, Scalar scalar) const;
    void contribute(ir::Op kind, Scalar scalar, llvm::Value* pointer, llvm::Value* total);
    llvm::Value* contributions(ir::Op op, Scalar scalar, Leaf& operand);
    llvm::Value* combine_lanes(ir::Op op, Scalar scalar, llvm::Value* values);
    bool reduce_into(ir::Op op, Scalar scalar, const AtomicTarget& target, Leaf& operand);

    // ---- emit_branch.cpp, emit_loop.cpp ----
    void emit_if(const ir::Operation& operation);
    void emit_uniform_if(const ir::Operation& operation);
    void emit_masked_if(const ir::Operation& operation);
    void emit_loop(const ir::Operation& operation);
    void emit_either_way(const ir::Operation& loop, const transform::NegativeIndexChecks& signs);
    void keep_rolled(llvm::Instruction* back);
    void unroll_if_short(const ir::Operation& loop, llvm::Instruction& back);
    void emit_for(const ir::Operation& operation);
    void emit_uniform_for(const ir::Operation& operation);
    void emit_masked_for(const ir::Operation& operation);
    void emit_while(const ir::Operation& operation);
    struct Loop;
    void open_loop(Loop& loop, const std::vector<const ir::Value*>& arguments, const std::vector<ir::Value*>& results,
                   llvm::ArrayRef<ir::Value*> inits, llvm::Value* active);
    void gather_next(Loop& loop, const std::vector<ir::Value*>& yielded);
    Leaf kept(Leaf& fresh, Leaf& old);
    void close_loop(Loop& loop, const std::vector<ir::Value*>& results, llvm::ArrayRef<ir::Value*> inits,
                    llvm::Value* active);
    llvm::Value* in_range(Scalar scalar, llvm::Value* k, llvm::Value* hi, llvm::Value* step);

    // ---- null_arrays.cpp ----
    bool may_be_null(const ir::Value* root) const;
    void guard_null(const ir::Operation& access);
    // ---- emit_checks.cpp ----
    void emit_tid(const ir::Operation& operation);
    llvm::Value* first_lane(llvm::Value* mask);              // i32; requires that a lane is set
    std::uint32_t new_site(const ir::Operation& operation);  // the number of a new check of this operation
    llvm::Value* thread_number(llvm::Value* lane);           // its number in the grid; null: of the first lane
    void emit_print(const ir::Operation& operation);
    llvm::Value* promoted(llvm::Value* number, Scalar scalar);
    void store_word(llvm::Value* number, llvm::Value* at);
    std::pair<llvm::Value*, std::int64_t> printed_words(const ir::Operation& operation, llvm::Value* lane);
    void emit_raise(const ir::Operation& operation);
    void emit_require(const ir::Operation& operation, FaultKind kind);
    // ---- emit_access.cpp ----
    // Reports an access at this address to the runtime, if Options::notes_accesses is set.
    void note_access(const ir::Operation& operation, const Address& address, AccessKind kind);
    void note_parts(const ir::Operation& operation, std::vector<LeafType> parts, const Address& address,
                    AccessKind kind);
    // The numbers of a loaded element that the kernel uses at static positions. A load with dynamic positions enters
    // part_addresses_.
    std::vector<LeafType> parts_used(const ir::Operation& load);
    void keep_part_address(const ir::Operation& load);
    void note_part(const ir::Operation& extract, const Leaf& position, std::int64_t bytes);
    void emit_assert(const ir::Operation& operation);
    // ---- emit_library.cpp ----
    void emit_call_library(const ir::Operation& operation);
    void emit_call_in_lanes(const ir::Operation& operation);
    void emit_call_for_each_lane(const ir::Operation& operation);
    // ---- emit_native.cpp ----
    void emit_call_native(const ir::Operation& operation);
    // ---- emit_checks.cpp ----
    // Calls weft_fault if `ok` is false, then continues after it, or at `otherwise` if given. The report names the
    // first thread of the lanes in `broken`.
    void check(const ir::Operation& operation, llvm::Value* ok, FaultKind kind, llvm::Value* index, llvm::Value* size,
               int axis, llvm::BasicBlock* otherwise = nullptr, llvm::Value* broken = nullptr);
    // True if every index is in range and the array is not None; reports the first violation. Debug builds only.
    llvm::Value* check_access(const ir::Operation& operation, llvm::ArrayRef<ir::Value*> indices,
                              std::size_t first_axis = 0);

    const transform::KernelPlan& plan_;
    const ir::Function& kernel_;
    const Machine& machine_;
    const Options& options_;
    llvm::Module& module_;
    NativeFunctions& natives_;
    Callees& callees_;
    llvm::LLVMContext& context_;
    Builder builder_;
    Lanes lanes_;
    Conversions conversions_;
    AliasScopes alias_scopes_;
    std::optional<DebugLines> debug_;
    llvm::Function* function_ = nullptr;
    llvm::Value* idle_lanes_[2] = {};     // memory that inactive lanes load from, and store to
    llvm::Value* first_stack_ = nullptr;  // of the region being emitted
    bool has_stacks_ = false, has_atomics_ = false, finds_objects_ = false;
    bool asks_blocks_ = false;  // for the number of their threads

    using LaneValues = std::unordered_map<const ir::Value*, LaneValue>;
    LaneValues values_;
    const ir::Value* unfused_ = nullptr;  // a fusable product that is currently being computed by itself
    std::unordered_set<const ir::Operation*> done_angles_;  // those computed along with their partner
    llvm::Value* arguments_ = nullptr;                      // the argument block
    llvm::Value* mask_ = nullptr;
    bool in_tail_ = false;                                   // some lane is certainly inactive
    llvm::MDNode* mostly_ = nullptr;                         // weights of a branch that is mostly taken
    llvm::Value* launch_ = nullptr;                          // the launch's context, for reports
    llvm::Value* objects_ = nullptr;                         // the launch's table, under Machine::object_tables
    llvm::SmallVector<llvm::Value*, kMaxDims> dims_;         // extents, i64
    llvm::SmallVector<llvm::Value*, kMaxDims> coordinates_;  // of lane 0 of the group, i64
    // Negative-index choices that the code being emitted may drop, as its indices are not negative.
    std::unordered_set<const ir::Operation*> from_start_;
    bool is_rare_ = false;          // the code being emitted hardly ever runs
    std::int64_t local_bytes_ = 0;  // of one thread's local arrays so far
    std::optional<bool> takes_local_addresses_;
    // For noted accesses: the users of each value, and the addresses of loaded elements with dynamic components.
    std::unordered_multimap<const ir::Value*, const ir::Operation*> users_;
    std::unordered_map<const ir::Value*, llvm::Value*> part_addresses_;
    std::vector<const ir::Operation*> checked_;  // of a kernel: the operation of each check, those of callees first
    llvm::Value* thread_of_caller_ = nullptr;    // in callees that take the launch
    llvm::BasicBlock* leave_ = nullptr;          // the block that ends the entry
};

template <typename Make>
Leaf Emitter::lift(std::initializer_list<Leaf*> operands, Make make) {
    llvm::SmallVector<llvm::Value*, 3> values;
    bool uniform = true;
    for (Leaf* operand : operands) uniform &= operand->uniform();
    for (Leaf* operand : operands) values.push_back(uniform ? operand->scalar : vector(*operand));
    llvm::Value* result = make(Values(values));
    return uniform ? Leaf::of_scalar(result) : Leaf::of_vector(result);
}

}  // namespace weft::codegen
