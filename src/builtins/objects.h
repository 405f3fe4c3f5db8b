// How builtin functions reach objects of the runtime (types/objects.h): by their descriptors.
#pragma once

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

}  // namespace weft::builtins
