// Copies the ast of one function into syntax::Function.
#pragma once

#include <nanobind/nanobind.h>

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "frontend/source_text.h"
#include "syntax/tree.h"

namespace weft::frontend {

// The place of an expression in the text: absolute lines, byte offsets in them. Kept instead of the ast node, which
// would keep the whole tree alive for the few expressions that Environment::evaluate is asked for.
struct ExpressionLocation {
    int line, begin, end_line, end;

    std::string text(const Source& source) const;
};

struct ReadTree {
    std::shared_ptr<const syntax::Function> function;
    std::vector<ExpressionLocation> places;  // by the expressions' ids
};

// `is_adjoint`: for a gradient (@wp.func_grad), whether an expression of Python means wp.adjoint. wp.adjoint[x] is then
// read as one name, "adjoint[x]": a local like any other.
using IsAdjoint = std::function<bool(const syntax::Expression& expression)>;
ReadTree read_tree(const ParsedFunction& parsed, IsAdjoint is_adjoint = {});

}  // namespace weft::frontend
