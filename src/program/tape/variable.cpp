#include "program/tape/variable.h"

namespace weft::program {

void make_gradient(Variable& of) {
    const auto [low, high] = of.array.extent();
    of.gradient = runtime::allocate_zeroed(high - low, *of.array.device);
    of.requires_grad = true;
    void*& data = of.array.view.grad;
    data = of.gradient->data;
    if (data) data = runtime::moved(of.array.view.data, low, data);
}

}  // namespace weft::program
