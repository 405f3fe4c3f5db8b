#include "builtins/evaluate.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <map>
#include <stdexcept>

#include "ir/ir.h"

namespace weft::builtins::testing {
namespace {

using ir::Op;
using Numbers = std::vector<double>;

double wrapped(double value, Scalar scalar) {
    switch (scalar) {
        case Scalar::i32:
            return static_cast<std::int32_t>(static_cast<std::int64_t>(value));
        case Scalar::u32:
            return static_cast<std::uint32_t>(static_cast<std::int64_t>(value));
        case Scalar::f32:
            return static_cast<float>(value);
        default:
            return value;
    }
}

double unary(Op op, double a) {
    switch (op) {
        case Op::neg:
            return -a;
        case Op::abs:
            return std::abs(a);
        case Op::invert:
            return a == 0;  // bool only
        case Op::sqrt:
            return std::sqrt(a);
        case Op::cbrt:
            return std::cbrt(a);
        case Op::sin:
            return std::sin(a);
        case Op::cos:
            return std::cos(a);
        case Op::asin:
            return std::asin(std::clamp(a, -1.0, 1.0));
        case Op::acos:
            return std::acos(std::clamp(a, -1.0, 1.0));
        case Op::exp:
            return std::exp(a);
        case Op::log:
            return std::log(a);
        case Op::floor:
            return std::floor(a);
        case Op::trunc:
            return std::trunc(a);
        case Op::detach:
        case Op::detach_reverse:
            return a;
        default:
            throw std::logic_error(std::string("evaluate: ") + ir::op_name(op));
    }
}

double binary(Op op, double a, double b, Scalar scalar) {
    const bool is_integer = info(scalar).is_int();
    const auto ints = [&](auto f) {
        return static_cast<double>(f(static_cast<std::int64_t>(a), static_cast<std::int64_t>(b)));
    };
    switch (op) {
        case Op::add:
            return a + b;
        case Op::sub:
            return a - b;
        // The product of two 32-bit numbers may have more than 53 bits.
        case Op::mul:
            return is_integer ? ints([](std::int64_t x, std::int64_t y) {
                return static_cast<std::int64_t>(static_cast<std::uint64_t>(x) * static_cast<std::uint64_t>(y) &
                                                 0xFFFFFFFFu);
            })
                              : a * b;
        case Op::div:
            return is_integer ? ints([](auto x, auto y) { return y ? x / y : 0; }) : a / b;
        case Op::rem:
            return is_integer ? ints([](auto x, auto y) { return y ? x % y : 0; }) : std::fmod(a, b);
        case Op::min:
            return std::fmin(a, b);
        case Op::max:
            return std::fmax(a, b);
        case Op::pow:
            return std::pow(a, b);
        case Op::atan2:
            return std::atan2(a, b);
        case Op::and_:
            return ints([](auto x, auto y) { return x & y; });
        case Op::or_:
            return ints([](auto x, auto y) { return x | y; });
        case Op::xor_:
            return ints([](auto x, auto y) { return x ^ y; });
        case Op::shl:
            return ints([](auto x, auto y) { return x << y; });
        case Op::shr:
            return ints([](auto x, auto y) { return x >> y; });
        default:
            throw std::logic_error(std::string("evaluate: ") + ir::op_name(op));
    }
}

bool compare(Op op, double a, double b) {
    switch (op) {
        case Op::cmp_lt:
            return a < b;
        case Op::cmp_le:
            return a <= b;
        case Op::cmp_gt:
            return a > b;
        case Op::cmp_ge:
            return a >= b;
        case Op::cmp_eq:
            return a == b;
        default:
            return a != b;
    }
}

// Integers to integers: the same once wrapped. The bits of a double, as a number, lose the last of its 64.
double same_bits(double v, Scalar from, Scalar to) {
    if (from == Scalar::f32 && info(to).is_int())
        return static_cast<double>(std::bit_cast<std::uint32_t>(static_cast<float>(v)));
    if (from == Scalar::f64 && info(to).is_int()) return static_cast<double>(std::bit_cast<std::uint64_t>(v));
    if (to == Scalar::f32) return std::bit_cast<float>(static_cast<std::uint32_t>(v));
    if (to == Scalar::f64) return std::bit_cast<double>(static_cast<std::uint64_t>(v));
    return v;
}

std::size_t width(Type type) {
    if (type.is_tuple()) {
        std::size_t n = 0;
        for (Type element : type.elements()) n += width(element);
        return n;
    }
    return static_cast<std::size_t>(type.components());
}

class Evaluator {
public:
    std::map<const ir::Value*, Numbers> values;

    // Runs a region up to its terminator and gives what that yields.
    std::vector<Numbers> run(const ir::Region& region) {
        for (const ir::Operation* operation : region.operations) {
            if (operation == region.terminator()) break;
            run(*operation);
        }
        std::vector<Numbers> out;
        for (const ir::Value* v : region.terminator()->operands) out.push_back(values.at(v));
        return out;
    }

private:
    const Numbers& in(const ir::Operation& o, std::size_t i) { return values.at(o.operands[i]); }

    void run(const ir::Operation& o) {
        if (o.op == Op::if_) {
            const auto yielded = run(o.body(in(o, 0)[0] != 0 ? 0 : 1));
            for (std::size_t i = 0; i < yielded.size(); ++i) values[o.result(i)] = yielded[i];
        } else if (o.op == Op::while_) {
            std::vector<Numbers> carried;
            for (std::size_t i = 0; i < o.operands.size(); ++i) carried.push_back(in(o, i));
            const auto enter = [&](std::size_t region) {
                for (std::size_t i = 0; i < carried.size(); ++i) values[o.body(region).arguments[i]] = carried[i];
                return run(o.body(region));
            };
            while (enter(0)[0][0] != 0) carried = enter(1);
            for (std::size_t i = 0; i < carried.size(); ++i) values[o.result(i)] = carried[i];
        } else if (o.op != Op::print) {
            Numbers result = compute(o);
            const Type type = o.result()->type;
            if (type.is_scalar() || type.is_numeric_aggregate())
                for (double& v : result) v = wrapped(v, type.scalar());
            values[o.result()] = std::move(result);
        }
    }

    Numbers compute(const ir::Operation& o) {
        const Type type = o.result()->type;
        Numbers out;
        switch (ir::op_class(o.op)) {
            case ir::OpClass::unary:
                for (double v : in(o, 0)) out.push_back(unary(o.op, v));
                return out;
            case ir::OpClass::binary:
                for (std::size_t i = 0; i < in(o, 0).size(); ++i)
                    out.push_back(binary(o.op, in(o, 0)[i], in(o, 1)[i], type.scalar()));
                return out;
            case ir::OpClass::compare:
                return {double(compare(o.op, in(o, 0)[0], in(o, 1)[0]))};
            default:
                break;
        }
        switch (o.op) {
            case Op::constant:
                for (const Number& n : o.numbers) out.push_back(n.as_double());
                return out;
            case Op::select:
                return in(o, 0)[0] != 0 ? in(o, 1) : in(o, 2);
            case Op::cast:
                for (double v : in(o, 0)) out.push_back(info(type.scalar()).is_int() ? std::trunc(v) : v);
                return out;
            case Op::bitcast:
                for (double v : in(o, 0)) out.push_back(same_bits(v, o.operands[0]->type.scalar(), type.scalar()));
                return out;
            case Op::fma:
                for (std::size_t i = 0; i < in(o, 0).size(); ++i)
                    out.push_back(std::fma(in(o, 0)[i], in(o, 1)[i], in(o, 2)[i]));
                return out;
            case Op::make:
                for (const ir::Value* part : o.operands)
                    out.insert(out.end(), values.at(part).begin(), values.at(part).end());
                return out;
            case Op::splat:
                return Numbers(width(type), in(o, 0)[0]);
            case Op::extract: {
                const std::size_t at = offset(o);
                return {in(o, 0).begin() + at, in(o, 0).begin() + at + width(type)};
            }
            case Op::insert:
                out = in(o, 0);
                std::copy(in(o, 1).begin(), in(o, 1).end(), out.begin() + offset(o));
                return out;
            case Op::reduce_add: {
                double total = 0;
                for (double v : in(o, 0)) total += v;
                return {total};
            }
            case Op::transpose:
                for (int i = 0; i < type.rows(); ++i)
                    for (int j = 0; j < type.cols(); ++j) out.push_back(in(o, 0)[j * type.rows() + i]);
                return out;
            case Op::matmul:
                return product(o);
            case Op::dim:
                return {double(in(o, 0).size())};
            case Op::load:
                return {in(o, 0).at(static_cast<std::size_t>(in(o, 1)[0]))};
            default:
                throw std::logic_error(std::string("evaluate: ") + ir::op_name(o.op));
        }
    }

    static std::size_t offset(const ir::Operation& o) {
        const Type type = o.operands[0]->type;
        if (!type.is_matrix()) return static_cast<std::size_t>(o.ints[0]);
        return static_cast<std::size_t>(o.ints[0] * type.cols() + (o.ints.size() > 1 ? o.ints[1] : 0));
    }

    Numbers product(const ir::Operation& o) {
        const Type a = o.operands[0]->type, b = o.operands[1]->type;
        const int rows = a.is_matrix() ? a.rows() : 1, inner = a.is_matrix() ? a.cols() : a.rows();
        const int cols = b.is_matrix() ? b.cols() : 1;
        Numbers out;
        for (int i = 0; i < rows; ++i) {
            for (int j = 0; j < cols; ++j) {
                double total = 0;
                for (int k = 0; k < inner; ++k) total += in(o, 0)[i * inner + k] * in(o, 1)[k * cols + j];
                out.push_back(total);
            }
        }
        return out;
    }
};

}  // namespace

Evaluated call(std::string_view name, const std::vector<Actual>& arguments, std::vector<Evaluated>* inout) {
    std::vector<Argument> offered;
    for (const Actual& a : arguments) offered.push_back({.type = a.type});
    for (const Entry* entry : overloads(name)) {
        const Match m = match(*entry, offered);
        if (!m.ok) continue;
        ir::Module module;
        ir::Function& function = *module.add("f");
        ir::Builder builder(function, function.body);
        std::vector<ir::Value*> values;
        Evaluator evaluator;
        for (const Actual& a : arguments) {
            values.push_back(function.add_argument(&function.body, a.type));
            evaluator.values[values.back()] = a.numbers;
        }
        Call made{builder, values, m.types, m.sizes, {}};
        ir::Value* result = entry->expand(made);
        builder.return_({});
        evaluator.run(function.body);
        if (inout) {
            inout->clear();
            for (ir::Value* v : made.inout) inout->push_back({v->type, evaluator.values.at(v)});
        }
        return result ? Evaluated{result->type, evaluator.values.at(result)} : Evaluated{};
    }
    throw std::logic_error("no overload of " + std::string(name));
}

}  // namespace weft::builtins::testing
