// The kernels of kernels.py by the header that compile_aot_module(..., header=) has written beside them.
#include <cstdio>
#include <stdexcept>

#include "check.h"
#include "kernels_typed.h"

namespace {

void kernels_by_name_and_type(const kernels::Kernels& run) {
    const weft::Array x = weft::Array::zeros("vec3", {3}), v = weft::Array::zeros("vec3", {3});
    std::vector<float> gusts = {1.0f, 2.0f};
    kernels::Wind wind;
    wind.direction = {1.0f, 0.0f, 0.0f};
    wind.strength = 2.0f;
    wind.gusts.data = gusts.data();
    wind.gusts.shape[0] = 2;
    wind.gusts.strides[0] = sizeof(float);
    run.step(3, 0.5f, wind, x, v);
    check(v.data<float>()[0] == 1.0f && v.data<float>()[3] == 2.0f && x.data<float>()[3] == 1.0f, "step");

    const weft::Array out = weft::Array::zeros("float64", {6});
    run.scalars(1, std::int8_t{-128}, std::uint64_t{1} << 63, true, 1.0 / 3.0, 0.5f, {0.0f, 0.0f, 0.0f, 1.0f}, out);
    const double* const found = out.data<double>();
    check(found[0] == -128.0 && found[1] == 9223372036854775808.0 && found[2] == 1.0, "integers and bools");
    check(found[3] == 1.0 / 3.0 && found[4] == 0.5 && found[5] == 1.0, "floats and a quaternion");

    const weft::Array two = weft::Array::zeros("float32", {4, 3});
    run.shifted({4, 3}, two, two, weft::Array());
    check(two.data<float>()[4] == 11.0f, "a grid of two axes");

    const std::vector<std::int64_t> many(100, 3);
    const weft::Array sum = weft::Array::zeros("int64", {1});
    run.total(100, weft::Array::of(many), sum);
    check(*sum.data<std::int64_t>() == 300, "the instance of a generic kernel");
}

}  // namespace

int main(int, char** arguments) {
    kernels_by_name_and_type(kernels::Kernels(arguments[1]));
    try {
        weft::Grid grid({1, 2, 3, 4, 5});
        check(false, "a grid of five axes is an error");
    } catch (const std::invalid_argument&) {
    }
    std::printf("failures: %d\n", failures);
    return failures;
}
