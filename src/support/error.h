// The three kinds of error of the whole system. Each states the expectation, the finding and a remedy.
//
//   CompileError   the kernel is wrong; points at the user's line
//   UsageError     a call of the API is wrong; names the call
//   InternalError  Weft is wrong; asks for a report
//
// The bindings turn each into a Python exception class of the same name that also derives from the builtin exception
// that a caller would catch (`category`).
#pragma once

#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "support/source.h"

namespace weft {

// The Python builtin exception from which the error also derives.
enum class ErrorCategory {
    type,
    value,
    runtime,
    index,
    attribute,
    name,
    syntax,
    memory,
    key,
    overflow,
    zero_division,
    assertion,
    arithmetic,
    lookup,
    not_implemented,
};
// The category of Python's exception of this name; Exception counts as RuntimeError.
std::optional<ErrorCategory> category_named(std::string_view exception);

class Error : public std::runtime_error {
public:
    Error(ErrorCategory category, const std::string& text) : std::runtime_error(text), category(category) {}
    ErrorCategory category;
};

// A note or a help line below the caret: "note: ..." states facts, "help: ..." says how to go on.
struct Note {
    enum class Kind { note, help } kind = Kind::note;
    std::string text;
    Span span;  // optional: printed as a second place with its own source line
};

// The text of a CompileError is "path:line:column: error: message", the source line, a caret, then the notes.
class CompileError : public Error {
public:
    CompileError(Span span, std::string message, std::vector<Note> notes = {},
                 ErrorCategory category = ErrorCategory::type);
    Span span;
    std::string message;
    std::vector<Note> notes;
};

class UsageError : public Error {
public:
    // `api` is the name of the call as the user writes it: "launch()", "array()".
    UsageError(std::string_view api, const std::string& message, ErrorCategory category = ErrorCategory::runtime);
    // A call that failed at a place in a kernel: shown like a CompileError, after the name of the call.
    UsageError(std::string_view api, Span span, const std::string& message, const std::vector<Note>& notes,
               ErrorCategory category);
    Span span;
};

class InternalError : public Error {
public:
    explicit InternalError(const std::string& message);
};

// Throws InternalError if one of Weft's own invariants does not hold.
#define WEFT_CHECK(condition, message)                                                             \
    do {                                                                                           \
        if (!(condition)) throw ::weft::InternalError(std::string(message) + " [" #condition "]"); \
    } while (false)

// "a", "a or b", "a, b or c": for lists of candidates in messages.
std::string join_or(const std::vector<std::string>& words);

// The up to `most` candidates nearest to `word` by edit distance, nearest first; distant ones are left out.
std::vector<std::string> nearest(std::string_view word, const std::vector<std::string>& candidates,
                                 std::size_t most = 3);

}  // namespace weft
