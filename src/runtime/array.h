// Arrays: a typed, strided view of a reference-counted buffer on a device. Copying an Array shares the memory, as
// slices do; clone() copies it. All sizes, shapes and strides are 64 bit.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "runtime/device.h"
#include "runtime/references.h"
#include "runtime/zeros.h"
#include "types/layout.h"
#include "types/type.h"

namespace weft::runtime {

// How one sees that lent memory is still there, where its owner may move it: words of the owner's have the values that
// they had. A word may be read as long as those before it have theirs.
struct Home {
    struct Word {
        const std::byte* place;
        const std::byte* value;
    };
    std::array<Word, 3> words;
    const std::int64_t* size_bytes;  // of the memory that begins at the last value; to be read after the words

    bool has(const void* end) const {
        for (const Word& word : words)
            if (*reinterpret_cast<const std::byte* const*>(word.place) != word.value) return false;
        return words.back().value + *size_bytes >= end;
    }
};

// Memory and who frees it, when the last view is gone.
struct Buffer {
    void* data = nullptr;
    std::int64_t size_bytes = 0;
    Device* device = nullptr;
    std::function<void()> release;     // of what is not the device's own; empty: the device frees it
    std::uint64_t version = 0;         // counts writes by launches and by the host
    std::unique_ptr<const Home> home;  // of memory that may move; null where it stays
    References references;             // what array fields of structs in this memory point to
    Zeros zeros;                       // what is known of them
    bool is_read_only = false;         // memory that its owner lends to be read only
    // Structs in memory point to it as to an array without a gradient, and it got one afterwards: they do not see it.
    bool is_kept_without_gradient = false, got_gradient_later = false;

    // Whether its owner has moved or freed it.
    bool is_gone() const { return home && !home->has(static_cast<const std::byte*>(data) + size_bytes); }

    ~Buffer();
};
using BufferPtr = std::shared_ptr<Buffer>;

// The device's own, 64-byte aligned. Size 0 gives null data. Throws UsageError (category memory).
BufferPtr allocate(std::int64_t size_bytes, Device& device);
BufferPtr allocate_zeroed(std::int64_t size_bytes, Device& device);

using Shape = std::vector<std::int64_t>;

struct Array {
    Type dtype;  // of an element
    int ndim = 1;
    ArrayView view;  // data, shape, strides; `grad` mirrors the gradient's data
    BufferPtr buffer;
    Device* device = nullptr;

    std::int64_t size() const;        // number of elements
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

// Throws UsageError in the name of `api` where the memory was lent to be read only.
void require_writable(const Array& array, std::string_view api);

// Throws UsageError in the name of `api` where the memory was lent, and is gone. `name` is what the message calls the
// array.
[[noreturn]] void throw_gone(const Array& array, std::string_view api, const std::string& name);
inline void require_memory(const Array& array, std::string_view api, const char* name = "the array") {
    if (array.buffer && array.buffer->is_gone()) throw_gone(array, api, name);
}

// "(3, 4)" as Python prints shapes.
std::string shape_text(std::span<const std::int64_t> shape);

// Number of elements of `shape`. Throws UsageError in the name of `api` where there are no or more than kMaxDims
// dimensions, where one is negative, and where the array would not fit 63 bits of bytes.
std::int64_t checked_size(std::span<const std::int64_t> shape, std::int64_t element_bytes, std::string_view api);
// C order, no gaps.
void set_contiguous_strides(Array& array);

// Memory at an address: to use, not to free. `strides` in bytes; null for C order without gaps. Throws UsageError in
// the name of `api` where address, shape and strides do not fit each other or the dtype.
Array wrap(void* address, Type dtype, std::span<const std::int64_t> shape, const Shape* strides, Device& device,
           std::string_view api);

Array empty(Type dtype, std::span<const std::int64_t> shape, Device& device);
Array zeros(Type dtype, std::span<const std::int64_t> shape, Device& device);

// Addresses are numbers to the host: only a device looks at what lies there (runtime/bytes.h). This is where something
// at `address` lies, when its memory has been copied from `begin` to `copy`.
inline void* moved(void* address, const void* begin, void* copy) {
    return static_cast<std::byte*>(copy) + (static_cast<std::byte*>(address) - static_cast<const std::byte*>(begin));
}

// Views share the buffer; where `view.grad` is set it moves along with the data.
// One axis cut down: start, count, step in elements of that axis.
Array slice(const Array& array, int axis, std::int64_t start, std::int64_t count, std::int64_t step);
Array pick(const Array& array, int axis, std::int64_t index);            // the axis is dropped
Array new_axis(const Array& array, int axis);                            // of one element, before `axis`
Array reshape(const Array& array, std::span<const std::int64_t> shape);  // contiguous only; -1 is inferred
Array transpose(const Array& array, std::span<const int> axes);
// The same bytes as another dtype: of the same size; or numbers of vectors and matrices, which add their dimensions at
// the end; or the other way round.
Array reinterpret(const Array& array, Type dtype);
Array contiguous(const Array& array);  // itself where it already is
Array clone(const Array& array);
Array clone(const Array& array, Device& device);
// Whether the bytes from the lowest to the highest element of one meet those of the other.
bool overlap(const Array& a, const Array& b);
// Same shape and dtype; any devices and strides. Overlapping source and destination are handled as if copied through a
// temporary.
void copy(const Array& destination, const Array& source);
// The bytes alone: what they point to is the caller's business.
void transfer(const Array& destination, const Array& source);
// A copy between two devices is work of one of them: throws UsageError where a capture of the other would not have it.
void refuse_lost_copy(Device& to, Device& from);
// `element` lies in the host's memory.
void fill(const Array& array, const void* element);
void zero(const Array& array);

}  // namespace weft::runtime
