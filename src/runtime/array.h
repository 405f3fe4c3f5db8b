// Arrays: a typed, strided view of a reference-counted buffer on a device. Copying an Array shares the memory, as
// slices do; clone() copies it. All sizes, shapes and strides are 64 bit.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "runtime/device.h"
#include "runtime/references.h"
#include "runtime/zeros.h"
#include "types/layout.h"
#include "types/type.h"

namespace weft::runtime {

// Detects that lent memory, which its owner may move, is still in place: words of the owner must have their former
// values. Each word may be read only if all words before it have theirs.
struct Home {
    struct Word {
        const std::byte* place;
        const std::byte* value;
    };
    std::array<Word, 3> words;
    const std::int64_t* size_bytes;  // of the memory that begins at the last value; read after the words

    bool has(const void* end) const {
        for (const Word& word : words)
            if (*reinterpret_cast<const std::byte* const*>(word.place) != word.value) return false;
        return words.back().value + *size_bytes >= end;
    }
};

// Memory, and the way to free it when the last view is gone.
struct Buffer {
    void* data = nullptr;
    std::int64_t size_bytes = 0;
    Device* device = nullptr;
    std::function<void()> release;     // frees memory that is not the device's own; empty: the device frees it
    std::uint64_t version = 0;         // counts writes by launches and by the host
    std::unique_ptr<const Home> home;  // of memory that its owner may move; null if it stays
    References references;             // the memory that array fields of structs in here point to
    Zeros zeros;                       // the range that is known to be zero
    bool is_read_only = false;         // lent by its owner for reading only
    std::uint64_t watched = 0;         // its number in watches (memory_watch.h); 0: none
    std::optional<int> kind;           // wp.MemoryKind, by a program's own allocator
    // The first: structs in memory point to this array as one without a gradient. The second: it got a gradient
    // afterwards, which those structs do not see.
    bool is_kept_without_gradient = false, got_gradient_later = false;

    // Whether the owner has moved or freed the memory.
    bool is_gone() const { return home && !home->has(static_cast<const std::byte*>(data) + size_bytes); }

    ~Buffer();
};
using BufferPtr = std::shared_ptr<Buffer>;

// Memory of the device, 64-byte aligned. Size 0 gives null data. Throws UsageError (category memory).
BufferPtr allocate(std::int64_t size_bytes, Device& device);
BufferPtr allocate_zeroed(std::int64_t size_bytes, Device& device);

using Shape = std::vector<std::int64_t>;

struct Array {
    Type dtype;  // of the elements
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
Array contiguous(const Array& array);  // the array itself if it is contiguous
Array clone(const Array& array);
Array clone(const Array& array, Device& device);
// Whether the byte ranges from the lowest to the highest element of the two arrays meet.
bool overlap(const Array& a, const Array& b);
// Same shape and dtype; any devices and strides. Overlapping source and destination are handled as if copied through a
// temporary.
void copy(const Array& destination, const Array& source);
// Copies the bytes alone; the caller must update references to the memory that they point to.
void transfer(const Array& destination, const Array& source);
// A copy between devices is work of one of them. Throws UsageError if a capture on the other would miss it.
void refuse_lost_copy(Device& to, Device& from);
// `element` is in the host's memory.
void fill(const Array& array, const void* element);
void zero(const Array& array);

}  // namespace weft::runtime
