// Products, factorizations and solutions, and Fourier transforms.
//
// Each factorization, solution and transform is a function of the module with a gradient of its own: the derivative of
// a loop that overwrites what it has read would have to keep every version.
#include <cmath>
#include <numbers>

#include "ir/expression.h"
#include "ir/loop_builder.h"
#include "sema/analyzer.h"

namespace weft::sema {

namespace {

using ir::Builder;
using ir::Op;

// A tile that loops write, in the shorthand of formulas: rows and columns are i32.
class Matrix {
public:
    Matrix(Builder& b, ir::Value* tile, bool is_transposed = false)
        : b_(&b),
          tile_(tile),
          width_(tile->type.ndim() == 2 ? tile->type.shape()[1] : 1),
          is_transposed_(is_transposed) {}

    ir::Value* tile() const { return tile_; }
    ir::Value* at(ir::Value* row, ir::Value* col) const { return b_->extract_at(tile_, {number(row, col)}); }
    Matrix with(ir::Value* row, ir::Value* col, ir::Value* value) const {
        Matrix changed = *this;
        changed.tile_ = b_->insert_at(tile_, value, {number(row, col)});
        return changed;
    }
    Matrix of(ir::Value* tile) const {
        Matrix other = *this;
        other.tile_ = tile;
        return other;
    }

private:
    ir::Value* number(ir::Value* row, ir::Value* col) const {
        if (is_transposed_) std::swap(row, col);
        if (width_ == 1) return row;
        return b_->binary(Op::add, b_->binary(Op::mul, row, b_->integer(width_)), col);
    }

    Builder* b_;
    ir::Value* tile_;
    std::int64_t width_;
    bool is_transposed_;
};

struct Loops {
    Builder& b;

    ir::Value* number(std::int64_t value) const { return b.integer(value); }
    ir::Value* plus(ir::Value* i, std::int64_t by) const { return b.binary(Op::add, i, number(by)); }
    ir::Value* minus(ir::Value* from, ir::Value* i) const { return b.binary(Op::sub, from, i); }
    ir::Value* mul(ir::Value* x, ir::Value* y) const { return b.binary(Op::mul, x, y); }
    ir::Value* sub(ir::Value* x, ir::Value* y) const { return b.binary(Op::sub, x, y); }
    ir::Value* div(ir::Value* x, ir::Value* y) const { return b.binary(Op::div, x, y); }

    // Carries a tile through i = lo .. hi.
    template <typename Body>
    Matrix carry(ir::Value* lo, ir::Value* hi, const Matrix& start, const Body& body) const {
        return start.of(ir::build_for(b, lo, hi, number(1), {start.tile()}, [&](ir::Value* i, const auto& carried) {
            return std::vector<ir::Value*>{body(i, start.of(carried[0])).tile()};
        })[0]);
    }
    // start - the sum of term(k) for k = lo .. hi.
    template <typename Term>
    ir::Value* less_sum(ir::Value* start, ir::Value* lo, ir::Value* hi, const Term& term) const {
        return ir::build_for(b, lo, hi, number(1), {start}, [&](ir::Value* k, const auto& carried) {
            return std::vector<ir::Value*>{sub(carried[0], term(k))};
        })[0];
    }
};

// L with A = L Lᵀ from the lower triangle, or with everything transposed U with A = Uᵀ U from the upper one.
ir::Value* cholesky(Builder& b, ir::Value* tile, bool is_upper) {
    const Loops l{b};
    const std::int64_t n = tile->type.shape()[0];
    const Matrix a(b, tile, is_upper);
    Matrix result(b, b.zero(tile->type), is_upper);
    return l
        .carry(l.number(0), l.number(n), result,
               [&](ir::Value* j, const Matrix& before) {
                   ir::Value* const square = l.less_sum(a.at(j, j), l.number(0), j, [&](ir::Value* k) {
                       ir::Value* const x = before.at(j, k);
                       return l.mul(x, x);
                   });
                   ir::Value* const root = b.unary(Op::sqrt, square);
                   return l.carry(l.plus(j, 1), l.number(n), before.with(j, j, root),
                                  [&](ir::Value* i, const Matrix& now) {
                                      ir::Value* const rest = l.less_sum(a.at(i, j), l.number(0), j, [&](ir::Value* k) {
                                          return l.mul(now.at(i, k), now.at(j, k));
                                      });
                                      return now.with(i, j, l.div(rest, root));
                                  });
               })
        .tile();
}

// The adjoint of the triangle that was read: the steps of the factorization in reverse, with its adjoint in place.
ir::Value* cholesky_gradient(Builder& b, ir::Value* tile, ir::Value* adjoint, bool is_upper) {
    const Loops l{b};
    const std::int64_t n = tile->type.shape()[0];
    const Matrix factor(b, cholesky(b, tile, is_upper), is_upper);
    // The other triangle of the factor is constant.
    Matrix start(b, b.zero(tile->type), is_upper);
    const Matrix given(b, adjoint, is_upper);
    start = l.carry(l.number(0), l.number(n), start, [&](ir::Value* i, const Matrix& rows) {
        return l.carry(l.number(0), l.plus(i, 1), rows,
                       [&](ir::Value* j, const Matrix& now) { return now.with(i, j, given.at(i, j)); });
    });
    return l
        .carry(l.number(0), l.number(n), start,
               [&](ir::Value* step, const Matrix& columns) {
                   ir::Value* const j = l.minus(l.number(n - 1), step);
                   ir::Value* const root = factor.at(j, j);
                   const Matrix below = l.carry(l.number(0), step, columns, [&](ir::Value* back, const Matrix& now) {
                       ir::Value* const i = l.minus(l.number(n - 1), back);
                       ir::Value* const t = l.div(now.at(i, j), root);
                       Matrix next = now.with(i, j, t);
                       next = next.with(j, j, l.sub(next.at(j, j), l.mul(t, factor.at(i, j))));
                       return l.carry(l.number(0), j, next, [&](ir::Value* k, const Matrix& inner) {
                           const Matrix one = inner.with(i, k, l.sub(inner.at(i, k), l.mul(t, factor.at(j, k))));
                           return one.with(j, k, l.sub(one.at(j, k), l.mul(t, factor.at(i, k))));
                       });
                   });
                   ir::Value* const two = b.real(2.0, tile->type.element());
                   ir::Value* const t = l.div(below.at(j, j), l.mul(two, root));
                   return l.carry(l.number(0), j, below.with(j, j, t), [&](ir::Value* k, const Matrix& inner) {
                       return inner.with(j, k, l.sub(inner.at(j, k), l.mul(l.mul(two, t), factor.at(j, k))));
                   });
               })
        .tile();
}

// How a triangle is solved: `reads_upper` of the tile as it is read, which may be transposed.
struct Triangle {
    bool is_transposed, reads_upper;
};

ir::Value* solve(Builder& b, ir::Value* triangle, ir::Value* right, Triangle how) {
    const Loops l{b};
    const std::int64_t n = triangle->type.shape()[0], columns = right->type.ndim() == 2 ? right->type.shape()[1] : 1;
    const Matrix t(b, triangle, how.is_transposed), y(b, right);
    return l
        .carry(l.number(0), l.number(columns), y,
               [&](ir::Value* c, const Matrix& all) {
                   return l.carry(l.number(0), l.number(n), all, [&](ir::Value* step, const Matrix& x) {
                       ir::Value* const i = how.reads_upper ? l.minus(l.number(n - 1), step) : step;
                       ir::Value* const lo = how.reads_upper ? l.plus(i, 1) : l.number(0);
                       ir::Value* const hi = how.reads_upper ? l.number(n) : i;
                       ir::Value* const rest =
                           l.less_sum(x.at(i, c), lo, hi, [&](ir::Value* k) { return l.mul(t.at(i, k), x.at(k, c)); });
                       return x.with(i, c, l.div(rest, t.at(i, i)));
                   });
               })
        .tile();
}

// With x = T⁻¹ y:  ȳ = T⁻ᵀ x̄ and T̄ = -ȳ xᵀ on the triangle.
std::vector<ir::Value*> solve_gradient(Builder& b, ir::Value* triangle, ir::Value* right, ir::Value* adjoint,
                                       Triangle how) {
    const Loops l{b};
    const std::int64_t n = triangle->type.shape()[0], columns = right->type.ndim() == 2 ? right->type.shape()[1] : 1;
    const Matrix x(b, solve(b, triangle, right, how));
    const Matrix back(b, solve(b, triangle, adjoint, {!how.is_transposed, !how.reads_upper}));
    const Matrix start(b, b.zero(triangle->type), how.is_transposed);
    const Matrix outer = l.carry(l.number(0), l.number(n), start, [&](ir::Value* i, const Matrix& rows) {
        ir::Value* const lo = how.reads_upper ? i : l.number(0);
        ir::Value* const hi = how.reads_upper ? l.number(n) : l.plus(i, 1);
        return l.carry(lo, hi, rows, [&](ir::Value* j, const Matrix& now) {
            ir::Value* const sum = l.less_sum(b.zero(triangle->type.element()), l.number(0), l.number(columns),
                                              [&](ir::Value* c) { return l.mul(back.at(i, c), x.at(j, c)); });
            return now.with(i, j, sum);
        });
    });
    return {outer.tile(), back.tile()};
}

// The sums over k of t[k] exp(-2 pi i k m / n), or +, of each row.
ir::Value* fourier(Builder& b, ir::Value* tile, bool is_inverse) {
    const ir::Extents shape = tile->type.shape();
    const Type pair = tile->type.element(), real = pair.scalar_type();
    const std::int64_t n = shape.back(), rows = tile->type.size() / n;
    const Loops l{b};
    const auto wave = [&](ir::Value* number, ir::Value* period) {  // of an angle 2 pi number / period
        ir::Value* const turn = b.binary(Op::div, b.cast(number, Scalar::f64), b.cast(period, Scalar::f64));
        ir::Value* const angle =
            b.binary(Op::mul, turn, b.real((is_inverse ? 2.0 : -2.0) * std::numbers::pi, f64_type()));
        return std::pair(b.cast(b.unary(Op::cos, angle), real.scalar()),
                         b.cast(b.unary(Op::sin, angle), real.scalar()));
    };
    const auto product = [&](ir::Value* z, std::pair<ir::Value*, ir::Value*> w) {
        ir::Value *const x = b.extract(z, {0}), *const y = b.extract(z, {1});
        return b.make(pair, {l.sub(l.mul(x, w.first), l.mul(y, w.second)),
                             b.binary(Op::add, l.mul(x, w.second), l.mul(y, w.first))});
    };
    const Matrix start(b, tile);
    const auto number = [&](ir::Value* row, ir::Value* k) { return b.binary(Op::add, l.mul(row, l.number(n)), k); };
    const bool is_power = (n & (n - 1)) == 0;
    if (!is_power) {
        return ir::build_tile(b, shape, {rows, n}, [&](const std::vector<ir::Value*>& at) {
            return ir::build_for(
                b, l.number(0), l.number(n), l.number(1), {b.zero(pair)}, [&](ir::Value* k, const auto& sum) {
                    ir::Value* const turns = b.binary(Op::rem, l.mul(k, at[1]), l.number(n));
                    ir::Value* const term = product(b.extract_at(tile, {number(at[0], k)}), wave(turns, l.number(n)));
                    return std::vector<ir::Value*>{b.binary(Op::add, sum[0], term)};
                })[0];
        });
    }
    int levels = 0;
    while (std::int64_t{1} << levels < n) ++levels;
    // In bit-reversed order, then butterflies of doubling width.
    ir::Value* const reversed = ir::build_tile(b, shape, {rows, n}, [&](const std::vector<ir::Value*>& at) {
        ir::Value *from = l.number(0), *left = at[1];
        for (int i = 0; i < levels; ++i) {
            from = b.binary(Op::or_, b.binary(Op::shl, from, l.number(1)), b.binary(Op::and_, left, l.number(1)));
            left = b.binary(Op::shr, left, l.number(1));
        }
        return b.extract_at(tile, {number(at[0], from)});
    });
    if (levels == 0) return reversed;
    return l
        .carry(l.number(0), l.number(rows), start.of(reversed),
               [&](ir::Value* row, const Matrix& all) {
                   return l.carry(l.number(0), l.number(levels), all, [&](ir::Value* level, const Matrix& now) {
                       ir::Value* const half = b.binary(Op::shl, l.number(1), level);
                       return l.carry(l.number(0), l.number(n / 2), now, [&](ir::Value* k, const Matrix& inner) {
                           ir::Value* const within = b.binary(Op::and_, k, l.sub(half, l.number(1)));
                           ir::Value* const first = b.binary(Op::add, l.mul(l.sub(k, within), l.number(2)), within);
                           ir::Value *const low = number(row, first), *const high = b.binary(Op::add, low, half);
                           ir::Value* const x = b.extract_at(inner.tile(), {low});
                           ir::Value* const y = product(b.extract_at(inner.tile(), {high}),
                                                        wave(within, b.binary(Op::shl, half, l.number(1))));
                           ir::Value* const one = b.insert_at(inner.tile(), b.binary(Op::add, x, y), {low});
                           return inner.of(b.insert_at(one, b.binary(Op::sub, x, y), {high}));
                       });
                   });
               })
        .tile();
}

}  // namespace

// The function of the module with this key, written at its first call; `gradient` gets the parameters and the adjoint
// of the result, and gives the adjoints of all parameters.
ir::Function* FunctionAnalyzer::tile_function(const std::string& key, const std::vector<Type>& parameters, Span span,
                                              const TileBody& body, const TileGradient& gradient) {
    if (const auto known = module_.instances.find(key); known != module_.instances.end()) return known->second;
    const auto write = [&](const std::string& name, const std::vector<Type>& types, const auto& fill) {
        ir::Function* const function = module_.module.add(module_.unique_name(name));
        function->span = span;
        std::vector<ir::Value*> arguments;
        for (const Type type : types) arguments.push_back(function->add_argument(&function->body, type));
        ir::Builder builder(*function, function->body);
        builder.span = span;
        const std::vector<ir::Value*> results = fill(builder, arguments);
        std::vector<Type> result_types;
        for (const ir::Value* result : results) result_types.push_back(result->type);
        function->result = results.size() == 1 ? result_types[0] : Type::tuple(std::move(result_types));
        builder.return_({results.size() == 1 ? results[0] : builder.make(function->result, results)});
        return function;
    };
    const std::string name = key.substr(0, key.find(' '));
    ir::Function* const function =
        write(name, parameters, [&](ir::Builder& b, const std::vector<ir::Value*>& arguments) {
            return std::vector<ir::Value*>{body(b, arguments)};
        });
    std::vector<Type> with_adjoint = parameters;
    with_adjoint.push_back(function->result);
    function->gradient = write(name + "_gradient", with_adjoint, gradient);
    module_.instances.emplace(key, function);
    return function;
}

Value FunctionAnalyzer::tile_matmul(TileArguments& call) {
    const Value &a = call.tile("a"), &b = call.tile("b");
    call.text("precision", "default", {"default", "highest", "high", "medium", "tf32"});
    const bool has_out = call.has("out") && call["out"].value.type.is_tile();
    const auto check = [&](const char* parameter, const Value& value) {
        const Type element = value.type.element();
        if (value.type.ndim() != 2 || !element.is_float()) call.refuse(parameter, "a tile of two dimensions of floats");
    };
    check("a", a);
    check("b", b);
    if (a.type.shape()[1] != b.type.shape()[0])
        call.refuse_all("a has " + std::to_string(a.type.shape()[1]) + " columns and b has " +
                        std::to_string(b.type.shape()[0]) + " rows");
    const ir::Extents shape{a.type.shape()[0], b.type.shape()[1]};
    call.check_count(shape);
    Value out;
    if (has_out) {
        out = call.tile("out");
        check("out", out);
        if (out.type.shape() != shape) call.refuse_value("out", "a tile of shape " + shape_text(shape));
        if (!call["out"].place) call.refuse("out", "a tile in a variable, which the call changes");
    }
    const Type result = has_out ? out.type.element() : a.type.element();
    // Sums of small floats are made in float32.
    const Type wide = info(result.scalar()).is_small_float() ? f32_type() : result;
    const auto cast = [&](const Value& tile, Type to) {
        if (tile.type.element() == to) return tile;
        return map_tiles(
            {tile}, [&](const std::vector<Value>& x) { return Value::runtime(builder_.cast(x[0].ir, to.scalar())); },
            call.span());
    };
    Value product = Value::runtime(builder_.tile_matmul(cast(a, wide).ir, cast(b, wide).ir));
    const std::string alpha_name = call.has("out") && !has_out ? "out" : "alpha";
    const auto factor = [&](const std::string& parameter) { return Value::runtime(call.number(parameter, wide)); };
    const auto combine = [&](const std::vector<Value>& operands,
                             const std::function<ir::Value*(const std::vector<Value>&)>& f) {
        return map_tiles(operands, [&](const std::vector<Value>& x) { return Value::runtime(f(x)); }, call.span());
    };
    if (call.has(alpha_name)) {
        product = combine({product, factor(alpha_name)},
                          [&](const std::vector<Value>& x) { return builder_.binary(ir::Op::mul, x[0].ir, x[1].ir); });
    }
    if (!has_out) return cast(product, result);
    const Value beta = call.has("beta") ? call["beta"].value : Value::literal(Number::real(1.0));
    const bool is_constant = beta.is_constant_scalar();
    if (!is_constant || beta.numbers[0].as_double() != 0.0) {
        const Value by = call.has("beta") ? factor("beta") : Value::runtime(builder_.real(1.0, wide));
        product = combine({product, cast(out, wide), by}, [&](const std::vector<Value>& x) {
            ir::Value* const sum =
                builder_.binary(ir::Op::add, x[0].ir, builder_.binary(ir::Op::mul, x[1].ir, x[2].ir));
            if (is_constant) return sum;
            // With 0 the old contents are not read: they may be NaN.
            ir::Value* const is_zero = builder_.compare(ir::Op::cmp_eq, x[2].ir, builder_.zero(wide));
            return builder_.select(is_zero, x[0].ir, sum);
        });
    }
    write_tile(*call["out"].place, cast(product, result), call.span());
    return {};
}

Value FunctionAnalyzer::tile_cholesky(TileArguments& call) {
    const Value& a = call.tile("A");
    const ir::Extents& shape = a.type.shape();
    const Type element = a.type.element();
    if (!(element == f32_type() || element == f64_type())) call.refuse("A", "a tile of float32 or float64");
    if (shape.size() != 2 || shape[0] != shape[1]) {
        fail(call["A"].span, "argument 'A' of wp." + call.name() + "() is " + describe(a) + ", expected a square tile",
             {}, ErrorCategory::value);
    }
    const bool is_upper = call.text("fill_mode", "lower", {"lower", "upper"}) == "upper";
    const std::string key = std::string(is_upper ? "cholesky_upper " : "cholesky_lower ") + a.type.ir_name();
    ir::Function* const function = tile_function(
        key, {a.type}, call.span(), [&](ir::Builder& b, const auto& x) { return cholesky(b, x[0], is_upper); },
        [&](ir::Builder& b, const auto& x) {
            return std::vector<ir::Value*>{cholesky_gradient(b, x[0], x[1], is_upper)};
        });
    return finish_in_place(call, "A", builder_.call(function, {a.ir}));
}

// The functions that end in _inplace write their result to the argument.
Value FunctionAnalyzer::finish_in_place(TileArguments& call, const std::string& parameter, ir::Value* result) {
    if (!call.name().ends_with("_inplace")) return Value::runtime(result);
    if (!call[parameter].place) call.refuse(parameter, "a tile in a variable, which the call changes");
    write_tile(*call[parameter].place, Value::runtime(result), call.span());
    return {};
}

ir::Value* FunctionAnalyzer::solved(ir::Value* triangle, ir::Value* right, bool is_transposed, bool reads_upper,
                                    Span span) {
    const Triangle how{is_transposed, reads_upper};
    const std::string key = std::string("solve_") + (reads_upper ? "upper" : "lower") +
                            (is_transposed ? "_transposed " : " ") + triangle->type.ir_name() + " " +
                            right->type.ir_name();
    ir::Function* const function = tile_function(
        key, {triangle->type, right->type}, span,
        [&](ir::Builder& b, const auto& x) { return solve(b, x[0], x[1], how); },
        [&](ir::Builder& b, const auto& x) { return solve_gradient(b, x[0], x[1], x[2], how); });
    return builder_.call(function, {triangle, right});
}

// tile_lower_solve(L, y), tile_upper_solve(U, z), tile_cholesky_solve(L, y, fill_mode), and the forms in place.
Value FunctionAnalyzer::tile_solve(TileArguments& call) {
    const bool is_cholesky = call.name().starts_with("tile_cholesky"),
               is_upper_solve = call.name().starts_with("tile_upper");
    const std::string triangle = is_upper_solve ? "U" : "L", right = is_upper_solve ? "z" : "y";
    const Value &t = call.tile(triangle), &y = call.tile(right);
    const ir::Extents &square = t.type.shape(), &shape = y.type.shape();
    const Type element = t.type.element();
    if (!(element == f32_type() || element == f64_type())) call.refuse(triangle, "a tile of float32 or float64");
    if (square.size() != 2 || square[0] != square[1]) call.refuse_value(triangle, "a square tile");
    if (shape.size() > 2 || shape[0] != square[0] || !(y.type.element() == element))
        call.refuse_value(right, "a tile of " + element.python_name() + " of shape (" + std::to_string(square[0]) +
                                     ",) or (" + std::to_string(square[0]) + ", k)");
    if (!is_cholesky) return finish_in_place(call, right, solved(t.ir, y.ir, false, is_upper_solve, call.span()));
    const bool is_upper = call.text("fill_mode", "lower", {"lower", "upper"}) == "upper";
    // L Lᵀ x = y, or Uᵀ U x = y.
    ir::Value* const half = solved(t.ir, y.ir, is_upper, false, call.span());
    return finish_in_place(call, right, solved(t.ir, half, !is_upper, true, call.span()));
}

Value FunctionAnalyzer::tile_diag_add(TileArguments& call) {
    const Value &a = call.tile("a"), &d = call.tile("d");
    const ir::Extents& shape = a.type.shape();
    if (shape.size() != 2 || shape[0] != shape[1]) call.refuse_value("a", "a square tile");
    if (!(d.type == Type::tile(a.type.element(), {shape[0]})))
        call.refuse_value("d", Type::tile(a.type.element(), {shape[0]}).python_name());
    return Value::runtime(ir::build_tile(builder_, shape, [&](const std::vector<ir::Value*>& at) {
        ir::Value* const value = builder_.extract_at(a.ir, {ir::flat_index(builder_, shape, at)});
        ir::Value* const sum = builder_.binary(ir::Op::add, value, builder_.extract_at(d.ir, {at[0]}));
        return builder_.select(builder_.compare(ir::Op::cmp_eq, at[0], at[1]), sum, value);
    }));
}

Value FunctionAnalyzer::tile_fft(TileArguments& call) {
    const Value& tile = call.tile("inout");
    const Type element = tile.type.element();
    const bool is_pair = element.is_vector() && element.components() == 2 &&
                         (element.scalar() == Scalar::f32 || element.scalar() == Scalar::f64);
    if (!is_pair) call.refuse("inout", "a tile of vec2f or vec2d");
    if (tile.type.ndim() < 2) call.refuse_value("inout", "a tile of at least two dimensions");
    if (tile.type.shape().back() > 4096) call.refuse("inout", "at most 4096 elements along the last axis");
    if (!call["inout"].place) call.refuse("inout", "a tile in a variable, which the call changes");
    const bool is_inverse = call.name() == "tile_ifft";
    ir::Function* const function = tile_function(
        std::string(is_inverse ? "ifft " : "fft ") + tile.type.ir_name(), {tile.type}, call.span(),
        [&](ir::Builder& b, const auto& x) { return fourier(b, x[0], is_inverse); },
        [&](ir::Builder& b, const auto& x) { return std::vector<ir::Value*>{fourier(b, x[1], !is_inverse)}; });
    write_tile(*call["inout"].place, Value::runtime(builder_.call(function, {tile.ir})), call.span());
    return {};
}

}  // namespace weft::sema
