// References between pieces of memory: arrays of structs have array fields, and the memory of those arrays must live as
// long as structs refer to it. Each buffer keeps the buffers whose addresses were stored in it.
//
// Kernels copy structs without notice, so a buffer is never dropped because an element was overwritten. Instead, when a
// buffer keeps many others, its memory is searched for addresses, as a conservative garbage collector does, and buffers
// without an address in it are released.
//
// Memory that the host cannot read cannot be searched. There, each address that the host stores is an edge with a place
// in the memory, which is removed when the host overwrites that place. Addresses that kernels store have no place, and
// are kept as long as the holder.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

namespace weft::runtime {

struct Buffer;
using BufferPtr = std::shared_ptr<Buffer>;

class References {
public:
    References() = default;
    ~References();
    References(const References&) = delete;
    References& operator=(const References&) = delete;

    static constexpr std::int64_t kAnywhere = -1;
    // To be called after an address in the kept memory was stored in `holder`, whose references these are; `place` is
    // the byte offset in the holder if it is known.
    void add(const BufferPtr& kept, const Buffer& holder, std::int64_t place = kAnywhere);
    // To be called after memory was copied to `holder`: it refers to everything that the source refers to.
    void add_all(const References& of, const Buffer& holder);
    // To be called after the host has overwritten the bytes from `begin` to `end`, before the new references are added.
    void forget(std::int64_t begin, std::int64_t end, const Buffer& holder);
    // The kept buffer that contains the address; null if there is none.
    BufferPtr find(const void* address) const;
    std::vector<BufferPtr> all() const;
    std::size_t size() const;

private:
    struct KeptBuffers;
    KeptBuffers& kept();

    std::atomic<KeptBuffers*> kept_{nullptr};  // null for nearly all memory
};

}  // namespace weft::runtime
