// The base class of functions that kernels can call.
#pragma once

#include "sema/environment.h"

namespace weft::frontend {

// wp.Function in Python: a @wp.func or a built-in function.
class KernelFunction {
public:
    virtual ~KernelFunction() = default;

    virtual bool is_builtin() const = 0;
    // The meaning of the function in a kernel, without its Python object. Needs the GIL. Throws CompileError if the
    // source has an error.
    virtual sema::Binding binding() = 0;
};

}  // namespace weft::frontend
