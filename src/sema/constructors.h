// Calls of types: wp.float64(x), wp.vec3(1.0, 2.0, 3.0), MyStruct(), wp.vector(...), wp.matrix(...).
//
// A scalar constructor converts from any scalar: that is the explicit conversion of the language. Constructors of
// vectors and matrices convert only literals; typed components must have the right type (P-69). A whole vector of the
// same length converts, as no other meaning is possible.
#pragma once

#include <vector>

#include "ir/builder.h"
#include "sema/assignment_target.h"
#include "sema/value.h"
#include "sema/value_writer.h"

namespace weft::sema {

class Constructors {
public:
    explicit Constructors(ir::Builder& builder) : builder_(builder), values_(builder) {}

    // The call of any type; a struct takes its fields in order or by name.
    Value construct(Type type, const std::vector<Actual>& arguments, Span span);
    Value convert_scalar(Type type, const Value& value, Span span);
    Value construct_aggregate(Type type, const std::vector<Actual>& arguments, Span span);
    // The struct with these fields, and the defaults of the others, for which the argument is null.
    Value struct_of(Type type, const std::vector<const Actual*>& by_field);
    // wp.vector(...), wp.matrix(...), wp.quaternion(...), wp.transformation(...): the arguments give the type.
    Value anonymous_vector(const std::vector<Actual>& arguments, Span span);
    Value anonymous_matrix(const std::vector<Actual>& arguments, Span span);
    Value anonymous_rotation(Kind kind, const std::vector<Actual>& arguments, Span span);

private:
    Value construct_transform(Type type, const std::vector<Actual>& arguments, Span span);
    Value construct_struct(Type type, const std::vector<Actual>& arguments);
    ir::Value* default_of(const Type::Field& field);

    ir::Builder& builder_;
    ValueWriter values_;
};

}  // namespace weft::sema
