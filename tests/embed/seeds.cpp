// Backward passes from seeds, one a line: the gradients of x, of y and of z, and the seed afterwards. seeds.py
// runs the same in Python and compares the lines.
#include <algorithm>
#include <cstdio>
#include <vector>

#include "weft/tape.h"

namespace {

constexpr int kCount = 3;

weft::Array numbers(float a, float b, float c, bool has_gradient = true) {
    const weft::Array array = weft::Array::of({a, b, c});
    if (has_gradient) array.require_gradient();
    return array;
}

struct Arrays {
    explicit Arrays(bool has_gradients = true)
        : x(numbers(1, 2, 3, has_gradients)), y(numbers(4, 5, 6, has_gradients)), z(numbers(7, 8, 9, has_gradients)) {}
    weft::Array x, y, z;
    weft::Array seed = numbers(1, 10, 100, /*has_gradient=*/false);
};

void print(const weft::Array& array) {
    if (!array) std::printf(" none");
    for (int i = 0; array && i < kCount; ++i) std::printf(" %g", *array.slice(0, i, 1).data<float>());
    std::printf(";");
}

void print(const char* name, const Arrays& arrays, const weft::Array& seed) {
    std::printf("%s:", name);
    for (const weft::Array& one : {arrays.x, arrays.y, arrays.z}) print(one.gradient());
    print(seed);
    std::printf("\n");
}

void from_memory_of_its_own(const weft::Kernel& scaled) {
    for (const int dim : {kCount, 2}) {
        const Arrays a;
        std::fill_n(a.y.gradient().data<float>(), kCount, 7.0f);
        weft::Tape tape;
        tape.launch(scaled, dim, {a.x, 3.0f, a.y});
        tape.backward({{a.y, a.seed}});
        print(dim == kCount ? "whole" : "a part", a, a.seed);
        tape.backward({{a.y, a.seed}});
        print("again", a, a.seed);
    }
}

void in_the_gradient_itself(const weft::Kernel& scaled) {
    for (const bool reversed : {false, true}) {
        const Arrays a;
        const weft::Array gradient = a.y.gradient(), seed = reversed ? gradient.slice(0, 2, kCount, -1) : gradient;
        gradient.copy_from(a.seed);
        weft::Tape tape;
        tape.launch(scaled, kCount, {a.x, 3.0f, a.y});
        tape.backward({{a.y, seed}});
        print(reversed ? "its own gradient, reversed" : "its own gradient", a, seed);
    }
}

void in_the_gradient_of_another_array(const weft::Kernel& scaled) {
    const Arrays a;
    a.z.gradient().copy_from(a.seed);
    weft::Tape tape;
    tape.launch(scaled, kCount, {a.x, 3.0f, a.y});
    tape.backward({{a.y, a.z.gradient()}});
    print("another gradient", a, a.z.gradient());
}

void of_several_arrays(const weft::Kernel& scaled) {
    const Arrays a;
    const weft::Array of_z = numbers(2, 4, 8, /*has_gradient=*/false);
    weft::Tape tape;
    tape.launch(scaled, kCount, {a.x, 3.0f, a.y});
    tape.launch(scaled, kCount, {a.y, -2.0f, a.z});
    tape.backward({{a.y, a.seed}, {a.z, of_z}});
    print("read later", a, a.seed);
}

void overwritten_later(const weft::Kernel& scaled) {
    const Arrays a, b;
    weft::Tape tape;
    tape.launch(scaled, kCount, {a.x, 3.0f, a.y});
    tape.overwrite(a.y);
    a.y.zero();
    tape.backward({{a.y, a.seed}});
    print("overwritten later", a, a.seed);
    weft::Tape copies;
    copies.launch(scaled, kCount, {b.x, 3.0f, b.y});
    copies.copy(b.y, b.z);
    copies.backward({{b.y, b.seed}});
    print("copied over later", b, b.seed);
}

void without_gradients(const weft::Kernel& scaled) {
    for (const bool of_x : {false, true}) {
        const Arrays a(/*has_gradients=*/false);
        weft::Tape tape;
        tape.launch(scaled, kCount, {a.x, 3.0f, a.y});
        if (of_x) a.x.require_gradient();
        tape.backward({{a.y, a.seed}});
        print(of_x ? "late gradients" : "a late gradient", a, a.seed);
    }
}

}  // namespace

int main(int, char** arguments) {
    const weft::Kernel scaled = weft::Program::load(arguments[1]).kernel("scaled");
    from_memory_of_its_own(scaled);
    in_the_gradient_itself(scaled);
    in_the_gradient_of_another_array(scaled);
    of_several_arrays(scaled);
    overwritten_later(scaled);
    without_gradients(scaled);
    return 0;
}
