// Copying and filling. Both are one thing: a loop nest over a destination and a source with strides, where a fill is a
// source whose strides are all 0. The nest is simplified first (axes that lie end to end in both become one, the axis
// with the smallest strides goes innermost), so that nearly every copy ends as memcpy or as one tight loop.
#include <algorithm>
#include <cstring>

#include "runtime/array.h"
#include "runtime/cpu/pool.h"
#include "support/error.h"

namespace weft::runtime {
namespace {

constexpr std::int64_t kParallelBytes = 1 << 20;  // below, one thread is quicker
constexpr std::int64_t kGrainBytes = 1 << 18;
constexpr std::int64_t kTile = 32;  // elements along each side of a transposed block

struct Axis {
    std::int64_t count;
    std::int64_t to;  // strides in bytes
    std::int64_t from;
};

struct Nest {
    char* to;
    const char* from;
    std::int64_t element;  // bytes
    int ndim = 0;
    Axis axes[kMaxDims];  // outermost first
};

std::int64_t magnitude(std::int64_t stride) { return stride < 0 ? -stride : stride; }

Nest simplified(const Array& destination, const char* from, const std::int64_t* from_strides) {
    Nest nest{static_cast<char*>(destination.view.data), from, destination.dtype.size_bytes()};
    Axis axes[kMaxDims];
    int n = 0;
    for (int i = 0; i < destination.ndim; ++i) {
        if (destination.view.shape[i] == 1) continue;
        axes[n++] = {destination.view.shape[i], destination.view.strides[i], from_strides[i]};
    }
    // Writes in the order of memory.
    std::stable_sort(axes, axes + n, [](const Axis& a, const Axis& b) { return magnitude(a.to) > magnitude(b.to); });
    for (int i = 0; i < n; ++i) {
        if (nest.ndim > 0) {
            Axis& outer = nest.axes[nest.ndim - 1];
            if (outer.to == axes[i].count * axes[i].to && outer.from == axes[i].count * axes[i].from) {
                outer = {outer.count * axes[i].count, axes[i].to, axes[i].from};
                continue;
            }
        }
        nest.axes[nest.ndim++] = axes[i];
    }
    if (nest.ndim == 0) nest.axes[nest.ndim++] = {1, nest.element, nest.element};
    return nest;
}

// One element, its size known to the compiler where it is a usual one.
template <int kSize>
void copy_element(char* to, const char* from, std::int64_t size) {
    std::memcpy(to, from, kSize > 0 ? static_cast<std::size_t>(kSize) : static_cast<std::size_t>(size));
}

template <int kSize>
void copy_line(char* to, const char* from, Axis axis, std::int64_t size) {
    for (std::int64_t i = 0; i < axis.count; ++i) {
        copy_element<kSize>(to, from, size);
        to += axis.to;
        from += axis.from;
    }
}

// A line of equal elements without gaps: the written part is doubled until it covers the line.
void fill_line(char* to, const char* from, std::int64_t count, std::int64_t size) {
    std::int64_t total = count * size;
    if (std::all_of(from, from + size, [&](char byte) { return byte == *from; })) {
        std::memset(to, static_cast<unsigned char>(*from), static_cast<std::size_t>(total));
        return;
    }
    std::memcpy(to, from, static_cast<std::size_t>(size));
    // Doubling inside 4 KiB keeps the source in the first-level cache.
    std::int64_t chunk = size;
    while (chunk < 4096 && 2 * chunk <= total) {
        std::memcpy(to + chunk, to, static_cast<std::size_t>(chunk));
        chunk *= 2;
    }
    for (std::int64_t done = chunk; done < total; done += chunk) {
        std::memcpy(to + done, to, static_cast<std::size_t>(std::min(chunk, total - done)));
    }
}

void run_line(char* to, const char* from, Axis axis, std::int64_t size) {
    if (axis.to == size && axis.from == size) {
        std::memcpy(to, from, static_cast<std::size_t>(axis.count * size));
        return;
    }
    if (axis.to == size && axis.from == 0) {
        fill_line(to, from, axis.count, size);
        return;
    }
    switch (size) {
        case 1:
            return copy_line<1>(to, from, axis, size);
        case 2:
            return copy_line<2>(to, from, axis, size);
        case 4:
            return copy_line<4>(to, from, axis, size);
        case 8:
            return copy_line<8>(to, from, axis, size);
        case 12:
            return copy_line<12>(to, from, axis, size);
        case 16:
            return copy_line<16>(to, from, axis, size);
        case 24:
            return copy_line<24>(to, from, axis, size);
        case 36:
            return copy_line<36>(to, from, axis, size);
        case 64:
            return copy_line<64>(to, from, axis, size);
        default:
            return copy_line<0>(to, from, axis, size);
    }
}

// Two axes of which the source runs fastest along the outer one (a transpose): in square blocks, so that each cache
// line that is read is used up before it is dropped.
void run_tiled(char* to, const char* from, Axis outer, Axis inner, std::int64_t size) {
    for (std::int64_t i = 0; i < outer.count; i += kTile) {
        for (std::int64_t j = 0; j < inner.count; j += kTile) {
            std::int64_t rows = std::min(kTile, outer.count - i);
            Axis part{std::min(kTile, inner.count - j), inner.to, inner.from};
            for (std::int64_t row = 0; row < rows; ++row) {
                run_line(to + (i + row) * outer.to + j * inner.to, from + (i + row) * outer.from + j * inner.from, part,
                         size);
            }
        }
    }
}

void run_axes(char* to, const char* from, const Axis* axes, int ndim, std::int64_t size) {
    if (ndim == 1) return run_line(to, from, axes[0], size);
    if (ndim == 2 && magnitude(axes[0].from) < magnitude(axes[1].from)) {
        return run_tiled(to, from, axes[0], axes[1], size);
    }
    for (std::int64_t i = 0; i < axes[0].count; ++i) {
        run_axes(to + i * axes[0].to, from + i * axes[0].from, axes + 1, ndim - 1, size);
    }
}

// A nest and the axis along which threads share it.
struct Split {
    const Nest& nest;
    int axis;
};

void run_part(const Split& split, std::int64_t begin, std::int64_t end) {
    const Nest& nest = split.nest;
    Axis axes[kMaxDims];
    std::copy(nest.axes, nest.axes + nest.ndim, axes);
    Axis& shared = axes[split.axis];
    shared.count = end - begin;
    run_axes(nest.to + begin * shared.to, nest.from + begin * shared.from, axes, nest.ndim, nest.element);
}

void run(const Nest& nest) {
    std::int64_t total = nest.element;
    int longest = 0;
    for (int i = 0; i < nest.ndim; ++i) {
        total *= nest.axes[i].count;
        if (nest.axes[i].count > nest.axes[longest].count) longest = i;
    }
    // The outermost axis makes the longest runs of memory, unless it is too short to be shared.
    constexpr std::int64_t kEnough = 64;
    Split split{nest, nest.axes[0].count >= kEnough ? 0 : longest};
    std::int64_t count = nest.axes[split.axis].count;
    if (total < kParallelBytes) return run_part(split, 0, count);
    std::int64_t grain = std::max<std::int64_t>(1, kGrainBytes / (total / count));
    parallel_range(
        count, grain,
        [](void* state, std::int64_t begin, std::int64_t end) { run_part(*static_cast<Split*>(state), begin, end); },
        &split);
}

bool same_view(const Array& a, const Array& b) {
    return a.view.data == b.view.data && std::equal(a.strides().begin(), a.strides().end(), b.strides().begin());
}

// copy() of what differs and is not empty.
void move_elements(const Array& destination, const Array& source) {
    if (overlap(destination, source)) {
        if (destination.is_contiguous() && source.is_contiguous()) {
            std::memmove(destination.view.data, source.view.data, static_cast<std::size_t>(source.size_bytes()));
            return;
        }
        Array temporary = empty(source.dtype, source.shape(), *source.device);
        move_elements(temporary, source);
        run(simplified(destination, static_cast<const char*>(temporary.view.data), temporary.view.strides));
        return;
    }
    run(simplified(destination, static_cast<const char*>(source.view.data), source.view.strides));
}

}  // namespace

bool overlap(const Array& a, const Array& b) {
    auto [a_low, a_high] = a.extent();
    auto [b_low, b_high] = b.extent();
    return a_low < b_high && b_low < a_high;
}

void copy(const Array& destination, const Array& source) {
    if (destination.dtype.size_bytes() != source.dtype.size_bytes() || destination.ndim != source.ndim ||
        !std::equal(destination.shape().begin(), destination.shape().end(), source.shape().begin())) {
        throw UsageError("copy()",
                         "source and destination must have the same shape and dtype: the source is " +
                             source.dtype.python_name() + " " + shape_text(source.shape()) + ", the destination " +
                             destination.dtype.python_name() + " " + shape_text(destination.shape()),
                         ErrorCategory::value);
    }
    if (destination.size() == 0 || same_view(destination, source)) return;
    move_elements(destination, source);
    // What the copied structs point to lives as long as the copies.
    if (source.buffer && destination.buffer) {
        destination.buffer->references.add_all(source.buffer->references, *destination.buffer);
    }
}

void fill(const Array& array, const void* element) {
    if (array.size() == 0) return;
    const std::int64_t repeat[kMaxDims] = {0, 0, 0, 0};
    run(simplified(array, static_cast<const char*>(element), repeat));
}

void zero(const Array& array) {
    std::vector<char> element(static_cast<std::size_t>(array.dtype.size_bytes()), 0);
    fill(array, element.data());
}

}  // namespace weft::runtime
