// The failed checks of debug builds, as Python exceptions at the user's line.
#pragma once

#include <string>
#include <vector>

#include "program/kernel/compiled.h"
#include "support/error.h"

namespace weft::program {

// Throws the UsageError for the fault that a launch with the argument block `block` reported: the line with a caret,
// the kernel, the thread, and the calls that led there.
[[noreturn]] void throw_fault(const CompiledKernel& kernel, const Fault& fault, const std::byte* block);

// The writer of the first NaN or infinity: its line, its thread, and the calls that led there.
struct Writer {
    Span span;
    std::string thread;
    std::vector<Note> notes;
};
Writer writer(const CompiledKernel& kernel, const Fault& not_finite);

// For FaultKind::no_object: a description of the id, which its function calls `name`.
std::string no_object_text(const Fault& fault, const std::string& name);

// The array or value that an index was out of range for, as its function calls it; "" if it has no name.
std::string indexed_name(const CompiledKernel& kernel, const Fault& fault);

}  // namespace weft::program
