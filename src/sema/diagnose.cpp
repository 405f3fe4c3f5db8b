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

}  // namespace weft::sema
