#include "transform/vectors_in_memory/large_operations.h"

#include <algorithm>
#include <set>

#include "ir/walk.h"
#include "transform/analysis/read_only.h"
#include "transform/simplify/constants.h"

namespace weft::transform {

namespace {

using ir::Op;
using ir::Operation;
using ir::Region;
using ir::Value;

bool has_components(const Value* value) { return value->type.is_vector() || value->type.is_matrix(); }

// Whether the operation reads each component of the value once, at its own place.
bool reads_once(const Operation& operation, const Value* value) {
    switch (operation.op) {
        case Op::store:
        case Op::print:
        case Op::raise:
        case Op::reduce_add:
        case Op::extract:
        case Op::extract_at:
        case Op::yield:
        case Op::for_:
        case Op::while_:
            return true;
        case Op::insert:
        case Op::insert_at:
            return operation.operands[0] == value;
        default:
            return is_componentwise(operation.op) || (ir::is_atomic(operation.op) && operation.op != Op::atomic_cas);
    }
}

}  // namespace

bool is_componentwise(Op op) {
    const ir::OpClass cls = ir::op_class(op);
    return cls == ir::OpClass::unary || cls == ir::OpClass::binary || op == Op::fma || op == Op::select ||
           op == Op::cast;
}

bool is_outer_product(const Operation& operation) {
    return operation.op == Op::matmul && operation.operands[0]->type.is_matrix() &&
           operation.operands[0]->type.cols() == 1 && operation.operands[1]->type.is_matrix();
}

const Value* reshaped(const Operation& operation) {
    if (operation.op != Op::make || !has_components(operation.result())) return nullptr;
    const Value* vector = nullptr;
    for (std::size_t i = 0; i < operation.operands.size(); ++i) {
        const Operation* part = operation.operands[i]->definition;
        if (!part || part->op != Op::extract || !part->operands[0]->type.is_vector() ||
            part->ints[0] != static_cast<std::int64_t>(i) || (vector && part->operands[0] != vector))
            return nullptr;
        vector = part->operands[0];
    }
    const bool is_whole = vector && vector->type.components() == operation.result()->type.components();
    return is_whole ? vector : nullptr;
}

LargeOperations::LargeOperations(const ir::Function& function, const VectorsInMemoryOptions& options) {
    find(function, options.most_unrolled);
    if (any()) find_computed(function, options);
}

bool LargeOperations::take(const Value* value) { return has_components(value) && in_loops_.insert(value).second; }

// Takes large values, then their operands and the values computed from them, until there are no more.
void LargeOperations::find(const ir::Function& function, int most_unrolled) {
    const auto take_large = [&](const std::vector<Value*>& values) {
        for (const Value* value : values)
            if (has_components(value) && value->type.components() > most_unrolled) in_loops_.insert(value);
    };
    if (!function.is_kernel) take_large(function.parameters());  // kernels read theirs from memory
    const std::unordered_set<const Value*> used = ir::used_values(function);
    const auto is_looked_at = [&](const Operation& atomic) { return used.contains(atomic.result()); };
    ir::for_each_operation(function.body, [&](const Operation& operation) {
        if (!ir::is_atomic(operation.op) || is_looked_at(operation)) take_large(operation.results);
        for (const Region* region : operation.regions) take_large(region->arguments);
    });
    if (!any()) return;

    bool is_new = true;
    // Takes all of these values that have more than `most_spread` components, if one of them is taken already.
    const auto together = [&](std::initializer_list<const Value*> values, int most_spread) {
        if (std::none_of(values.begin(), values.end(), [&](const Value* value) { return in_loops(value); })) return;
        for (const Value* value : values)
            if (has_components(value) && value->type.components() > most_spread) is_new |= take(value);
    };
    const auto all_together = [&](const std::vector<Value*>& from, const std::vector<Value*>& to,
                                  std::size_t first_from, std::size_t first_to) {
        for (std::size_t i = 0; first_from + i < from.size() && first_to + i < to.size(); ++i)
            together({from[first_from + i], to[first_to + i]}, kMostInRegisters);
    };
    while (is_new) {
        is_new = false;
        ir::for_each_operation(function.body, [&](const Operation& operation) {
            const auto& operands = operation.operands;
            for (const Region* region : operation.regions) {
                const bool loops = operation.op != Op::if_;
                const std::vector<Value*>& end = region->terminator()->operands;
                if (loops) {
                    all_together(operands, region->arguments, ir::carried_operands(operation),
                                 ir::carried_arguments(operation));
                    if (region == operation.regions.back())
                        all_together(end, region->arguments, 0, ir::carried_arguments(operation));
                    all_together(region->arguments, operation.results, ir::carried_arguments(operation), 0);
                } else {
                    all_together(end, operation.results, 0, 0);
                }
            }
            if (operation.results.size() != 1 || !operation.regions.empty()) return;
            const Value* result = operation.result();
            if (operation.op == Op::matmul || operation.op == Op::transpose) {
                for (const Value* operand : operands) together({operand, result}, 0);
            } else if (operation.op == Op::insert || operation.op == Op::insert_at) {
                together({operands[0], operands[1], result}, kMostInRegisters);
            } else if (operation.op == Op::extract || operation.op == Op::extract_at) {
                together({operands[0], result}, kMostInRegisters);
            } else if (is_componentwise(operation.op)) {
                for (const Value* operand : operands) together({operand, result}, kMostInRegisters);
            } else if (const Value* vector = reshaped(operation)) {
                together({vector, result}, 0);
            } else if (ir::is_atomic(operation.op) && is_looked_at(operation)) {
                together({operands.back(), result}, 0);
            }
        });
    }
}

bool LargeOperations::reads_components(const Operation& operation) const {
    return std::all_of(operation.operands.begin(), operation.operands.end(),
                       [&](const Value* operand) { return !has_components(operand) || in_loops(operand); });
}

bool LargeOperations::is_computed_once(const Operation& operation) const {
    const auto found = uses_.find(operation.result());
    if (found == uses_.end()) return true;  // unused
    const std::vector<const Operation*>& uses = found->second;
    return uses.size() == 1 && uses[0]->parent == operation.parent && reads_once(*uses[0], operation.result());
}

// Whether memory stays unchanged until the last component has been read.
bool LargeOperations::is_undisturbed(const Operation& load) const {
    const Operation* last = &load;
    while (last == &load || (last->results.size() == 1 && is_computed(last->result()))) {
        if (!is_computed_once(*last)) return false;
        const auto found = uses_.find(last->result());
        if (found == uses_.end()) return true;
        last = found->second[0];
    }
    const std::vector<Operation*>& all = load.parent->operations;
    const auto begin = std::find(all.begin(), all.end(), &load), end = std::find(begin, all.end(), last);
    // If the last one is a loop, it reads the value before its body runs.
    return end != all.end() && std::none_of(begin + 1, end, [](const Operation* between) {
               return ir::has_effects(*between) && !ir::only_reports(between->op);
           });
}

void LargeOperations::find_computed(const ir::Function& function, const VectorsInMemoryOptions& options) {
    ir::for_each_operation(function.body, [&](const Operation& operation) {
        for (const Value* operand : operation.operands)
            if (in_loops(operand)) uses_[operand].push_back(&operation);
    });
    std::vector<const Operation*> loads;
    ir::for_each_operation(function.body, [&](const Operation& operation) {
        if (operation.results.size() != 1 || !in_loops(operation.result()) || !operation.regions.empty()) return;
        bool is_computed = false;
        // An index is checked when memory is read with it.
        const auto is_indexed = [](const Operation* use) { return use->op == Op::extract_at; };
        if (options.checks_parts && std::ranges::any_of(uses_[operation.result()], is_indexed))
            return;
        else if (operation.op == Op::constant)
            is_computed = uniform_constant(operation.result()) != nullptr;
        else if (operation.op == Op::splat || operation.op == Op::transpose || reshaped(operation))
            is_computed = true;
        else if (is_componentwise(operation.op) || is_outer_product(operation))
            is_computed = reads_components(operation) && is_computed_once(operation);
        else if (operation.op == Op::load)
            loads.push_back(&operation);
        if (is_computed) computed_.insert(operation.result());
    });
    if (loads.empty()) return;
    const std::set<Memory> read_only = options.noalias ? read_only_memories(function) : std::set<Memory>();
    for (const Operation* load : loads) {
        const Memory memory = memory_of(function, load->operands[0]);
        // A product reads its vector operand repeatedly.
        const std::vector<const Operation*>& uses = uses_[load->result()];
        const bool is_kept =
            memory.is_known() && read_only.contains(memory) &&
            (load->result()->type.is_matrix() || std::all_of(uses.begin(), uses.end(), [&](const Operation* use) {
                 return reads_once(*use, load->result());
             }));
        if (is_kept || is_undisturbed(*load)) computed_.insert(load->result());
    }
}

std::vector<LargeOperations::Source> LargeOperations::sources(const Value* value) const {
    if (!in_loops(value)) return {};
    if (!is_computed(value)) return {{value, true}};
    std::vector<Source> all;
    const Operation& made = *value->definition;
    if (const Value* vector = reshaped(made)) return sources(vector);
    const bool in_step = made.op != Op::transpose && made.op != Op::matmul;
    for (const Value* operand : made.operands)
        for (const Source& source : sources(operand)) all.push_back({source.value, source.in_step && in_step});
    return all;
}

bool LargeOperations::needs_rows(const Value* value) const {
    if (!value->type.is_matrix() || !is_computed(value)) return false;
    const Operation& made = *value->definition;
    if (reshaped(made)) return false;
    if (made.op == Op::load || made.op == Op::transpose || made.op == Op::matmul) return true;
    return std::any_of(made.operands.begin(), made.operands.end(),
                       [&](const Value* operand) { return needs_rows(operand); });
}

}  // namespace weft::transform
