// Runs small IR modules, so that tests can say what a kernel computes instead of how it is written. Numbers are
// doubles (which hold every int32), aggregates lists of them; arrays of scalars and vectors. Only what the tests of
// this room use.
#pragma once

#include <cmath>
#include <map>
#include <stdexcept>
#include <vector>

#include "ir/ir.h"

namespace weft::sema::test {

struct Memory {
    std::vector<int> shape;  // dimensions, without those of the element
    std::vector<double> data;
    int element = 1;  // components of an element
};

struct Datum {
    std::vector<double> numbers;
    Memory* memory = nullptr;   // an array; `numbers` are the indices fixed by views
    bool by_component = false;  // seen through `components`
};

class Interpreter {
public:
    std::vector<int> thread = {0};
    std::vector<std::string> printed;
    int loads = 0;

    Datum run(const ir::Function& f, const std::vector<Datum>& arguments) {
        std::map<const ir::Value*, Datum> values;
        std::swap(values, values_);
        for (std::size_t i = 0; i < arguments.size(); ++i) values_[f.parameters()[i]] = arguments[i];
        const std::vector<Datum> results = region(f.body);
        std::swap(values, values_);
        return results.empty() ? Datum{} : results[0];
    }

private:
    std::map<const ir::Value*, Datum> values_;

    const Datum& get(const ir::Value* v) const { return values_.at(v); }
    double scalar(const ir::Value* v) const { return get(v).numbers.at(0); }

    std::vector<Datum> region(const ir::Region& r) {
        for (const ir::Operation* o : r.operations) {
            if (o->op == ir::Op::yield || o->op == ir::Op::return_) {
                std::vector<Datum> out;
                for (const ir::Value* v : o->operands) out.push_back(get(v));
                return out;
            }
            operation(*o);
        }
        throw std::runtime_error("a region without an end");
    }
    void bind(const std::vector<ir::Value*>& to, const std::vector<Datum>& from) {
        if (to.size() != from.size()) throw std::runtime_error("counts differ");
        for (std::size_t i = 0; i < to.size(); ++i) values_[to[i]] = from[i];
    }

    double* element(const Datum& array, const std::vector<ir::Value*>& operands, std::size_t first, std::size_t last) {
        std::vector<double> indices = array.numbers;
        for (std::size_t i = first; i < last; ++i) indices.push_back(scalar(operands[i]));
        std::size_t at = 0;
        for (std::size_t axis = 0; axis < array.memory->shape.size(); ++axis) {
            if (indices.at(axis) < 0 || indices[axis] >= array.memory->shape[axis]) throw std::out_of_range("index");
            at = at * array.memory->shape[axis] + static_cast<std::size_t>(indices[axis]);
        }
        at *= array.memory->element;
        if (array.by_component) at += static_cast<std::size_t>(indices.back());
        return &array.memory->data.at(at);
    }

    static double arithmetic(ir::Op op, Type type, double x, double y) {
        const bool is_int = !info(type.scalar()).is_float();
        switch (op) {
            case ir::Op::add:
                return x + y;
            case ir::Op::sub:
                return x - y;
            case ir::Op::mul:
                return x * y;
            case ir::Op::div:
                return is_int ? (y == 0 ? 0 : std::trunc(x / y)) : x / y;
            case ir::Op::rem:
                return std::fmod(x, y);
            case ir::Op::min:
                return std::min(x, y);
            case ir::Op::max:
                return std::max(x, y);
            case ir::Op::and_:
                return static_cast<double>(static_cast<long>(x) & static_cast<long>(y));
            case ir::Op::or_:
                return static_cast<double>(static_cast<long>(x) | static_cast<long>(y));
            case ir::Op::cmp_lt:
                return x < y;
            case ir::Op::cmp_le:
                return x <= y;
            case ir::Op::cmp_gt:
                return x > y;
            case ir::Op::cmp_ge:
                return x >= y;
            case ir::Op::cmp_eq:
                return x == y;
            case ir::Op::cmp_ne:
                return x != y;
            default:
                throw std::runtime_error(std::string("the test interpreter lacks ") + ir::op_name(op));
        }
    }

    void operation(const ir::Operation& o) {
        Datum out;
        switch (o.op) {
            case ir::Op::constant:
                for (const Number& n : o.numbers) out.numbers.push_back(n.as_double());
                break;
            case ir::Op::make:
                for (const ir::Value* v : o.operands)
                    out.numbers.insert(out.numbers.end(), get(v).numbers.begin(), get(v).numbers.end());
                break;
            case ir::Op::splat:
                out.numbers.assign(o.results[0]->type.components(), scalar(o.operands[0]));
                break;
            case ir::Op::extract: {
                const Type type = o.operands[0]->type;
                const std::int64_t at =
                    type.is_matrix() && o.ints.size() == 2 ? o.ints[0] * type.cols() + o.ints[1] : o.ints[0];
                out.numbers = {get(o.operands[0]).numbers.at(at)};
                break;
            }
            case ir::Op::insert:
                out = get(o.operands[0]);
                out.numbers.at(o.ints[0]) = scalar(o.operands[1]);
                break;
            case ir::Op::extract_at:
                out.numbers = {get(o.operands[0]).numbers.at(static_cast<std::size_t>(scalar(o.operands[1])))};
                break;
            case ir::Op::insert_at:
                out = get(o.operands[0]);
                out.numbers.at(static_cast<std::size_t>(scalar(o.operands[2]))) = scalar(o.operands[1]);
                break;
            case ir::Op::neg:
                for (const double x : get(o.operands[0]).numbers) out.numbers.push_back(-x);
                break;
            case ir::Op::invert:
                out.numbers = {scalar(o.operands[0]) == 0.0 ? 1.0 : 0.0};
                break;
            case ir::Op::select:
                out = scalar(o.operands[0]) != 0.0 ? get(o.operands[1]) : get(o.operands[2]);
                break;
            case ir::Op::cast:
                for (const double x : get(o.operands[0]).numbers) {
                    out.numbers.push_back(info(o.results[0]->type.scalar()).is_float() ? x : std::trunc(x));
                }
                break;
            case ir::Op::load: {
                ++loads;
                const Datum& array = get(o.operands[0]);
                const double* from = element(array, o.operands, 1, o.operands.size());
                out.numbers.assign(from, from + (array.by_component ? 1 : array.memory->element));
                break;
            }
            case ir::Op::store: {
                double* to = element(get(o.operands[0]), o.operands, 1, o.operands.size() - 1);
                for (const double x : get(o.operands.back()).numbers) *to++ = x;
                return;
            }
            case ir::Op::atomic_add:
            case ir::Op::atomic_sub: {
                double* to = element(get(o.operands[0]), o.operands, 1, o.operands.size() - 1);
                for (const double x : get(o.operands.back()).numbers) {
                    out.numbers.push_back(*to);
                    *to++ += o.op == ir::Op::atomic_add ? x : -x;
                }
                break;
            }
            case ir::Op::view:
                out = get(o.operands[0]);
                for (std::size_t i = 1; i < o.operands.size(); ++i) out.numbers.push_back(scalar(o.operands[i]));
                break;
            case ir::Op::components:
                out = get(o.operands[0]);
                out.by_component = true;
                break;
            case ir::Op::dim:
                out.numbers = {static_cast<double>(get(o.operands[0]).memory->shape.at(o.ints[0]))};
                break;
            case ir::Op::is_null:
                out.numbers = {get(o.operands[0]).memory ? 0.0 : 1.0};
                break;
            case ir::Op::tid:
                out.numbers = {static_cast<double>(thread.at(o.ints[0]))};
                break;
            case ir::Op::print:
                printed.push_back(o.text);
                return;
            case ir::Op::if_:
                bind(o.results, region(o.body(scalar(o.operands[0]) != 0.0 ? 0 : 1)));
                return;
            case ir::Op::for_:
                for_(o);
                return;
            case ir::Op::while_: {
                std::vector<Datum> carried;
                for (const ir::Value* v : o.operands) carried.push_back(get(v));
                while (true) {
                    bind(o.body(0).arguments, carried);
                    if (region(o.body(0)).at(0).numbers.at(0) == 0.0) break;
                    bind(o.body(1).arguments, carried);
                    carried = region(o.body(1));
                }
                bind(o.results, carried);
                return;
            }
            case ir::Op::call: {
                std::vector<Datum> arguments;
                for (const ir::Value* v : o.operands) arguments.push_back(get(v));
                const Datum result = Interpreter::run(*o.function, arguments);
                if (!o.results.empty()) values_[o.results[0]] = result;
                return;
            }
            default: {
                const auto &x = get(o.operands.at(0)).numbers, &y = get(o.operands.at(1)).numbers;
                for (std::size_t i = 0; i < std::max(x.size(), y.size()); ++i) {
                    out.numbers.push_back(arithmetic(o.op, o.operands[0]->type, x[i % x.size()], y[i % y.size()]));
                }
            }
        }
        values_[o.results.at(0)] = out;
    }

    void for_(const ir::Operation& o) {
        const double hi = scalar(o.operands[1]), step = scalar(o.operands[2]);
        std::vector<Datum> carried;
        for (std::size_t i = 3; i < o.operands.size(); ++i) carried.push_back(get(o.operands[i]));
        for (double k = scalar(o.operands[0]); step > 0 ? k < hi : k > hi; k += step) {
            if (o.guarded && carried.back().numbers[0] == 0.0) break;
            std::vector<Datum> arguments = {Datum{{k}}};
            arguments.insert(arguments.end(), carried.begin(), carried.end());
            bind(o.body().arguments, arguments);
            carried = region(o.body());
        }
        bind(o.results, carried);
    }
};

}  // namespace weft::sema::test
