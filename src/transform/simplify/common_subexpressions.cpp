#include "transform/simplify/common_subexpressions.h"

#include <algorithm>
#include <bit>

namespace weft::transform {
namespace {

using ir::Op;
using ir::Operation;
using ir::Value;

bool is_commutative(Op op) {
    switch (op) {
        case Op::add:
        case Op::mul:
        case Op::and_:
        case Op::or_:
        case Op::xor_:
        case Op::cmp_eq:
        case Op::cmp_ne:
            return true;
        default:
            return false;
    }
}

void mix(std::size_t& hash, std::size_t value) { hash = (hash ^ value) * 0x9E3779B97F4A7C15ull + (hash >> 29); }

bool same_number(const Number& a, const Number& b) {
    return a.is_float == b.is_float && a.i == b.i &&
           std::bit_cast<std::uint64_t>(a.f) == std::bit_cast<std::uint64_t>(b.f);
}

bool same_library(const Operation& a, const Operation& b) {
    if (a.library == b.library) return true;
    return a.library && b.library && *a.library == *b.library;
}

}  // namespace

std::size_t CommonSubexpressions::Hash::operator()(const Entry& entry) const {
    const Operation& operation = *entry.operation;
    std::size_t hash = static_cast<std::size_t>(operation.op);
    mix(hash, static_cast<std::size_t>(entry.epoch));
    if (is_commutative(operation.op)) {
        std::size_t a = static_cast<std::size_t>(operation.operands[0]->id),
                    b = static_cast<std::size_t>(operation.operands[1]->id);
        mix(hash, std::min(a, b));
        mix(hash, std::max(a, b));
    } else {
        for (const Value* operand : operation.operands) mix(hash, static_cast<std::size_t>(operand->id));
    }
    for (const Number& number : operation.numbers) {
        mix(hash, static_cast<std::size_t>(number.is_float ? std::bit_cast<std::int64_t>(number.f) : number.i));
    }
    for (const std::int64_t i : operation.ints) mix(hash, static_cast<std::size_t>(i));
    mix(hash, std::hash<Type>()(entry.value->type));
    return hash;
}

bool CommonSubexpressions::Equal::operator()(const Entry& x, const Entry& y) const {
    const Operation& a = *x.operation;
    const Operation& b = *y.operation;
    if (a.op != b.op || x.epoch != y.epoch || x.value->type != y.value->type || a.ints != b.ints || !same_library(a, b))
        return false;
    const bool same_operands = a.operands == b.operands || (is_commutative(a.op) && a.operands[0] == b.operands[1] &&
                                                            a.operands[1] == b.operands[0]);
    return same_operands &&
           std::equal(a.numbers.begin(), a.numbers.end(), b.numbers.begin(), b.numbers.end(), same_number);
}

Value* CommonSubexpressions::find_or_add(const Operation& operation) {
    if (operation.results.size() != 1 || !operation.regions.empty() || ir::has_effects(operation)) return nullptr;
    // A pure library function may read the arrays it is given.
    const bool reads = operation.op == Op::load || operation.op == Op::call_library;
    const Entry entry{&operation, reads ? epoch_ : 0, operation.results[0]};
    const auto [at, fresh] = entries_.insert(entry);
    if (!fresh) return at->value;
    log_.push_back(entry);
    return nullptr;
}

void CommonSubexpressions::note_store(const Operation& store) {
    Operation& load = loads_.emplace_back();
    load.op = Op::load;
    load.operands.assign(store.operands.begin(), store.operands.end() - 1);
    const Entry entry{&load, epoch_, store.operands.back()};
    if (entries_.insert(entry).second) log_.push_back(entry);
}

void CommonSubexpressions::forget_since(std::size_t size) {
    while (log_.size() > size) {
        entries_.erase(log_.back());
        log_.pop_back();
    }
}

}  // namespace weft::transform
