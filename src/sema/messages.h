// Errors, their help lines and suggestions.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "support/error.h"
#include "types/type.h"

namespace weft::sema {

// Throws the CompileError. `help` and `note` make the lines below the caret.
[[noreturn]] void fail(Span span, std::string message, std::vector<Note> notes = {},
                       ErrorCategory category = ErrorCategory::type);
Note note(std::string text, Span span = {});
Note help(std::string text);
// "use wp.sin" for math.sin, np.sin, np.arcsin and the like, by the last part of the name; empty if there is no
// counterpart.
std::vector<Note> weft_counterpart(std::string_view spelled);
// The replacement for an operator that does not exist for these types: "wp.quat_rotate(q, v) rotates ..."; "" if there
// is none.
std::string how_else(std::string_view sign, Type a, Type b, bool has_literal);
// "did you mean 'x' or 'y'?" as a help line; empty if no candidate is near.
std::vector<Note> did_you_mean(std::string_view word, const std::vector<std::string>& candidates);

}  // namespace weft::sema
