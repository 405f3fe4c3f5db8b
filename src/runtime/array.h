// Arrays: a typed, strided view of a reference-counted buffer on a device. Copying an Array shares the memory, as
// slices do; clone() copies it (array_copies.h). All sizes, shapes and strides are 64 bit.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "runtime/buffer.h"
#include "types/layout.h"
#include "types/type.h"

namespace weft::runtime {

using Shape = std::vector<std::int64_t>;

struct Array {
    Type dtype;  // of the elements
    int ndim = 1;
    ArrayView view;  // data, shape, strides; `grad` mirrors the gradient's data
    BufferPtr buffer;
    Device* device = nullptr;

    std::int64_t size() const;  // number of elements
    std::int64_t longest_extent() const;
    bool is_contiguous() const;       // C order, no gaps
    std::int64_t size_bytes() const;  // size() * element size
    std::span<const std::int64_t> shape() const { return {view.shape, static_cast<std::size_t>(ndim)}; }
    std::span<const std::int64_t> strides() const { return {view.strides, static_cast<std::size_t>(ndim)}; }
    // Lowest and one past the highest byte that elements occupy; equal for an empty array.
    std::pair<const std::byte*, const std::byte*> extent() const;
    std::int64_t offset() const {  // of the first element in the buffer, in bytes
        return static_cast<std::byte*>(view.data) - static_cast<std::byte*>(buffer->data);
    }
    std::uintptr_t address() const { return reinterpret_cast<std::uintptr_t>(view.data); }  // of the first element
};

// Throws UsageError in the name of `api` if the memory was lent for reading only.
void require_writable(const Array& array, std::string_view api);

// Throws UsageError in the name of `api` if lent memory is gone. `name` denotes the array in the message.
[[noreturn]] void throw_gone(const Array& array, std::string_view api, const std::string& name);
inline void require_memory(const Array& array, std::string_view api, const char* name = "the array") {
    if (array.buffer && array.buffer->is_gone()) throw_gone(array, api, name);
}

// "(3, 4)" as Python prints shapes.
std::string shape_text(std::span<const std::int64_t> shape);

// Number of elements of `shape`. Throws UsageError in the name of `api` for no or more than kMaxDims dimensions, a
// negative extent, or a size in bytes that does not fit 63 bits.
std::int64_t checked_size(std::span<const std::int64_t> shape, std::int64_t element_bytes, std::string_view api);
// C order, no gaps.
void set_contiguous_strides(Array& array);

// An array over memory that it does not own. `strides` in bytes; null for C order without gaps. Throws UsageError in
// the name of `api` if address, shape and strides do not fit each other or the dtype.
Array wrap(void* address, Type dtype, std::span<const std::int64_t> shape, const Shape* strides, Device& device,
           std::string_view api);

Array empty(Type dtype, std::span<const std::int64_t> shape, Device& device);
Array zeros(Type dtype, std::span<const std::int64_t> shape, Device& device);

// The address that corresponds to `address` after its memory was copied from `begin` to `copy`. Host code treats
// addresses as numbers; only devices access the memory (runtime/bytes.h).
inline void* moved(void* address, const void* begin, void* copy) {
    return static_cast<std::byte*>(copy) + (static_cast<std::byte*>(address) - static_cast<const std::byte*>(begin));
}

// Views share the buffer. A non-null `view.grad` moves along with the data.
// `start`, `count` and `step` are in elements of the axis.
Array slice(const Array& array, int axis, std::int64_t start, std::int64_t count, std::int64_t step);
Array pick(const Array& array, int axis, std::int64_t index);            // drops the axis
Array new_axis(const Array& array, int axis);                            // inserts an axis of one element before `axis`
Array reshape(const Array& array, std::span<const std::int64_t> shape);  // contiguous only; -1 is inferred
Array transpose(const Array& array, std::span<const int> axes);
// Views the same bytes as another dtype: one of equal size; or the numbers of vectors and matrices, whose dimensions
// are appended; or the reverse.
Array reinterpret(const Array& array, Type dtype);
// Whether the byte ranges from the lowest to the highest element of the two arrays meet.
bool overlap(const Array& a, const Array& b);

}  // namespace weft::runtime
