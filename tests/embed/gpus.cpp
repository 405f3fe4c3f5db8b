// The kernels of kernels.py and slopes.py as code for GPUs: gpus KERNELS SLOPES CPU-KERNELS. Checks what they compute
// against loops written here. Exits with the number of failed checks.
#include <cmath>
#include <cstdio>
#include <string>
#include <vector>

#include "check.h"
#include "kernels.h"
#include "weft/tape.h"

namespace {

constexpr char kGpu[] = "cuda:0", kOther[] = "cuda:1";

void structs_and_arrays(const weft::Program& program) {
    constexpr int kCount = 10'007;
    const weft::Array x = weft::Array::zeros("vec3f", {kCount}, kGpu), v = weft::Array::zeros("vec3", {kCount}, kGpu);
    const weft::Array gusts = weft::Array::of({0.5f, 1.5f, 2.0f}).to(kGpu);
    check(x.device() == "cuda:0" && gusts.to(kGpu).view().data == gusts.view().data, "the device of an array");
    const Wind wind{{1.0f, 2.0f, -1.0f}, 3.0f, gusts.view()};
    for (int i = 0; i < 3; ++i) program.kernel("step").launch(kCount, {0.25f, wind, x, v});
    const weft::Array found = x.to("cpu"), on_host = gusts.to("cpu");
    double worst = 0.0;
    for (int i = 0; i < kCount; ++i) {
        float position = 0.0f, velocity = 0.0f;
        for (int s = 0; s < 3; ++s) {
            velocity += (2.0f * 3.0f - velocity) * on_host.data<float>()[i % 3] * 0.25f;
            position += velocity * 0.25f;
        }
        worst = std::fmax(worst, std::fabs(found.data<Vec3>()[i].y - position));
    }
    check(worst < 1e-5, "step: positions differ by " + std::to_string(worst));
}

void views_and_overlap(const weft::Program& program) {
    const weft::Array wide = weft::Array::zeros("float32", {6, 10});
    for (int i = 0; i < 60; ++i) wide.data<float>()[i] = float(i);
    const weft::Array there = wide.to(kGpu), every_second = there.slice(1, 0, 5, 2);
    const weft::Array result = weft::Array::empty("float32", {6, 5}, kGpu);
    program.kernel("shifted").launch({6, 5}, {every_second, result, weft::Array()});
    const weft::Array back = result.to("cpu");
    bool right = true;
    for (int i = 0; i < 6; ++i)
        for (int j = 0; j < 5; ++j) right &= back.data<float>()[5 * i + j] == float(10 * i + 2 * j + 10 * i + j);
    check(right, "shifted: a strided source");
    program.kernel("shifted").launch({6, 5}, {every_second, every_second, weft::Array()});
    wide.copy_from(there);
    check(wide.data<float>()[12] == 12.0f + 11.0f && wide.data<float>()[11] == 11.0f, "shifted in place");
    every_second.zero();
    check(there.clone().to("cpu").data<float>()[12] == 0.0f, "zero of a view, clone");
}

void other_device(const weft::Program& program) {
    const std::vector<std::int64_t> many(5'000, 3);
    for (const char* device : {kGpu, kOther}) {
        const weft::Array sum = weft::Array::zeros("int64", {1}, device);
        program.kernel("total").launch(5'000, {weft::Array::of(many).to(device), sum});
        check(*sum.to("cpu").data<std::int64_t>() == 15'000, std::string("total on ") + device);
    }
}

void gradients(const weft::Program& program) {
    constexpr int kCount = 1003;
    std::vector<double> a, x;
    for (int i = 0; i < kCount; ++i) a.push_back(std::sin(0.7 * i) + 0.3), x.push_back(std::sin(1.3 * i) + 0.3);
    const weft::Array factors = weft::Array::of(a).to(kGpu), values = weft::Array::of(x).to(kGpu);
    const weft::Array loss = weft::Array::zeros("float64", {1}, kGpu);
    for (const weft::Array& array : {factors, values, loss}) array.require_gradient();
    weft::Tape tape;
    tape.launch(program.kernel("weighted"), kCount, {factors, values, loss});
    tape.backward(loss);
    const weft::Array of_x = values.gradient().to("cpu"), of_a = factors.gradient().to("cpu");
    bool right = true;
    for (int i = 0; i < kCount; ++i)
        right &= std::fabs(of_x.data<double>()[i] - 2.0 * a[i] * x[i]) < 1e-13 &&
                 std::fabs(of_a.data<double>()[i] - x[i] * x[i]) < 1e-13;
    check(right, "gradients of a sum");

    // In place: x <- x + cos(x) v dt, twice, against the chain rule by hand.
    const weft::Array position = weft::Array::of({0.3, 1.1}).to(kGpu), speed = weft::Array::of({0.5, -2.0}).to(kGpu);
    position.require_gradient();
    weft::Tape steps;
    for (int i = 0; i < 2; ++i) steps.launch(program.kernel("advance"), 2, {0.1, speed, position});
    const weft::Array ones = weft::Array::of({1.0, 1.0}).to(kGpu);
    steps.backward({{position, ones}});
    const weft::Array slope = position.gradient().to("cpu");
    const double start[] = {0.3, 1.1}, v[] = {0.5, -2.0};
    for (int i = 0; i < 2; ++i) {
        const double next = start[i] + std::cos(start[i]) * v[i] * 0.1;
        const double expected = (1.0 - std::sin(next) * v[i] * 0.1) * (1.0 - std::sin(start[i]) * v[i] * 0.1);
        check(std::fabs(slope.data<double>()[i] - expected) < 1e-12, "the gradient of steps in place");
    }
}

void mistakes(const weft::Program& program, const weft::Program& for_cpu) {
    const weft::Array here = weft::Array::zeros("int64", {4}), sum = weft::Array::zeros("int64", {1}, kGpu);
    const weft::Kernel total = program.kernel("total");
    expect_error([&] { total.launch(4, {here, sum}); }, {"'x'", "'total'", "'cpu'", "code for GPUs", "cuda:0"});
    expect_error([&] { for_cpu.kernel("total").launch(4, {here, sum}); }, {"'out'", "'cuda:0'", "code for CPUs"});
    const weft::Array there = here.to(kOther);
    expect_error([&] { total.launch(4, {there, sum}); }, {"'out'", "'cuda:0'", "'cuda:1'", "one device"});
    expect_error([&] { (void)sum.data<std::int64_t>(); }, {"'cuda:0'", "to(\"cpu\")"});
    expect_error([&] { (void)weft::Array::zeros("float32", {1}, "cuda:9"); }, {"'cuda:9'", "cuda:1"});
    const weft::Array roots = weft::Array::of({4.0f, -9.0f}).to(kGpu);
    expect_error(
        [&] {
            program.kernel("roots").launch(2, {roots});
            weft::synchronize();
        },
        {"ValueError: -9 has no root", "kernel 'roots'", "thread (1,)"});
    check(roots.to("cpu").data<float>()[0] == 2.0f, "what other threads did");
}

}  // namespace

int main(int, char** arguments) {
    const weft::Program program = weft::Program::load(arguments[1]), slopes = weft::Program::load(arguments[2]);
    structs_and_arrays(program);
    views_and_overlap(program);
    other_device(program);
    gradients(slopes);
    mistakes(program, weft::Program::load(arguments[3]));
    program.kernel("talk").launch(1, {41});
    weft::synchronize();
    std::printf("failures: %d\n", failures);
    return failures;
}
