// The middle of the compiler: all passes, in their order. $WEFT_DUMP and weft-opt show the module behind each of them.
//
// pass                summary, and the reason for its place                               file
//
// tiles               Tiles become vectors and loops, for blocks of one thread.          tiles/lower_tiles.h
//                     No other pass knows tiles.
// launch              Fits the kernel to launches of one rank.                            passes/launch_rank.h
//                     Coordinates that such launches do not have become 0.
// functions           Writes the gradients of functions that the kernel calls.            adjoint/functions.h
//                     Their bodies are needed before calls are inlined.
// custom_derivatives  Completes the derivatives that users wrote.                         adjoint/functions.h
//                     Calls of these functions stay until the derivatives are used.
// inline              Replaces calls by the bodies of their functions.                    inline/inline.h
//                     All later passes see the kernel as a whole.
// scalar_replacement  Loops and branches carry the fields of structs.                     passes/scalar_replacement.h
//                     A field that does not change in a loop is then not carried at all.
// local               Atomics of local arrays become a load and a store.                  passes/uncontended_atomics.h
//                     No other thread reaches a local array.
// simplify            Folds constants, merges equal values, removes unused ones.          simplify/simplify.h
//                     Runs again behind each later pass that has changed something.
// negative_indices    Drops choices for indices that are never negative.                  passes/negative_indices.h
//                     Loads and stores then have plain addresses.
// uncontended         Atomics of elements of one thread become a load and a store.        passes/uncontended_atomics.h
//                     Before an adjoint only those that the kernel reads too: stores have known values.
// atomic_results      A launch on a tape keeps the results of its atomics.                adjoint/atomic_results.h
//                     Their order cannot be repeated by the backward pass.
// neighbour_rows      Loops over a hash grid's query go row by row.                       passes/neighbour_rows.h
//                     Before an adjoint, whose loops then save the state of rows; else at the end.
// numbers             Numbers with gradients are read from memory.                        adjoint/numbers.h
//                     An adjoint adds to gradients in memory only.
// adjoint             The kernel becomes its adjoint.                                     adjoint/adjoint.h
//                     Custom derivatives are inlined behind it.
// gradients           Gradients that users wrote reach the arrays of the launch.          adjoint/functions.h
//                     They take arrays as they are after the launch.
// jvp                 The kernel, or its adjoint, carries tangents.                       jvp/jvp.h
//                     An adjoint with tangents gives products with the Hessian.
// grid_order          Threads take their coordinates in the order of a hash grid.         passes/follow_grid_order.h
//                     Behind every pass that identifies elements by thread coordinates.
// nan_check           Each write is checked for NaN and infinity.                         passes/nan_check.h
//                     Behind the derivatives: gradients are checked too.
// vectors_in_memory   Large vectors that are indexed at run time lie in memory.           vectors_in_memory/
//                     No other pass knows these memories.
// late_loads          Components of such vectors are loaded next to their use.            vectors_in_memory/
//                     The last pass: simplify would move nothing back, and has less to look at before.
//
// Code generation reads the result together with the analyses of plan.h.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "ir/ir.h"
#include "ir/specialization.h"
#include "transform/adjoint/adjoint.h"
#include "transform/jvp/jvp.h"

namespace weft::transform {

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
