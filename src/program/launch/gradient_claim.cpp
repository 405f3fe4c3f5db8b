#include "program/launch/gradient_claim.h"

#include <pthread.h>

#include <algorithm>
#include <condition_variable>
#include <mutex>
#include <thread>
#include <utility>

#include "program/host/host.h"

namespace weft::program {
namespace {

struct Claims {
    struct ActiveClaim {
        std::thread::id thread;
        const std::vector<Extent>* memory;
    };
    std::mutex mutex;
    std::condition_variable ended;
    std::vector<ActiveClaim> held;

    bool is_free(const std::vector<Extent>& memory, std::thread::id thread) const {
        return std::ranges::none_of(held, [&](const ActiveClaim& one) {
            return one.thread != thread && std::ranges::any_of(*one.memory, [&](const Extent& theirs) {
                       return std::ranges::any_of(memory, [&](const Extent& ours) {
                           return ours.begin < theirs.end && theirs.begin < ours.end;
                       });
                   });
        });
    }
};

// A child of fork() starts without the claims of other threads, which do not exist in it.
Claims* claims = [] {
    pthread_atfork(nullptr, nullptr, [] { claims = new Claims; });
    return new Claims;
}();

}  // namespace

std::vector<Extent> gradients_in(const KernelFacts& kernel, const std::byte* block) {
    std::vector<Extent> found;
    for (const BlockArray& block_array : kernel.arrays) {
        ArrayView view = view_at(block, block_array.offset);
        view.data = view.grad;
        if (const Extent memory = extent(view, block_array); memory.begin != memory.end) found.push_back(memory);
    }
    return found;
}

GradientClaim::GradientClaim(std::vector<Extent> memory) : memory_(std::move(memory)) {
    const std::thread::id self = std::this_thread::get_id();
    {
        const std::lock_guard lock(claims->mutex);
        if (claims->is_free(memory_, self)) {
            claims->held.push_back({self, &memory_});
            return;
        }
    }
    const WithoutHost without;
    std::unique_lock lock(claims->mutex);
    claims->ended.wait(lock, [&] { return claims->is_free(memory_, self); });
    claims->held.push_back({self, &memory_});
}

GradientClaim::~GradientClaim() {
    {
        const std::lock_guard lock(claims->mutex);
        std::erase_if(claims->held, [&](const Claims::ActiveClaim& one) { return one.memory == &memory_; });
    }
    claims->ended.notify_all();
}

}  // namespace weft::program
