// Overloaded{lambda, lambda, ...}: one function object for std::visit over the nodes of a syntax tree.
#pragma once

namespace weft::sema {

template <class... F>
struct Overloaded : F... {
    using F::operator()...;
};
template <class... F>
Overloaded(F...) -> Overloaded<F...>;

}  // namespace weft::sema
