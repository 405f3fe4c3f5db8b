// Functions of elements: operators, maps and reductions.
#include <algorithm>

#include "ir/loop_builder.h"
#include "sema/analyzer.h"

namespace weft::sema {

namespace {

const char* sign_of(syntax::BinaryOperator op) {
    using Operator = syntax::BinaryOperator;
    switch (op) {
        case Operator::add:
            return "+";
        case Operator::sub:
            return "-";
        case Operator::mul:
            return "*";
        case Operator::div:
            return "/";
        case Operator::matmul:
            return "@";
        default:
            return "this operator";
    }
}

}  // namespace

// Calls a function that is a value.
Value FunctionAnalyzer::apply(const Value& function, const std::vector<Value>& arguments, Span span) {
    if (function.is_binding(Binding::Kind::builtin) && function.binding->text == "add" && arguments.size() == 2)
        return by_fields(syntax::BinaryOperator::add, arguments[0], arguments[1], span, span, span);
    std::vector<Actual> actuals;
    for (const Value& value : arguments) actuals.push_back(Actual{value, span, {}, nullptr, nullptr});
    Value result;
    switch (function.binding->kind) {
        case Binding::Kind::builtin:
            result = call_builtin(function.binding->text, actuals, span);
            break;
        case Binding::Kind::type:
            result = construct(function.binding->type, actuals, span);
            break;
        case Binding::Kind::closure:
            result = call_closure(function, actuals, span);
            break;
        default:
            result = call_function(function.binding->function, actuals, span);
    }
    if (result.is_nothing() || result.is_tuple())
        fail(span, describe(function) + " gives " + describe(result) + " for an element of a tile, expected one value");
    return result;
}

// The tile of f(elements, values): operands that are no tiles are the same for every element.
Value FunctionAnalyzer::map_tiles(const std::vector<Value>& operands,
                                  const std::function<Value(const std::vector<Value>&)>& f, Span span) {
    ir::Extents shape;
    for (const Value& operand : operands) {
        if (!operand.type.is_tile()) continue;
        if (!shape.empty() && operand.type.shape() != shape) {
            fail(span,
                 "tiles of shapes " + shape_text(shape) + " and " + shape_text(operand.type.shape()) +
                     " do not fit together",
                 {help("wp.tile_broadcast(t, shape) repeats the elements of the smaller one")}, ErrorCategory::value);
        }
        shape = operand.type.shape();
    }
    return Value::runtime(ir::build_flat_tile(builder_, shape, [&](ir::Value* k) {
        std::vector<Value> elements;
        for (const Value& operand : operands)
            elements.push_back(operand.type.is_tile() ? Value::runtime(builder_.extract_at(operand.ir, {k})) : operand);
        return values_.materialize(f(elements), span);
    }));
}

Value FunctionAnalyzer::tile_binary(syntax::BinaryOperator op, const Value& a, const Value& b, Span span, Span a_span,
                                    Span b_span) {
    if (op == syntax::BinaryOperator::matmul) {
        fail(span, "'@' does not take " + describe(a) + " and " + describe(b),
             {help("wp.tile_matmul(a, b) is the product of matrices, a * b that of the elements")});
    }
    for (const Value* value : {&a, &b})
        if (value->is_nothing() || value->is_tuple() || value->is_binding())
            fail(span, std::string("'") + sign_of(op) + "' does not take " + describe(a) + " and " + describe(b));
    return map_tiles(
        {a, b}, [&](const std::vector<Value>& x) { return by_fields(op, x[0], x[1], span, a_span, b_span); }, span);
}

// Structs are added and subtracted field by field, if the program has no operator for them.
Value FunctionAnalyzer::by_fields(syntax::BinaryOperator op, const Value& a, const Value& b, Span span, Span a_span,
                                  Span b_span) {
    using Operator = syntax::BinaryOperator;
    const Type type = a.type;
    if (!type.is_struct() || !(b.type == type) || (op != Operator::add && op != Operator::sub))
        return binary(op, a, b, span, a_span, b_span);
    const std::vector<Actual> operands{Actual{a, a_span, {}, nullptr, nullptr},
                                       Actual{b, b_span, {}, nullptr, nullptr}};
    if (std::optional<Value> own = call_own_operator(op == Operator::add ? "add" : "sub", operands, span)) return *own;
    ir::Value *const x = values_.materialize(a, a_span), *const y = values_.materialize(b, b_span);
    std::vector<ir::Value*> fields;
    for (std::size_t i = 0; i < type.fields().size(); ++i) {
        const auto at = static_cast<std::int64_t>(i);
        const Value field = by_fields(op, Value::runtime(builder_.extract(x, {at})),
                                      Value::runtime(builder_.extract(y, {at})), span, a_span, b_span);
        fields.push_back(values_.materialize(field, span));
    }
    return Value::runtime(builder_.make(type, std::move(fields)));
}

Value FunctionAnalyzer::tile_unary(syntax::UnaryOperator op, const Value& a, Span span) {
    if (op == syntax::UnaryOperator::logical_not)
        fail(span, "a tile is neither true nor false", {help("compare its elements with wp.tile_map(f, t)")});
    return map_tiles({a}, [&](const std::vector<Value>& x) { return unary(op, x[0], span); }, span);
}

Value FunctionAnalyzer::tile_map(TileArguments& call) {
    std::vector<Value> operands{call["a"].value};
    for (const Actual& actual : call.rest()) operands.push_back(actual.value);
    const Value& function = call.function("op");
    if (std::none_of(operands.begin(), operands.end(), [](const Value& v) { return v.type.is_tile(); }))
        call.refuse("a", "a tile");
    return map_tiles(
        operands, [&](const std::vector<Value>& x) { return apply(function, x, call.span()); }, call.span());
}

// ---- reductions ----

Value FunctionAnalyzer::tile_of_one(ir::Value* element) {
    return Value::runtime(ir::build_flat_tile(builder_, {1}, [&](ir::Value*) { return element; }));
}

Value FunctionAnalyzer::reduced_tile(const Value& function, const Actual& given, std::optional<std::int64_t> axis,
                                     Span span) {
    const Value& tile = given.value;
    const Type element = tile.type.element();
    const auto combine = [&](ir::Value* a, ir::Value* b) {
        const Value result = apply(function, {Value::runtime(a), Value::runtime(b)}, span);
        return values_.materialize(
            expect(result, element, span, "the result of " + describe(function) + " on two elements"), span);
    };
    if (!axis) return tile_of_one(ir::build_reduce(builder_, tile.ir, combine));
    const ir::Extents& shape = tile.type.shape();
    if (*axis < 0 || *axis >= tile.type.ndim()) {
        fail(span,
             "axis " + std::to_string(*axis) + " of " + describe(tile) + ", expected 0 to " +
                 std::to_string(tile.type.ndim() - 1),
             {}, ErrorCategory::value);
    }
    const std::size_t at = static_cast<std::size_t>(*axis);
    if (shape.size() == 1) return tile_of_one(ir::build_reduce(builder_, tile.ir, combine));
    ir::Extents rest = shape;
    rest.erase(rest.begin() + static_cast<std::ptrdiff_t>(at));
    return Value::runtime(ir::build_tile(builder_, rest, [&](const std::vector<ir::Value*>& indices) {
        const auto element_at = [&](ir::Value* k) {
            std::vector<ir::Value*> all = indices;
            all.insert(all.begin() + static_cast<std::ptrdiff_t>(at), k);
            return builder_.extract_at(tile.ir, {ir::flat_index(builder_, shape, all)});
        };
        ir::Value* const first = element_at(builder_.integer(0));
        if (shape[at] == 1) return first;
        return ir::build_for(builder_, builder_.integer(1), builder_.integer(shape[at]), builder_.integer(1), {first},
                             [&](ir::Value* k, const std::vector<ir::Value*>& carried) {
                                 return std::vector<ir::Value*>{combine(carried[0], element_at(k))};
                             })[0];
    }));
}

namespace {

Value builtin_value(const char* name) {
    Binding binding;
    binding.kind = Binding::Kind::builtin;
    binding.text = name;
    return Value::of_binding(std::move(binding));
}

}  // namespace

Value FunctionAnalyzer::tile_sum(TileArguments& call) {
    call.tile("a");
    return reduced_tile(builtin_value("add"), call["a"], call.axis(), call.span());
}

Value FunctionAnalyzer::tile_reduce(TileArguments& call) {
    call.tile("a");
    return reduced_tile(call.function("op"), call["a"], call.axis(), call.span());
}

// wp.min and wp.max give the number if one of two is NaN.
Value FunctionAnalyzer::tile_extreme(TileArguments& call) {
    if (!call.tile("a").type.element().is_scalar()) call.refuse("a", "a tile of scalars");
    return reduced_tile(builtin_value(call.name() == "tile_min" ? "min" : "max"), call["a"], {}, call.span());
}

// The lowest index of the element that tile_min or tile_max gives.
Value FunctionAnalyzer::tile_place_of_extreme(TileArguments& call) {
    const Value& tile = call.tile("a");
    const Type element = tile.type.element();
    if (!element.is_scalar()) call.refuse("a", "a tile of scalars");
    const bool is_least = call.name() == "tile_argmin";
    // All are NaN: the first. Else NaN never wins, and an earlier number is kept if a later one equals it.
    ir::Value* const zero = builder_.integer(0);
    // Lanes that have left do not count.
    ir::Value* const counts =
        lanes() > 1 && ir::is_of_lanes(tile.ir) ? builder_.tile_of_lanes(builder_.boolean(true), lanes()) : nullptr;
    const std::vector<ir::Value*> found = ir::build_for(
        builder_, builder_.integer(1), builder_.integer(std::max<std::int64_t>(tile.type.size(), 2)),
        builder_.integer(1), {zero, builder_.extract_at(tile.ir, {zero})},
        [&](ir::Value* k, const std::vector<ir::Value*>& best) {
            ir::Value* const value = builder_.extract_at(tile.ir, {k});
            ir::Value* better = builder_.compare(is_least ? ir::Op::cmp_lt : ir::Op::cmp_gt, value, best[1]);
            if (element.is_float()) {
                ir::Value* const is_first =
                    builder_.binary(ir::Op::and_, builder_.classify(ir::Op::isnan, best[1]),
                                    builder_.unary(ir::Op::invert, builder_.classify(ir::Op::isnan, value)));
                better = builder_.binary(ir::Op::or_, better, is_first);
            }
            if (counts) {
                ir::Value* const is_known = builder_.extract_at(counts, {best[0]});
                better = builder_.binary(ir::Op::or_, better, builder_.unary(ir::Op::invert, is_known));
                better = builder_.binary(ir::Op::and_, better, builder_.extract_at(counts, {k}));
            }
            return std::vector<ir::Value*>{builder_.select(better, k, best[0]),
                                           builder_.select(better, value, best[1])};
        });
    return tile_of_one(tile.type.size() == 1 ? zero : found[0]);
}

Value FunctionAnalyzer::tile_dot(TileArguments& call) {
    const Value &a = call.tile("a"), &b = call.tile("b");
    const Type element = a.type.element();
    if (!(a.type == b.type)) call.refuse("b", a.type.python_name() + " as argument 'a'");
    const char* const product = element.is_matrix() ? "ddot" : element.is_scalar() ? "mul" : "dot";
    Value products = map_tiles(
        {a, b}, [&](const std::vector<Value>& x) { return apply(builtin_value(product), x, call.span()); },
        call.span());
    return reduced_tile(builtin_value("add"), Actual{products, call.span(), {}, nullptr, nullptr}, {}, call.span());
}

Value FunctionAnalyzer::tile_axpy(TileArguments& call) {
    const Value &source = call.tile("src"), &into = call.tile("dest");
    if (!(source.type == into.type)) call.refuse("src", into.type.python_name() + " as argument 'dest'");
    const Value alpha = Value::runtime(call.number(
        "alpha", into.type.element().is_scalar() ? into.type.element() : into.type.element().scalar_type()));
    const Value sum = map_tiles(
        {alpha, source, into},
        [&](const std::vector<Value>& x) {
            const Value product =
                binary(syntax::BinaryOperator::mul, x[0], x[1], call.span(), call.span(), call.span());
            return binary(syntax::BinaryOperator::add, x[2], product, call.span(), call.span(), call.span());
        },
        call.span());
    if (call["dest"].place) write_tile(*call["dest"].place, sum, call.span());
    return {};
}

}  // namespace weft::sema
