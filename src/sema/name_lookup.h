// The meaning of names without writing IR: locals first, as in Python, then the names of the environment. Errors of
// Python itself (a property that raises) are shown at the place of the name.
#pragma once

#include <optional>
#include <set>
#include <string>
#include <vector>

#include "sema/environment.h"
#include "sema/locals.h"
#include "sema/value.h"
#include "sema/walk.h"
#include "syntax/tree.h"

namespace weft::sema {

class NameLookup {
public:
    NameLookup(const FunctionSource& source, Locals& locals) : environment_(source.environment), locals_(locals) {}

    // A name that is no local.
    Binding look_up(const std::string& name, Span span);
    Binding look_up_attribute(const Binding& object, const std::string& name, Span span);
    Binding look_up_method(Type type, const std::string& name, Span span);
    // The meaning of a name, or of an attribute of a module, object or type; empty for all else.
    std::optional<Binding> static_binding(const syntax::Expression& expression);
    bool is_global_number(const syntax::Expression& expression);
    // Finds the names that calls assign through their arguments, and those that lambdas change.
    InoutNames inout_finder();
    // The value that Python gives the expression when the kernel is built.
    Binding evaluate(const syntax::Expression& expression);

private:
    void inout_names(const syntax::Call& call, std::set<std::string>& names);
    void names_changed_by(const syntax::Lambda& lambda, std::set<std::string>& names);
    void names_changed_by(const Value& value, std::set<std::string>& names);
    std::vector<Environment::Local> constant_locals(const syntax::Expression& expression) const;

    const std::shared_ptr<Environment>& environment_;
    Locals& locals_;
};

}  // namespace weft::sema
