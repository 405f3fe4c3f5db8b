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
// What a launch on the tape overwrites and an earlier one needs is copied; what the program itself writes to arrays
// between recording and going back is not seen. Arrays in structs take part by the gradients of their views, with the
// contents that they have when the tape goes back. Several threads may go back at once, each with a tape of its own,
// also into one gradient. What is wrong with a call is thrown as std::invalid_argument.
#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <span>

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

    // Goes back through all launches, from the gradients that arrays hold, and adds to those of the arrays that were
    // read. The gradient of an array that a launch overwrote is used up on the way: zero afterwards.
    void backward();
    // The same from a loss, an array of one floating-point number whose gradient is set to 1.
    void backward(const Array& loss);

    void zero();               // sets the gradients of all arrays on the tape to zero
    void reset();              // and forgets what was recorded
    std::size_t size() const;  // launches on it

private:
    struct Implementation;
    std::unique_ptr<Implementation> implementation_;
};

}  // namespace weft
