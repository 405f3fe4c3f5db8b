// Blocks of several lanes that one thread of the machine runs: the forms that differ from those of one lane.
// transform/tiles/lower_lanes.h turns the code of a lane into that of a block.
#include "ir/loop_builder.h"
#include "sema/analyzer.h"

namespace weft::sema {

using ir::Op;

std::int64_t FunctionAnalyzer::lanes() const { return module_.options.blocks.lanes; }

// The leading coordinates of the lane.
Value FunctionAnalyzer::tid_of_lane(int rank) {
    const Blocks& blocks = module_.options.blocks;
    std::vector<Value> coordinates;
    const auto uses = [&](int axes) {
        module_.tid_rank = std::max(module_.tid_rank, axes);
        function_.tid_rank = std::max(function_.tid_rank, axes);
    };
    if (blocks.lane_axis >= 0) {
        uses(std::min(rank, blocks.lane_axis));
        for (int axis = 0; axis < rank; ++axis) {
            coordinates.push_back(Value::runtime(axis < blocks.lane_axis    ? builder_.tid(axis)
                                                 : axis == blocks.lane_axis ? builder_.lane()
                                                                            : builder_.integer(0)));
        }
    } else {
        uses(1);
        ir::Value* const first = builder_.binary(Op::mul, builder_.tid(0), builder_.integer(blocks.lanes));
        ir::Value* const number = builder_.binary(Op::add, first, builder_.lane());
        const ir::Extents strides = row_major(blocks.threads);
        for (std::size_t axis = 0; axis < static_cast<std::size_t>(rank); ++axis) {
            if (axis >= strides.size()) {
                coordinates.push_back(Value::runtime(builder_.integer(0)));
                continue;
            }
            ir::Value* at = number;
            if (strides[axis] > 1) at = builder_.binary(Op::div, at, builder_.integer(strides[axis]));
            if (axis > 0) at = builder_.binary(Op::rem, at, builder_.integer(blocks.threads[axis]));
            coordinates.push_back(Value::runtime(at));
        }
    }
    return rank == 1 ? coordinates[0] : Value::tuple(std::move(coordinates));
}

// Runs `body` for one lane after the other, of those with `asked` (null: all). It gets the values that the lane has
// given, and carried values that begin as `start`.
std::vector<ir::Value*> FunctionAnalyzer::for_each_lane(const std::vector<ir::Value*>& given, ir::Value* asked,
                                                        std::vector<ir::Value*> start, const LaneBody& body) {
    ir::Value* const mask = builder_.tile_of_lanes(asked ? asked : builder_.boolean(true), lanes());
    std::vector<ir::Value*> tiles;
    for (ir::Value* value : given) tiles.push_back(builder_.tile_of_lanes(value, lanes()));
    std::vector<Type> types;
    for (const ir::Value* value : start) types.push_back(value->type);
    return ir::build_for(builder_, builder_.integer(0), builder_.integer(lanes()), builder_.integer(1),
                         std::move(start), [&](ir::Value* k, const std::vector<ir::Value*>& carried) {
                             ir::Operation* const branch = builder_.if_(builder_.extract_at(mask, {k}), types);
                             {
                                 ir::Builder::Inside then(builder_, branch->body(0));
                                 std::vector<ir::Value*> of_lane;
                                 for (ir::Value* tile : tiles) of_lane.push_back(builder_.extract_at(tile, {k}));
                                 builder_.yield(body(k, of_lane, carried));
                             }
                             ir::Builder::Inside otherwise(builder_, branch->body(1));
                             builder_.yield(carried);
                             return branch->results;
                         });
}

// t[i] += x, which counts each lane.
void FunctionAnalyzer::update_by_lanes(const AssignmentTarget& to, const syntax::AugmentedAssign& assign, Span span) {
    const Value operand = expression(*assign.value);
    builder_.span = span;
    AssignmentTarget one = to;
    std::vector<ir::Value**> parts{&one.tile_element};
    for (PartStep& step : one.steps) {
        for (ir::Value*& index : step.indices) parts.push_back(&index);
        for (auto& position : step.positions)
            for (ir::Value*& index : position) parts.push_back(&index);
    }
    std::vector<ir::Value*> given;
    for (ir::Value** part : parts) given.push_back(*part);
    if (operand.is_runtime()) given.push_back(values_.materialize(operand, assign.value->span));
    const Value before = locals_.find(to.name)->value;
    const std::vector<ir::Value*> after =
        for_each_lane(given, nullptr, {before.ir}, [&](ir::Value*, const auto& of_lane, const auto& carried) {
            for (std::size_t i = 0; i < parts.size(); ++i) *parts[i] = of_lane[i];
            locals_.assign(to.name, Value::runtime(carried[0]), to.span);
            const Value value = operand.is_runtime() ? Value::runtime(of_lane.back()) : operand;
            const Value sum = by_fields(assign.op, read(one), value, span, assign.target->span, assign.value->span);
            write(one, sum, assign.value->span);
            return std::vector<ir::Value*>{locals_.find(to.name)->value.ir};
        });
    locals_.assign(to.name, Value::runtime(after[0]), to.span);
}

// A tile with the values of all lanes that count written, or added.
ir::Value* FunctionAnalyzer::scattered_by_lanes(ir::Value* tile, ir::Value* number, ir::Value* value, ir::Value* counts,
                                                bool adds, Span span) {
    return for_each_lane({number, value}, counts, {tile}, [&](ir::Value*, const auto& of_lane, const auto& carried) {
        ir::Value* element = of_lane[1];
        if (adds) {
            const Value old = Value::runtime(builder_.extract_at(carried[0], {of_lane[0]}));
            element = values_.materialize(
                by_fields(syntax::BinaryOperator::add, old, Value::runtime(element), span, span, span), span);
        }
        return std::vector<ir::Value*>{builder_.insert_at(carried[0], element, {of_lane[0]})};
    })[0];
}

// Returns the stack, the number of its values, and the lane's slot.
std::vector<ir::Value*> FunctionAnalyzer::pushed_by_lanes(ir::Value* stack, ir::Value* count, ir::Value* value,
                                                          ir::Value* asked) {
    ir::Value* const slots = ir::build_flat_tile(builder_, {lanes()}, [&](ir::Value*) { return builder_.integer(-1); });
    const std::vector<ir::Value*> after = for_each_lane(
        {value}, asked, {stack, count, slots}, [&](ir::Value* k, const auto& of_lane, const auto& carried) {
            ir::Value* const has_room = builder_.compare(Op::cmp_lt, carried[1], builder_.integer(stack->type.size()));
            ir::Operation* const branch = builder_.if_(has_room, {stack->type, i32_type(), slots->type});
            {
                ir::Builder::Inside then(builder_, branch->body(0));
                builder_.yield({builder_.insert_at(carried[0], of_lane[0], {carried[1]}),
                                builder_.binary(Op::add, carried[1], builder_.integer(1)),
                                builder_.insert_at(carried[2], carried[1], {k})});
            }
            ir::Builder::Inside otherwise(builder_, branch->body(1));
            builder_.yield(carried);
            return branch->results;
        });
    return {after[0], after[1], builder_.extract_at(after[2], {builder_.lane()})};
}

// Returns the number of values that are left, and the lane's slot.
std::vector<ir::Value*> FunctionAnalyzer::popped_by_lanes(ir::Value* count) {
    ir::Value* const slots = ir::build_flat_tile(builder_, {lanes()}, [&](ir::Value*) { return builder_.integer(-1); });
    const std::vector<ir::Value*> after =
        for_each_lane({}, nullptr, {count, slots}, [&](ir::Value* k, const auto&, const auto& carried) {
            ir::Value* const slot = builder_.binary(Op::sub, carried[0], builder_.integer(1));
            return std::vector<ir::Value*>{builder_.binary(Op::max, slot, builder_.integer(0)),
                                           builder_.insert_at(carried[1], slot, {k})};
        });
    return {after[0], builder_.extract_at(after[1], {builder_.lane()})};
}

// The next results of a query, one for each lane, -1 if there is none. Returns the query, and whether there was one.
Value FunctionAnalyzer::next_of_lanes(const Value& query, const QueryStep& step, std::vector<ir::Value*>& after,
                                      Span span) {
    ir::Value* const none = ir::build_flat_tile(builder_, {lanes()}, [&](ir::Value*) { return builder_.integer(-1); });
    after = for_each_lane({}, nullptr, {values_.materialize(query, span), builder_.boolean(false), none},
                          [&](ir::Value* k, const auto&, const auto& carried) {
                              ir::Value* hit = nullptr;
                              ir::Value* at = nullptr;
                              const Value next = step(Value::runtime(carried[0]), hit, at);
                              ir::Value* const index = builder_.select(hit, at, builder_.integer(-1));
                              return std::vector<ir::Value*>{values_.materialize(next, span),
                                                             builder_.binary(Op::or_, carried[1], hit),
                                                             builder_.insert_at(carried[2], index, {k})};
                          });
    return Value::runtime(after[2]);
}

}  // namespace weft::sema
