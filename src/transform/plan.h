// The plan of a kernel: the results of all analyses that code generation reads beside the IR. It is made once for a
// kernel and a set of promises. Back ends analyse nothing themselves, and ignore results that do not concern them
// (lanes on a GPU).
#pragma once

#include <limits>
#include <map>
#include <optional>
#include <set>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "ir/ir.h"
#include "ir/specialization.h"
#include "transform/analysis/adjacent_additions.h"
#include "transform/analysis/arithmetic.h"
#include "transform/analysis/cost/arm_forms.h"
#include "transform/analysis/cost/body_size.h"
#include "transform/analysis/cost/lane_count.h"
#include "transform/analysis/cost/thread_coarsening.h"
#include "transform/analysis/halo.h"
#include "transform/analysis/negative_index_checks.h"
#include "transform/analysis/underlying_memory.h"
#include "transform/analysis/uniformity.h"

namespace weft::transform {

// The promises of launches, and the wishes about the code: the rows of ir/specialization.def that analyses read.
struct PlanOptions {
#define WEFT_PROPERTY(type, name, usual, passes, analyses, code, launches) WEFT_ONLY_##analyses(type name = usual;)
#include "ir/specialization.def"

    // Functions of more operations run in scalar code, and uniformity is not computed for them.
    int most_operations_in_lanes = std::numeric_limits<int>::max();
    std::optional<VectorUnit> vector_unit;  // of a CPU; others run one thread on each hardware lane
    bool coarsens = false;                  // a thread may take several elements: on GPUs
};

// Facts about one atomic.
struct AtomicFacts {
    Memory memory;
    bool is_fixed = false;                   // its address is the same for the whole launch
    const ir::Value* first_index = nullptr;  // of memories in KernelPlan::halo: the index that the halo is about
};

struct KernelPlan {
    KernelPlan() = default;
    KernelPlan(KernelPlan&&) = default;  // no copies: parts point to each other
    KernelPlan& operator=(KernelPlan&&) = default;

    const ir::Function* function = nullptr;
    Uniformity uniformity;
    Arithmetic arithmetic;
    // Loops that test before they begin whether their indices count from the end. In scalar code only.
    std::unordered_map<const ir::Operation*, NegativeIndexChecks> loop_index_checks;
    std::unordered_set<const ir::Operation*> loops_of_launch;  // their bounds are the same for the whole launch
    bool parameters_may_be_null = false;                       // parameters that are arrays
    bool others_may_be_null = false;                           // arrays that come from branches, loops or memory

    std::unordered_map<const ir::Operation*, AtomicFacts> atomics;
    std::map<Memory, ir::Op> privatised;  // privatised_memories(), if launches promise that these do not overlap others
    std::set<Memory> uncontended;         // memories that no other worker touches
    std::optional<std::vector<int>> own;  // thread_private_elements(), of a kernel, without `debug`
    std::set<Memory> read_only;           // memories that nothing changes while a launch runs, with `noalias`
    Halo halo;                            // without `debug` and with `noalias`
    std::vector<AdjacentAdditions> adjacent_additions;  // additions that lanes may make as one
    std::unordered_map<const ir::Operation*, const AdjacentAdditions*> adjacent_additions_of;
    // Atomics on privatised memories whose sum stays in registers, over a chunk of threads or the elements of a thread.
    std::unordered_set<const ir::Operation*> accumulated;
    bool depends_on_order = false;  // whether its results do: order_dependence.h
    bool has_long_loops = false;    // long_loops.h

    // ---- of kernels for CPUs: the form of the code, by its cost ----
    LaneChoice lane_choice;
    double cost = 0.0;  // thread_cost() in that many lanes
    BodySize size;
    ArmForms arm_forms;  // in lanes
    // Atomics that are plain additions in a launch that runs alone (LaunchContext::exclusive), and the cost then.
    std::unordered_set<const ir::Operation*> plain_when_alone;
    double cost_when_alone = 0.0;  // 0: it makes no difference
    // ---- of kernels for GPUs ----
    std::unordered_set<const ir::Operation*> choices_of_accesses;  // negative_index_checks.h; without `debug`
    Coarsening coarsening;
    std::set<Memory> shared_copies;  // privatised memories of which each block may have a copy in shared memory
};

// By function, in the order of the module. A kernel whose calls are not inlined does not run in lanes.
using ModulePlan = std::vector<KernelPlan>;
ModulePlan plan(const ir::Module& module, const PlanOptions& options = {});

}  // namespace weft::transform
