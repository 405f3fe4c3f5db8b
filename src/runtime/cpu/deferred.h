// A stream that does its work late: when somebody waits for it, as a GPU may. What reads a result without waiting reads
// what was there before.
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
    std::recursive_mutex mutex_;  // held while work is done, which is in order
    std::vector<std::function<void()>> work_;
};

}  // namespace weft::runtime
