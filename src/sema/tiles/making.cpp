// Calls of the tile functions of the language, and those that make tiles.
#include <cmath>
#include <map>
#include <set>
#include <string_view>

#include "sema/analyzer.h"

namespace weft::sema {

Value FunctionAnalyzer::call_tile_function(const std::string& name, const syntax::Call& call, Span span) {
    struct Row {
        const char* parameters;
        Value (FunctionAnalyzer::*run)(TileArguments&);
    };
    using F = FunctionAnalyzer;
    static const std::map<std::string, Row> table = {
        {"tile_zeros", {"shape dtype= storage=", &F::tile_filled}},
        {"tile_ones", {"shape dtype= storage=", &F::tile_filled}},
        {"tile_empty", {"shape dtype= storage=", &F::tile_filled}},
        {"tile_full", {"shape value dtype= storage=", &F::tile_full}},
        {"tile_arange", {"* dtype= storage=", &F::tile_arange}},
        {"tile_from_thread", {"shape value thread_idx storage=", &F::tile_from_thread}},
        {"tile_randf", {"shape rng min= max= storage=", &F::tile_random}},
        {"tile_randi", {"shape rng min= max= storage=", &F::tile_random}},
        {"tile", {"x preserve_type=", &F::tile_of_lanes}},
        {"untile", {"a", &F::untile}},
        {"tile_load", {"a shape offset= storage= bounds_check= aligned=", &F::tile_load}},
        {"tile_store", {"a t offset= bounds_check= aligned=", &F::tile_store}},
        {"tile_atomic_add", {"a t offset= bounds_check=", &F::tile_atomic_add}},
        {"tile_load_indexed", {"a indices shape offset= axis= storage=", &F::tile_load_indexed}},
        {"tile_store_indexed", {"a indices t offset= axis=", &F::tile_store_indexed}},
        {"tile_atomic_add_indexed", {"a indices t offset= axis=", &F::tile_atomic_add_indexed}},
        {"tile_scatter_add", {"a * i= j= k= l= value= has_value= atomic=", &F::tile_scatter}},
        {"tile_scatter_masked", {"a * i= j= k= l= value= has_value=", &F::tile_scatter}},
        {"tile_extract", {"a * i= j= k= l= m= n=", &F::tile_extract}},
        {"tile_view", {"t offset shape=", &F::tile_view}},
        {"tile_assign", {"dst src offset=", &F::tile_assign}},
        {"tile_transpose", {"a", &F::tile_transpose}},
        {"tile_reshape", {"a shape", &F::tile_reshape}},
        {"tile_squeeze", {"a axis=", &F::tile_squeeze}},
        {"tile_broadcast", {"a shape", &F::tile_broadcast}},
        {"tile_astype", {"t dtype", &F::tile_astype}},
        {"tile_slice_indexed", {"t slices", &F::tile_slice_indexed}},
        {"tile_map", {"op a *", &F::tile_map}},
        {"tile_sum", {"a axis=", &F::tile_sum}},
        {"tile_reduce", {"op a axis=", &F::tile_reduce}},
        {"tile_min", {"a", &F::tile_extreme}},
        {"tile_max", {"a", &F::tile_extreme}},
        {"tile_argmin", {"a", &F::tile_place_of_extreme}},
        {"tile_argmax", {"a", &F::tile_place_of_extreme}},
        {"tile_dot", {"a b", &F::tile_dot}},
        {"tile_axpy", {"alpha src dest", &F::tile_axpy}},
        {"tile_stack", {"capacity dtype", &F::tile_stack}},
        {"tile_stack_push", {"s value has_value", &F::tile_stack_push}},
        {"tile_stack_pop", {"s", &F::tile_stack_pop}},
        {"tile_stack_clear", {"s", &F::tile_stack_clear}},
        {"tile_stack_count", {"s", &F::tile_stack_count}},
        {"tile_bvh_query_aabb", {"id low high", &F::tile_query}},
        {"tile_bvh_query_ray", {"id start dir", &F::tile_query}},
        {"tile_mesh_query_aabb", {"id low high", &F::tile_query}},
        {"tile_bvh_query_next", {"query", &F::tile_query_next}},
        {"tile_mesh_query_aabb_next", {"query", &F::tile_query_next}},
        {"tile_query_valid", {"query", &F::tile_query_valid}},
        {"bvh_query_aabb_tiled", {"id low high", &F::tile_query}},
        {"bvh_query_ray_tiled", {"id start dir", &F::tile_query}},
        {"mesh_query_aabb_tiled", {"id low high", &F::tile_query}},
        {"bvh_query_next_tiled", {"query", &F::tile_query_next}},
        {"mesh_query_aabb_next_tiled", {"query", &F::tile_query_next}},
        {"tile_scan_inclusive", {"a", &F::tile_scan}},
        {"tile_scan_exclusive", {"a", &F::tile_scan}},
        {"tile_scan_max_inclusive", {"a", &F::tile_scan}},
        {"tile_scan_min_inclusive", {"a", &F::tile_scan}},
        {"tile_sort", {"keys values", &F::tile_sort}},
        {"tile_matmul", {"a b out= alpha= beta= precision=", &F::tile_matmul}},
        {"tile_cholesky", {"A fill_mode=", &F::tile_cholesky}},
        {"tile_cholesky_inplace", {"A fill_mode=", &F::tile_cholesky}},
        {"tile_cholesky_solve", {"L y fill_mode=", &F::tile_solve}},
        {"tile_cholesky_solve_inplace", {"L y fill_mode=", &F::tile_solve}},
        {"tile_lower_solve", {"L y", &F::tile_solve}},
        {"tile_lower_solve_inplace", {"L y", &F::tile_solve}},
        {"tile_upper_solve", {"U z", &F::tile_solve}},
        {"tile_upper_solve_inplace", {"U z", &F::tile_solve}},
        {"tile_diag_add", {"a d", &F::tile_diag_add}},
        {"tile_fft", {"inout", &F::tile_fft}},
        {"tile_ifft", {"inout", &F::tile_fft}},
    };
    const auto found = table.find(name);
    if (found == table.end()) fail(span, "wp." + name + "() is not there yet");
    TileArguments arguments(name, found->second.parameters, actuals(call), span, builder_);
    builder_.span = span;
    static const std::set<std::string_view> of_lanes = {
        "tile", "untile", "tile_from_thread", "tile_scatter_add", "tile_scatter_masked", "tile_stack"};
    if (of_lanes.contains(name) || found->second.run == &F::tile_query) check_lanes();
    Value result = (this->*found->second.run)(arguments);
    result.is_shared = arguments.has("storage") && arguments.check_storage();
    return result;
}

// A tiled launch runs one lane of each block. In another launch on a GPU the threads of a block would have to share
// what this function makes.
void FunctionAnalyzer::check_lanes() {
    if (lanes() > 1) return;
    ir::Value* const is_alone = builder_.compare(ir::Op::cmp_eq, builder_.block_dim(), builder_.integer(1));
    builder_.require(is_alone,
                     "tiles of several threads of a block are not there yet on this device: launch the kernel with "
                     "wp.launch_tiled, whose blocks have one lane");
}

Value FunctionAnalyzer::tile_filled(TileArguments& call) {
    call.check_storage();
    const ir::Extents shape = call.shape();
    const Type dtype = call.dtype(f32_type());
    ir::Value* value = nullptr;
    if (call.name() != "tile_ones") {
        value = builder_.zero(dtype);
    } else if (dtype.is_struct()) {
        call.refuse("dtype", "a type of numbers");
    } else if (dtype.is(Kind::quaternion)) {
        std::vector<Number> numbers(4, convert(Number::integer(0), Scalar::i64, dtype.scalar()));
        numbers[0] = convert(Number::integer(1), Scalar::i64, dtype.scalar());
        value = builder_.constant(dtype, std::move(numbers));
    } else {
        const Number one = convert(Number::integer(1), Scalar::i64, dtype.scalar());
        value = builder_.constant(dtype, std::vector<Number>(static_cast<std::size_t>(dtype.components()), one));
    }
    return Value::runtime(ir::build_flat_tile(builder_, shape, [&](ir::Value*) { return value; }));
}

Value FunctionAnalyzer::tile_full(TileArguments& call) {
    call.check_storage();
    const ir::Extents shape = call.shape();
    const Value& given = call["value"].value;
    const Type dtype = call.dtype(type_of(settle(given, call["value"].span)));
    ir::Value* value = nullptr;
    if (dtype.is_numeric_aggregate() && type_of(given).is_scalar())
        value = builder_.splat(dtype, call.number("value", dtype.scalar_type()));
    else
        value = call.number("value", dtype);
    return Value::runtime(ir::build_flat_tile(builder_, shape, [&](ir::Value*) { return value; }));
}

Value FunctionAnalyzer::tile_arange(TileArguments& call) {
    call.check_storage();
    const std::vector<Actual>& bounds = call.rest();
    if (bounds.empty() || bounds.size() > 3) call.refuse_all("takes (stop), (start, stop) or (start, stop, step)");
    const Type dtype = call.dtype(f32_type());
    if (!dtype.is_scalar() || dtype.is_bool()) call.refuse("dtype", "a type of numbers");
    double numbers[3] = {0.0, 0.0, 1.0};
    for (std::size_t i = 0; i < bounds.size(); ++i) {
        const Value& bound = bounds[i].value;
        if (!bound.is_constant_scalar())
            fail(bounds[i].span, "wp.tile_arange() takes numbers known at compile time, not " + describe(bound), {},
                 ErrorCategory::value);
        numbers[bounds.size() == 1 ? 1 : i] = bound.numbers[0].as_double();
    }
    const auto [start, stop, step] = numbers;
    if (step == 0.0) call.refuse_all("the step must not be 0");
    const double count = std::ceil((stop - start) / step);
    if (!(count >= 1.0 && count <= 1e7)) call.refuse_all("the range is empty");
    const bool has_fraction = start != std::floor(start) || step != std::floor(step);
    if (dtype.is_int() && has_fraction)
        call.refuse_all("start and step must be whole numbers for " + dtype.python_name());
    const Type wide = dtype.is_int() ? i64_type() : f64_type();
    const auto constant = [&](double value) {
        return builder_.constant(wide, {convert(Number::real(value), Scalar::f64, wide.scalar())});
    };
    return Value::runtime(
        ir::build_flat_tile(builder_, {static_cast<std::int64_t>(count)}, [&, start, step](ir::Value* k) {
            ir::Value* const steps = builder_.binary(ir::Op::mul, builder_.cast(k, wide.scalar()), constant(step));
            return builder_.cast(builder_.binary(ir::Op::add, constant(start), steps), dtype.scalar());
        }));
}

Value FunctionAnalyzer::tile_from_thread(TileArguments& call) {
    call.check_storage();
    ir::Value* value = call.value("value");
    ir::Value* const thread = call.number("thread_idx", i32_type());
    // A block of one lane has no other value.
    if (lanes() > 1) value = builder_.extract_at(builder_.tile_of_lanes(value, lanes()), {thread});
    return Value::runtime(ir::build_flat_tile(builder_, call.shape(), [&](ir::Value*) { return value; }));
}

// Element e is draw number e of a state of its own, made from the given one.
Value FunctionAnalyzer::tile_random(TileArguments& call) {
    call.check_storage();
    const ir::Extents shape = call.shape();
    const bool is_float = call.name() == "tile_randf";
    ir::Value* const state = call.number("rng", u32_type());
    if (call.has("min") != call.has("max")) call.refuse_all("takes both of min and max, or neither");
    std::vector<Value> range;
    for (const char* bound : {"min", "max"})
        if (call.has(bound)) range.push_back(Value::runtime(call.number(bound, is_float ? f32_type() : i32_type())));
    return Value::runtime(ir::build_flat_tile(builder_, shape, [&](ir::Value* k) {
        // As wp.rand_init(seed, offset) makes states that are apart.
        ir::Value* const seed = builder_.bitcast(state, Scalar::i32);
        const auto actual = [&](ir::Value* value) {
            return Actual{Value::runtime(value), call.span(), {}, nullptr, nullptr};
        };
        const Value own = call_builtin("rand_init", {actual(seed), actual(k)}, call.span());
        std::vector<Actual> arguments{Actual{own, call.span(), {}, nullptr, nullptr}};
        arguments[0].keyword = "";
        for (const Value& bound : range) arguments.push_back(Actual{bound, call.span(), {}, nullptr, nullptr});
        return values_.materialize(call_builtin(is_float ? "randf" : "randi", arguments, call.span()), call.span());
    }));
}

// One value of each lane.
Value FunctionAnalyzer::tile_of_lanes(TileArguments& call) {
    ir::Value* const x = call.value("x");
    const Type type = x->type;
    const bool preserves = call.flag("preserve_type", false);
    if (!type.is_scalar() && !type.is_numeric_aggregate() && !type.is_struct())
        call.refuse("x", "a number, vector, matrix or struct");
    const bool is_whole = preserves || !(type.is_vector() || type.is_matrix());
    ir::Value* const all = lanes() > 1 ? builder_.tile_of_lanes(x, lanes()) : nullptr;
    if (is_whole) return all ? Value::runtime(all) : tile_of_one(x);
    const ir::Extents shape =
        type.is_matrix() ? ir::Extents{type.rows(), type.cols(), lanes()} : ir::Extents{type.rows(), lanes()};
    return Value::runtime(ir::build_tile(builder_, shape, [&](const std::vector<ir::Value*>& at) {
        ir::Value* const of_lane = all ? builder_.extract_at(all, {at.back()}) : x;
        return builder_.extract_at(
            of_lane, type.is_matrix() ? std::vector<ir::Value*>{at[0], at[1]} : std::vector<ir::Value*>{at[0]});
    }));
}

Value FunctionAnalyzer::untile(TileArguments& call) {
    const Value& tile = call.tile("a");
    const ir::Extents& shape = tile.type.shape();
    const Type element = tile.type.element();
    if (shape.back() != lanes()) {
        call.refuse_all("the last extent of " + describe(tile) + " must be the number of lanes of a block, " +
                        std::to_string(lanes()));
    }
    ir::Value* const lane = lanes() > 1 ? builder_.lane() : builder_.integer(0);
    const auto at = [&](std::int64_t k) {
        ir::Value* const first = builder_.integer(k * lanes());
        return builder_.extract_at(tile.ir, {k == 0 ? lane : builder_.binary(ir::Op::add, first, lane)});
    };
    if (shape.size() == 1) return Value::runtime(at(0));
    if (!element.is_scalar() || shape.size() > 3)
        call.refuse("a", "a tile of scalars of shape (n, lanes) or (rows, cols, lanes), or of one dimension");
    std::vector<ir::Value*> components;
    for (std::int64_t k = 0; k < tile.type.size() / lanes(); ++k) components.push_back(at(k));
    const int rows = static_cast<int>(shape[0]);
    const Type whole = shape.size() == 2 ? Type::vector(element.scalar(), rows)
                                         : Type::matrix(element.scalar(), rows, static_cast<int>(shape[1]));
    return Value::runtime(builder_.make(whole, std::move(components)));
}

}  // namespace weft::sema
