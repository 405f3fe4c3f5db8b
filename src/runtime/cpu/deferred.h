// A stream that does its work late, at the next wait for it, as a GPU may. Code that reads a result without waiting
// sees the old value.
#pragma once

#include <functional>
#include <mutex>
#include <vector>

#include "runtime/device.h"

namespace weft::runtime {

class DeferredStream final : public Stream {
public:
    using Stream::Stream;

    void put(std::function<void()> work);
    void synchronize() override;
    bool is_complete() override;

private:
    std::recursive_mutex mutex_;  // held during the work, which is done in order
    std::vector<std::function<void()>> work_;
};

}  // namespace weft::runtime
