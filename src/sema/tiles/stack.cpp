// Stacks that a block shares, and queries by a block. Both are locals of several values: a stack is a tile and a count,
// a query its state and whether the last batch had a hit.
#include "sema/analyzer.h"

namespace weft::sema {

namespace {

constexpr const char* kStack = "a stack of a block";
constexpr const char* kQuery = "a query of a block";

Value marked(std::vector<Value> elements, const char* what) {
    Value value = Value::tuple(std::move(elements));
    Binding marker;
    marker.kind = Binding::Kind::object;
    marker.text = what;
    value.binding = std::make_shared<const Binding>(std::move(marker));
    return value;
}

bool is_marked(const Value& value, const char* what) {
    return value.is_tuple() && value.binding && value.binding->text == what;
}

}  // namespace

// The name of the local that a call changes.
const std::string& FunctionAnalyzer::changed_local(const TileArguments& call, const std::string& parameter,
                                                   const char* what) {
    const Actual& actual = call[parameter];
    if (!is_marked(actual.value, what)) call.refuse(parameter, what);
    const auto* name = actual.expression ? std::get_if<syntax::Name>(&actual.expression->node) : nullptr;
    if (!name || !locals_.find(name->id))
        call.refuse(parameter, std::string(what) + " in a variable, which the call changes");
    return name->id;
}

Value FunctionAnalyzer::tile_stack(TileArguments& call) {
    const std::int64_t capacity = call.integer("capacity");
    if (capacity < 1) call.refuse_value("capacity", "at least 1");
    call.check_count({capacity});
    const Type type = Type::tile(call.dtype({}), {capacity});
    return marked({Value::runtime(builder_.zero(type)), Value::runtime(builder_.integer(0))}, kStack);
}

// The slot of the value, or -1 if it was not asked for or there is no room.
Value FunctionAnalyzer::tile_stack_push(TileArguments& call) {
    const std::string& name = changed_local(call, "s", kStack);
    const Value stack = call["s"].value;
    ir::Value *const tile = stack.elements[0].ir, *const count = values_.materialize(stack.elements[1], call.span());
    ir::Value* const value = call.number("value", tile->type.element());
    ir::Value* const asked = values_.truth(call["has_value"].value, call["has_value"].span);
    if (lanes() > 1) {
        const std::vector<ir::Value*> after = pushed_by_lanes(tile, count, value, asked);
        locals_.assign(name, marked({Value::runtime(after[0]), Value::runtime(after[1])}, kStack), call.span());
        return Value::runtime(after[2]);
    }
    ir::Value* const has_room = builder_.compare(ir::Op::cmp_lt, count, builder_.integer(tile->type.size()));
    ir::Value* const pushes = builder_.binary(ir::Op::and_, asked, has_room);
    ir::Operation* const branch = builder_.if_(pushes, {tile->type});
    {
        ir::Builder::Inside then(builder_, branch->body(0));
        builder_.yield({builder_.insert_at(tile, value, {count})});
    }
    {
        ir::Builder::Inside otherwise(builder_, branch->body(1));
        builder_.yield({tile});
    }
    ir::Value* const more = builder_.binary(ir::Op::add, count, builder_.cast(pushes, Scalar::i32));
    locals_.assign(name, marked({Value::runtime(branch->result()), Value::runtime(more)}, kStack), call.span());
    return Value::runtime(builder_.select(pushes, count, builder_.integer(-1)));
}

Value FunctionAnalyzer::tile_stack_pop(TileArguments& call) {
    const std::string& name = changed_local(call, "s", kStack);
    const Value stack = call["s"].value;
    ir::Value *const tile = stack.elements[0].ir, *const count = values_.materialize(stack.elements[1], call.span());
    if (lanes() > 1) {
        const std::vector<ir::Value*> after = popped_by_lanes(count);
        locals_.assign(name, marked({stack.elements[0], Value::runtime(after[0])}, kStack), call.span());
        ir::Value* const place = builder_.binary(ir::Op::max, after[1], builder_.integer(0));
        return Value::tuple({Value::runtime(builder_.extract_at(tile, {place})), Value::runtime(after[1])});
    }
    ir::Value* const slot = builder_.binary(ir::Op::sub, count, builder_.integer(1));
    ir::Value* const at = builder_.binary(ir::Op::max, slot, builder_.integer(0));
    Value element = Value::runtime(builder_.extract_at(tile, {at}));
    locals_.assign(name, marked({stack.elements[0], Value::runtime(at)}, kStack), call.span());
    return Value::tuple({std::move(element), Value::runtime(slot)});
}

Value FunctionAnalyzer::tile_stack_clear(TileArguments& call) {
    const std::string& name = changed_local(call, "s", kStack);
    const Value stack = call["s"].value;
    locals_.assign(name, marked({stack.elements[0], Value::runtime(builder_.integer(0))}, kStack), call.span());
    return {};
}

Value FunctionAnalyzer::tile_stack_count(TileArguments& call) {
    if (!is_marked(call["s"].value, kStack)) call.refuse("s", kStack);
    return call["s"].value.elements[1];
}

// ---- queries ----

Value FunctionAnalyzer::tile_query(TileArguments& call) {
    const bool is_ray = call.name().find("ray") != std::string::npos,
               is_mesh = call.name().find("mesh") != std::string::npos;
    std::vector<Actual> arguments;
    for (const char* parameter : {"id", is_ray ? "start" : "low", is_ray ? "dir" : "high"}) {
        arguments.push_back(call[parameter]);
        arguments.back().keyword.clear();
    }
    const Value query = call_builtin(is_mesh  ? "mesh_query_aabb"
                                     : is_ray ? "bvh_query_ray"
                                              : "bvh_query_aabb",
                                     arguments, call.span());
    return marked({query, Value::runtime(builder_.boolean(true))}, kQuery);
}

// One result for each lane of the block.
Value FunctionAnalyzer::tile_query_next(TileArguments& call) {
    const std::string& name = changed_local(call, "query", kQuery);
    const bool is_mesh = call.name().find("mesh") != std::string::npos;
    const auto hidden = [&](const char* what, const Value& value) {
        syntax::Expression expression;
        expression.node = syntax::Name{what};
        expression.span = call.span();
        locals_.assign(what, value, call.span());
        return expression;
    };
    // Returns the query behind one more result.
    const auto step = [&](const Value& query, ir::Value*& hit, ir::Value*& at) {
        const syntax::Expression state = hidden("query of a block", query);
        const syntax::Expression index = hidden("index of a block", Value::runtime(builder_.integer(0)));
        const Value found = call_builtin(is_mesh ? "mesh_query_aabb_next" : "bvh_query_next",
                                         {argument(state, false), argument(index, false)}, call.span());
        hit = values_.truth(found, call.span());
        const Value next = locals_.find("query of a block")->value;
        at = values_.materialize(locals_.find("index of a block")->value, call.span());
        for (const char* local : {"query of a block", "index of a block"}) {
            locals_.scope.erase(local);
            locals_.scope.erase(assigned_flag(local));
        }
        return next;
    };
    const Value query = call["query"].value.elements[0];
    if (lanes() > 1) {
        std::vector<ir::Value*> after;
        const Value found = next_of_lanes(query, step, after, call.span());
        locals_.assign(name, marked({Value::runtime(after[0]), Value::runtime(after[1])}, kQuery), call.span());
        return found;
    }
    ir::Value* hit = nullptr;
    ir::Value* at = nullptr;
    const Value next = step(query, hit, at);
    locals_.assign(name, marked({next, Value::runtime(hit)}, kQuery), call.span());
    return tile_of_one(builder_.select(hit, at, builder_.integer(-1)));
}

Value FunctionAnalyzer::tile_query_valid(TileArguments& call) {
    if (!is_marked(call["query"].value, kQuery)) call.refuse("query", kQuery);
    return call["query"].value.elements[1];
}

}  // namespace weft::sema
