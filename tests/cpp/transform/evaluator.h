// Runs a kernel's IR one thread at a time, as slowly and plainly as can be: the meaning of programs, against which
// passes are tested. Operations are computed through the host's own arithmetic on the type itself, not through the
// folder.
#pragma once

#include <cmath>
#include <cstring>
#include <map>
#include <memory>
#include <stdexcept>
#include <string>
#include <unordered_map>
#include <variant>
#include <vector>

#include "ir/ir.h"
#include "ir/typing.h"

namespace weft::transform {

// A runtime value: its leaves in order. An array is a handle.
struct Plain {
    std::vector<Number> leaves;
    struct Memory* memory = nullptr;
};
struct Memory {
    std::vector<std::vector<Number>> elements;  // one-dimensional
};

class Evaluator {
public:
    // Enough for the loops of the tests; programs that run longer are given up.
    explicit Evaluator(int most_steps = 20000) : steps_(most_steps) {}

    struct TooLong : std::runtime_error {
        TooLong() : std::runtime_error("the program runs too long") {}
    };

    std::string printed;

    std::vector<Plain> run(const ir::Function& function, std::vector<Plain> arguments, std::int64_t thread) {
        std::unordered_map<const ir::Value*, Plain> values;
        for (std::size_t i = 0; i < arguments.size(); ++i) values[function.parameters()[i]] = std::move(arguments[i]);
        thread_ = thread;
        return region(function.body, values);
    }

private:
    using Values = std::unordered_map<const ir::Value*, Plain>;

    // The operands of the terminator.
    std::vector<Plain> region(const ir::Region& region, Values& values) {
        for (const ir::Operation* operation : region.operations) {
            if (--steps_ < 0) throw TooLong();
            if (operation->op == ir::Op::yield || operation->op == ir::Op::return_) return all(*operation, values);
            one(*operation, values);
        }
        throw std::logic_error("no terminator");
    }

    static std::vector<Plain> all(const ir::Operation& operation, const Values& values, std::size_t first = 0) {
        std::vector<Plain> out;
        for (std::size_t i = first; i < operation.operands.size(); ++i) out.push_back(values.at(operation.operands[i]));
        return out;
    }

    static void bind(const std::vector<ir::Value*>& to, const std::vector<Plain>& from, Values& values,
                     std::size_t first = 0) {
        for (std::size_t i = 0; i < from.size(); ++i) values[to[first + i]] = from[i];
    }

    void one(const ir::Operation& operation, Values& values) {
        using ir::Op;
        const auto operand = [&](std::size_t i) -> const Plain& { return values.at(operation.operands[i]); };
        const auto integer = [&](std::size_t i) { return operand(i).leaves[0].i; };
        const auto give = [&](Plain value) { values[operation.results[0]] = std::move(value); };
        const auto give_leaves = [&](std::vector<Number> leaves) { give({std::move(leaves), nullptr}); };
        switch (operation.op) {
            case Op::if_: {
                const std::vector<Plain> out = region(operation.body(integer(0) ? 0 : 1), values);
                bind(operation.results, out, values);
                return;
            }
            case Op::for_: {
                std::vector<Plain> carried = all(operation, values, 3);
                const std::int64_t hi = integer(1), step = integer(2);
                for (std::int64_t k = integer(0); step > 0 ? k < hi : k > hi; k += step) {
                    if (operation.guarded && !carried.back().leaves[0].i) break;
                    values[operation.body().arguments[0]] = {{Number::integer(k)}, nullptr};
                    bind(operation.body().arguments, carried, values, 1);
                    carried = region(operation.body(), values);
                }
                bind(operation.results, carried, values);
                return;
            }
            case Op::while_: {
                std::vector<Plain> carried = all(operation, values);
                while (true) {
                    bind(operation.body(0).arguments, carried, values);
                    if (!region(operation.body(0), values)[0].leaves[0].i) break;
                    bind(operation.body(1).arguments, carried, values);
                    carried = region(operation.body(1), values);
                }
                bind(operation.results, carried, values);
                return;
            }
            case Op::call: {
                std::unordered_map<const ir::Value*, Plain> inner;
                bind(operation.function->parameters(), all(operation, values), inner);
                const std::vector<Plain> out = region(operation.function->body, inner);
                if (operation.results.empty()) return;
                Plain joined;
                for (const Plain& part : out)
                    joined.leaves.insert(joined.leaves.end(), part.leaves.begin(), part.leaves.end());
                return give(joined);
            }
            case Op::load:
                return give_leaves(element(operand(0), integer(1)));
            case Op::store:
                element(operand(0), integer(1)) = operand(2).leaves;
                return;
            case Op::atomic_add: {
                std::vector<Number>& at = element(operand(0), integer(1));
                const std::vector<Number> old = at;
                for (std::size_t i = 0; i < at.size(); ++i) {
                    at[i] = scalar_binary(Op::add, operation.results[0]->type.scalar(), at[i], operand(2).leaves[i]);
                }
                return give_leaves(old);
            }
            case Op::tid:
                return give_leaves({Number::integer(operation.ints[0] ? 0 : thread_)});
            case Op::local_array: {
                // What is unset may hold anything.
                const Number first = operation.unset ? Number::integer(-12345) : Number::integer(0);
                Type element = operation.results[0]->type.element();
                locals_.push_back(std::make_unique<Memory>());
                locals_.back()->elements.assign(
                    static_cast<std::size_t>(operation.ints[0]),
                    {info(element.scalar()).is_float() ? Number::real(static_cast<double>(first.i)) : first});
                return give({{}, locals_.back().get()});
            }
            case Op::print:
                printed += operation.text;
                for (std::size_t i = 0; i < operation.operands.size(); ++i) {
                    const Number& n = operand(i).leaves[0];
                    printed += std::isnan(n.f) ? "nan" : n.is_float ? std::to_string(n.f) : std::to_string(n.i);
                }
                return;
            case Op::assert_:
                return;
            default:
                break;
        }
        give_leaves(pure(operation, values));
    }

    static std::vector<Number>& element(const Plain& array, std::int64_t index) {
        const std::int64_t size = static_cast<std::int64_t>(array.memory->elements.size());
        return array.memory->elements[static_cast<std::size_t>(((index % size) + size) % size)];
    }

    std::vector<Number> pure(const ir::Operation& operation, const Values& values) {
        using ir::Op;
        const auto leaves = [&](std::size_t i) -> const std::vector<Number>& {
            return values.at(operation.operands[i]).leaves;
        };
        const Type type = operation.results[0]->type;
        const auto operand_type = [&](std::size_t i) { return operation.operands[i]->type; };
        std::vector<Number> out;
        switch (ir::op_class(operation.op)) {
            case ir::OpClass::unary:
                for (const Number& a : leaves(0)) out.push_back(scalar_unary(operation.op, type.scalar(), a));
                return out;
            case ir::OpClass::binary:
                for (std::size_t i = 0; i < leaves(0).size(); ++i) {
                    out.push_back(scalar_binary(operation.op, type.scalar(), leaves(0)[i], leaves(1)[i]));
                }
                return out;
            case ir::OpClass::compare:
                return {Number::integer(compare(operation.op, operand_type(0).scalar(), leaves(0)[0], leaves(1)[0]))};
            default:
                break;
        }
        switch (operation.op) {
            case Op::constant:
                return operation.numbers;
            case Op::select:
                return leaves(0)[0].i ? leaves(1) : leaves(2);
            case Op::cast:
                for (const Number& a : leaves(0)) out.push_back(convert(a, operand_type(0).scalar(), type.scalar()));
                return out;
            case Op::make:
                for (std::size_t i = 0; i < operation.operands.size(); ++i)
                    out.insert(out.end(), leaves(i).begin(), leaves(i).end());
                return out;
            case Op::splat:
                return std::vector<Number>(static_cast<std::size_t>(type.components()), leaves(0)[0]);
            case Op::extract: {
                const std::size_t at = offset(operand_type(0), operation.ints);
                const std::size_t n = static_cast<std::size_t>(ir::leaf_count(type));
                return {leaves(0).begin() + static_cast<std::ptrdiff_t>(at),
                        leaves(0).begin() + static_cast<std::ptrdiff_t>(at + n)};
            }
            case Op::insert: {
                out = leaves(0);
                const std::size_t at = offset(operand_type(0), operation.ints);
                for (std::size_t i = 0; i < leaves(1).size(); ++i) out[at + i] = leaves(1)[i];
                return out;
            }
            case Op::extract_at: {
                const std::size_t at = chosen(leaves(1)[0]);
                return {at < leaves(0).size() ? leaves(0)[at] : leaves(0)[0]};
            }
            case Op::insert_at: {
                out = leaves(0);
                const std::size_t at = chosen(leaves(2)[0]);
                if (at < out.size()) out[at] = leaves(1)[0];
                return out;
            }
            case Op::bitcast:  // of 32-bit integers
                return {Number::integer(type.scalar() == Scalar::u32
                                            ? static_cast<std::int64_t>(static_cast<std::uint32_t>(leaves(0)[0].i))
                                            : static_cast<std::int32_t>(leaves(0)[0].i))};
            case Op::fma:
                return {scalar_binary(Op::add, type.scalar(),
                                      scalar_binary(Op::mul, type.scalar(), leaves(0)[0], leaves(1)[0]), leaves(2)[0])};
            default:
                throw std::logic_error(std::string("the evaluator does not know ") + ir::op_name(operation.op));
        }
    }

    // The component that an index chooses; one that is negative chooses none.
    static std::size_t chosen(const Number& index) { return static_cast<std::size_t>(index.i); }

    // Walks the declared layout one leaf at a time.
    static std::size_t offset(Type type, const std::vector<std::int64_t>& path) {
        std::size_t at = 0;
        for (const std::int64_t step : path) {
            for (std::int64_t i = 0; i < step; ++i) {
                const std::int64_t before[] = {i};
                at += static_cast<std::size_t>(ir::leaf_count(ir::part_type(type, before)));
            }
            const std::int64_t here[] = {step};
            type = ir::part_type(type, here);
        }
        return at;
    }

    static Number scalar_unary(ir::Op op, Scalar scalar, Number a) {
        using ir::Op;
        if (a.is_float) {
            switch (op) {
                case Op::neg:
                    return Number::real(-a.f);
                case Op::abs:
                    return Number::real(std::fabs(a.f));
                case Op::sqrt:
                    return fit(std::sqrt(a.f), scalar);
                default:
                    break;
            }
        } else {
            switch (op) {
                case Op::neg:
                    return convert(Number::integer(static_cast<std::int64_t>(0 - static_cast<std::uint64_t>(a.i))),
                                   Scalar::i64, scalar);
                case Op::abs:
                    return a.i < 0 ? scalar_unary(Op::neg, scalar, a) : a;
                case Op::invert:
                    return scalar == Scalar::boolean ? Number::integer(!a.i)
                                                     : convert(Number::integer(~a.i), Scalar::i64, scalar);
                default:
                    break;
            }
        }
        throw std::logic_error(std::string("the evaluator does not know ") + ir::op_name(op));
    }

    static Number fit(double value, Scalar scalar) { return convert(Number::real(value), Scalar::f64, scalar); }

    static Number scalar_binary(ir::Op op, Scalar scalar, Number a, Number b) {
        using ir::Op;
        if (a.is_float) {
            switch (op) {
                case Op::add:
                    return fit(a.f + b.f, scalar);
                case Op::sub:
                    return fit(a.f - b.f, scalar);
                case Op::mul:
                    return fit(a.f * b.f, scalar);
                case Op::div:
                    return fit(a.f / b.f, scalar);
                case Op::min:
                    return Number::real(std::fmin(a.f, b.f));
                case Op::max:
                    return Number::real(std::fmax(a.f, b.f));
                default:
                    break;
            }
        } else {
            const std::uint64_t x = static_cast<std::uint64_t>(a.i), y = static_cast<std::uint64_t>(b.i);
            const int shift = static_cast<int>(y % static_cast<std::uint64_t>(info(scalar).bits));
            std::int64_t r = 0;
            switch (op) {
                case Op::add:
                    r = static_cast<std::int64_t>(x + y);
                    break;
                case Op::sub:
                    r = static_cast<std::int64_t>(x - y);
                    break;
                case Op::mul:
                    r = static_cast<std::int64_t>(x * y);
                    break;
                case Op::div:
                    r = b.i == 0 || b.i == -1 ? (b.i ? static_cast<std::int64_t>(0 - x) : 0) : a.i / b.i;
                    break;
                case Op::and_:
                    return Number::integer(a.i & b.i);
                case Op::or_:
                    return Number::integer(a.i | b.i);
                case Op::xor_:
                    return Number::integer(a.i ^ b.i);
                case Op::min:
                    return a.i < b.i ? a : b;
                case Op::max:
                    return a.i < b.i ? b : a;
                case Op::shl:
                    r = static_cast<std::int64_t>(x << shift);
                    break;
                case Op::shr:
                    r = a.i >> shift;
                    break;
                default:
                    throw std::logic_error(std::string("the evaluator does not know ") + ir::op_name(op));
            }
            return convert(Number::integer(r), Scalar::i64, scalar);
        }
        throw std::logic_error(std::string("the evaluator does not know ") + ir::op_name(op));
    }

    static bool compare(ir::Op op, Scalar, Number a, Number b) {
        using ir::Op;
        const auto by = [op](auto x, auto y) {
            switch (op) {
                case Op::cmp_lt:
                    return x < y;
                case Op::cmp_le:
                    return x <= y;
                case Op::cmp_gt:
                    return x > y;
                case Op::cmp_ge:
                    return x >= y;
                case Op::cmp_eq:
                    return x == y;
                default:
                    return x != y;
            }
        };
        return a.is_float ? by(a.f, b.f) : by(a.i, b.i);
    }

    int steps_;
    std::vector<std::unique_ptr<Memory>> locals_;
    std::int64_t thread_ = 0;
};

}  // namespace weft::transform
