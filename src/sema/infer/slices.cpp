// Slices: parts of vectors, matrices and tuples (with bounds known at compile time), views of arrays (with any bounds).
//
//   v[1:3]        →   make (extract %v[1]), (extract %v[2])
//   m[:, 1]       →   make of the column; m[0:2, 1:3] of a part, as a matrix
//   a[lo:hi, i]   →   slice %a[0], %lo, max(%hi - %lo, 0);  slice of that [1], %i
//   a[::-1]       →   slice %a[0], %n - 1, %n, -1
#include <algorithm>
#include <limits>

#include "ir/indices.h"
#include "sema/analyzer.h"

namespace weft::sema {

bool has_slice(std::span<const syntax::ExpressionPtr> indices) {
    return std::any_of(indices.begin(), indices.end(),
                       [](const auto& index) { return std::holds_alternative<syntax::Slice>(index->node); });
}

// The positions that Python's slice(start, stop, step) takes of a sequence of this size.
std::vector<std::int64_t> positions_of_slice(std::optional<std::int64_t> start, std::optional<std::int64_t> stop,
                                             std::optional<std::int64_t> step, std::int64_t size, Span span) {
    const std::int64_t by = std::clamp(step.value_or(1), -size - 1, size + 1);  // a longer step takes no more
    if (by == 0) fail(span, "the step of a slice must not be 0", {}, ErrorCategory::value);
    const std::int64_t lowest = by > 0 ? 0 : -1, highest = by > 0 ? size : size - 1;
    const auto at = [&](std::optional<std::int64_t> given, std::int64_t otherwise) {
        if (!given) return otherwise;
        return std::clamp(*given < 0 ? *given + size : *given, lowest, highest);
    };
    const std::int64_t first = at(start, by > 0 ? lowest : highest), last = at(stop, by > 0 ? highest : lowest);
    std::vector<std::int64_t> result;
    for (std::int64_t i = first; by > 0 ? i < last : i > last; i += by) result.push_back(i);
    return result;
}

std::vector<std::int64_t> FunctionAnalyzer::static_slice(const syntax::Slice& slice, std::int64_t size, Span span) {
    const auto bound = [&](const syntax::ExpressionPtr& e) -> std::optional<std::int64_t> {
        if (!e) return std::nullopt;
        const Value value = expression(*e);
        if (value.is_binding(Binding::Kind::none)) return std::nullopt;
        if (!value.is_constant_integer()) {
            fail(e->span,
                 "the bounds and the step of a slice of a vector, matrix or tuple must be integers known at compile "
                 "time, "
                 "not " +
                     describe(value),
                 {help("take components one by one: v[i] may have any index")}, ErrorCategory::index);
        }
        return value.numbers[0].i;
    };
    return positions_of_slice(bound(slice.start), bound(slice.stop), bound(slice.step), size, span);
}

// v[1:1]: a value without components.
bool FunctionAnalyzer::is_empty_slice(Type type, const std::vector<syntax::ExpressionPtr>& indices) {
    const std::size_t most = type.is_matrix() ? 2 : 1;
    for (std::size_t axis = 0; axis < indices.size() && axis < most; ++axis) {
        const auto* slice = std::get_if<syntax::Slice>(&indices[axis]->node);
        const std::int64_t size = axis == 0 ? type.rows() : type.cols();
        if (slice && static_slice(*slice, size, indices[axis]->span).empty()) return true;
    }
    return false;
}

PartStep FunctionAnalyzer::part_slice(Type type, std::span<const syntax::ExpressionPtr> indices) {
    // Of each axis the positions, or one index that is known at run time.
    struct Axis {
        std::vector<std::int64_t> positions;
        ir::Value* at = nullptr;
        bool stays = false;
    };
    std::vector<Axis> axes;
    const std::size_t count = type.is_matrix() ? 2 : 1;
    for (std::size_t axis = 0; axis < count; ++axis) {
        const std::int64_t size = axis == 0 ? type.rows() : type.cols();
        Axis found;
        if (axis >= indices.size()) {
            for (std::int64_t i = 0; i < size; ++i) found.positions.push_back(i);
            found.stays = true;
        } else if (const auto* slice = std::get_if<syntax::Slice>(&indices[axis]->node)) {
            found.positions = static_slice(*slice, size, indices[axis]->span);
            found.stays = true;
            if (found.positions.empty()) {
                fail(indices[axis]->span, "this slice of " + type.python_name() + " has no components", {},
                     ErrorCategory::index);
            }
        } else {
            const Value i = expression(*indices[axis]);
            if (i.is_constant_integer()) {
                const std::int64_t at = i.numbers[0].i;
                if (at < -size || at >= size) {
                    fail(indices[axis]->span,
                         "index " + std::to_string(at) + " is outside " + type.python_name() + ", which has " +
                             std::to_string(size) + (axis == 0 ? " rows" : " columns"),
                         {}, ErrorCategory::index);
                }
                found.positions = {at < 0 ? at + size : at};
            } else {
                found.at = ir::counted_from_end(builder_, values_.index(i, indices[axis]->span),
                                                [&] { return builder_.integer(size); });
                found.positions = {0};
            }
        }
        axes.push_back(std::move(found));
    }
    PartStep step;
    step.whole = type;
    const auto extent = [&](std::size_t axis) { return static_cast<int>(axes[axis].positions.size()); };
    if (count == 2 && axes[0].stays && axes[1].stays)
        step.type = Type::matrix(type.scalar(), extent(0), extent(1));
    else
        step.type = Type::vector(type.scalar(), count == 2 ? extent(0) * extent(1) : extent(0));
    const bool is_fixed = std::none_of(axes.begin(), axes.end(), [](const Axis& axis) { return axis.at != nullptr; });
    step.kind = is_fixed ? PartStep::Kind::several : PartStep::Kind::several_at;
    const std::vector<std::int64_t> one = {0};
    for (const std::int64_t row : axes[0].positions) {
        for (const std::int64_t column : count == 2 ? axes[1].positions : one) {
            if (is_fixed) {
                step.components.push_back(count == 2 ? row * type.cols() + column : row);
                continue;
            }
            step.positions.push_back(
                {axes[0].at ? axes[0].at : builder_.integer(row), axes[1].at ? axes[1].at : builder_.integer(column)});
        }
    }
    return step;
}

// The step of an array's slice: a number if known at compile time.
Value FunctionAnalyzer::array_step(const syntax::Slice& slice) {
    const Value step = slice.step ? expression(*slice.step) : Value::integer(1);
    if (step.is_binding(Binding::Kind::none)) return Value::integer(1);
    if (!step.is_constant_integer()) {
        if (step.is_binding() || step.is_tuple() || !type_of(step).is_int()) {
            fail(slice.step->span, "the step of a slice must be an integer, not " + describe(step), {},
                 ErrorCategory::index);
        }
        return step;
    }
    if (step.numbers[0].i == 0) fail(slice.step->span, "the step of a slice must not be 0", {}, ErrorCategory::value);
    // A longer step takes no more.
    constexpr std::int64_t kLongest = std::numeric_limits<std::int32_t>::max();
    return Value::integer(std::clamp(step.numbers[0].i, -kLongest, kLongest));
}

// An index along an axis as int32; a negative one counts from the end.
ir::Value* FunctionAnalyzer::array_position(const syntax::Expression& at, ir::Value* array, int axis) {
    const auto extent = [&] { return builder_.dim(array, axis); };
    const Value value = expression(at);
    ir::Value* number = values_.index(value, at.span);
    if (!(number->type == i32_type())) number = builder_.cast(number, Scalar::i32);
    if (!value.is_constant()) return ir::counted_from_end(builder_, number, extent);
    return value.numbers[0].i < 0 ? builder_.binary(ir::Op::add, number, extent()) : number;
}

// The range of a slice with a constant step along an axis, clipped to the extent as in Python.
FunctionAnalyzer::Cut FunctionAnalyzer::cut(const syntax::Slice& slice, const Value& given, ir::Value* array,
                                            int axis) {
    const std::int64_t step = given.numbers[0].i;
    const auto extent = [&] { return builder_.dim(array, axis); };
    const auto op = [&](ir::Op which, ir::Value* x, ir::Value* y) { return builder_.binary(which, x, y); };
    // Backwards the range begins at the last element, and ends before the first.
    const auto lowest = [&] { return builder_.integer(step > 0 ? 0 : -1); };
    const auto highest = [&] { return step > 0 ? extent() : op(ir::Op::sub, extent(), builder_.integer(1)); };
    const auto bound = [&](const syntax::ExpressionPtr& at, const auto& otherwise) {
        if (!at || std::holds_alternative<syntax::NoneLiteral>(at->node)) return otherwise();
        return op(ir::Op::min, op(ir::Op::max, array_position(*at, array, axis), lowest()), highest());
    };
    ir::Value* start = step > 0 ? bound(slice.start, lowest) : bound(slice.start, highest);
    ir::Value* stop = step > 0 ? bound(slice.stop, highest) : bound(slice.stop, lowest);
    ir::Value* distance = step > 0 ? op(ir::Op::sub, stop, start) : op(ir::Op::sub, start, stop);
    ir::Value* count = op(ir::Op::max, distance, builder_.integer(0));
    const std::int64_t stride = step > 0 ? step : -step;
    if (stride > 1) {  // the first element, and one for each further step
        ir::Value* one = builder_.integer(1);
        ir::Value* steps = op(ir::Op::div, op(ir::Op::sub, count, one), builder_.integer(stride));
        count = op(ir::Op::add, steps, op(ir::Op::min, count, one));
    }
    return {start, count, step == 1 ? nullptr : builder_.integer(step)};
}

// The same with a step that only the launch knows: its sign decides about the default bounds.
FunctionAnalyzer::Cut FunctionAnalyzer::cut_by(const syntax::Slice& slice, ir::Value* step, ir::Value* array,
                                               int axis) {
    const auto op = [&](ir::Op which, ir::Value* x, ir::Value* y) { return builder_.binary(which, x, y); };
    ir::Value *zero = builder_.integer(0), *one = builder_.integer(1), *extent = builder_.dim(array, axis);
    if (step->type != i32_type()) {
        // A longer step takes no more.
        const auto longest = [&](std::int64_t sign) {
            return builder_.integer(sign * std::int64_t{std::numeric_limits<std::int32_t>::max()}, step->type);
        };
        const ScalarInfo& from = info(step->type.scalar());
        if (from.bits > 32 || (from.bits == 32 && !from.is_signed())) step = op(ir::Op::min, step, longest(1));
        if (from.bits > 32 && from.is_signed()) step = op(ir::Op::max, step, longest(-1));
        step = builder_.cast(step, Scalar::i32);
    }
    ir::Value* forward = builder_.compare(ir::Op::cmp_gt, step, zero);
    const auto either = [&](ir::Value* a, ir::Value* b) { return builder_.select(forward, a, b); };
    ir::Value* lowest = either(zero, builder_.integer(-1));
    ir::Value* highest = either(extent, op(ir::Op::sub, extent, one));
    const auto bound = [&](const syntax::ExpressionPtr& at, ir::Value* otherwise) {
        if (!at || std::holds_alternative<syntax::NoneLiteral>(at->node)) return otherwise;
        return op(ir::Op::min, op(ir::Op::max, array_position(*at, array, axis), lowest), highest);
    };
    ir::Value* start = bound(slice.start, either(zero, highest));
    ir::Value* stop = bound(slice.stop, either(extent, lowest));
    ir::Value* distance = op(ir::Op::mul, op(ir::Op::sub, stop, start), either(one, builder_.integer(-1)));
    // The least integer has no positive counterpart; the next greater step selects the same elements.
    ir::Value* negative = op(ir::Op::max, step, builder_.integer(-std::numeric_limits<std::int32_t>::max()));
    ir::Value* stride = either(step, builder_.unary(ir::Op::neg, negative));
    ir::Value* steps = op(ir::Op::div, op(ir::Op::sub, distance, one), stride);
    ir::Value* is_some = builder_.compare(ir::Op::cmp_gt, distance, zero);
    return {start, builder_.select(is_some, op(ir::Op::add, steps, one), zero), step};
}

Value FunctionAnalyzer::array_slice(const Value& object, const std::vector<syntax::ExpressionPtr>& indices) {
    if (static_cast<int>(indices.size()) > object.type.ndim()) array_indices(object, indices);  // says so
    ir::Value* array = values_.array_of(object);
    int axis = 0;
    for (const syntax::ExpressionPtr& e : indices) {
        const auto* slice = std::get_if<syntax::Slice>(&e->node);
        if (!slice) {
            array = builder_.slice(array, axis, array_position(*e, array, axis));
            continue;
        }
        const Value step = array_step(*slice);
        const bool is_known = step.is_constant_integer();
        if (slice->start || slice->stop || !is_known || step.numbers[0].i != 1) {
            if (!is_known) {
                ir::Value* number = values_.index(step, slice->step->span);
                ir::Value* is_zero = builder_.compare(ir::Op::cmp_eq, number, builder_.zero(number->type));
                raise_value_error(is_zero, "the step of a slice must not be 0", slice->step->span);
            }
            const Cut taken = is_known ? cut(*slice, step, array, axis)
                                       : cut_by(*slice, values_.index(step, slice->step->span), array, axis);
            array = builder_.slice(array, axis, taken.start, taken.count);
            if (taken.step) array->definition->operands.push_back(taken.step);
        }
        ++axis;
    }
    return Value::runtime(array);
}

// Ends the launch with a ValueError if the condition holds.
void FunctionAnalyzer::raise_value_error(ir::Value* condition, const std::string& text, Span span) {
    builder_.span = span;
    ir::Operation* made = builder_.if_(condition, {});
    {
        ir::Builder::Inside inside(builder_, made->body(0));
        builder_.raise("ValueError: " + text, {});
        builder_.yield({});
    }
    ir::Builder::Inside inside(builder_, made->body(1));
    builder_.yield({});
}

// *a[1:4], *m[i, :2]: the elements of such a slice in an array that is long enough. Nothing checks that it is.
std::vector<Value> FunctionAnalyzer::sliced_elements(const Value& object,
                                                     const std::vector<syntax::ExpressionPtr>& indices) {
    constexpr std::int64_t kMost = 2048;
    if (static_cast<int>(indices.size()) > object.type.ndim()) array_indices(object, indices);  // says so
    const syntax::Expression& last = *indices.back();
    const auto* slice = std::get_if<syntax::Slice>(&last.node);
    std::vector<ir::Value*> leading = object.pending;
    for (std::size_t i = 0; i + 1 < indices.size(); ++i) {
        if (std::holds_alternative<syntax::Slice>(indices[i]->node)) slice = nullptr;
        if (!slice) break;
        leading.push_back(index_along(object.ir, static_cast<int>(leading.size()), *indices[i]));
    }
    if (!slice) {
        fail(last.span, "'*' takes a slice of one dimension of an array, behind indices", {help("write *a[i, 0:3]")},
             ErrorCategory::index);
    }
    const auto bound = [&](const syntax::ExpressionPtr& e) -> std::optional<std::int64_t> {
        if (!e) return std::nullopt;
        const Value value = expression(*e);
        if (value.is_binding(Binding::Kind::none)) return std::nullopt;
        if (value.is_constant_integer()) return value.numbers[0].i;
        fail(e->span, "the bounds of a slice behind '*' must be integers known at compile time, not " + describe(value),
             {help("give the elements one by one: a[i], a[i + 1]")}, ErrorCategory::index);
    };
    const std::optional<std::int64_t> start = bound(slice->start), stop = bound(slice->stop);
    const std::int64_t by = bound(slice->step).value_or(1);
    if (by == 0) fail(last.span, "the step of a slice must not be 0", {}, ErrorCategory::value);
    // Both bounds count from the same end of the array.
    const std::int64_t first = start.value_or(by > 0 ? 0 : -1);
    std::optional<std::int64_t> end = stop;
    if (!stop && (by > 0) == (first < 0)) end = first < 0 ? 0 : -1;
    const bool is_known = end && (stop ? (*stop < 0) == (first < 0) : true);
    if (!is_known) {
        fail(last.span, "how many elements this slice has depends on the array",
             {help("write both bounds, counted from the same end: *a[0:3], *a[-3:]")}, ErrorCategory::index);
    }
    std::vector<Value> elements;
    for (std::int64_t at = first; by > 0 ? at < *end : at > *end; at += by) {
        if (static_cast<std::int64_t>(elements.size()) == kMost)
            fail(last.span, "'*' takes at most " + std::to_string(kMost) + " elements", {}, ErrorCategory::value);
        std::vector<ir::Value*> all = leading;
        ir::Value* position = builder_.integer(at);
        if (at < 0)
            position = builder_.binary(ir::Op::add, builder_.dim(object.ir, static_cast<int>(all.size())), position);
        all.push_back(position);
        const int left = object.type.ndim() - static_cast<int>(indices.size());
        if (left == 0) {
            elements.push_back(Value::runtime(builder_.load(object.ir, std::move(all))));
            continue;
        }
        Value rest = object;
        rest.type = Type::array(object.type.element(), left);
        rest.pending = std::move(all);
        elements.push_back(std::move(rest));
    }
    return elements;
}

}  // namespace weft::sema
