// Places of expressions in the text of a function.
#pragma once

#include <string>

#include "support/source.h"

namespace weft::frontend {

// The location of an expression in the text: absolute lines, byte offsets in them. Kept instead of the ast node, which
// would keep the whole tree alive for the few expressions that Environment::evaluate is asked for.
struct ExpressionLocation {
    int line, begin, end_line, end;

    std::string text(const Source& source) const;
};

}  // namespace weft::frontend
