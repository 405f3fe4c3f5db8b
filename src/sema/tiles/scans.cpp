// Scans and sorts.
#include "ir/loop_builder.h"
#include "sema/analyzer.h"

namespace weft::sema {

using ir::Op;

// The running sums or extremes of the row-major sequence.
Value FunctionAnalyzer::tile_scan(TileArguments& call) {
    const Value& tile = call.tile("a");
    const Type element = tile.type.element();
    if (!element.is_scalar() || element.is_bool()) call.refuse("a", "a tile of numbers");
    const bool is_exclusive = call.name() == "tile_scan_exclusive";
    const Op op = call.name() == "tile_scan_max_inclusive"   ? Op::max
                  : call.name() == "tile_scan_min_inclusive" ? Op::min
                                                             : Op::add;
    ir::Value* const zero = builder_.integer(0);
    ir::Value* const first = builder_.extract_at(tile.ir, {zero});
    ir::Value* const start = builder_.zero(tile.type);
    const std::vector<ir::Value*> last = ir::build_for(
        builder_, builder_.integer(1), builder_.integer(tile.type.size()), builder_.integer(1),
        {first, is_exclusive ? start : builder_.insert_at(start, first, {zero})},
        [&](ir::Value* k, const std::vector<ir::Value*>& carried) {
            ir::Value* const next = builder_.binary(op, carried[0], builder_.extract_at(tile.ir, {k}));
            return std::vector<ir::Value*>{next, builder_.insert_at(carried[1], is_exclusive ? carried[0] : next, {k})};
        });
    return Value::runtime(last[1]);
}

// Stable, NaN last: runs of doubling length are merged. Only the permutation is sorted, so keys and values have the
// derivative of what was moved.
Value FunctionAnalyzer::tile_sort(TileArguments& call) {
    const Value &keys = call.tile("keys"), &values = call.tile("values");
    const Type key = keys.type.element();
    if (!key.is_scalar() || key.is_bool()) call.refuse("keys", "a tile of numbers");
    if (keys.type.shape() != values.type.shape())
        call.refuse_value("values", "a tile of shape " + shape_text(keys.type.shape()) + ", as the keys");
    for (const char* parameter : {"keys", "values"})
        if (!call[parameter].place) call.refuse(parameter, "a tile in a variable, which the call changes");
    const std::int64_t size = keys.type.size();
    ir::Builder& b = builder_;
    const auto number = [&](std::int64_t value) { return b.integer(value); };
    const auto key_at = [&](ir::Value* place) {
        ir::Value* const value = b.extract_at(keys.ir, {place});
        return key.is_float() ? b.unary(Op::detach, value) : value;
    };
    const auto is_less = [&](ir::Value* x, ir::Value* y) {
        ir::Value* const less = b.compare(Op::cmp_lt, x, y);
        if (!key.is_float()) return less;
        ir::Value* const is_last =
            b.binary(Op::and_, b.classify(Op::isnan, y), b.unary(Op::invert, b.classify(Op::isnan, x)));
        return b.binary(Op::or_, less, is_last);
    };
    const auto at_most = [&](ir::Value* x, std::int64_t most) { return b.binary(Op::min, x, number(most)); };
    std::int64_t levels = 0;
    while (std::int64_t{1} << levels < size) ++levels;
    ir::Value* order = ir::build_flat_tile(b, {size}, [](ir::Value* k) { return k; });
    order = ir::build_for(
        b, number(0), number(levels), number(1), {order}, [&](ir::Value* level, const std::vector<ir::Value*>& before) {
            ir::Value* const from = before[0];
            ir::Value* const width = b.binary(Op::shl, number(1), level);
            ir::Value* const mask = b.binary(Op::sub, b.binary(Op::shl, width, number(1)), number(1));
            // i and j are the next elements of the two runs.
            const std::vector<ir::Value*> merged = ir::build_for(
                b, number(0), number(size), number(1), {from, number(0), number(0)},
                [&](ir::Value* k, const std::vector<ir::Value*>& carried) {
                    ir::Value* const within = b.binary(Op::and_, k, mask);
                    ir::Value* const begin = b.binary(Op::sub, k, within);
                    ir::Value* const middle = at_most(b.binary(Op::add, begin, width), size);
                    ir::Value* const end = at_most(b.binary(Op::add, middle, width), size);
                    ir::Value* const is_first = b.compare(Op::cmp_eq, within, number(0));
                    ir::Value* const i = b.select(is_first, begin, carried[1]);
                    ir::Value* const j = b.select(is_first, middle, carried[2]);
                    ir::Value* const left = b.extract_at(from, {at_most(i, size - 1)});
                    ir::Value* const right = b.extract_at(from, {at_most(j, size - 1)});
                    ir::Value* const has_right = b.compare(Op::cmp_lt, j, end);
                    ir::Value* const right_first = b.binary(Op::and_, has_right, is_less(key_at(right), key_at(left)));
                    ir::Value* const left_done = b.compare(Op::cmp_ge, i, middle);
                    ir::Value* const takes_right = b.binary(Op::or_, left_done, right_first);
                    ir::Value* const step = b.cast(takes_right, Scalar::i32);
                    return std::vector<ir::Value*>{b.insert_at(carried[0], b.select(takes_right, right, left), {k}),
                                                   b.binary(Op::add, i, b.binary(Op::sub, number(1), step)),
                                                   b.binary(Op::add, j, step)};
                });
            return std::vector<ir::Value*>{merged[0]};
        })[0];
    const auto moved = [&](const Value& tile) {
        return Value::runtime(ir::build_flat_tile(
            b, tile.type.shape(), [&](ir::Value* k) { return b.extract_at(tile.ir, {b.extract_at(order, {k})}); }));
    };
    const Value sorted_keys = moved(keys), sorted_values = moved(values);
    write_tile(*call["keys"].place, sorted_keys, call.span());
    write_tile(*call["values"].place, sorted_values, call.span());
    return {};
}

}  // namespace weft::sema
