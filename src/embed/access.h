// What the public classes of include/weft hold: the only way in, for the files of this room.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "program/compiled.h"
#include "runtime/array.h"
#include "weft/program.h"

namespace weft {

struct Array::Implementation {
    runtime::Array array;
};

struct Kernel::Implementation {
    std::string name;
    std::vector<Parameter> parameters;
    // For arrays with packed rows that do not overlap, and for all others.
    program::CompiledKernel dense, general;
};

struct Access {
    static Type type(const Dtype& dtype);
    static Dtype dtype(Type type) { return Dtype(type.node()); }
    static Array array(runtime::Array array);
    static const runtime::Array* array(const Array& array) {
        return array.implementation_ ? &array.implementation_->array : nullptr;
    }
    static const auto& value(const Argument& argument) { return argument.value_; }
};

}  // namespace weft
