// inspect.getsourcelines runs Python's tokenizer over every line, which takes longer than compiling a small kernel.
// Here a scan that knows only strings, brackets and indentation finds the function's end. If it cannot serve (no file,
// or CPython rejects the piece), inspect decides.
#include "frontend/source_text.h"

#include <algorithm>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "frontend/python_text.h"
#include "support/error.h"

namespace weft::frontend {
namespace {

constexpr int kOnlyAst = 0x400;  // ast.PyCF_ONLY_AST

// Scans Python text line by line and knows whether a line starts a new logical line.
class LineScanner {
public:
    bool at_logical_start() const { return depth_ == 0 && !quote_ && !continued_; }

    void scan(std::string_view line) {
        continued_ = false;
        for (std::size_t i = 0; i < line.size(); ++i) {
            const char c = line[i];
            if (quote_) {
                scan_in_string(line, i);
            } else if (c == '#') {
                return;
            } else if (c == '"' || c == '\'') {
                triple_ = line.substr(i, 3) == std::string(3, c);
                quote_ = c;
                if (triple_) i += 2;
            } else if (c == '(' || c == '[' || c == '{') {
                ++depth_;
            } else if (c == ')' || c == ']' || c == '}') {
                --depth_;
            } else if (c == '\\' && i + 1 == line.size()) {
                continued_ = true;
            }
        }
        if (quote_ && !triple_ && !continued_) quote_ = 0;  // not Python: CPython reports the error
    }

private:
    void scan_in_string(std::string_view line, std::size_t& i) {
        if (line[i] == '\\') {
            if (i + 1 == line.size()) continued_ = true;
            ++i;
        } else if (line[i] == quote_ && (!triple_ || line.substr(i, 3) == std::string(3, quote_))) {
            if (triple_) i += 2;
            quote_ = 0;
        }
    }

    int depth_ = 0;
    char quote_ = 0;
    bool triple_ = false;
    bool continued_ = false;
};

int indentation(std::string_view line) {
    int columns = 0;
    for (char c : line) {
        if (c == '\t') {
            columns = (columns / 8 + 1) * 8;
        } else if (c == ' ') {
            ++columns;
        } else {
            break;
        }
    }
    return columns;
}

std::string_view stripped(std::string_view line) {
    const auto first = line.find_first_not_of(" \t\f");
    return first == std::string_view::npos ? std::string_view() : line.substr(first);
}

std::string line_at(nb::handle lines, Py_ssize_t index) {
    std::string line = utf8_text(PyList_GET_ITEM(lines.ptr(), index));
    while (!line.empty() && (line.back() == '\n' || line.back() == '\r')) line.pop_back();
    return line;
}

// From the first decorator (or `def`) to the line before the next statement at its level; empty if there is no `def`.
std::vector<std::string> find_block(nb::handle lines, Py_ssize_t first) {
    std::vector<std::string> block;
    std::size_t kept = 0;  // without the blank lines and comments after the last statement
    LineScanner scanner;
    bool in_body = false;
    int base = 0;
    for (Py_ssize_t i = first; i < PyList_GET_SIZE(lines.ptr()); ++i) {
        block.push_back(line_at(lines, i));
        const std::string& line = block.back();
        const std::string_view text = stripped(line);
        if (scanner.at_logical_start()) {
            if (text.empty() || text[0] == '#') continue;
            if (block.size() == 1) base = indentation(line);
            if (in_body && indentation(line) <= base) break;
            if (text.starts_with("def ") || text.starts_with("def\t") || text.starts_with("async ")) in_body = true;
            if (!in_body && text[0] != '@') return {};
        }
        scanner.scan(line);
        kept = block.size();
    }
    block.resize(kept);
    return in_body ? block : std::vector<std::string>();
}

[[noreturn]] void throw_no_source(nb::handle function, const std::string& path) {
    const std::string name = utf8_text(function.attr("__qualname__"));
    throw UsageError("kernel source of '" + name + "'",
                     "Python has no source text for it (it was defined in " + path +
                         "). help: define it in a file or a notebook cell; code run by exec() can register its text in "
                         "linecache.cache; `python -c` keeps it from Python 3.13 on");
}

// The function's lines according to inspect.
std::pair<std::vector<std::string>, int> inspect_block(nb::handle function, const std::string& path) {
    try {
        nb::object found = nb::module_::import_("inspect").attr("getsourcelines")(function);
        nb::object lines = found[0];
        std::vector<std::string> block;
        for (Py_ssize_t i = 0; i < PyList_GET_SIZE(lines.ptr()); ++i) block.push_back(line_at(lines, i));
        return {std::move(block), nb::cast<int>(found[1])};
    } catch (nb::python_error& error) {
        if (error.matches(PyExc_OSError) || error.matches(PyExc_TypeError)) throw_no_source(function, path);
        if (error.matches(PyExc_SyntaxError)) throw_no_source(function, path);  // the text is not Python
        throw;
    }
}

struct SyntaxFault {
    std::string message;
    int line = 0, column = 0;
};

// The tree of the block, or CPython's error. An indented block is put under an `if`, which keeps its columns.
std::optional<nb::object> parse_block(const std::vector<std::string>& block, const std::string& path, bool wrapped,
                                      SyntaxFault& fault) {
    std::string text = wrapped ? "if 1:\n" : "";
    for (const std::string& line : block) text += line + "\n";
    try {
        nb::object compile = nb::module_::import_("builtins").attr("compile");
        nb::object tree = compile(nb::str(text.c_str(), text.size()), nb::str(path.c_str()), "exec", kOnlyAst, true);
        nb::object body = tree.attr("body");
        return nb::object(wrapped ? body[0].attr("body")[0] : body[0]);
    } catch (nb::python_error& error) {
        if (!error.matches(PyExc_SyntaxError) && !error.matches(PyExc_ValueError)) throw;
        nb::object value = nb::borrow(error.value());
        fault.message = utf8_text(nb::str(nb::getattr(value, "msg", nb::str(value))));
        nb::object line = nb::getattr(value, "lineno", nb::none()), column = nb::getattr(value, "offset", nb::none());
        fault.line = line.is_none() ? 0 : nb::cast<int>(line);
        fault.column = column.is_none() ? 0 : nb::cast<int>(column);
        return std::nullopt;
    }
}

constexpr const char* kLinesAttribute = "__source_lines__";

nb::object lines_of_file(nb::handle function) {
    nb::object linecache = nb::module_::import_("linecache"), path = function.attr("__code__").attr("co_filename");
    linecache.attr("checkcache")(path);
    return linecache.attr("getlines")(path, function.attr("__globals__"));
}

}  // namespace

void keep_lines(nb::handle function) {
    nb::object lines = lines_of_file(function);
    if (PyList_Check(lines.ptr()) && nb::len(lines) > 0) nb::setattr(function, kLinesAttribute, lines);
}

void keep_for_error(SourcePtr source) {
    static SourcePtr kept;
    kept = std::move(source);
}

ParsedFunction parse_function(nb::handle function) {
    nb::object code = function.attr("__code__");
    const std::string path = utf8_text(code.attr("co_filename"));
    const std::string name = nb::str(code.attr("co_name")).c_str();
    int first_line = nb::cast<int>(code.attr("co_firstlineno"));
    if (name == "<lambda>") {
        throw UsageError("kernel(), func()",
                         "a lambda cannot be compiled (" + path + ":" + std::to_string(first_line) +
                             "). help: write it as a function with `def`",
                         ErrorCategory::type);
    }

    nb::object lines = nb::getattr(function, kLinesAttribute, nb::none());
    if (!PyList_Check(lines.ptr())) lines = lines_of_file(function);
    std::vector<std::string> block;
    if (PyList_Check(lines.ptr())) block = find_block(lines, first_line - 1);

    std::optional<nb::object> definition;
    bool wrapped = false;
    SyntaxFault fault;
    const auto parse = [&] {
        wrapped = indentation(block[0]) > 0;
        definition = parse_block(block, path, wrapped, fault);
    };
    if (!block.empty()) parse();
    if (!definition) {
        std::tie(block, first_line) = inspect_block(function, path);
        if (first_line == 0) first_line = 1;
        if (block.empty()) throw_no_source(function, path);
        parse();
    }

    auto source = std::make_shared<Source>();
    source->path = path;
    source->first_line = first_line;
    source->lines = std::move(block);
    const int line_offset = first_line - 1 - (wrapped ? 1 : 0);
    if (!definition) {
        keep_for_error(source);
        const int column = std::max(fault.column - 1, 0);
        throw CompileError(Span{source.get(), fault.line + line_offset, column, column + 1}, fault.message, {},
                           ErrorCategory::syntax);
    }
    const std::string kind = nb::str(definition->type().attr("__name__")).c_str();
    if (kind == "AsyncFunctionDef") {
        keep_for_error(source);
        const int line = nb::cast<int>(definition->attr("lineno")) + line_offset;
        throw CompileError(Span{source.get(), line, 0, 0}, "an async function cannot be compiled",
                           {{Note::Kind::help, "write it as a plain function, with `def` alone", {}}},
                           ErrorCategory::syntax);
    }
    if (kind != "FunctionDef" || name != nb::str(definition->attr("name")).c_str()) {
        throw UsageError("kernel source of '" + name + "'", path + " has changed since it was imported: line " +
                                                                std::to_string(first_line) + " does not define '" +
                                                                name + "'. help: import the module again");
    }
    return {std::move(source), std::move(*definition), line_offset};
}

}  // namespace weft::frontend
