// The place in a source at which a piece of a kernel was written. Every node of the syntax tree, every IR operation and
// every diagnostic carries a Span. So an error found in any room can point at the user's own line.
#pragma once

#include <memory>
#include <string>
#include <vector>

namespace weft {

// The text of one Python function, as CPython gave it. `lines[0]` is line number `first_line` of `path`.
struct Source {
    std::string path;
    int first_line = 1;
    std::vector<std::string> lines;

    // The text of an absolute line number, or "" if the line is outside the function.
    const std::string& line(int number) const;
};

// A place in a source: absolute line, columns counted from 0 in characters. The Source outlives the Span: the syntax
// tree and the IR module that hold spans also hold their sources. A null source means that no place is known.
struct Span {
    const Source* source = nullptr;
    int line = 0;
    int column = 0;
    int end_column = 0;

    explicit operator bool() const { return source != nullptr; }
    // "path:line:column", the column counted from 1 as editors do.
    std::string location() const;
};

using SourcePtr = std::shared_ptr<const Source>;

// The C++ of a function as a source of its own, called "<C++ of 'name'>".
SourcePtr snippet_source(const std::string& name, const std::string& text);

}  // namespace weft
