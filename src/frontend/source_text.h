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

// Throws UsageError where Python has no source for the function, CompileError where it does not parse.
ParsedFunction parse_function(nb::handle python_function);

// Keeps the lines of the function's file with it, as they are now: the file may change, or be gone, when the function
// is parsed.
void keep_lines(nb::handle python_function);

// Keeps a source that nobody else will hold alive until the next call: an error about to be thrown points into it, and
// is turned into a Python exception, which needs no source, before the GIL is given up.
void keep_for_error(SourcePtr source);

}  // namespace weft::frontend
