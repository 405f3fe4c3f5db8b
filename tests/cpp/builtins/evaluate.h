// Calls a builtin and runs the IR that it expands to (ir/interpreter.h): slow and plain, independent of the passes and
// of code generation. Values are flat lists of numbers.
#pragma once

#include <string_view>
#include <vector>

#include "builtins/registry.h"

namespace weft::builtins::testing {

struct Evaluated {
    Type type;
    std::vector<double> numbers;  // components in memory order, tuple elements one after the other

    double number() const { return numbers.at(0); }
};

struct Actual {
    Type type;
    std::vector<double> numbers;
};

inline Actual f64(double v) { return {f64_type(), {v}}; }
inline Actual i32(double v) { return {i32_type(), {v}}; }
inline Actual vector(std::vector<double> v) {
    const int n = static_cast<int>(v.size());
    return {Type::vector(Scalar::f64, n), std::move(v)};
}
inline Actual matrix(int rows, int cols, std::vector<double> v) {
    return {Type::matrix(Scalar::f64, rows, cols), std::move(v)};
}
inline Actual quaternion(std::vector<double> v) { return {Type::quaternion(Scalar::f64), std::move(v)}; }
inline Actual transform(std::vector<double> v) { return {Type::transform(Scalar::f64), std::move(v)}; }
inline Actual array(Type element, std::vector<double> v) { return {Type::array(element, 1), std::move(v)}; }

// The result of the first overload that takes the arguments. `inout` receives the new values of inout arguments.
Evaluated call(std::string_view name, const std::vector<Actual>& arguments, std::vector<Evaluated>* inout = nullptr);

}  // namespace weft::builtins::testing
