// The adjoints in the body of a function made with @wp.func_grad. wp.adjoint[x] is a local there: it starts at zero,
// and the gradient returns it for x. For an array it is the gradient array.
#pragma once

#include <map>
#include <string>

#include "ir/builder.h"
#include "sema/assignment_target.h"
#include "sema/locals.h"
#include "sema/parts.h"
#include "sema/value.h"
#include "sema/value_writer.h"
#include "syntax/tree.h"

namespace weft::sema {

class GradientBody {
public:
    // The first `own` parameters are those of the differentiated function.
    GradientBody(const syntax::Function& tree, std::size_t own, ir::Function& function, ir::Builder& builder,
                 Locals& locals)
        : tree_(tree),
          own_(own),
          function_(function),
          builder_(builder),
          values_(builder),
          parts_(builder),
          locals_(locals) {}

    // Assigns the adjoints' first values.
    void begin();
    // Returns the adjoints.
    void finish();
    // Whether this is the local of a struct parameter's adjoint.
    bool is_adjoint_of_struct(const std::string& name) const { return struct_parameters_.contains(name); }
    // Whether this is a field of wp.adjoint[x], for a struct x, or of a struct in that.
    bool is_field_of_adjoint(const syntax::Attribute& attribute) const;
    // The value of an array field of wp.adjoint[x]: the gradient of the array in x.
    Value gradient_of_field(const AssignmentTarget& place);
    // Whether this is an element of wp.adjoint[array].
    static bool is_gradient_element(const AssignmentTarget& place);

private:
    const syntax::Function& tree_;
    const std::size_t own_;
    ir::Function& function_;
    ir::Builder& builder_;
    ValueWriter values_;
    PartAccess parts_;
    Locals& locals_;
    std::map<std::string, Value> struct_parameters_;  // by the name of their adjoint
};

}  // namespace weft::sema
