#include "runtime/cpu/atomics_lock.h"

#include <pthread.h>

#include <atomic>
#include <cstdint>

#include "runtime/waiting.h"
#include "support/error.h"

namespace weft::runtime {
namespace {

// Number of launches that hold the lock; kExclusive during an exclusive one.
constexpr std::int64_t kExclusive = -1;
std::atomic<std::int64_t> holders{0};

// A forked child has no launches of other threads.
void release_in_forked_child() {
    static const int registered = pthread_atfork(nullptr, nullptr, [] { holders.store(0); });
    WEFT_CHECK(registered == 0, "cannot register the handler for fork");
}

bool lock_exclusive() {
    std::int64_t nobody = 0;
    return holders.compare_exchange_strong(nobody, kExclusive, std::memory_order_acquire, std::memory_order_relaxed);
}

bool try_lock_shared() {
    std::int64_t count = holders.load(std::memory_order_relaxed);
    while (count != kExclusive)
        if (holders.compare_exchange_weak(count, count + 1, std::memory_order_acquire, std::memory_order_relaxed))
            return true;
    return false;
}

// An exclusive launch that takes longer than expected may poll the host (preemption.h), and this thread may hold the
// host's lock: wait_until() releases it.
void lock_shared() {
    wait_until([] { return try_lock_shared(); });
}

}  // namespace

AtomicsLock::AtomicsLock(bool prefers_exclusive) {
    release_in_forked_child();
    is_exclusive_ = prefers_exclusive && lock_exclusive();
    if (!is_exclusive_) lock_shared();
}

AtomicsLock::~AtomicsLock() {
    if (is_exclusive_)
        holders.store(0, std::memory_order_release);
    else
        holders.fetch_sub(1, std::memory_order_release);
}

}  // namespace weft::runtime
