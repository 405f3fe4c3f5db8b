// Gradients in a C++ program: launches of the kernels of slopes.py on a tape, against closed forms and differences.
// Exits with the number of failed checks.
#include <sys/mman.h>

#include <cmath>
#include <cstdint>
#include <cstdio>
#include <string>
#include <thread>
#include <vector>

#include "check.h"
#include "weft/tape.h"

namespace {

void check_near(double found, double expected, double tolerance, const std::string& what) {
    check(std::fabs(found - expected) <= tolerance * (1.0 + std::fabs(expected)),
          what + ": " + std::to_string(found) + ", expected " + std::to_string(expected));
}

weft::Array with_gradient(const std::vector<double>& numbers) {
    weft::Array array = weft::Array::of(numbers);
    array.require_gradient();
    return array;
}

std::vector<double> waves(int count, double frequency) {
    std::vector<double> numbers;
    for (int i = 0; i < count; ++i) numbers.push_back(std::sin(frequency * i) + 0.3);
    return numbers;
}

// loss = sum of a x^2: the slopes are x^2 and 2 a x. Only what has a gradient gets one.
void closed_form(const weft::Program& program) {
    constexpr int kCount = 1003;
    const std::vector<double> a = waves(kCount, 0.7), x = waves(kCount, 1.3);
    for (const bool both : {false, true}) {
        const weft::Array factors = both ? with_gradient(a) : weft::Array::of(a), values = with_gradient(x);
        const weft::Array loss = with_gradient({0.0});
        weft::Tape tape;
        tape.launch(program.kernel("weighted"), kCount, {factors, values, loss});
        check(tape.size() == 1, "one launch on the tape");
        tape.backward(loss);
        for (int i = 0; i < kCount; ++i) {
            check_near(values.gradient().data<double>()[i], 2.0 * a[i] * x[i], 1e-14, "2 a x");
            if (both) check_near(factors.gradient().data<double>()[i], x[i] * x[i], 1e-14, "x^2");
        }
        check(both == static_cast<bool>(factors.gradient()), "a constant has no gradient");
        tape.backward(loss);
        check_near(values.gradient().data<double>()[5], 4.0 * a[5] * x[5], 1e-14, "gradients add up");
        tape.zero();
        check(values.gradient().data<double>()[5] == 0.0, "zero()");
        tape.reset();
        check(tape.size() == 0, "reset()");
    }
}

// A simulation in place: the tape keeps the values that each step overwrites.
double simulate(const weft::Program& program, const std::vector<double>& start, weft::Tape* tape,
                weft::Array* at_start) {
    const int count = static_cast<int>(start.size());
    const weft::Array x = with_gradient(start), v = with_gradient(waves(count, 2.1)), loss = with_gradient({0.0});
    weft::Tape unused;
    weft::Tape& recording = tape ? *tape : unused;
    for (int step = 0; step < 6; ++step) {
        recording.launch(program.kernel("push"), count, {0.1, x, v});
        recording.launch(program.kernel("advance"), count, {0.1, v, x});
    }
    recording.launch(program.kernel("energy"), count, {x, v, loss});
    if (tape) {
        tape->backward(loss);
        *at_start = x.gradient();
    }
    return *loss.data<double>();
}

void differences(const weft::Program& program) {
    const std::vector<double> start = waves(9, 0.9);
    weft::Tape tape;
    weft::Array slopes;
    simulate(program, start, &tape, &slopes);
    double largest = 0.0;
    for (std::size_t i = 0; i < start.size(); ++i) {
        constexpr double kStep = 1e-6;
        std::vector<double> above = start, below = start;
        above[i] += kStep;
        below[i] -= kStep;
        const double expected =
            (simulate(program, above, nullptr, nullptr) - simulate(program, below, nullptr, nullptr)) / (2.0 * kStep);
        check_near(slopes.data<double>()[i], expected, 1e-8, "the slope at " + std::to_string(i));
        largest = std::fmax(largest, std::fabs(expected));
    }
    check(largest > 0.1, "the differences are more than noise");
}

// Strided and reversed views, and one array as two arguments.
void views(const weft::Program& program) {
    const weft::Array wide = weft::Array::of(waves(20, 0.4));
    wide.require_gradient();
    const weft::Array every_second = wide.slice(0, 0, 10, 2), back = wide.slice(0, 19, 10, -2),
                      loss = with_gradient({0.0});
    weft::Tape tape;
    tape.launch(program.kernel("weighted"), 10, {every_second, back, loss});
    tape.launch(program.kernel("weighted"), 20, {wide, wide, loss});
    tape.backward(loss);
    const double* const x = wide.data<double>();
    for (int i = 0; i < 20; ++i) {
        const double other = x[19 - i];
        const double first = i % 2 == 0 ? other * other : 2.0 * x[i] * other;
        check_near(wide.gradient().data<double>()[i], first + 3.0 * x[i] * x[i], 1e-14,
                   "views at " + std::to_string(i));
    }
}

// Of a kernel that counts from the end of more than 2^31 elements: loss = 3 * 16 * (x0^2 + x1^2).
void huge_arrays(const weft::Program& program) {
    constexpr std::int64_t kCount = (std::int64_t{1} << 31) + 16;
    void* const room =
        mmap(nullptr, kCount, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    check(room != MAP_FAILED, "room for a huge array");
    if (room == MAP_FAILED) return;
    static_cast<std::uint8_t*>(room)[kCount - 1] = 3;
    const weft::Array huge = weft::Array::wrap(room, "uint8", {kCount}), x = with_gradient({0.5, -2.0}),
                      loss = with_gradient({0.0});
    weft::Tape tape;
    tape.launch(program.kernel("weighted_by_the_last"), 2, {huge, x, loss});
    tape.backward(loss);
    check_near(*loss.data<double>(), 48.0 * 4.25, 1e-12, "a loss with a huge array");
    check_near(x.gradient().data<double>()[0], 48.0, 1e-12, "the gradient with a huge array");
    check_near(x.gradient().data<double>()[1], -192.0, 1e-12, "the second gradient with a huge array");
    munmap(room, kCount);
}

struct Load {
    double strength;
    weft::ArrayView where;
};

void structs(const weft::Program& program) {
    const weft::Array where = with_gradient({1.0, 2.0, 3.0}), x = with_gradient({4.0, 5.0, 6.0}),
                      out = with_gradient({0.0, 0.0, 0.0});
    weft::Tape tape;
    tape.launch(program.kernel("loaded"), 3, {Load{2.0, where.view()}, x, out});
    for (int i = 0; i < 3; ++i) out.gradient().data<double>()[i] = 10.0;
    tape.backward();
    for (int i = 0; i < 3; ++i) {
        check_near(where.gradient().data<double>()[i], 20.0 * (4.0 + i), 1e-14, "an array in a struct");
        check_near(x.gradient().data<double>()[i], 20.0 * (1.0 + i), 1e-14, "an array beside a struct");
        check(out.gradient().data<double>()[i] == 0.0, "what was overwritten has used up its gradient");
    }
}

// Which element a thread wrote is known by what its atomics returned.
void atomics(const weft::Program& program) {
    constexpr int kCount = 500;
    std::vector<double> numbers = waves(kCount, 0.37);
    const weft::Array x = with_gradient(numbers), out = with_gradient(std::vector<double>(kCount, 0.0));
    const weft::Array counter = weft::Array::zeros("int32", {1});
    weft::Tape tape;
    tape.launch(program.kernel("collected"), kCount, {counter, x, out});
    const int found = *counter.data<int>();
    check(found == 499, "0, 1, 2, 0, ... and 1 elements");  // 166 times 0 + 1 + 2, then 0 and 1
    const std::vector<double> weights = waves(kCount, 0.9);
    tape.backward({{out, weft::Array::of(weights)}});
    // Each x[i]^2 (k + 1) stands in one place, which has one weight.
    for (int i = 0; i < kCount; ++i) {
        double expected = 0.0;
        for (int k = 0; k < i % 3; ++k) {
            int places = 0;
            for (int at = 0; at < found; ++at) {
                if (out.data<double>()[at] != numbers[i] * numbers[i] * (k + 1)) continue;
                expected += 2.0 * numbers[i] * (k + 1) * weights[at];
                ++places;
            }
            check(places == 1, "a number that stands in one place");
        }
        check_near(x.gradient().data<double>()[i], expected, 1e-14, "collected at " + std::to_string(i));
    }

    const weft::Array y = weft::Array::of({2.0f, 3.0f, 4.0f}), drawn = weft::Array::zeros("float32", {3});
    y.require_gradient();
    drawn.require_gradient();
    tape.reset();
    tape.launch(program.kernel("drawn"), 3, {counter, y, drawn});
    std::fill_n(drawn.gradient().data<float>(), 3, 1.0f);
    tape.backward();
    for (int i = 0; i < 3; ++i)
        check_near(y.gradient().data<float>()[i], drawn.data<float>()[i] / y.data<float>()[i], 1e-6, "drawn");
}

struct State {
    weft::ArrayView x, v;
};

// The arrays are overwritten through structs and by themselves, in turn.
double move(const weft::Program& program, const std::vector<double>& start, weft::Array* slopes) {
    const int count = static_cast<int>(start.size());
    const weft::Array x = with_gradient(start), v = with_gradient(waves(count, 2.1)), loss = with_gradient({0.0});
    weft::Tape tape;
    for (int step = 0; step < 4; ++step) {
        tape.launch(program.kernel("move"), count, {0.1, State{x.view(), v.view()}});
        tape.launch(program.kernel("push"), count, {0.1, x, v});
        tape.launch(program.kernel("move"), count / 2, {0.2, State{x.slice(0, 1, count / 2, 2).view(), v.view()}});
    }
    tape.launch(program.kernel("energy"), count, {x, v, loss});
    if (slopes) {
        tape.backward();
        *slopes = x.gradient();
    }
    return *loss.data<double>();
}

void overwritten_structs(const weft::Program& program) {
    const std::vector<double> start = waves(8, 0.9);
    weft::Array slopes;
    move(program, start, &slopes);
    for (std::size_t i = 0; i < start.size(); ++i) {
        constexpr double kStep = 1e-6;
        std::vector<double> above = start, below = start;
        above[i] += kStep;
        below[i] -= kStep;
        const double expected = (move(program, above, nullptr) - move(program, below, nullptr)) / (2.0 * kStep);
        check_near(slopes.data<double>()[i], expected, 1e-8, "through structs at " + std::to_string(i));
        check(std::fabs(expected) > 1e-3, "a difference is more than noise");
    }
}

void structs_in_arrays(const weft::Program& program) {
    const weft::Kernel kernel = program.kernel("all_loads");
    const weft::Array first = with_gradient({1.0, 2.0, 3.0}), second = with_gradient({5.0, 7.0, 9.0}),
                      x = with_gradient({4.0, 5.0, 6.0}), out = weft::Array::zeros("float32", {3}),
                      loads = weft::Array::zeros(kernel.parameters()[0].dtype, {2});
    loads.data<Load>()[0] = {2.0, first.view()};
    loads.data<Load>()[1] = {3.0, second.view()};
    out.require_gradient();
    weft::Tape tape;
    tape.launch(kernel, 3, {loads, x, out});
    tape.backward({{out, weft::Array::of({1.0f, 10.0f, 100.0f})}});
    for (int i = 0; i < 3; ++i) {
        const double seed = std::pow(10.0, i);
        check_near(first.gradient().data<double>()[i], 2.0 * (4.0 + i) * seed, 1e-14, "the first array in an array");
        check_near(second.gradient().data<double>()[i], 3.0 * (4.0 + i) * seed, 1e-14, "the second array in an array");
    }
    tape.launch(program.kernel("soften"), 3, {loads});
    tape.launch(kernel, 3, {loads, x, out});
    expect_error([&] { tape.backward({{out, weft::Array::zeros("float32", {3})}}); },
                 {"'all_loads'", "(3,)", "'loads'", "overwritten"});
}

// Writes of the program itself, between launches.
void writes(const weft::Program& program) {
    const weft::Array x = weft::Array::of({1.0f, 2.0f}), y = weft::Array::zeros("float32", {2}),
                      z = weft::Array::zeros("float32", {2});
    for (const weft::Array& one : {x, y, z}) one.require_gradient();
    weft::Tape tape;
    tape.copy(y, x);
    tape.launch(program.kernel("scaled"), 2, {y, 3.0f, z});
    tape.overwrite(y);
    std::fill_n(y.data<float>(), 2, 7.0f);
    tape.copy(y.slice(0, 1, 1), x.slice(0, 0, 1));
    check(tape.size() == 4 && y.data<float>()[1] == 1.0f, "copies are made");
    tape.backward({{z, weft::Array::of({1.0f, 10.0f})}, {y, weft::Array::of({100.0f, 1000.0f})}});
    check(x.gradient().data<float>()[0] == 1003.0f && x.gradient().data<float>()[1] == 30.0f, "through copies");
}

// Where nothing says where to start, it is the number that the last launch wrote.
void implied_loss(const weft::Program& program) {
    const weft::Array a = weft::Array::of({2.0, 3.0}), x = with_gradient({5.0, 7.0}), loss = with_gradient({0.0});
    weft::Tape tape;
    tape.launch(program.kernel("weighted"), 2, {a, x, loss});
    tape.backward();
    check(x.gradient().data<double>()[0] == 20.0 && x.gradient().data<double>()[1] == 42.0, "an implied loss");
    tape.zero();
    tape.launch(program.kernel("push"), 2, {0.1, x, a});
    expect_error([&] { tape.backward(); }, {"found no array of one floating-point number"});
}

void two_threads_into_one_gradient(const weft::Program& program) {
    constexpr int kCount = 1 << 20, kPasses = 30;
    const weft::Array x = weft::Array::of(std::vector<float>(kCount, 1.0f));
    x.require_gradient();
    const auto going_back = [&](float factor) {
        const weft::Array y = weft::Array::zeros("float32", {kCount});
        y.require_gradient();
        weft::Tape tape;
        tape.launch(program.kernel("scaled"), kCount, {x, factor, y});
        for (int pass = 0; pass < kPasses; ++pass) {
            std::fill_n(y.gradient().data<float>(), kCount, 1.0f);
            tape.backward();
        }
    };
    std::thread other(going_back, 1.0f);
    going_back(2.0f);
    other.join();
    int wrong = 0;
    for (int i = 0; i < kCount; ++i) wrong += x.gradient().data<float>()[i] != 3.0f * kPasses;
    check(wrong == 0, std::to_string(wrong) + " gradients of two threads are wrong");
}

void mistakes(const weft::Program& program, const weft::Program& without) {
    const weft::Array x = weft::Array::zeros("float32", {3}), y = weft::Array::zeros("float32", {3});
    const weft::Array counts = weft::Array::zeros("int32", {3});
    weft::Tape tape;
    expect_error([&] { counts.require_gradient(); }, {"int32", "floats"});
    tape.launch(program.kernel("silent"), 3, {x});
    x.require_gradient();
    std::fill_n(x.gradient().data<float>(), 3, 1.0f);
    expect_error([&] { tape.backward(); }, {"'silent'", "after it was recorded"});
    tape.reset();
    expect_error([&] { tape.launch(program.kernel("silent"), 3, {x}); }, {"'silent'", "enable_backward=False"});
    expect_error([&] { tape.launch(without.kernel("scaled"), 3, {x, 1.0f, y}); }, {"'scaled'", "gradients=True"});
    expect_error([&] { tape.launch(program.kernel("scaled"), -1, {x, 1.0f, y}); }, {"negative"});
    check(tape.size() == 0, "what failed is not on the tape");
    expect_error([&] { tape.backward(y); }, {"the shape (3,)", "one element"});
    expect_error([&] { tape.backward(weft::Array::zeros("float64", {1})); }, {"require_gradient()"});
    expect_error([&] { tape.backward(weft::Array()); }, {"no array"});
    expect_error([&] { tape.backward({{x, weft::Array::zeros("float64", {3})}}); }, {"float64", "float32", "same"});
    expect_error([&] { tape.backward({{counts, counts}}); }, {"int32", "no derivative"});
    expect_error([&] { tape.copy(x, weft::Array::zeros("float64", {3})); }, {"float64"});
    expect_error([&] { tape.copy(x, weft::Array()); }, {"the source", "no array"});
    check(tape.size() == 0, "a copy that failed is not on the tape");

    // Kept memory that was written from elsewhere since.
    const weft::Array v = with_gradient({1.0}), position = with_gradient({0.5});
    for (int i = 0; i < 2; ++i) tape.launch(program.kernel("advance"), 1, {0.1, v, position});
    tape.launch(program.kernel("push"), 1, {0.1, position, v});
    program.kernel("advance").launch(1, {0.1, v, position});
    expect_error([&] { tape.backward(); }, {"written outside of the tape"});
}

}  // namespace

int main(int, char** arguments) {
    const weft::Program program = weft::Program::load(arguments[1]);
    closed_form(program);
    differences(program);
    views(program);
    huge_arrays(program);
    structs(program);
    atomics(program);
    overwritten_structs(program);
    structs_in_arrays(program);
    writes(program);
    implied_loss(program);
    two_threads_into_one_gradient(program);
    mistakes(program, weft::Program::load(arguments[2]));
    std::printf("failures: %d\n", failures);
    return failures;
}
