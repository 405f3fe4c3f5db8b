// Runs the kernels of kernels.py from the file that is named on the command line, those of native.py from a second file
// if one is named, and checks their results against loops written here. Exits with the number of failed checks.
#include <sys/mman.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <string>
#include <thread>
#include <vector>

#include "check.h"
#include "kernels.h"
#include "weft/program.h"

namespace {

void structs_and_arrays(const weft::Program& program) {
    constexpr int kCount = 100'003;
    const weft::Array x = weft::Array::zeros("vec3f", {kCount}), v = weft::Array::zeros("vec3", {kCount});
    const weft::Array gusts = weft::Array::of({0.5f, 1.5f, 2.0f});
    const Wind wind{{1.0f, 2.0f, -1.0f}, 3.0f, gusts.view()};
    const weft::Kernel step = program.kernel("step");
    for (int i = 0; i < 3; ++i) step.launch(kCount, {0.25f, wind, x, v});

    double worst = 0.0;
    for (int i = 0; i < kCount; ++i) {
        const float gust = gusts.data<float>()[i % 3];
        float position = 0.0f, velocity = 0.0f;
        for (int s = 0; s < 3; ++s) {
            velocity += (2.0f * 3.0f - velocity) * gust * 0.25f;
            position += velocity * 0.25f;
        }
        worst = std::fmax(worst, std::fabs(x.data<Vec3>()[i].y - position));
    }
    check(worst < 1e-5, "step: positions differ by " + std::to_string(worst));
    check(step.parameters()[1].name == "wind" && step.parameters()[1].type == "Wind", "the struct parameter");
    check(step.parameters()[2].type == "array[vec3f]" && step.parameters()[2].ndim == 1, "the array parameter");
}

void views_and_overlap(const weft::Program& program) {
    const weft::Array wide = weft::Array::zeros("float32", {6, 10});
    float* const numbers = wide.data<float>();
    for (int i = 0; i < 60; ++i) numbers[i] = float(i);
    const weft::Array every_second = wide.slice(1, 0, 5, 2), result = weft::Array::zeros("float32", {6, 5});
    program.kernel("shifted").launch({6, 5}, {every_second, result, weft::Array()});
    bool right = true;
    for (int i = 0; i < 6; ++i)
        for (int j = 0; j < 5; ++j) right &= result.data<float>()[5 * i + j] == float(10 * i + 2 * j + 10 * i + j);
    check(right, "shifted: a strided source");
    check(!every_second.is_contiguous() && every_second.shape()[1] == 5, "the view");

    // In place: source and target are one.
    program.kernel("shifted").launch({6, 5}, {every_second, every_second, weft::Array()});
    check(numbers[12] == 12.0f + 11.0f && numbers[11] == 11.0f, "shifted in place");
    const weft::Array copy = every_second.clone();
    check(copy.is_contiguous() && copy.data<float>()[6] == numbers[12], "clone");
    copy.zero();
    every_second.copy_from(copy);
    check(numbers[12] == 0.0f && numbers[11] == 11.0f, "zero and copy_from");
}

void memory_of_the_caller(const weft::Program& program) {
    std::vector<float> numbers(24, 1.0f);
    const std::int64_t shape[] = {4, 3}, strides[] = {24, 8};
    const weft::Array every_second = weft::Array::wrap(numbers.data(), "float32", shape, strides);
    program.kernel("shifted").launch({4, 3}, {every_second, every_second, weft::Array()});
    check(numbers[6 * 2 + 2 * 1] == 1.0f + 21.0f && numbers[6 * 2 + 1] == 1.0f, "wrap with strides");
    const weft::Array all = weft::Array::wrap(numbers.data(), "float32", {24});
    check(all.clone().data<float>()[14] == 22.0f, "clone of wrapped memory");
    all.slice(0, 0, 12).copy_from(all.slice(0, 12, 12));
    check(numbers[2] == 22.0f, "copy between parts of wrapped memory");
    all.zero();
    check(numbers[14] == 0.0f, "zero of wrapped memory");
    check(weft::Array::wrap(nullptr, "float32", {0}).size() == 0, "an empty array at no address");
    auto* const odd = reinterpret_cast<std::byte*>(numbers.data()) + 2;
    expect_error([&] { weft::Array::wrap(odd, "float32", {3}); }, {"'ptr' is", "multiple of 4"});
    const std::int64_t odd_strides[] = {24, 6};
    expect_error([&] { weft::Array::wrap(numbers.data(), "float32", shape, odd_strides); },
                 {"(24, 6)", "multiples of 4"});
    expect_error([&] { weft::Array::wrap(numbers.data(), "float32", shape, std::span(strides, 1)); },
                 {"(24,)", "(4, 3)"});
}

void numbers_of_all_kinds(const weft::Program& program) {
    const weft::Array out = weft::Array::zeros("float64", {6});
    struct Quat {
        float x, y, z, w;
    };
    const weft::Kernel scalars = program.kernel("scalars");
    scalars.launch(1, {-128, std::uint64_t{1} << 63, true, 1.0 / 3.0, 0.1, Quat{0, 0, 0, 1}, out});
    const double* const found = out.data<double>();
    check(found[0] == -128.0 && found[1] == 9223372036854775808.0 && found[2] == 1.0, "integers and bools");
    check(found[3] == 1.0 / 3.0 && found[4] == 0.0999755859375 && found[5] == 1.0, "floats and a quaternion");

    const std::vector<std::int64_t> many(50'000, 3);
    const weft::Array sum = weft::Array::zeros("int64", {1});
    program.kernel("total").launch(50'000, {weft::Array::of(many), sum});
    check(*sum.data<std::int64_t>() == 150'000, "total");

    const auto with = [&](const weft::Argument& a, const weft::Argument& b, const weft::Argument& c,
                          const weft::Argument& d) {
        return [&, a, b, c, d] { scalars.launch(1, {a, b, c, d, 0.0, Quat{}, out}); };
    };
    expect_error(with(128, 0u, false, 0.0), {"'a'", "int8", "128", "out of range"});
    expect_error(with(1, -1, false, 0.0), {"'b'", "uint64", "-1"});
    expect_error(with(1.5, 1, false, 0.0), {"'a'", "int8", "float 1.5"});
    expect_error(with(1, 1, 1, 0.0), {"'c'", "bool", "integer 1"});
    expect_error(with(1, 1, true, out), {"'d'", "float64", "an array"});
}

// More than 2^31 elements, of which only the pages that are touched take memory.
void huge_arrays(const weft::Program& program) {
    constexpr std::int64_t kCount = (std::int64_t{1} << 31) + 16;
    void* const room =
        mmap(nullptr, kCount, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    check(room != MAP_FAILED, "room for a huge array");
    if (room == MAP_FAILED) return;
    auto* const bytes = static_cast<std::uint8_t*>(room);
    bytes[kCount - 1] = 7;
    bytes[kCount - 2] = 5;
    const weft::Array huge = weft::Array::wrap(room, "uint8", {kCount}), small = huge.slice(0, kCount - 16, 16);
    for (const weft::Array& given : {huge, small}) {
        const std::int64_t count = given.shape()[0];
        const weft::Array out = weft::Array::zeros("int64", {6});
        program.kernel("ends").launch(1, {given, out});
        const std::int64_t expected[] = {count, count - 10, 7, 5, count, 12};
        for (int i = 0; i < 6; ++i)
            check(out.data<std::int64_t>()[i] == expected[i], "ends of " + std::to_string(count) +
                                                                  " elements: " + std::to_string(i) + " is " +
                                                                  std::to_string(out.data<std::int64_t>()[i]));
    }
    const weft::Kernel short_extent = program.kernel("short_extent");
    const weft::Array out = weft::Array::zeros("int32", {1});
    short_extent.launch(1, {out, small});
    check(*out.data<int>() == 16, "an extent that fits an int32");
    expect_error([&] { short_extent.launch(1, {out, huge}); },
                 {"'short_extent'", "extent of an array as an int32", "argument 'a' has 2147483664 elements along",
                  "help: write wp.int64(a.shape[...]) in the kernel"});
    munmap(room, kCount);
}

void mistakes(const weft::Program& program, const std::string& path) {
    const weft::Array x = weft::Array::zeros("vec3", {4}), y = weft::Array::zeros("float32", {4, 4});
    const weft::Kernel total = program.kernel("total");
    expect_error([&] { total.launch(4, {x}); }, {"'total'", "2 arguments", "found 1"});
    expect_error([&] { total.launch(4, {x, x}); }, {"'x'", "array[int64]", "array[vec3f]"});
    expect_error([&] { program.kernel("shifted").launch({4, 4}, {y, x, x}); }, {"'y'", "array2d[float32]"});
    expect_error([&] { program.kernel("shifted").launch({4, 4, 4}, {y, y, weft::Array()}); }, {"3 axes"});
    expect_error([&] { program.kernel("talk").launch(-1, {1}); }, {"negative"});
    std::vector<float> numbers = {1.0f, 4.0f, -9.0f};
    const weft::Array some = weft::Array::wrap(numbers.data(), "float32", {3});
    expect_error([&] { program.kernel("roots").launch(3, {some}); },
                 {"ValueError: -9 has no root", "kernel 'roots'", "thread (2,)"});
    expect_error([&] { program.kernel("stop"); }, {"'stop'", "step"});
    expect_error([&] { weft::Program::load("nowhere.weft"); }, {"nowhere.weft", "cannot be opened"});
    expect_error([&] { weft::Program::load(path + ".damaged"); }, {"damaged"});
    expect_error([&] { weft::Array::zeros("vec7", {1}); }, {"'vec7'", "vec"});
    expect_error([&] { weft::Array::zeros("float32", {-1}); }, {"-1"});
    expect_error([&] { weft::Array().size(); }, {"none"});
    expect_error([&] { (void)x.data<double>(); }, {"8 bytes", "vec3f"});
    expect_error([&] { (void)x.slice(0, 2, 3); }, {"extent 4"});
    expect_error([&] { weft::Array::wrap(nullptr, "float32", {3}); }, {"Array::wrap()", "'ptr' is 0", "(3,)"});
    program.kernel("talk").launch(0, {1});
}

void from_several_threads(const weft::Program& program) {
    std::vector<std::thread> threads;
    std::vector<weft::Array> sums;
    for (int t = 0; t < 4; ++t) sums.push_back(weft::Array::zeros("int64", {1}));
    const weft::Array ones = weft::Array::of(std::vector<std::int64_t>(10'000, 1));
    for (int t = 0; t < 4; ++t)
        threads.emplace_back([&, t] {
            for (int i = 0; i < 50; ++i) program.kernel("total").launch(10'000, {ones, sums[t]});
        });
    for (std::thread& thread : threads) thread.join();
    for (const weft::Array& sum : sums) check(*sum.data<std::int64_t>() == 500'000, "launches from four threads");
}

struct Range {
    Vec3 low;
    float scale;
    weft::ArrayView weights;
};

void functions_in_cpp(const weft::Program& program) {
    constexpr int kRows = 1003, kColumns = 7;
    const weft::Array wide = weft::Array::zeros("float32", {kRows, 2 * kColumns});
    const weft::Array out = weft::Array::zeros("float32", {kRows}), calls = weft::Array::zeros("int32", {1});
    float* const numbers = wide.data<float>();
    for (int i = 0; i < kRows * 2 * kColumns; ++i) numbers[i] = float(i * 7919 % 1009);
    program.kernel("medians").launch(kRows, {wide.slice(1, 0, kColumns, 2), out, calls});
    bool right = true;
    int called = 0;
    for (int row = 0; row < kRows; ++row) {
        std::vector<float> sorted;
        for (int k = 0; k < kColumns; ++k) sorted.push_back(numbers[row * 2 * kColumns + 2 * k]);
        std::sort(sorted.begin(), sorted.end());
        const bool is_called = row % 3 != 1;
        right &= out.data<float>()[row] == (is_called ? sorted[kColumns / 2] : 0.0f);
        called += is_called;
    }
    check(right && *calls.data<int>() == called, "medians of strided rows, by a function in C++");

    const weft::Array weights = weft::Array::of({1.0f, 2.0f, 4.0f}), v = weft::Array::zeros("vec3", {100});
    Vec3* const vectors = v.data<Vec3>();
    for (int i = 0; i < 100; ++i) vectors[i] = {float(i), 2.0f, -0.5f};
    program.kernel("scales").launch(100, {Range{{1.0f, 1.0f, 0.125f}, 0.5f, weights.view()}, v});
    right = true;
    for (int i = 0; i < 100; ++i) {
        const float total = float(i) - 1.0f + 2.0f - 2.5f;
        right &= vectors[i].x == 0.5f * total && vectors[i].y == std::floor(total) && vectors[i].z == float(i) + 1.0f;
    }
    check(right, "a vector and a struct with an array, to a function in C++");

    const weft::Array level = weft::Array::zeros("int32", {1});
    program.kernel("levels").launch(1, {level});
    std::printf("level: %d\n", *level.data<int>());
}

}  // namespace

int main(int count, char** arguments) {
    const weft::Program program = weft::Program::load(arguments[1]);
    structs_and_arrays(program);
    views_and_overlap(program);
    memory_of_the_caller(program);
    numbers_of_all_kinds(program);
    huge_arrays(program);
    mistakes(program, arguments[1]);
    from_several_threads(program);
    if (count > 2) functions_in_cpp(weft::Program::load(arguments[2]));
    program.kernel("talk").launch(1, {41});
    std::printf("threads: %d, failures: %d\n", weft::cpu_threads(), failures);
    return failures;
}
