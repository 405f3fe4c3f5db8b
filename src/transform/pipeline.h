// The whole middle of the compiler, pass by pass, on one page. $WEFT_DUMP and weft-opt show each by its name:
//
//     launch              the kernel for launches of one rank                       fit_to_launch()
//     functions           bodies of functions that are the reverse of others        write_gradients()
//     custom_derivatives  completes the derivatives that users wrote                prepare_custom_derivatives()
//     inline              calls are replaced by the bodies of their functions       inline_calls()
//     scalar_replacement  loops and branches carry the fields of structs            replace_structs_by_fields()
//     local               atomics of local arrays become a load and a store         split_local_atomics()
//     simplify            behind each of the following that has changed something   simplify()
//     negative_indices    drops choices for indices that are never negative         drop_negative_indices()
//     uncontended         atomics of elements that one thread alone updates         split_uncontended_atomics()
//     atomic_results      results of atomics are kept for the adjoint               with_atomic_results()
//     numbers             numbers with gradients are read from memory               read_numbers_from_memory()
//     adjoint             the kernel becomes its adjoint                            adjoint()
//     gradients           gradients that users wrote reach arrays                   share_gradients()
//     jvp                 the kernel, or its adjoint, carries tangents              jvp()
//     grid_order          threads take coordinates in the order of a hash grid      follow_grid_order()
//     neighbour_rows      loops over a query's points go row by row                 loop_over_neighbour_rows()
//     nan_check           each write is checked for NaN and infinity                instrument_nan_check()
//     vectors_in_memory   large vectors that are indexed at run time lie in memory  keep_vectors_in_memory()
//
// Code generation needs the analyses of analysis/plan.h afterwards.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "ir/builder.h"
#include "ir/ir.h"
#include "ir/specialization.h"
#include "ir/unroll_limit.h"
#include "transform/adjoint/adjoint.h"
#include "transform/jvp/jvp.h"

namespace weft::transform {

// Replaces every call of a user function by its body, callees first, and then drops the functions. A module without a
// kernel keeps those that were not inlined. Terminates, as sema reports recursion as an error.
// `Calls::custom_derivatives` keeps functions with custom derivatives and their calls; `except_noinline` keeps those
// that large kernels share (noinline_functions.h).
enum class Calls { all, custom_derivatives, except_noinline };
void inline_calls(ir::Module& module, Calls which = Calls::all);
// The same for the calls in one function; no function is dropped.
void inline_into(ir::Module& module, ir::Function& function, Calls which);

// Folds constants, removes unused values, merges equal values, forwards through extract/make, simplifies ifs with
// constant conditions. Keeps effects and their order.
void simplify(ir::Function& function);

// Makes loops and branches carry the fields of structs instead of the structs.
void replace_structs_by_fields(ir::Function& function);

// The value of the element after the atomic, if it was `old` before.
ir::Value* atomic_leaves(ir::Builder& b, const ir::Operation& atomic, ir::Value* old);
// Turns atomics of local arrays into a load and a store.
void split_local_atomics(ir::Function& function);
// The same for all uncontended elements (analysis/uncontended.h), or for those of them that the kernel reads too. True
// if there was any. Function::uncontended_parameters gets their arrays.
enum class Uncontended { all, read_too };
bool split_uncontended_atomics(ir::Function& kernel, bool noalias, Uncontended which);

// Gives large vectors that are indexed at run time a place in memory, and turns operations on still larger values into
// loops over components (vectors_in_memory/). True if there was one.
inline constexpr int kMostInRegisters = 16;  // components
struct VectorsInMemoryOptions {
    int most_in_registers = kMostInRegisters;  // of vectors that are indexed at run time
    int most_unrolled = ir::kMostUnrolled;     // above it, all operations are loops
    bool noalias = true;                       // arrays that are written overlap no others
    bool checks_parts = false;                 // indices of components are checked: only values in loops then move
};
bool keep_vectors_in_memory(ir::Function& function, const VectorsInMemoryOptions& options = {});

// Instruments stores and atomics to note whether an element stops being finite.
void instrument_nan_check(ir::Function& kernel);

// Makes each thread of a kernel take its coordinate from an extra parameter, ImplicitParameter::Kind::order. `sorts`:
// loads of neighbours read copies, ImplicitParameter::Kind::sorted, in the order of each grid. order_shows()
// (analysis/threads.h) says how results depend on the order. Only kernels with one coordinate change.
void follow_grid_order(ir::Function& kernel, bool sorts);

// Turns loops over the items of a hash grid's query into loops over its rows of cells, with inner loops over the items
// of a row. True if there was one. Code for lanes is quicker for it; scalar code may be slower.
bool loop_over_neighbour_rows(ir::Function& kernel);

// The rank of a launch is the number of its dimensions without trailing extents of 1: rows of one thread would use one
// lane. 0: the number of names that tid() has. fitted_rank() is the rank of the code for a kernel with so many names.
int fitted_rank(int names, int launch_rank);
// Fits the kernel to launches of this rank. Names beyond it are 0. If dimensions have no name, the named coordinates do
// not identify a thread any more; compare with Function::tid_rank to find out.
void fit_to_launch(ir::Module& module, int launch_rank);

// The properties of a specialization that passes read: the rows of ir/specialization.def with that column.
struct PassProperties {
#define WEFT_PROPERTY(type, name, usual, passes, analyses, code, launches) WEFT_ONLY_##passes(type name = usual;)
#include "ir/specialization.def"

    bool operator==(const PassProperties&) const = default;
};

struct PipelineOptions : PassProperties {
    // If set, replaces each kernel by its adjoint.
    std::optional<AdjointOptions> adjoint;
    std::vector<bool> numbers;  // parameters whose numbers have gradients (adjoint/numbers.h); empty: none
    std::optional<std::int64_t> stack_slots;  // of gradients that kernels call: AdjointOptions::stack_slots
    // If set, makes each kernel, or its adjoint, carry tangents.
    std::optional<JvpOptions> jvp;
    // Called after each pass with its name and the module: WEFT_DUMP, weft-opt --stop-after, timings.
    std::function<void(std::string_view pass, const ir::Module&)> after_pass;
    std::string stop_after;
};
void run_pipeline(ir::Module& module, const PipelineOptions& options = {});

}  // namespace weft::transform
