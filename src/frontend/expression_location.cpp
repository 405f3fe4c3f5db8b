#include "frontend/expression_location.h"

namespace weft::frontend {

std::string ExpressionLocation::text(const Source& source) const {
    std::string result;
    for (int number = line; number <= end_line; ++number) {
        const std::string& whole = source.line(number);
        const auto first = number == line ? static_cast<std::size_t>(begin) : 0;
        const auto last = number == end_line ? static_cast<std::size_t>(end) : whole.size();
        result += whole.substr(first, last - first) + (number == end_line ? "" : "\n");
    }
    return result;
}

}  // namespace weft::frontend
