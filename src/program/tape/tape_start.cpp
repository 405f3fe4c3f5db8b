#include "program/tape/tape_start.h"

#include <algorithm>
#include <ranges>
#include <string>
#include <unordered_set>

#include "program/tape/gradient_memory.h"
#include "runtime/array_copies.h"
#include "support/error.h"

namespace weft::program {

using runtime::Array;
using runtime::shape_text;

namespace {

constexpr const char* kApi = "Tape.backward()";

bool is_float(Type dtype) {
    return (dtype.is_scalar() || dtype.is_numeric_aggregate()) && info(dtype.scalar()).is_float();
}

bool same(std::span<const std::int64_t> a, std::span<const std::int64_t> b) { return std::ranges::equal(a, b); }

// Whether both show the same elements and the same gradients, and the gradient has the array's strides
// and device.
bool is_like(const Variable& one, const Variable& of, const Array& gradient) {
    return one.array.view.grad && one.array.extent() == of.array.extent() &&
           gradient_to_read(one).extent() == gradient_to_read(of).extent() && one.array.dtype == of.array.dtype &&
           same(one.array.shape(), of.array.shape()) && same(one.array.strides(), of.array.strides()) &&
           same(of.array.strides(), gradient.strides()) && of.array.device == gradient.device;
}

}  // namespace

void check_loss(const Variable& loss) {
    if (loss.array.size() != 1)
        throw UsageError(kApi,
                         "the loss has the shape " + shape_text(loss.array.shape()) +
                             ", expected one element. help: backward(grads={array: gradient}) starts from any array",
                         ErrorCategory::value);
    if (!loss.requires_grad)
        throw UsageError(kApi,
                         "the loss has no gradient. help: make it with requires_grad=True, in C++ with "
                         "require_gradient()",
                         ErrorCategory::value);
}

void check_gradient(const Variable& of, const Array& gradient) {
    if (!of.requires_grad && !of.array.dtype.is_struct() && !is_float(of.array.dtype))
        throw UsageError(
            kApi, "grads has a gradient for an array of " + of.array.dtype.python_name() + ", which has no derivative",
            ErrorCategory::type);
    const bool same_dtype = gradient.dtype == of.array.dtype;
    if (same_dtype && same(gradient.shape(), of.array.shape())) return;
    throw UsageError(kApi,
                     "a gradient is " + gradient.dtype.python_name() + " of shape " + shape_text(gradient.shape()) +
                         ", its array " + of.array.dtype.python_name() + " of shape " + shape_text(of.array.shape()) +
                         "; expected the same",
                     same_dtype ? ErrorCategory::value : ErrorCategory::type);
}

std::vector<const Variable*> standing_for(const Variable& of, const Tape& tape) {
    std::vector<const Variable*> found;
    const auto look_at = [&](const Variable& one, bool) {
        if (&one == &of || one.requires_grad || !runtime::overlap(one.array, of.array)) return;
        const bool shows_the_same = one.array.extent() == of.array.extent() && one.array.dtype == of.array.dtype &&
                                    same(one.array.shape(), of.array.shape()) &&
                                    same(one.array.strides(), of.array.strides());
        if (!shows_the_same)
            throw UsageError(kApi,
                             "an array of shape " + shape_text(of.array.shape()) +
                                 " got its gradient only now, and the tape knows it as part of another array, or by a "
                                 "part of shape " +
                                 shape_text(one.array.shape()) +
                                 ", which has none. help: make it with requires_grad=True before it is recorded",
                             ErrorCategory::value);
        if (std::ranges::find(found, &one) == found.end()) found.push_back(&one);
    };
    for (const auto& entry : tape.entries()) entry->for_each_array(look_at);
    return found;
}

const Variable* implied_loss(const Tape& tape) {
    if (tape.entries().empty()) return nullptr;
    std::unordered_set<const Variable*> seen;  // many entries have the same array
    for (const auto& entry : tape.entries()) {
        for (const Variable* one : entry->may_start())
            if (one->requires_grad && seen.insert(one).second && has_numbers(*one)) return nullptr;
        if (entry->is_unknown()) return nullptr;
    }
    std::vector<const Variable*> candidates;
    const auto last =
        std::ranges::find_if(std::views::reverse(tape.entries()), [](const auto& entry) { return entry->is_launch(); });
    if (last != std::views::reverse(tape.entries()).end()) {
        for (const Variable* one : (*last)->may_start())
            if (one->array.size() == 1 && one->array.dtype.is_scalar() && is_float(one->array.dtype) &&
                std::ranges::find(candidates, one) == candidates.end())
                candidates.push_back(one);
    }
    if (candidates.size() == 1) return candidates.front();
    throw UsageError(
        kApi,
        "no gradient to start with is given, none has been set in the arrays that were written, and the value to "
        "differentiate is not clear: expected one array of one floating-point number that the last launch writes, "
        "found " +
            (candidates.empty() ? "no array of one floating-point number"
                                : std::to_string(candidates.size()) + " of them") +
            ". help: backward(loss=array), or backward(grads={array: gradient})",
        ErrorCategory::runtime);
}

std::optional<Reader> reader_of(const Variable& of, const Array& gradient, std::span<const Variable* const> others,
                                const Tape& tape) {
    const Array own = gradient_to_read(of);
    const auto shares = [](const Array& memory) {
        return [&memory](const Variable* one) {
            return one->requires_grad && runtime::overlap(gradient_to_read(*one), memory);
        };
    };
    if (of.retain_grad || std::ranges::any_of(others, shares(own))) return std::nullopt;
    for (std::size_t index = tape.entries().size(); index-- > 0;) {
        const TapeEntry& entry = *tape.entries()[index];
        TapeEntry::Group arrays, concerned;
        entry.for_each_array([&](const Variable& one, bool) {
            arrays.push_back(&one);
            if (runtime::overlap(one.array, of.array)) concerned.push_back(&one);
        });
        if (entry.is_unknown() || std::ranges::any_of(arrays, shares(gradient))) return std::nullopt;
        if (concerned.empty()) {
            if (std::ranges::any_of(arrays, shares(own))) return std::nullopt;
            continue;
        }
        const int argument = entry.overwritten(*concerned.front());
        if (concerned.size() > 1 || argument < 0 || !is_like(*concerned.front(), of, gradient)) return std::nullopt;
        return Reader{index, static_cast<std::size_t>(argument)};
    }
    return std::nullopt;
}

std::optional<SuppliedGradient> supply_or_copy(Variable& of, const TapeEntry& entry) {
    const Array gradient = gradient_of(of);
    const int argument = entry.overwritten(of);
    if (argument >= 0 && gradient.view.data) return SuppliedGradient{static_cast<std::size_t>(argument), gradient};
    const Array copy = runtime::clone(gradient);
    of.gradient = copy.buffer;
    of.array.view.grad = copy.view.data;
    return std::nullopt;
}

}  // namespace weft::program
