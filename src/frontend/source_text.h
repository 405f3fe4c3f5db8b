// The lines of a Python function, parsed by CPython.
#pragma once

#include <nanobind/nanobind.h>

#include <memory>

#include "support/source.h"

namespace weft::frontend {

namespace nb = nanobind;

struct ParsedFunction {
    std::shared_ptr<Source> source;
    nb::object definition;  // the ast.FunctionDef
    int line_offset = 0;    // absolute line = lineno of a node + line_offset; columns are those of the file
};

// Throws UsageError if Python has no source for the function, CompileError if it does not parse.
ParsedFunction parse_function(nb::handle python_function);

// Stores the present lines of the file with the function: the file may have changed, or be gone, when the function is
// parsed.
void keep_lines(nb::handle python_function);

// Keeps the source alive until the next call, for an error that is about to be thrown: it points into the source, and
// becomes a Python exception, which needs no source, before the GIL is released.
void keep_for_error(SourcePtr source);

}  // namespace weft::frontend
