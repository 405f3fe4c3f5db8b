// The memory of recorded work. When the last other owner of memory that nodes read or write releases it, it is taken
// over and lives as long as the graph. So a node need not know the owners of the memory that it uses.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "runtime/buffer.h"

namespace weft::runtime {

// Memory that nodes use; it is kept while they may run.
class KeptMemory {
public:
    KeptMemory();
    ~KeptMemory();
    KeptMemory(const KeptMemory&) = delete;
    KeptMemory& operator=(const KeptMemory&) = delete;

    // Adds the memory that contains these addresses.
    void add(std::span<const void* const> addresses);
    // Keeps any object alive.
    void hold(std::shared_ptr<const void> object);
    // Notes memory that the nodes write to: each launch of theirs counts as a write (Buffer::version).
    void note_written(const BufferPtr& buffer);
    void count_writes() const;
    // A step on the host before each launch of the nodes, of graphs that their device runs.
    void add_preparation(std::function<void()> step) { preparations_.push_back(std::move(step)); }
    void prepare() const {
        for (const auto& step : preparations_) step();
    }
    // Moves everything that `other` keeps to this object.
    void take(KeptMemory& other);

private:
    static bool take_over(Buffer& buffer);
    bool uses(const Buffer& buffer) const;

    std::vector<const void*> addresses_;  // sorted
    std::vector<std::shared_ptr<const void>> held_;
    std::vector<std::weak_ptr<Buffer>> written_;
    std::vector<BufferPtr> freed_;
    std::vector<std::function<void()>> preparations_;
};

}  // namespace weft::runtime
