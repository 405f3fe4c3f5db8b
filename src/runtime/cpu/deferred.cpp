#include "runtime/cpu/deferred.h"

#include <utility>

namespace weft::runtime {

void DeferredStream::put(std::function<void()> work) {
    const std::lock_guard lock(mutex_);
    work_.push_back(std::move(work));
}

bool DeferredStream::is_complete() {
    const std::lock_guard lock(mutex_);
    return work_.empty();
}

void DeferredStream::synchronize() {
    const std::lock_guard lock(mutex_);
    while (!work_.empty()) {
        const std::vector<std::function<void()>> now = std::exchange(work_, {});
        for (const auto& each : now) each();
    }
}

}  // namespace weft::runtime
