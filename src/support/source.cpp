#include "support/source.h"

namespace weft {

const std::string& Source::line(int number) const {
    static const std::string none;
    const long index = static_cast<long>(number) - first_line;
    if (index < 0 || index >= static_cast<long>(lines.size())) return none;
    return lines[static_cast<std::size_t>(index)];
}

std::string Span::place() const {
    if (!source) return "<unknown place>";
    return source->path + ":" + std::to_string(line) + ":" + std::to_string(column + 1);
}

}  // namespace weft
