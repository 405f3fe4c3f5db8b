// Access of builtin functions to objects of the runtime (types/objects.h), by their descriptors.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "builtins/expression.h"
#include "types/objects.h"

namespace weft::builtins {

// A descriptor at an address.
class Descriptor {
public:
    Descriptor(ObjectKind kind, E address, Scalar scalar = Scalar::f32)
        : type_(descriptor_type(kind, scalar)),
          all_(address.wrap(
              address.builder().array_at(Type::array(type_, 1), address, {address.builder().integer(1)}))) {}

    E operator[](std::string_view field) const {
        ir::Builder& b = all_.builder();
        ir::Value* const member = b.member(all_, type_.field_index(field).value());
        return all_.wrap(b.load(member, {b.integer(0)}));
    }

private:
    Type type_;
    E all_;
};

inline E object(ObjectKind kind, E id) { return id.wrap(id.builder().object(kind, id)); }

// Calls "weft_lib_" + name of the device library, for all lanes together, with the object's address and these
// arguments. Null if the function has no result.
inline ir::Value* call_library(E address, const std::string& name, Type result, std::vector<ir::Value*> arguments,
                               bool writes = false) {
    auto function = std::make_shared<ir::LibraryFunction>();
    function->symbol = "weft_lib_" + name;
    function->form = ir::LibraryFunction::Form::masked;
    function->pure = !writes;
    (writes ? function->writes : function->reads) = {0};
    arguments.insert(arguments.begin(), address);
    return address.builder().call_library(std::move(function), result, std::move(arguments));
}

}  // namespace weft::builtins
