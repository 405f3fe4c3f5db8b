// Buffers: counted memory of devices, and the references between them.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "runtime/device.h"
#include "runtime/lent_memory.h"
#include "runtime/zeros.h"

namespace weft::runtime {

struct Buffer;
using BufferPtr = std::shared_ptr<Buffer>;

// References between pieces of memory: arrays of structs have array fields, and the memory of those arrays must live as
// long as structs refer to it. Each buffer keeps the buffers whose addresses were stored in it.
//
// Kernels copy structs without notice, so a buffer is never dropped because an element was overwritten. Instead, when a
// buffer keeps many others, its memory is searched for addresses, as a conservative garbage collector does, and buffers
// without an address in it are released.
//
// Memory that the host cannot read cannot be searched. There, each address that the host stores is an edge with an
// offset in the memory, which is removed when the host overwrites the memory there. Addresses that kernels store have
// no offset, and are kept as long as the holder.
//
// Memory that holds views with more than 2^31 - 1 elements along a dimension is known, too: code that reads extents
// from it needs 64 bits.
class References {
public:
    References() = default;
    ~References();
    References(const References&) = delete;
    References& operator=(const References&) = delete;

    static constexpr std::int64_t kUnknownOffset = -1;
    // To be called after an address in the kept memory was stored in `holder`, whose references these are; `offset`
    // is that in the holder, in bytes, if it is known.
    void add(const BufferPtr& kept, const Buffer& holder, std::int64_t offset = kUnknownOffset);
    // To be called after memory was copied to `holder`: it refers to everything that the source refers to.
    void add_all(const References& of, const Buffer& holder);
    // To be called after the host has overwritten the bytes from `begin` to `end`, before the new references are added.
    void forget(std::int64_t begin, std::int64_t end, const Buffer& holder);
    // The kept buffer that contains the address; null if there is none.
    BufferPtr find(const void* address) const;
    std::vector<BufferPtr> all() const;
    std::size_t size() const;

    // To be called after a view whose longest dimension has `extent` elements was stored in `holder`.
    void add_extent(std::int64_t extent, const Buffer& holder);
    // Whether any memory has held a view with more than 2^31 - 1 elements along a dimension since the process started.
    static bool any_is_huge() { return any_is_huge_.load(std::memory_order_relaxed); }
    // The greatest such extent of a view that was stored in the memory around the address, or 0.
    static std::int64_t huge_extent_around(const void* address);

private:
    struct KeptBuffers;
    KeptBuffers& kept();

    static std::atomic<bool> any_is_huge_;
    std::atomic<std::int64_t> huge_extent_{0};

    std::atomic<KeptBuffers*> kept_{nullptr};  // null for nearly all memory
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
    std::uint8_t marks = 0;            // bits of the program's, which the runtime does not read

    // Whether the owner has moved or freed the memory.
    bool is_gone() const { return home && !home->has(static_cast<const std::byte*>(data) + size_bytes); }

    Buffer() = default;
    ~Buffer();
    Buffer(const Buffer&) = delete;
    Buffer& operator=(const Buffer&) = delete;
};

// Memory of the device, 64-byte aligned. Size 0 gives null data. Throws UsageError (category memory).
BufferPtr allocate(std::int64_t size_bytes, Device& device);
BufferPtr allocate_zeroed(std::int64_t size_bytes, Device& device);

// Set while recorded work exists (kept_memory.h). Called with a buffer that is being destroyed: true if such work uses
// its memory, which then has another owner.
inline constinit std::atomic<bool (*)(Buffer&)> memory_keeper{nullptr};

}  // namespace weft::runtime
