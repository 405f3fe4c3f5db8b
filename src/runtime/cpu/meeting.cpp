#include "runtime/cpu/meeting.h"

#include <pthread.h>

#include <atomic>
#include <cstdint>
#include <thread>

#include "support/error.h"

namespace weft::runtime {
namespace {

// How many launches take part; kAlone is one that has it to itself.
constexpr std::int64_t kAlone = -1;
std::atomic<std::int64_t> present{0};

// The launches of other threads are not in a forked child.
void watch_for_fork() {
    static const int registered = pthread_atfork(nullptr, nullptr, [] { present.store(0); });
    WEFT_CHECK(registered == 0, "cannot register the handler for fork");
}

bool come_alone() {
    std::int64_t nobody = 0;
    return present.compare_exchange_strong(nobody, kAlone, std::memory_order_acquire, std::memory_order_relaxed);
}

void come() {
    std::int64_t count = present.load(std::memory_order_relaxed);
    while (count == kAlone ||
           !present.compare_exchange_weak(count, count + 1, std::memory_order_acquire, std::memory_order_relaxed)) {
        if (count != kAlone) continue;
        std::this_thread::yield();
        count = present.load(std::memory_order_relaxed);
    }
}

}  // namespace

Meeting::Meeting(bool wants_to_be_alone) {
    watch_for_fork();
    is_alone_ = wants_to_be_alone && come_alone();
    if (!is_alone_) come();
}

Meeting::~Meeting() {
    if (is_alone_)
        present.store(0, std::memory_order_release);
    else
        present.fetch_sub(1, std::memory_order_release);
}

}  // namespace weft::runtime
