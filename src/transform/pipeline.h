// The whole middle of the compiler, pass by pass, on one page. Each can be seen by its name ($WEFT_DUMP, weft-opt):
//
//     launch              the kernel for launches of one rank                       fit_to_launch()
//     functions           bodies of functions that are the reverse of others        write_gradients()
//     custom_derivatives  fills in derivatives that functions with their own lack   prepare_custom_derivatives()
//     inline              calls become what they call                               inline_calls()
//     scalar_replacement  loops and branches carry the fields of structs            replace_structs_by_fields()
//     local               atomics of local arrays become a load and a store         split_local_atomics()
//     simplify            behind each of the following that has changed something   simplify()
//     negative_indices    indices that are known not to count from the end          drop_negative_indices()
//     uncontended         atomics of elements that one thread has to itself         split_uncontended_atomics()
//     atomic_results      results of atomics are kept for the adjoint               with_atomic_results()
//     numbers             numbers with gradients are read from memory               read_numbers_from_memory()
//     adjoint             the kernel becomes its adjoint                            adjoint()
//     gradients           gradients that users wrote reach arrays                   share_gradients()
//     jvp                 it carries tangents                                       jvp()
//     grid_order          threads take coordinates in the order of a hash grid      follow_grid_order()
//     neighbour_rows      loops over a query's points go row by row                 loop_over_neighbour_rows()
//     nan_check           each write is checked for NaN and infinity                instrument_nan_check()
//     vectors_in_memory   large vectors that are indexed at run time lie in memory  keep_vectors_in_memory()
//
// The analyses that codegen needs afterwards are those of analysis/plan.h.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "ir/builder.h"
#include "ir/ir.h"
#include "ir/unroll_limit.h"
#include "transform/adjoint/adjoint.h"
#include "transform/jvp/jvp.h"

namespace weft::transform {

// Replaces every call of a user function by its body, callees first; then functions are dropped, but in a module that
// has no kernel those that nothing calls. Recursion is an error that sema reports, so this ends.
// `Calls::custom_derivatives` leaves calls of functions that have derivatives of their own, and these functions;
// `except_noinline` leaves those of functions that large kernels share (noinline_functions.h).
enum class Calls { all, custom_derivatives, except_noinline };
void inline_calls(ir::Module& module, Calls which = Calls::all);
// The same for the calls in one function; nothing is dropped.
void inline_into(ir::Module& module, ir::Function& function, Calls which);

// Folds constants, removes values nobody uses, merges equal values, forwards through extract/make, simplifies ifs with
// constant conditions. Keeps effects and their order.
void simplify(ir::Function& function);

// Makes loops and branches carry the fields of structs instead of these.
void replace_structs_by_fields(ir::Function& function);

// What the atomic leaves where `old` was.
ir::Value* atomic_leaves(ir::Builder& b, const ir::Operation& atomic, ir::Value* old);
// Makes atomics of local arrays what they are: a load and a store.
void split_local_atomics(ir::Function& function);
// The same for all uncontended elements (analysis/uncontended.h), or for those of them that the kernel reads too. True
// where there was any. Function::uncontended_parameters gets their arrays.
enum class Uncontended { all, read_too };
bool split_uncontended_atomics(ir::Function& kernel, bool noalias, Uncontended which);

// Gives large vectors that are indexed at run time a place in memory, and makes operations on still larger values loops
// over components (storage/). True where there was one.
inline constexpr int kMostInRegisters = 16;  // components
struct VectorsInMemoryOptions {
    int most_in_registers = kMostInRegisters;  // of what is indexed at run time
    int most_unrolled = ir::kMostUnrolled;     // above it, all operations are loops
    bool noalias = true;                       // arrays that are written overlap no others
    bool checks_parts = false;                 // indices of components are to be checked: only what is in loops moves
};
bool keep_vectors_in_memory(ir::Function& function, const VectorsInMemoryOptions& options = {});

// Makes the kernel note before each store and atomic whether an element that was finite is about to be so no longer.
void instrument_nan_check(ir::Function& kernel);

// Makes each thread of a kernel take the coordinate that a last parameter, ImplicitParameter::Kind::order, has for it.
// `sorts`: what it reads of neighbours comes out of copies, ImplicitParameter::Kind::sorted, of each grid in its own
// order. What another order changes: order_shows() (analysis/threads.h). Only kernels with one coordinate change.
void follow_grid_order(ir::Function& kernel, bool sorts);

// Makes loops over the items of a hash grid's query loops over the query's rows of cells, and in these over the items
// of a row. True where there was one. Simplified code of lanes is quicker for it; one lane alone may be slower.
bool loop_over_neighbour_rows(ir::Function& kernel);

// The rank of a launch is the number of its dimensions without extents of 1 at the end: rows of one thread would use
// one lane. 0: as many as tid() has names. fitted_rank() is that of the code for a kernel with so many names.
int fitted_rank(int names, int launch_rank);
// Makes the kernel one for launches of this rank. Names beyond it are 0. Where dimensions have no name, the named
// coordinates do not identify a thread any more; who asks that compares with Function::tid_rank.
void fit_to_launch(ir::Module& module, int launch_rank);

struct PipelineOptions {
    int launch_rank = 0;
    // Makes each kernel its adjoint: what is known of the gradients of its parameters.
    std::optional<AdjointOptions> adjoint;
    std::vector<bool> numbers;  // of which parameters numbers have gradients (adjoint/numbers.h); empty: of none
    std::optional<std::int64_t> stack_slots;  // of gradients that kernels call: AdjointOptions::stack_slots
    // Makes each kernel keep what its atomics give (adjoint/atomic_results.h).
    bool keeps_atomic_results = false;
    // Then makes each kernel, or its adjoint, carry tangents.
    std::optional<JvpOptions> jvp;
    bool noalias = true;          // arrays that are written overlap no others
    bool distinct = true;         // different indices are different elements, in all arrays
    bool grid_order = false;      // follow_grid_order()
    bool neighbour_rows = false;  // loop_over_neighbour_rows(); of an adjoint before it is made
    bool nan_check = false;       // instrument_nan_check()
    bool checks_parts = false;    // indices of components are to be checked (VectorsInMemoryOptions)
    bool keeps_calls =
        false;  // large kernels may call functions (noinline_functions.h); not where there are derivatives
    // Called after each pass with its name and the module: WEFT_DUMP, weft-opt --stop-after, timings.
    std::function<void(std::string_view pass, const ir::Module&)> after_pass;
    std::string stop_after;
};
void run_pipeline(ir::Module& module, const PipelineOptions& options = {});

}  // namespace weft::transform
