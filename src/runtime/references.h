// What memory points to: arrays of structs have array fields, and the memory of those arrays must live as long as the
// structs that mention it. Each buffer keeps the buffers that were stored in it.
//
// Kernels copy structs around without telling anybody, so a buffer is never dropped for an element that is overwritten.
// Instead, when there are many of them, the memory is searched for addresses, as a conservative garbage collector
// does, and what nothing points to is let go.
#pragma once

#include <cstddef>
#include <memory>
#include <mutex>
#include <set>
#include <vector>

namespace weft::runtime {

struct Buffer;
using BufferPtr = std::shared_ptr<Buffer>;

class References {
public:
    // After the address has been stored in `holder`, whose references these are.
    void add(const BufferPtr& kept, const Buffer& holder);
    // After memory has been copied to `holder`: it points to what the source pointed to.
    void add_all(const References& of, const Buffer& holder);
    // The kept buffer that this address lies in; null where there is none.
    BufferPtr find(const void* address) const;
    std::vector<BufferPtr> all() const;
    std::size_t size() const;

private:
    struct ByAddress {
        using is_transparent = void;
        bool operator()(const BufferPtr& a, const BufferPtr& b) const;
        bool operator()(const void* a, const BufferPtr& b) const;
    };
    using Set = std::set<BufferPtr, ByAddress>;
    Set::const_iterator locate(const void* address) const;
    void prune(const Buffer& holder);

    static constexpr std::size_t kFewest = 256;  // no search below
    mutable std::mutex mutex_;
    Set buffers_;
    std::size_t prune_at_ = kFewest;
};

}  // namespace weft::runtime
