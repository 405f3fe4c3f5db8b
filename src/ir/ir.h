// The intermediate representation: small, typed, structured SSA. Semantics first:
//
// * A Value is defined once: by an operation, or as an argument of a region. It may be used anywhere below its
//   definition in the same region and in the regions nested there, and nowhere else (verify()).
// * Control flow is structured: if_, for_ and while_ hold regions that end in `yield`; its operands become the results.
//   Mutable locals are carried values; break, continue and early return are flags. There are no basic blocks.
// * Values have no address. Memory is reached through arrays only (load, store, atomics), in program order. The launch
//   states whether array parameters overlap (transform::PlanOptions::noalias), not the IR.
// * Operations without effects (has_effects()) may be moved, merged and dropped.
// * Numbers: ops.def. Integer arithmetic wraps; integer indices are sign- or zero-extended to 64 bits.
//
// Nodes are plain structs owned by their Function (addresses stay valid while it lives). Passes are free functions.
//
//   ops.def    the table of operations
//   typing.h   the types of operands and results
//   walk.h     visiting, replacing and cloning
//
// The text form and the semantics in full: docs/ir.md.
#pragma once

#include <cstdint>
#include <deque>
#include <iterator>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "support/source.h"
#include "types/effects.h"
#include "types/type.h"

namespace weft::ir {

enum class Op : std::uint8_t {
#define WEFT_OP(id, ...) id,
#include "ir/ops.def"
};
// The columns of ops.def, which defines them.
enum class OpClass : std::uint8_t { unary, binary, compare, classify, atomic, other };
enum class OpForm : std::uint8_t {
    listed,
    number,
    path,
    path_then,
    shape,
    element,
    element_value,
    element_values,
    part_element,
    call,
    library,
    axis,
    message,
    regions
};
enum class ResultType : std::uint8_t { follows, stated };
enum class Derivative : std::uint8_t { none, partial, own };
enum class Effects : std::uint8_t { none, memory, reports, inner };
struct OpInfo {
    OpClass cls;
    OpForm form;
    ResultType type;
    Derivative derivative;
    Effects effects;
    double cost;
};
inline constexpr OpInfo kOps[] = {
#define WEFT_OP(id, cls, form, type, derivative, effects, cost) \
    {OpClass::cls, OpForm::form, ResultType::type, Derivative::derivative, Effects::effects, cost},
#include "ir/ops.def"
};
inline constexpr std::size_t kOpCount = std::size(kOps);

inline const OpInfo& op_info(Op op) { return kOps[static_cast<std::size_t>(op)]; }
const char* op_name(Op op);  // "add", "cmp.lt", "atomic.add", "if", "for"
inline OpClass op_class(Op op) { return op_info(op).cls; }
std::optional<Op> parse_op(std::string_view name);
inline bool is_atomic(Op op) { return op_class(op) == OpClass::atomic; }
// The operation that an atomic applies to the element and its value: add for atomic_add. Empty for those that only
// replace.
std::optional<Op> applied(Op atomic);
// The number of operands behind the indices of an operation on an element: its values.
std::size_t values_behind_indices(Op op);
// True for stores and atomics.
inline bool writes(Op op) { return op == Op::store || is_atomic(op); }

struct Operation;
struct Region;
struct Function;

struct Value {
    Type type;
    Operation* definition = nullptr;  // null for an argument of a region
    Region* region = nullptr;         // the owner of an argument; null for a result
    int index = 0;                    // number among the results, or the arguments
    int id = 0;                       // unique in its function, in order of creation
    std::string name;                 // the user's name, if there is one; for printing only
};

// The body of a function that the user wrote in C++ (@wp.func_native), compiled by a clang of the machine.
struct NativeSnippet {
    // Their names in the C++. `&x` is passed by reference; `?x` is an array's gradient, which may be null.
    std::vector<std::string> parameters;
    SourcePtr source;  // of the C++ alone: its first line is line 1
};

// A function of the device library, with the facts that transform and codegen need. Or a function of the user's in C++,
// whose `symbol` is its name, for messages.
//
// Its derivatives are functions of the library too. The adjoint takes the operands and the adjoint of the result. It
// gives a tuple of the adjoints of those operands that have one (ir::is_smooth()), in their order. The tangent takes
// the operands and their tangents, and gives the tangent of the result.
struct LibraryFunction {
    std::string symbol;
    bool pure = true;  // no effects; the result depends on the operands and on memory read through them
    std::shared_ptr<const NativeSnippet> native = {};
    std::string adjoint = {}, tangent = {};  // symbols; empty: no derivative
    // Numbers of the operands through which it reaches memory: arrays, and ids of objects that the runtime has built.
    std::vector<int> reads = {}, writes = {};
    // each_lane: called for one thread after the other. lanes (devlib/lanes.h): one function for each lane count, which
    // computes all lanes. masked (devlib/spatial/functions.h): one function for any lane count, with a mask.
    enum class Form : std::uint8_t { each_lane, lanes, masked } form = Form::each_lane;
    bool is_uniform = true;  // uniform operands give a uniform result

    bool reaches_memory() const { return !reads.empty() || !writes.empty(); }
    bool operator==(const LibraryFunction&) const = default;
};
// For messages: "the library function 'x'".
std::string named(const LibraryFunction& function);

// The origin of an inlined operation: the call that was inlined, and the call around that one. For messages only.
struct CallLocation {
    std::string function;                                         // the callee
    Span span;                                                    // of the call
    std::vector<std::pair<const Value*, std::string>> arguments;  // the values passed, by the parameters' names
    const CallLocation* outer = nullptr;
};

struct Operation {
    Op op;
    std::vector<Value*> operands;
    std::vector<Value*> results;
    std::vector<Region*> regions;
    Region* parent = nullptr;
    Span span;
    const CallLocation* inlined = nullptr;  // null: not inlined

    // Attributes; ops.def names the operations that use each.
    std::vector<Number> numbers;     // constant
    std::vector<std::int64_t> ints;  // static paths, axes, shapes, kinds: extract, dim, local_array, object, tid, ...
    std::string text;                // print, raise, require, assert_
    bool guarded = false;            // for_
    bool likely = false;             // if_: the second arm hardly ever runs
    bool unset = false;              // local_array: uninitialised
    Function* function = nullptr;    // call
    std::shared_ptr<const LibraryFunction> library;  // call_library

    Value* result(std::size_t i = 0) const { return results[i]; }
    Region& body(std::size_t i = 0) const { return *regions[i]; }
};

struct Region {
    std::vector<Value*> arguments;
    std::vector<Operation*> operations;  // the last one is yield (return_ in a function's body)
    Operation* owner = nullptr;          // null for a function's body

    Operation* terminator() const { return operations.empty() ? nullptr : operations.back(); }
};

// A parameter that the compiler appended to those of the user; launches provide it. It belongs to parameter `of`.
struct ImplicitParameter {
    enum class Kind : std::uint8_t {
        copy,      // a copy made for the launch, discarded afterwards
        after,     // of an adjoint: the array as it was after the launch that the adjoint belongs to
        returned,  // results of the atomic with number `of`: one element per thread of a recorded launch
        log,     // part of the log of atomic results in loops (transform/adjoint/atomic_results.h), numbered after them
        order,   // the coordinate that each thread takes (transform::follow_grid_order())
        sorted,  // a copy of an array in grid order; `of` as in transform::SortedCopy
        number,  // of an adjoint: the number at byte `of` of the arguments, in memory, with its gradient
    };
    Kind kind;
    int of;

    bool is_for_order() const { return kind == Kind::order || kind == Kind::sorted; }
    bool is_returned() const { return kind == Kind::returned || kind == Kind::log; }
};

struct Function {
    std::string name;
    bool is_kernel = false;
    bool is_adjoint = false;  // the launch promises that gradients overlap no other array and no other gradient
    int tid_rank = 0;         // the number of coordinates of tid(): 0 (never called) to 4
    Region body;              // its arguments are the parameters
    std::vector<ImplicitParameter> implicit_parameters;  // one for each of the last parameters
    // Parameters whose elements threads update uncontended: different indices must be different elements.
    std::vector<int> uncontended_parameters;
    Type result;  // none for kernels; a tuple for several values
    Span span;
    // Custom derivatives. The gradient takes the parameters and the adjoints of the results, and gives the adjoints of
    // the parameters that have one. The replay gives the results again.
    Function* gradient = nullptr;
    Function* replay = nullptr;
    bool sees_after = false;  // for those: they see arrays that the kernel writes as they are after the launch
    // Set on the gradient of that function, which is empty until transform/ writes its body.
    Function* reverse_of = nullptr;

    // Whether calls stay calls until derivatives have been made.
    bool has_own_derivative() const { return gradient || replay; }

    std::vector<Value*>& parameters() { return body.arguments; }
    const std::vector<Value*>& parameters() const { return body.arguments; }
    // Null for the user's parameters, and for values that are no parameters.
    const ImplicitParameter* implicit(const Value* value) const {
        const std::size_t own = parameters().size() - implicit_parameters.size(),
                          at = static_cast<std::size_t>(value->index);
        return value->region == &body && at >= own ? &implicit_parameters[at - own] : nullptr;
    }
    bool is_copy(const Value* value) const {
        const ImplicitParameter* found = implicit(value);
        return found && found->kind == ImplicitParameter::Kind::copy;
    }

    // Above every value's id: the size of a table indexed by id.
    int value_count() const { return next_id_; }
    Value* new_value(Type type, std::string name = {});
    Operation* new_operation(Op op, Span span = {});
    Region* new_region(Operation* owner);  // also the owner's last region
    Value* add_result(Operation* operation, Type type, std::string name = {});
    Value* add_argument(Region* region, Type type, std::string name = {});

    Function() = default;
    Function(const Function&) = delete;
    Function& operator=(const Function&) = delete;

private:
    std::deque<Value> values_;
    std::deque<Operation> operations_;
    std::deque<Region> regions_;
    int next_id_ = 0;
};

struct Module {
    std::vector<std::unique_ptr<Function>> functions;
    std::vector<SourcePtr> sources;  // keeps the spans' text alive
    std::deque<CallLocation> calls;  // those that have been inlined

    Function* find(std::string_view name) const;
    Function* add(std::string name);
};

// ---- queries ----
// The number of a loop's own operands and arguments, which come before the carried ones.
inline std::size_t carried_operands(const Operation& loop) { return loop.op == Op::for_ ? 3 : 0; }
inline std::size_t carried_arguments(const Operation& loop) { return loop.op == Op::for_ ? 1 : 0; }
const Region* region_of(const Value* value);
// The array that this one is a part of, as far as known: a parameter, a local array, or an array from memory, a struct
// or a branch.
const Value* root_of(const Value* array);
// Whether it is in thread-private memory: a local array, a stack, or a part of one.
bool is_of_thread(const Value* array);
// The same, and on to the struct that the array is a field of.
const Value* origin_of(const Value* array);
// Whether it is a parameter of the function: loops have arguments too.
bool is_parameter(const Function& function, const Value* value);
// The gradient (grad_of) that an array was taken from, through any operations; null if it is no part of one.
Value* gradient_holding(Value* array);
const Value* gradient_holding(const Value* array);
// True for operations that must not move (the column `effects` of ops.def), including calls, impure library functions
// and structured operations that hold any of these.
bool has_effects(const Operation& operation);
// Whether it has effects, but none on memory: print, raise, require, assert.
inline bool only_reports(Op op) { return op_info(op).effects == Effects::reports; }
// Effects on each parameter, following views, members and calls.
std::vector<ParameterEffects> effects(const Function& function);

// Text, stable for equal functions: values are numbered by position. Two functions print alike exactly if they differ
// in spans and names only; `names` adds the user's names and line comments. The disk cache hashes it.
std::string print(const Function& function, bool names = true);
std::string print(const Module& module, bool names = true);
// Reads what print() wrote. Throws UsageError with line and column.
std::unique_ptr<Module> parse(std::string_view text);
// Throws an InternalError that names the operation, if the rules above do not hold.
void verify(const Function& function);
void verify(const Module& module);

}  // namespace weft::ir
