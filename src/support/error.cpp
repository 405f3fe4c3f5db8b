#include "support/error.h"

#include <algorithm>
#include <cctype>

namespace weft {
namespace {

bool continues_character(char byte) { return (static_cast<unsigned char>(byte) & 0xC0) == 0x80; }

// Appends the line of `span` and a caret below it. Four spaces replace the line's own indentation, so that deeply
// nested code stays readable. Columns count characters while the text is UTF-8, so the caret is placed character by
// character; tabs are repeated to keep it aligned.
void append_excerpt(std::string& out, const Span& span) {
    const std::string& text = span.source->line(span.line);
    std::size_t indent = 0;
    while (indent < text.size() && (text[indent] == ' ' || text[indent] == '\t')) ++indent;
    std::size_t end = text.size();
    while (end > indent && std::isspace(static_cast<unsigned char>(text[end - 1]))) --end;
    if (indent == end) return;

    std::string padding = "    ";
    int column = static_cast<int>(indent);
    for (std::size_t at = indent; at < end && column < span.column; ++at) {
        if (continues_character(text[at])) continue;
        padding += text[at] == '\t' ? '\t' : ' ';
        ++column;
    }
    int characters = static_cast<int>(indent);
    for (std::size_t at = indent; at < end; ++at) characters += !continues_character(text[at]);
    const int last = std::min(span.end_column, characters);

    out += "\n    ";
    out.append(text, indent, end - indent);
    out += '\n';
    out += padding;
    out += '^';
    if (last > span.column + 1) out.append(static_cast<std::size_t>(last - span.column - 1), '~');
}

std::string describe(const Span& span, const std::string& message, const std::vector<Note>& notes) {
    std::string out;
    if (span) out += span.location() + ": ";
    out += "error: " + message;
    if (span) append_excerpt(out, span);
    for (const Note& note : notes) {
        out += '\n';
        if (note.span) out += note.span.location() + ": ";
        out += note.kind == Note::Kind::note ? "note: " : "help: ";
        out += note.text;
        if (note.span) append_excerpt(out, note.span);
    }
    return out;
}

// Edit distance with insertion, deletion, substitution and transposition of neighbours (optimal string alignment, the
// restricted Damerau-Levenshtein distance); a change of case costs nothing.
std::size_t edit_distance(std::string_view a, std::string_view b) {
    const auto same = [](char x, char y) {
        return std::tolower(static_cast<unsigned char>(x)) == std::tolower(static_cast<unsigned char>(y));
    };
    const std::size_t width = b.size() + 1;
    std::vector<std::size_t> before_last(width), last(width), current(width);
    for (std::size_t j = 0; j < width; ++j) last[j] = j;
    for (std::size_t i = 1; i <= a.size(); ++i) {
        current[0] = i;
        for (std::size_t j = 1; j < width; ++j) {
            const std::size_t substitution = last[j - 1] + (same(a[i - 1], b[j - 1]) ? 0 : 1);
            current[j] = std::min({last[j] + 1, current[j - 1] + 1, substitution});
            if (i > 1 && j > 1 && same(a[i - 1], b[j - 2]) && same(a[i - 2], b[j - 1]))
                current[j] = std::min(current[j], before_last[j - 2] + 1);
        }
        std::swap(before_last, last);
        std::swap(last, current);
    }
    return last[b.size()];
}

}  // namespace

std::optional<ErrorCategory> category_named(std::string_view exception) {
    static constexpr std::pair<std::string_view, ErrorCategory> kNames[] = {
        {"TypeError", ErrorCategory::type},           {"ValueError", ErrorCategory::value},
        {"RuntimeError", ErrorCategory::runtime},     {"Exception", ErrorCategory::runtime},
        {"IndexError", ErrorCategory::index},         {"AttributeError", ErrorCategory::attribute},
        {"NameError", ErrorCategory::name},           {"SyntaxError", ErrorCategory::syntax},
        {"MemoryError", ErrorCategory::memory},       {"KeyError", ErrorCategory::key},
        {"OverflowError", ErrorCategory::overflow},   {"ZeroDivisionError", ErrorCategory::zero_division},
        {"AssertionError", ErrorCategory::assertion}, {"ArithmeticError", ErrorCategory::arithmetic},
        {"LookupError", ErrorCategory::lookup},       {"NotImplementedError", ErrorCategory::not_implemented},
    };
    for (const auto& [name, category] : kNames)
        if (name == exception) return category;
    return std::nullopt;
}

CompileError::CompileError(Span span, std::string message, std::vector<Note> notes, ErrorCategory category)
    : Error(category, describe(span, message, notes)),
      span(span),
      message(std::move(message)),
      notes(std::move(notes)) {}

UsageError::UsageError(std::string_view api, const std::string& message, ErrorCategory category)
    : Error(category, std::string(api) + ": " + message) {}

UsageError::UsageError(std::string_view api, Span span, const std::string& message, const std::vector<Note>& notes,
                       ErrorCategory category)
    : Error(category, std::string(api) + ": " + describe(span, message, notes)), span(span) {}

InternalError::InternalError(const std::string& message)
    : Error(ErrorCategory::runtime, "internal error: " + message +
                                        "\nhelp: this is a mistake in Weft, not in your program; please report it "
                                        "with the kernel that caused it") {}

std::string join_or(const std::vector<std::string>& words) {
    std::string out;
    for (std::size_t i = 0; i < words.size(); ++i) {
        if (i > 0) out += i + 1 == words.size() ? " or " : ", ";
        out += words[i];
    }
    return out;
}

std::vector<std::string> nearest(std::string_view word, const std::vector<std::string>& candidates, std::size_t most) {
    // A third of the word may differ: "nrmalize" finds normalize, "x" does not find "y".
    const std::size_t limit = std::max<std::size_t>(1, (word.size() + 1) / 3);
    struct Scored {
        std::size_t distance;
        const std::string* candidate;
    };
    std::vector<Scored> scored;
    for (const std::string& candidate : candidates) {
        const std::size_t lengths =
            candidate.size() > word.size() ? candidate.size() - word.size() : word.size() - candidate.size();
        if (lengths > limit || candidate == word) continue;
        const std::size_t distance = edit_distance(word, candidate);
        // At least one character must be right.
        if (distance > limit || distance >= std::max(word.size(), candidate.size())) continue;
        scored.push_back({distance, &candidate});
    }
    std::stable_sort(scored.begin(), scored.end(),
                     [](const Scored& a, const Scored& b) { return a.distance < b.distance; });
    std::vector<std::string> out;
    for (const Scored& s : scored) {
        if (out.size() == most) break;
        if (std::find(out.begin(), out.end(), *s.candidate) == out.end()) out.push_back(*s.candidate);
    }
    return out;
}

}  // namespace weft
