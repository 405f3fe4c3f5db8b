#include "types/layout.h"

namespace weft {

ArgumentLayout argument_layout(std::span<const Type> parameters) {
    ArgumentLayout layout;
    layout.offsets.reserve(parameters.size());
    for (Type type : parameters) {
        const std::int64_t alignment = type.alignment();
        layout.size_bytes = (layout.size_bytes + alignment - 1) / alignment * alignment;
        layout.offsets.push_back(layout.size_bytes);
        layout.size_bytes += type.size_bytes();
    }
    return layout;
}

}  // namespace weft
