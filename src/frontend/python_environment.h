// Resolves names of a Python function in its closure, globals and Python's builtins, when asked.
#pragma once

#include <nanobind/nanobind.h>

#include <map>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "frontend/expression_location.h"
#include "sema/environment.h"

namespace weft::frontend {

namespace nb = nanobind;

// Reads a function that is an attribute of a struct, whose first parameter is passed by reference if it is self. Null
// if the object is no function in Python.
using ReadMethod = std::shared_ptr<const sema::FunctionSource> (*)(nb::handle object, bool takes_self);

class PythonEnvironment final : public sema::Environment {
public:
    PythonEnvironment(nb::object function, SourcePtr source, std::vector<ExpressionLocation> locations,
                      ReadMethod read_method);
    ~PythonEnvironment() override;

    void go_on() override;
    sema::Binding lookup(std::string_view name) override;
    sema::Binding attribute(const sema::Binding& object, std::string_view name) override;
    std::optional<sema::Construction> construction(Type type) override;
    std::string module_with_operator(Type type, std::string_view name) override;
    sema::Binding method(Type type, std::string_view name) override;
    bool is_derived(Type type, Type base) override;
    sema::Binding evaluate(int expression_id, const std::vector<Local>& constants) override;
    std::vector<std::string> names() override;
    std::vector<std::string> attribute_names(const sema::Binding& object) override;
    std::shared_ptr<sema::NameWatch> watch() override;

    // The value of Python text in the function's globals and closure; passes on Python's exception.
    nb::object evaluate_text(const std::string& text, const std::vector<Local>& constants = {});
    // Evaluates each wp.static(...) of the function whose names are all known to Python already. The results are kept,
    // as the names may have other values at the first launch.
    void evaluate_statics(const syntax::Function& tree);

private:
    sema::Binding find_name(std::string_view name);
    nb::object closure_value(std::size_t index) const;  // invalid if the variable is not set yet

    nb::object function_;
    std::vector<std::string> closure_names_;
    SourcePtr source_;
    std::vector<ExpressionLocation> locations_;
    ReadMethod read_method_;
    std::set<std::string, std::less<>> constants_;  // names that lookup() gave as constants
    // Modules, and those of their attributes that attribute() gave as constants.
    std::map<PyObject*, std::pair<nb::object, std::set<std::string, std::less<>>>> constants_of_modules_;
    std::map<std::string, sema::Binding> evaluated_;  // by expression and the constants that it uses
};

}  // namespace weft::frontend
