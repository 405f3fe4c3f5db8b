// Runs the IR of a function one thread at a time, as slowly and plainly as can be: the meaning of programs, against
// which the tests of every room compare. Only the operations that some test uses; others are a std::logic_error.
#pragma once

#include <algorithm>
#include <climits>
#include <cmath>
#include <memory>
#include <stdexcept>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "ir/arithmetic.h"
#include "ir/ir.h"
#include "ir/typing.h"

namespace weft::ir::testing {

// The elements that an array shows. Numbers are taken as the type of the element when they are read.
struct Memory {
    std::vector<int> shape;
    std::vector<Number> data;
    int element = 1;     // components of an element
    bool wraps = false;  // an index outside counts round; otherwise it is a std::out_of_range

    Memory(std::vector<int> shape, const std::vector<double>& numbers, int element = 1)
        : shape(std::move(shape)), element(element) {
        for (const double number : numbers) data.push_back(Number::real(number));
    }
    std::vector<double> numbers() const {
        std::vector<double> out;
        for (const Number& number : data) out.push_back(number.as_double());
        return out;
    }
};

// A value: its leaves in order, or of an array its memory and the place in there.
struct Datum {
    std::vector<Number> leaves;
    Memory* memory = nullptr;
    std::vector<std::int64_t> fixed = {};  // indices that views have taken
    bool by_component = false;             // seen through `components`

    Datum() = default;
    Datum(Memory* memory) : memory(memory) {}
    Datum(std::vector<Number> leaves) : leaves(std::move(leaves)) {}
    Datum(double number) : leaves{Number::real(number)} {}
    Datum(const std::vector<double>& numbers) {
        for (const double number : numbers) leaves.push_back(Number::real(number));
    }
    std::vector<double> numbers() const {
        std::vector<double> out;
        for (const Number& leaf : leaves) out.push_back(leaf.as_double());
        return out;
    }
};

class Interpreter {
public:
    // Programs that run longer are given up.
    explicit Interpreter(int most_steps = INT_MAX) : steps_(most_steps) {}

    struct TooLong : std::runtime_error {
        TooLong() : std::runtime_error("the program runs too long") {}
    };
    struct Printed {
        std::string format;
        std::vector<Number> numbers;
    };

    std::vector<int> thread = {0};  // coordinates
    std::vector<Printed> printed;
    int loads = 0;

    // The result of the function. Arguments are taken as the types of the parameters.
    std::vector<Datum> run(const Function& function, std::vector<Datum> arguments) {
        Values values;
        for (std::size_t i = 0; i < arguments.size(); ++i) {
            const Value* parameter = function.parameters()[i];
            if (!holds_array(parameter->type)) arguments[i].leaves = as(parameter->type, arguments[i].leaves);
            values[parameter] = std::move(arguments[i]);
        }
        return run(function.body, values);
    }

private:
    using Values = std::unordered_map<const Value*, Datum>;
    using Numbers = std::vector<Number>;

    static Number as(Scalar scalar, Number number) {
        if (info(scalar).is_float()) return Number::real(number.as_double());
        return number.is_float ? Number::integer(static_cast<std::int64_t>(number.f)) : number;
    }
    static Numbers as(Type type, Numbers numbers) {
        std::vector<Scalar> scalars;
        append_leaves(type, scalars);
        for (std::size_t i = 0; i < numbers.size(); ++i) numbers[i] = as(scalars.at(i), numbers[i]);
        return numbers;
    }

    // The operands of the terminator.
    std::vector<Datum> run(const Region& region, Values& values) {
        for (const Operation* operation : region.operations) {
            if (--steps_ < 0) throw TooLong();
            if (operation->op == Op::yield || operation->op == Op::return_) return operands(*operation, values);
            run(*operation, values);
        }
        throw std::logic_error("a region without an end");
    }

    static std::vector<Datum> operands(const Operation& operation, const Values& values, std::size_t first = 0) {
        std::vector<Datum> out;
        for (std::size_t i = first; i < operation.operands.size(); ++i) out.push_back(values.at(operation.operands[i]));
        return out;
    }
    static void bind(const std::vector<Value*>& to, const std::vector<Datum>& from, Values& values,
                     std::size_t first = 0) {
        if (to.size() != first + from.size()) throw std::logic_error("the counts of values differ");
        for (std::size_t i = 0; i < from.size(); ++i) values[to[first + i]] = from[i];
    }

    void run(const Operation& operation, Values& values) {
        const auto operand = [&](std::size_t i) -> const Datum& { return values.at(operation.operands[i]); };
        switch (operation.op) {
            case Op::if_:
                return bind(operation.results, run(operation.body(operand(0).leaves[0].i ? 0 : 1), values), values);
            case Op::for_:
                return count(operation, values);
            case Op::while_:
                return repeat(operation, values);
            case Op::call:
                return call(operation, values);
            case Op::store: {
                Number* to = place(operation, values);
                for (const Number& number : operand(operation.operands.size() - 1).leaves) *to++ = number;
                return;
            }
            case Op::print: {
                Printed line{operation.text, {}};
                for (const Datum& datum : operands(operation, values)) line.numbers.push_back(datum.leaves[0]);
                printed.push_back(std::move(line));
                return;
            }
            case Op::assert_:
                return;
            default: {
                Datum made = compute(operation, values);
                values[operation.result()] = std::move(made);
            }
        }
    }

    // ---- control ----

    void count(const Operation& operation, Values& values) {
        const auto integer = [&](std::size_t i) { return values.at(operation.operands[i]).leaves[0].i; };
        std::vector<Datum> carried = operands(operation, values, 3);
        const std::int64_t end = integer(1), step = integer(2);
        for (std::int64_t k = integer(0); step > 0 ? k < end : k > end; k += step) {
            if (operation.guarded && !carried.back().leaves[0].i) break;
            values[operation.body().arguments[0]] = Numbers{Number::integer(k)};
            bind(operation.body().arguments, carried, values, 1);
            carried = run(operation.body(), values);
        }
        bind(operation.results, carried, values);
    }

    void repeat(const Operation& operation, Values& values) {
        std::vector<Datum> carried = operands(operation, values);
        while (true) {
            bind(operation.body(0).arguments, carried, values);
            if (!run(operation.body(0), values)[0].leaves[0].i) break;
            bind(operation.body(1).arguments, carried, values);
            carried = run(operation.body(1), values);
        }
        bind(operation.results, carried, values);
    }

    void call(const Operation& operation, Values& values) {
        const std::vector<Datum> returned = run(*operation.function, operands(operation, values));
        if (operation.results.empty()) return;
        Datum joined = returned.at(0);
        for (std::size_t i = 1; i < returned.size(); ++i)
            joined.leaves.insert(joined.leaves.end(), returned[i].leaves.begin(), returned[i].leaves.end());
        values[operation.result()] = std::move(joined);
    }

    // ---- memory ----

    // The first number of the element that a load, store or atomic is about.
    Number* place(const Operation& operation, const Values& values) {
        const Datum& array = values.at(operation.operands[0]);
        Memory& memory = *array.memory;
        std::vector<std::int64_t> indices = array.fixed;
        const std::size_t end = operation.operands.size() - values_behind_indices(operation.op);
        for (std::size_t i = 1; i < end; ++i) indices.push_back(values.at(operation.operands[i]).leaves[0].i);
        std::int64_t at = 0;
        for (std::size_t axis = 0; axis < memory.shape.size(); ++axis) {
            const std::int64_t extent = memory.shape[axis];
            std::int64_t index = indices.at(axis);
            if (memory.wraps) index = (index % extent + extent) % extent;
            if (index < 0 || index >= extent) throw std::out_of_range("index");
            at = at * extent + index;
        }
        at = at * memory.element + (array.by_component ? indices.back() : 0);
        return &memory.data.at(static_cast<std::size_t>(at));
    }

    Datum load(const Operation& operation, const Values& values) {
        ++loads;
        const Number* from = place(operation, values);
        const Type type = operation.result()->type;
        return as(type, Numbers(from, from + leaf_count(type)));
    }

    Datum change(const Operation& operation, const Values& values) {
        Number* to = place(operation, values);
        const Type type = operation.result()->type;
        const Numbers old = as(type, Numbers(to, to + leaf_count(type)));
        const Numbers& by = values.at(operation.operands.back()).leaves;
        for (std::size_t i = 0; i < old.size(); ++i)
            to[i] = binary(applied(operation.op).value(), type.scalar(), old[i], by[i]);
        return old;
    }

    // Of this thread. Unset memory may hold anything.
    Datum local_array(const Operation& operation) {
        const Type element = operation.result()->type.element();
        std::vector<int> shape(operation.ints.begin(), operation.ints.end());
        std::size_t size = static_cast<std::size_t>(leaf_count(element));
        for (const int extent : shape) size *= static_cast<std::size_t>(extent);
        const std::vector<double> numbers(size, operation.unset ? -12345.0 : 0.0);
        locals_.push_back(std::make_unique<Memory>(shape, numbers, static_cast<int>(leaf_count(element))));
        locals_.back()->wraps = true;
        return locals_.back().get();
    }

    // ---- values ----

    Datum compute(const Operation& operation, const Values& values) {
        const auto datum = [&](std::size_t i) -> const Datum& { return values.at(operation.operands[i]); };
        const auto leaves = [&](std::size_t i) -> const Numbers& { return datum(i).leaves; };
        const Type type = operation.result()->type;
        switch (operation.op) {
            case Op::constant:
                return operation.numbers;
            case Op::select:
                return leaves(0)[0].i ? datum(1) : datum(2);
            case Op::load:
                return load(operation, values);
            case Op::local_array:
                return local_array(operation);
            case Op::argument: {
                const int element = static_cast<int>(leaves(0).size());
                locals_.push_back(std::make_unique<Memory>(std::vector<int>{1}, std::vector<double>(), element));
                locals_.back()->data = leaves(0);
                return locals_.back().get();
            }
            case Op::view: {
                Datum row = datum(0);
                for (std::size_t i = 1; i < operation.operands.size(); ++i) row.fixed.push_back(leaves(i)[0].i);
                return row;
            }
            case Op::components: {
                Datum parts = datum(0);
                parts.by_component = true;
                return parts;
            }
            case Op::dim:
                return Numbers{Number::integer(datum(0).memory->shape.at(static_cast<std::size_t>(operation.ints[0])))};
            case Op::is_null:
                return Numbers{Number::integer(datum(0).memory == nullptr)};
            case Op::tid:
                return Numbers{Number::integer(thread.at(static_cast<std::size_t>(operation.ints[0])))};
            case Op::make: {
                Numbers all;
                for (std::size_t i = 0; i < operation.operands.size(); ++i)
                    all.insert(all.end(), leaves(i).begin(), leaves(i).end());
                return all;
            }
            case Op::splat:
                return Numbers(static_cast<std::size_t>(leaf_count(type)), leaves(0)[0]);
            case Op::extract: {
                const auto from = leaves(0).begin() + offset(operation.operands[0]->type, operation.ints);
                return Numbers(from, from + leaf_count(type));
            }
            case Op::insert: {
                Numbers whole = leaves(0);
                std::copy(leaves(1).begin(), leaves(1).end(), whole.begin() + offset(type, operation.ints));
                return whole;
            }
            // An index that there is not chooses the first component, and changes none.
            case Op::extract_at: {
                const auto at = static_cast<std::size_t>(leaves(1)[0].i);
                return Numbers{leaves(0)[at < leaves(0).size() ? at : 0]};
            }
            case Op::insert_at: {
                Numbers whole = leaves(0);
                const auto at = static_cast<std::size_t>(leaves(2)[0].i);
                if (at < whole.size()) whole[at] = leaves(1)[0];
                return whole;
            }
            case Op::reduce_add:
            case Op::transpose:
            case Op::matmul:
                return of_matrices(operation, values);
            default:
                return is_atomic(operation.op) ? change(operation, values) : of_components(operation, values);
        }
    }

    // Component by component.
    Datum of_components(const Operation& operation, const Values& values) {
        const auto number = [&](std::size_t operand, std::size_t i) {
            return values.at(operation.operands[operand]).leaves.at(i);
        };
        const Type from = operation.operands.at(0)->type, type = operation.result()->type;
        const Scalar given = from.scalar(), scalar = type.scalar();
        Numbers out;
        for (std::size_t i = 0; i < static_cast<std::size_t>(leaf_count(type)); ++i) {
            switch (op_class(operation.op)) {
                case OpClass::unary:
                    out.push_back(unary(operation.op, scalar, number(0, i)));
                    continue;
                case OpClass::binary:
                    out.push_back(binary(operation.op, scalar, number(0, i), number(1, i)));
                    continue;
                case OpClass::compare:
                    out.push_back(Number::integer(compare(operation.op, given, number(0, i), number(1, i))));
                    continue;
                case OpClass::classify:
                    out.push_back(Number::integer(classify(operation.op, number(0, i))));
                    continue;
                default:
                    break;
            }
            if (operation.op == Op::cast) {
                out.push_back(convert(number(0, i), given, scalar));
            } else if (operation.op == Op::bitcast) {
                out.push_back(same_bits(number(0, i), given, scalar));
            } else if (operation.op == Op::fma) {
                out.push_back(fit(std::fma(number(0, i).f, number(1, i).f, number(2, i).f), scalar));
            } else {
                unknown(operation.op);
            }
        }
        return out;
    }

    Datum of_matrices(const Operation& operation, const Values& values) {
        const auto leaves = [&](std::size_t i) -> const Numbers& { return values.at(operation.operands[i]).leaves; };
        const Type a = operation.operands[0]->type, type = operation.result()->type;
        Numbers out;
        if (operation.op == Op::reduce_add) {
            Number total = as(type.scalar(), Number::integer(0));
            for (const Number& number : leaves(0)) total = binary(Op::add, type.scalar(), total, number);
            return Numbers{total};
        }
        if (operation.op == Op::transpose) {
            for (int i = 0; i < type.rows(); ++i)
                for (int j = 0; j < type.cols(); ++j)
                    out.push_back(leaves(0)[static_cast<std::size_t>(j * a.cols() + i)]);
            return out;
        }
        const Type b = operation.operands[1]->type;
        const int rows = a.is_matrix() ? a.rows() : 1, inner = a.is_matrix() ? a.cols() : a.rows();
        const int cols = b.is_matrix() ? b.cols() : 1;
        for (int i = 0; i < rows; ++i) {
            for (int j = 0; j < cols; ++j) {
                Number total = as(type.scalar(), Number::integer(0));
                for (int k = 0; k < inner; ++k) {
                    const Number product =
                        binary(Op::mul, type.scalar(), leaves(0)[static_cast<std::size_t>(i * inner + k)],
                               leaves(1)[static_cast<std::size_t>(k * cols + j)]);
                    total = binary(Op::add, type.scalar(), total, product);
                }
                out.push_back(total);
            }
        }
        return out;
    }

    // How many leaves stand before the part that a path reaches.
    static std::ptrdiff_t offset(Type type, const std::vector<std::int64_t>& path) {
        std::int64_t at = 0;
        for (const std::int64_t step : path) {
            for (std::int64_t i = 0; i < step; ++i) {
                const std::int64_t before[] = {i};
                at += leaf_count(part_type(type, before));
            }
            const std::int64_t here[] = {step};
            type = part_type(type, here);
        }
        return static_cast<std::ptrdiff_t>(at);
    }

    int steps_;
    std::vector<std::unique_ptr<Memory>> locals_;
};

}  // namespace weft::ir::testing
