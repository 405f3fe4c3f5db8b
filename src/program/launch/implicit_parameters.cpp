#include "program/launch/implicit_parameters.h"

#include <algorithm>
#include <cstring>

#include "program/kernel/launch_layout.h"
#include "runtime/bytes.h"
#include "support/error.h"

namespace weft::program {

void point_implicit_parameters(const KernelFacts& kernel, std::byte* block, const std::byte* after,
                               std::span<const ArrayView> returned) {
    const std::size_t own = kernel.own_count();
    for (std::size_t i = 0; i < kernel.implicit_parameters.size(); ++i) {
        const ir::ImplicitParameter& implicit = kernel.implicit_parameters[i];
        std::byte* const to = block + kernel.layout.offsets[own + i];
        const Type type = kernel.parameter_types[own + i];
        std::memset(to, 0, static_cast<std::size_t>(type.size_bytes()));
        if (implicit.of < 0 || implicit.is_for_order() || implicit.kind == ir::ImplicitParameter::Kind::number)
            continue;
        if (implicit.is_returned()) {
            WEFT_CHECK(static_cast<std::size_t>(implicit.of) < returned.size(),
                       "the result of an atomic of the launch is missing");
            std::memcpy(to, &returned[static_cast<std::size_t>(implicit.of)],
                        static_cast<std::size_t>(type.size_bytes()));
            continue;
        }
        const std::byte* from = implicit.kind == ir::ImplicitParameter::Kind::after ? after : block;
        from += kernel.layout.offsets[static_cast<std::size_t>(implicit.of)];
        std::memcpy(to, from, static_cast<std::size_t>(type.size_bytes()));
    }
    // Arrays beside the arguments have no gradient.
    for (const BlockArray& block_array : kernel.arrays)
        if (static_cast<std::size_t>(block_array.parameter) >= own) view_at(block, block_array.offset).grad = nullptr;
}

std::vector<runtime::BufferPtr> make_copies(const KernelFacts& kernel, std::byte* block, runtime::Device& device) {
    struct Copied {
        ArrayView* view;
        Extent extent;
    };
    std::vector<Copied> all;
    const std::size_t own = kernel.own_count();
    for (const BlockArray& block_array : kernel.arrays) {
        const auto parameter = static_cast<std::size_t>(block_array.parameter);
        if (parameter < own) continue;
        const ir::ImplicitParameter& implicit = kernel.implicit_parameters[parameter - own];
        if (implicit.of < 0 || implicit.kind != ir::ImplicitParameter::Kind::copy) continue;
        ArrayView& view = view_at(block, block_array.offset);
        const Extent memory = extent(view, block_array);
        if (memory.begin != memory.end) all.push_back({&view, memory});
    }
    std::sort(all.begin(), all.end(), [](const Copied& a, const Copied& b) { return a.extent.begin < b.extent.begin; });
    std::vector<runtime::BufferPtr> buffers;
    for (std::size_t first = 0; first < all.size();) {
        std::size_t last = first;
        const std::byte* end = all[first].extent.end;
        while (last < all.size() && all[last].extent.begin < end) end = std::max(end, all[last++].extent.end);
        const std::byte* const begin = all[first].extent.begin;
        runtime::BufferPtr buffer = runtime::allocate(end - begin, device);
        runtime::copy_bytes(device, buffer->data, begin, end - begin);
        for (; first < last; ++first)
            all[first].view->data = runtime::moved(all[first].view->data, begin, buffer->data);
        buffers.push_back(std::move(buffer));
    }
    return buffers;
}

}  // namespace weft::program
