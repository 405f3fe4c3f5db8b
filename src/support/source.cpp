#include "support/source.h"

namespace weft {

const std::string& Source::line(int number) const {
    static const std::string none;
    const long index = static_cast<long>(number) - first_line;
    if (index < 0 || index >= static_cast<long>(lines.size())) return none;
    return lines[static_cast<std::size_t>(index)];
}

SourcePtr snippet_source(const std::string& name, const std::string& text) {
    auto source = std::make_shared<Source>();
    source->path = "<C++ of '" + name + "'>";
    for (std::size_t begin = 0;;) {
        const std::size_t end = text.find('\n', begin);
        source->lines.push_back(text.substr(begin, end - begin));
        if (end == std::string::npos) return source;
        begin = end + 1;
    }
}

std::string Span::location() const {
    if (!source) return "<unknown place>";
    return source->path + ":" + std::to_string(line) + ":" + std::to_string(column + 1);
}

}  // namespace weft
