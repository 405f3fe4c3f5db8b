// Gradients in C++ programs: a tape records launches and goes back through them, as wp.Tape does in Python.
//
//     weft::Program program = weft::Program::load("simulation.weft");   // written with gradients=True
//     weft::Array x = weft::Array::of({1.0f, 2.0f}), loss = weft::Array::zeros("float32", {1});
//     x.require_gradient();
//     loss.require_gradient();
//     weft::Tape tape;
//     tape.launch(program.kernel("energy"), 2, {x, loss});
//     tape.backward(loss);
//     float* slope = x.gradient().data<float>();
//
// What a launch on the tape overwrites and an earlier one needs is copied, also where the arrays are fields of structs
// that are arguments; arrays that the elements of an array lead to must not be overwritten, which is an error. What
// atomics returned is kept where the gradient needs it. What the program itself writes to arrays between recording and
// going back is seen where it says so, by copy() and overwrite(). Several threads may go back at once, each with a tape
// of its own, also into one gradient. What is wrong with a call is thrown as std::invalid_argument.
#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <span>
#include <utility>

#include "weft/program.h"

namespace weft {

class WEFT_API Tape {
public:
    Tape();
    Tape(Tape&&) noexcept;
    Tape& operator=(Tape&&) noexcept;
    ~Tape();

    // Records a launch and runs it, as Kernel::launch does. Throws where an array that is written, or read, has a
    // gradient and the file has no adjoint of the kernel.
    void launch(const Kernel& kernel, std::span<const std::int64_t> dim, std::span<const Argument> arguments);
    void launch(const Kernel& kernel, std::initializer_list<std::int64_t> dim,
                std::initializer_list<Argument> arguments) {
        launch(kernel, std::span(dim.begin(), dim.size()), std::span(arguments.begin(), arguments.size()));
    }
    void launch(const Kernel& kernel, std::int64_t dim, std::initializer_list<Argument> arguments) {
        launch(kernel, std::span(&dim, 1), std::span(arguments.begin(), arguments.size()));
    }

    // Records a copy of all elements, and makes it (Array::copy_from): the gradient goes back to the source.
    void copy(const Array& to, const Array& source);
    // The program is about to write all elements itself, through data(): what an earlier launch needs of them is kept,
    // and their gradient ends there.
    void overwrite(const Array& to);

    // Goes back through all that was recorded, and adds to the gradients of the arrays that were read. That of an array
    // that was overwritten is used up on the way: zero afterwards. It starts from the gradients that arrays hold; where
    // all that were written hold zeros, the array of one number that the last launch wrote is the loss.
    void backward();
    // The same from a loss, an array of one element whose gradient is set to 1.
    void backward(const Array& loss);
    // The same from gradients of arrays: each of the shape and dtype of its array, which gets one where it has none.
    void backward(std::span<const std::pair<Array, Array>> gradients);
    void backward(std::initializer_list<std::pair<Array, Array>> gradients) {
        backward(std::span(gradients.begin(), gradients.size()));
    }

    void zero();               // sets the gradients of all arrays on the tape to zero
    void reset();              // and forgets what was recorded
    std::size_t size() const;  // of what is recorded

private:
    struct Implementation;
    std::unique_ptr<Implementation> implementation_;
};

}  // namespace weft
