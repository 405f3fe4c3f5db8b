// What codegen has to know of a kernel beside its IR: the results of all analyses, made once for a kernel and a set of
// promises. A back end for any target reads them and analyses nothing itself; what it cannot use (lanes on a GPU) it
// leaves alone.
#pragma once

#include <limits>
#include <map>
#include <optional>
#include <set>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "ir/ir.h"
#include "transform/analysis/arithmetic.h"
#include "transform/analysis/halo.h"
#include "transform/analysis/neighbours.h"
#include "transform/analysis/underlying_memory.h"
#include "transform/analysis/uniformity.h"
#include "transform/negative_indices.h"

namespace weft::transform {

// What launches promise, and what the code is to do.
struct PlanOptions {
    bool noalias = true;             // arrays that are written overlap no others
    bool checked = false;            // each access is checked, so that contributions may not be put together
    bool null_arrays = false;        // array parameters of kernels may be None
    bool private_gradients = false;  // each worker has scattered_gradients() to itself
    bool fuses = true;               // products are fused with the sums that use them
    // Functions of more operations run in scalar code: they are not asked what their values look like across lanes.
    int most_operations_in_lanes = std::numeric_limits<int>::max();
};

// What is known of an atomic.
struct AtomicFacts {
    Memory memory;
    bool is_fixed = false;                   // its address is the same for the whole launch
    const ir::Value* first_index = nullptr;  // of memories in KernelPlan::halo: the one that reach is about
};

struct KernelPlan {
    KernelPlan() = default;
    KernelPlan(KernelPlan&&) = default;  // and no copies: parts point to each other
    KernelPlan& operator=(KernelPlan&&) = default;

    const ir::Function* function = nullptr;
    Uniformity uniformity;
    Arithmetic arithmetic;
    // Loops that ask before they begin whether their indices count from the end. In scalar code only.
    std::unordered_map<const ir::Operation*, NegativeIndexChecks> loop_index_checks;
    std::unordered_set<const ir::Operation*> loops_of_launch;  // their bounds are the same for the whole launch
    bool parameters_may_be_null = false;                       // those that are arrays
    bool others_may_be_null = false;                           // arrays that branches and loops give

    std::unordered_map<const ir::Operation*, AtomicFacts> atomics;
    std::map<Memory, ir::Op> privatised;  // privatised_memories(), where these are promised to be alone
    std::set<Memory> uncontended;         // memories that no other worker touches
    std::optional<std::vector<int>> own;  // thread_private_elements(), of a kernel, without `checked`
    std::set<Memory> read_only;           // memories that nothing changes while a launch runs, with `noalias`
    Halo halo;                            // without `checked` and with `noalias`
    std::vector<Neighbours> neighbours;   // additions that lanes may make as one
    std::unordered_map<const ir::Operation*, const Neighbours*> neighbours_of;
    bool depends_on_order = false;  // what it leaves in memory: order_dependence.h
    bool has_long_loops = false;    // long_loops.h
};

// By the functions of the module, in their order; kernels have their calls inlined, or are not analysed for lanes.
using ModulePlan = std::vector<KernelPlan>;
ModulePlan plan(const ir::Module& module, const PlanOptions& options = {});

}  // namespace weft::transform
