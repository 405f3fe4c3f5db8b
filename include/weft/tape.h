// Gradients in C++ programs: a tape records launches and runs their adjoints in reverse order, as wp.Tape does in
// Python.
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
// The tape copies elements that a launch overwrites and an earlier one needs, also for arrays in fields of struct
// arguments. Arrays that are referenced by elements of an array must not be overwritten; that is an error. Results of
// atomics are saved if the gradient needs them. Writes of the program itself between recording and backward() must be
// announced by copy() or overwrite(). Several threads may run backward() at once, each with its own tape, also into the
// same gradient. Invalid calls throw std::invalid_argument.
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

    // Records a launch and runs it, as Kernel::launch does. Throws if an array that it reads or writes has a gradient
    // and the file has no adjoint of the kernel.
    void launch(const Kernel& kernel, std::span<const std::int64_t> dim, std::span<const Argument> arguments);
    void launch(const Kernel& kernel, std::initializer_list<std::int64_t> dim,
                std::initializer_list<Argument> arguments) {
        launch(kernel, std::span(dim.begin(), dim.size()), std::span(arguments.begin(), arguments.size()));
    }
    void launch(const Kernel& kernel, std::int64_t dim, std::initializer_list<Argument> arguments) {
        launch(kernel, std::span(&dim, 1), std::span(arguments.begin(), arguments.size()));
    }

    // Records a copy of all elements and does it (Array::copy_from): its adjoint adds the gradient to the source's.
    void copy(const Array& to, const Array& source);
    // To be called before the program writes all elements itself, through data(): saves elements that an earlier launch
    // needs, and ends their gradient there.
    void overwrite(const Array& to);

    // Runs the adjoints in reverse order and adds to the gradients of arrays that were read. The gradient of an
    // overwritten array is consumed: it is zero afterwards. The seeds are the present gradients. If those of all
    // written arrays are zero, the array of one number that the last launch wrote is the loss.
    void backward();
    // Seeds a loss, an array of one element, with the gradient 1.
    void backward(const Array& loss);
    // Seeds arrays with gradients of their shape and dtype, which are unchanged afterwards; arrays without a gradient
    // get one. The gradient of an array that a record overwrites is consumed, as above.
    void backward(std::span<const std::pair<Array, Array>> gradients);
    void backward(std::initializer_list<std::pair<Array, Array>> gradients) {
        backward(std::span(gradients.begin(), gradients.size()));
    }

    void zero();               // sets the gradients of all arrays on the tape to zero
    void reset();              // and removes all records
    std::size_t size() const;  // number of records

private:
    struct Implementation;
    std::unique_ptr<Implementation> implementation_;
};

}  // namespace weft
