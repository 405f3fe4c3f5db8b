// The arguments of a call of a @wp.func, matched to the parameters of one of its definitions. Writes no IR.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "sema/assignment_target.h"
#include "sema/environment.h"
#include "sema/module_state.h"
#include "sema/value.h"
#include "support/error.h"
#include "types/pattern.h"

namespace weft::sema {

struct BoundCall {
    std::shared_ptr<const FunctionSource> callee;
    std::vector<Value> values;
    std::vector<Span> places;
    std::vector<std::shared_ptr<const AssignmentTarget>>
        references;  // for the parameters of callee->references, in order
    // For each parameter the place of the tile passed for it; null for a temporary one.
    std::vector<std::shared_ptr<const AssignmentTarget>> tiles;
    int distance = 0;  // summed over the parameters; 0 if all fit exactly
};

// Throws CompileError if they do not fit. Typed values come first, so that literals can take the types that these give
// to type variables.
BoundCall bind_arguments(const std::shared_ptr<const FunctionSource>& callee, const std::vector<Actual>& arguments,
                         Span span);
// Binds the arguments to the definition whose parameter types fit them best.
BoundCall choose_overload(ModuleState& module, const std::shared_ptr<const FunctionSource>& callee,
                          const std::vector<Actual>& arguments, Span span);
// "f(x: float32, n = ...)".
std::string parameter_list(const FunctionSource& source);
void reject_unusual_parameters(const syntax::Function& tree);
// The argument for each parameter; null for one that is left out.
std::vector<const Actual*> match_parameters(const syntax::Function& callee, const std::vector<Actual>& arguments,
                                            const Note& signature);
// The value in the type of a parameter with this annotation. Messages call it `what`.
Value accept(const Value& value, const TypePattern& annotation, TypeVariables& variables, Span span,
             const std::string& what);
// Whether the value is a lambda or a function within the function, or has one among its elements.
bool holds_closure(const Value& value);

}  // namespace weft::sema
