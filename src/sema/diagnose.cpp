#include <map>

#include "sema/analyzer.h"

namespace weft::sema {

void fail(Span span, std::string message, std::vector<Note> notes, ErrorCategory category) {
    throw CompileError(span, std::move(message), std::move(notes), category);
}

Note note(std::string text, Span span) { return Note{Note::Kind::note, std::move(text), span}; }

Note help(std::string text) { return Note{Note::Kind::help, std::move(text), {}}; }

std::vector<Note> did_you_mean(std::string_view word, const std::vector<std::string>& candidates) {
    std::vector<std::string> near = nearest(word, candidates);
    if (near.empty()) return {};
    for (std::string& candidate : near) candidate = "'" + candidate + "'";
    return {help("did you mean " + join_or(near) + "?")};
}

std::vector<Note> weft_counterpart(std::string_view spelled) {
    // Names of NumPy and of Python's math module that are not ours.
    static const std::map<std::string_view, std::string_view> others = {
        {"absolute", "abs"},    {"fabs", "abs"},      {"arccos", "acos"},     {"arcsin", "asin"},
        {"arctan", "atan"},     {"arctan2", "atan2"}, {"power", "pow"},       {"maximum", "max"},
        {"minimum", "min"},     {"fmax", "max"},      {"fmin", "min"},        {"norm", "length"},
        {"concatenate", ""},    {"mod", "mod"},       {"clip", "clamp"},      {"inv", "inverse"},
        {"det", "determinant"}, {"dist", "length"},   {"deg2rad", "radians"}, {"rad2deg", "degrees"},
    };
    std::string name(spelled);
    if (const auto found = others.find(spelled); found != others.end()) name = found->second;
    if (name.empty() || builtins::overloads(name).empty()) return {};
    return {help("the built-in function is wp." + name)};
}

}  // namespace weft::sema
