#include "transform/analysis/cost/thread_coarsening.h"

#include "transform/analysis/cost/op_costs.h"
#include "types/leaves.h"

namespace weft::transform {

namespace {

using ir::Op;
using ir::Operation;

// A GPU reaches its bandwidth if each thread has some 32 bytes in flight. Returns the number of elements for that,
// given the words of 32 bits that one element reads. Elements that read more need no coarsening.
int elements_to_wait_for(int words) { return words <= 2 ? 4 : words <= 6 ? 2 : 1; }
// Limits on the words that all elements of a thread hold in registers, and on the cost of one element (ir/ops.def).
// Above them, registers or arithmetic are the bound, and coarsening would only lengthen the code.
constexpr int kMostWordsTogether = 32;
constexpr double kMostCostTogether = 24.0;

int words(Type type) {
    int count = 0;
    for (const LeafType& leaf : leaf_types(type)) count += static_cast<int>((size_of(leaf) + 3) / 4);
    return count;
}

// The properties of a body that decide about its emission in step.
struct Body {
    int words_in_registers = 0;                                 // loaded and stored
    std::unordered_map<const ir::Value*, int> words_of_arrays;  // neighbouring elements are fetched together
    std::unordered_map<const Operation*, const ir::Region*> guarded_arms;
    double cost = 0.0;
    bool is_plain = true, stores = false, combines = false;
    const std::function<bool(const Operation&)>& is_combined;

    explicit Body(const std::function<bool(const Operation&)>& combined) : is_combined(combined) {}
    void add(const ir::Region& region, bool may_touch);
};

bool is_empty(const ir::Region& region) { return region.operations.size() <= 1; }

// The non-empty arm of an `if` that holds the rest of the region; null for any other operation.
const ir::Region* guarded(const Operation& operation) {
    if (operation.op != Op::if_ || !operation.results.empty()) return nullptr;
    const auto& siblings = operation.parent->operations;
    if (siblings.size() < 2 || siblings[siblings.size() - 2] != &operation) return nullptr;
    for (const int arm : {0, 1})
        if (is_empty(operation.body(static_cast<std::size_t>(1 - arm))))
            return &operation.body(static_cast<std::size_t>(arm));
    return nullptr;
}

// `may_touch`: whether accesses are allowed. They are not in the arms of a choice between values.
void Body::add(const ir::Region& region, bool may_touch) {
    bool has_stored = false;
    for (const Operation* operation : region.operations) {
        switch (operation->op) {
            case Op::yield:
            case Op::return_:
                continue;
            case Op::load:
                is_plain &= may_touch;
                words_in_registers += words(operation->result()->type);
                words_of_arrays[operation->operands[0]] = words(operation->result()->type);
                continue;
            case Op::store:
                is_plain &= may_touch;
                words_in_registers += words(operation->operands.back()->type);
                has_stored = stores = true;
                continue;
            case Op::assert_:  // of debug builds
                continue;
            case Op::if_:
                if (const ir::Region* arm = guarded(*operation); arm != nullptr && may_touch) {
                    // If an element fails the test, all start again one by one: nothing may be stored before.
                    is_plain &= !has_stored;
                    guarded_arms.emplace(operation, arm);
                    add(*arm, true);
                    continue;
                }
                add(operation->body(0), false);
                add(operation->body(1), false);
                continue;
            // Dynamic component indices need memory; the other operations are long, or end the thread.
            case Op::extract_at:
            case Op::insert_at:
            case Op::block_dim:  // coarsened launches choose it
            case Op::call:
            case Op::call_library:
            case Op::for_:
            case Op::while_:
            case Op::object:
                is_plain = false;
                continue;
            default:
                if (is_combined(*operation)) {
                    is_plain &= may_touch;
                    words_in_registers += words(operation->operands.back()->type);
                    combines = true;
                    continue;
                }
                if (ir::has_effects(*operation) || ir::op_info(operation->op).cost >= kFunctionCost) {
                    is_plain = false;
                    continue;
                }
                const Type type = operation->result()->type;
                cost += ir::op_info(operation->op).cost * (type.is_array() ? 1 : leaf_count(type));
        }
    }
}

}  // namespace

Coarsening find_coarsening(const ir::Function& kernel, const std::function<bool(const Operation&)>& is_combined) {
    if (kernel.tid_rank == 0) return {};
    Body body(is_combined);
    body.add(kernel.body, true);
    if (!body.is_plain || !(body.stores || body.combines) || body.cost > kMostCostTogether) return {};
    if (body.combines && !body.guarded_arms.empty()) return {};
    int words_read = 0;
    for (const auto& [array, words] : body.words_of_arrays) words_read += words;
    int together = elements_to_wait_for(words_read);
    while (together > 1 && body.words_in_registers * together > kMostWordsTogether) together /= 2;
    if (together == 1) return {};
    return {together, std::move(body.guarded_arms), body.combines};
}

}  // namespace weft::transform
