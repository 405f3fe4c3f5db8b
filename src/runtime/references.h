// What memory points to: arrays of structs have array fields, and the memory of those arrays must live as long as the
// structs that mention it. Each buffer keeps the buffers that were stored in it.
//
// Kernels copy structs around without telling anybody, so a buffer is never dropped for an element that is overwritten.
// Instead, when there are many of them, the memory is searched for addresses, as a conservative garbage collector
// does, and what nothing points to is let go.
//
// Memory that the host cannot read cannot be searched. There each address that the host stores is an edge, which has a
// place in the memory and goes when the host stores something else there; what kernels store has no place, and stays as
// long as the holder.
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
    // After an address in the kept memory has been stored in `holder`, whose references these are: `place` bytes from
    // its begin, where that is known.
    void add(const BufferPtr& kept, const Buffer& holder, std::int64_t place = kAnywhere);
    // After memory has been copied to `holder`: it points to what the source pointed to.
    void add_all(const References& of, const Buffer& holder);
    // After the host has written to the bytes from `begin` to `end`, and before it adds what they point to now.
    void forget(std::int64_t begin, std::int64_t end, const Buffer& holder);
    // The kept buffer that this address lies in; null where there is none.
    BufferPtr find(const void* address) const;
    std::vector<BufferPtr> all() const;
    std::size_t size() const;

private:
    struct Kept;
    Kept& kept();

    std::atomic<Kept*> kept_{nullptr};  // of nearly all memory null
};

}  // namespace weft::runtime
