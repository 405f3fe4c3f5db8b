// Code for CPUs: groups of W lanes in a loop over a chunk of threads. The hooks of target.h, and the methods that only
// CPUs have:
//
//   entry.cpp             rows, groups of lanes, the masked tail
//   machine.cpp           the features of processors
//   math.cpp              SLEEF's functions
//   runtime.cpp           memory of a worker, faults, prints: calls of the runtime (imports.h)
//   copied_access.cpp     elements of groups with inactive lanes, or with lanes that are not adjacent
//   interleave.cpp        packed vectors in memory
//   transpose.cpp         packed vectors of many components
//   privatised.cpp        contributions of atomics, combined until the end of a chunk
//   chunk_boundaries.cpp  gradients that neighbouring chunks share; neighbours.cpp: additions of adjacent lanes
#pragma once

#include <functional>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "codegen/cpu/imports.h"
#include "codegen/emitter.h"

namespace weft::codegen {

// The properties of a CPU, read from TargetInfo once.
struct CpuMachine : Machine {
    explicit CpuMachine(const TargetInfo& target);
    bool wide_atomics = false;             // compare and swap of 16 bytes
    bool keeps_registers = false;          // weft_copy_lanes is preserve_all
    bool returns_pairs_in_memory = false;  // SLEEF's functions with two results
    std::string math_isa;                  // suffix of SLEEF's symbols
    int math_bits = 128;                   // width of SLEEF's vectors
};

class CpuEmitter final : public Emitter {
public:
    CpuEmitter(const transform::KernelPlan& plan, int lanes, const CpuMachine& machine, const Options& options,
               llvm::Module& module, NativeFunctions& natives, Callees& callees)
        : Emitter(plan, lanes, machine, options, module, natives, callees), cpu_(machine) {}

    void emit_entry(KernelEntry& entry) override;

protected:
    // ---- entry.cpp ----
    void describe(CpuEntry& entry) const;
    void load_dimensions(llvm::Value* context);
    void emit_rows(llvm::Value* begin, llvm::Value* end);
    void emit_segment(llvm::Value* first, llvm::Value* last);
    void emit_group(llvm::Value* first_lane, llvm::Value* mask);
    void emit_threads(llvm::Value* begin, llvm::Value* end);
    bool worth_writing_twice() const;

    // ---- math.cpp ----
    llvm::Value* math_function(ir::Op op, Scalar scalar, Values operands) override;
    bool has_sine_and_cosine() const override { return cpu_.returns_pairs_in_memory; }
    std::pair<llvm::Value*, llvm::Value*> sine_and_cosine(Scalar scalar, llvm::Value* a) override;
    llvm::Value* math_call(const std::string& symbol, bool is_double, Values operands);
    llvm::Value* hyperbolic(const std::string& symbol, bool is_double, llvm::Value* a);
    llvm::Value* mend_rare(llvm::Value* is_rare, llvm::Value* result, const std::function<llvm::Value*()>& other);
    llvm::Value* exponential(const std::string& symbol, llvm::Value* a);
    llvm::Value* power(const std::string& symbol, Values operands);
    std::string math_symbol(const std::string& stem, bool is_double, const char* accuracy) const;
    using Registers = llvm::SmallVector<llvm::Value*, 2>;
    Registers in_registers(bool is_double, Values operands, const std::function<Registers(Values)>& call);

    // ---- runtime.cpp ----
    llvm::CallInst* call_runtime(Import import, Values arguments);
    llvm::Value* take_scratch(const ir::Operation& operation, llvm::Value* bytes) override;
    void release_scratch(llvm::Value* first) override;
    std::pair<llvm::Value*, llvm::Value*> take_long_scratch(const ir::Operation& operation,
                                                            std::int64_t row_bytes) override;
    void report_fault(const FaultReport& fault) override;
    void report_access(const AccessReport& access) override;
    void report_raise(llvm::Value* thread, std::uint32_t site, llvm::Value* format, llvm::Value* words,
                      std::int64_t count) override;
    void report_print(llvm::Value* format, llvm::Value* words, std::int64_t count) override;
    llvm::Value* find_object(llvm::Value* id, std::int64_t kind) override;
    llvm::Value* has_object(llvm::Value* id, std::int64_t kind) override;

    // ---- copied_access.cpp ----
    LaneValue load_from(Address& address, Type type) override;
    void store_to(Address& address, Type type, LaneValue& stored) override;
    bool emit_load_of_neighbours(const ir::Operation& operation) override;
    bool is_copied(const Address& address, llvm::ArrayRef<LeafType> leaves) const;
    llvm::AllocaInst* copy_of(const Address& address);
    void clear_copy(const Address& address);
    llvm::CallInst* call_copier(Import import, const Address& address, Values arguments);
    // (whether the lanes are neighbours in this group, the index of the first)
    std::pair<llvm::Value*, llvm::Value*> run_test(const ir::Value* index);
    bool is_run(const ir::Value* array, llvm::ArrayRef<ir::Value*> indices);
    LaneValue load_run(const ir::Operation& operation, const std::function<LaneValue(Address&)>& load);
    void copy_lanes(const Address& address, llvm::Value* to, llvm::Value* from, std::int64_t bytes);
    void emit_unless_full(const std::function<void()>& body);
    void load_copied(Address& address, std::int64_t bytes, const std::function<void()>& load);
    void store_copied(Address& address, std::int64_t bytes, const std::function<void()>& store);

    // ---- interleave.cpp ----
    static constexpr int kMostInterleaved = 16;  // components
    // Whether the lanes access elements of equal components one after the other in memory, without gaps.
    bool is_packed(const Address& address, const std::vector<LeafType>& leaves, std::int64_t element_bytes) const;
    bool interleaves(const Address& address, const std::vector<LeafType>& leaves, std::int64_t element_bytes) const;
    bool is_in_rows(const Address& address, const std::vector<LeafType>& leaves) const;
    void load_rows(Address& address, const std::vector<LeafType>& leaves, LaneValue& result);
    void load_interleaved(const Address& address, const std::vector<LeafType>& leaves, LaneValue& result);
    void store_interleaved(const Address& address, const std::vector<LeafType>& leaves, LaneValue& value);
    llvm::Value* shuffle_segments(llvm::Value* a, llvm::Value* b, llvm::ArrayRef<int> positions);

    // ---- transpose.cpp ----
    // As many components as there are lanes, from `first` on. Those before `done` belong to the block before, too.
    struct PackedBlock {
        int first, done;
        llvm::SmallVector<llvm::Value*, 16> rows;  // a pointer for each lane
    };
    bool transposes(const Address& address, const std::vector<LeafType>& leaves, std::int64_t element_bytes) const;
    void for_each_block(const Address& address, const std::vector<LeafType>& leaves,
                        const std::function<void(const PackedBlock&)>& visit);
    void load_transposed(const Address& address, const std::vector<LeafType>& leaves, LaneValue& result);
    void store_transposed(const Address& address, const std::vector<LeafType>& leaves, LaneValue& value);

    // ---- privatised.cpp ----
    // One number of one atomic operation, accumulated in a register over the chunk.
    struct Accumulator {
        ir::Op kind;
        Scalar scalar;
        llvm::Value* sum = nullptr;      // a local variable
        llvm::Value* pointer = nullptr;  // the address of the final atomic
    };
    // A memory that may be small enough for a private copy.
    struct PrivateCopy {
        MemoryRoot root;
        ir::Op kind;
        Scalar scalar;
        llvm::Value* memory = nullptr;
        llvm::Value* numbers = nullptr;  // their count, i64
        LaneValue shared;                // the array itself
    };
    bool emit_put_together(const ir::Operation& atomic) override;
    bool is_private(MemoryRoot root) const override { return private_memories_.contains(root); }
    void open_accumulators();
    void close_accumulators();
    bool accumulate(const ir::Operation& operation);
    void emit_chunk(llvm::Value* begin, llvm::Value* end);
    void emit_shared_chunk(llvm::Value* begin, llvm::Value* end);
    std::vector<PrivateCopy> private_candidates();
    llvm::Value* visits(const ir::Operation& operation);
    llvm::Value* fits(PrivateCopy& copy, llvm::Value* threads);
    void open_private_copy(const PrivateCopy& copy);
    void close_private_copy(const PrivateCopy& copy);
    void contribute_block(ir::Op kind, Scalar scalar, llvm::Value* pointer, llvm::Value* totals);
    void emit_counted(llvm::Value* count, const std::function<void(llvm::Value* i)>& body);

    // ---- chunk_boundaries.cpp ----
    void find_boundaries(llvm::Value* begin, llvm::Value* end);
    bool is_shared_at_boundaries(const ir::Operation& operation) const;
    llvm::Value* in_middle(const ir::Operation& access);
    void add_within_chunk(const ir::Operation& operation);
    bool add_in_lanes(const ir::Operation& operation, llvm::ArrayRef<ir::Value*> indices,
                      const std::function<void()>& otherwise);

    // ---- neighbours.cpp ----
    bool can_add_together(const transform::AdjacentAdditions& group);
    void emit_adjacent_additions(const transform::AdjacentAdditions& group);
    void add_together(const transform::AdjacentAdditions& group, const transform::AdjacentAdditions::Member& highest,
                      llvm::Value* is_middle);

    const CpuMachine& cpu_;
    int thread_loops_ = 0;
    std::map<int, llvm::AllocaInst*> copies_;  // by AliasScopes::key(); -1: any other memory
    llvm::AllocaInst* index_slots_ = nullptr;  // the indices of a gather
    std::map<const ir::Operation*, std::vector<Accumulator>> accumulators_;
    llvm::Value* middle_[2] = {};            // bounds on the first axis; threads between them meet no other chunk
    llvm::Value* own_[2] = {};               // elements between these belong to no other chunk
    std::set<MemoryRoot> private_memories_;  // that no other worker touches while the code being emitted runs
};

}  // namespace weft::codegen
