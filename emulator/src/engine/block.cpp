#include "engine/block.h"

#include <algorithm>
#include <array>

namespace weft::emulator {

namespace {

// Instructions between two readings of the clock.
constexpr uint64_t kUnasked = 1 << 14;

}  // namespace

Block::Block(Launch& launch) : state_(launch) {
    const uint32_t count = (launch.block_threads() + kLanes - 1) / kLanes;
    for (uint32_t i = 0; i < count; ++i) {
        warps_.push_back(std::make_unique<Warp>(state_));
        round_.push_back(warps_.back().get());
    }
    for (uint32_t thread = 0; thread < launch.block_threads(); ++thread) {
        Warp& warp = *warps_[thread / kLanes];
        warp.thread_index[0][thread % kLanes] = thread % launch.threads[0];
        warp.thread_index[1][thread % kLanes] = thread / launch.threads[0] % launch.threads[1];
        warp.thread_index[2][thread % kLanes] = thread / launch.threads[0] / launch.threads[1];
    }
}

Block::~Block() {
    uint64_t executed = 0;
    for (const auto& warp : warps_) executed += warp->executed();
    state_.launch.executed += executed;
}

// The reduction over all threads that arrived at a barrier.
uint32_t Block::reduced(uint32_t barrier) const {
    uint32_t count = 0, flags = 0;
    bool every = true;
    for (const auto& warp : warps_) {
        if (!warp->waits() || warp->barrier_split().barrier != barrier) continue;
        const Split& split = warp->barrier_split();
        flags = split.frame->function->instructions[split.counter].flags;
        count += uint32_t(__builtin_popcount(warp->barrier_predicate()));
        every &= warp->barrier_predicate() == warp->alive();
    }
    return flags == 0 ? count : flags == 1 ? every : count != 0;
}

void Block::release(uint32_t barrier, uint32_t value) {
    ++state_.barriers;
    state_.arrived[barrier] = 0;
    for (const auto& warp : warps_) {
        if (warp->waits() && warp->barrier_split().barrier == barrier) warp->pass_barrier(value);
    }
}

// Precondition: all warps wait. Releases warps whose barrier is complete. Without a number of threads, a barrier
// includes all threads that have not ended.
bool Block::release_barriers() {
    std::array<uint32_t, 16> waiting = {}, wanted = {};
    uint32_t alive = 0;
    for (const auto& warp : warps_) {
        if (warp->done()) continue;
        alive += kLanes;
        if (!warp->waits()) continue;
        const Split& split = warp->barrier_split();
        waiting[split.barrier] += kLanes;
        wanted[split.barrier] = std::max(wanted[split.barrier], split.threads);
    }
    bool any = false;
    for (uint32_t i = 0; i < waiting.size(); ++i) {
        if (!waiting[i]) continue;
        const uint32_t here = waiting[i] + state_.arrived[i];
        if (wanted[i] ? here < wanted[i] : here < alive) continue;
        release(i, reduced(i));
        any = true;
    }
    return any;
}

void Block::deadlock() {
    const Warp* first = nullptr;
    for (const auto& warp : warps_) {
        if (warp->done()) continue;
        if (!first) first = warp.get();
        const Split& split = warp->barrier_split();
        if (split.barrier == first->barrier_split().barrier) continue;
        running_ = first;
        throw Fault(FaultKind::BarrierDeadlock, __builtin_ctz(split.mask),
                    "warp " + std::to_string(first->number()) + " waits at barrier " +
                        std::to_string(first->barrier_split().barrier) + ", warp " + std::to_string(warp->number()) +
                        " at barrier " + std::to_string(split.barrier));
    }
    running_ = first;
    throw Fault(FaultKind::BarrierDeadlock, __builtin_ctz(first->barrier_split().mask),
                "barrier " + std::to_string(first->barrier_split().barrier) + " waits for " +
                    std::to_string(first->barrier_split().threads) + " threads, and no others will come");
}

void Block::start(uint64_t index) {
    state_.start(index);
    const uint32_t threads = state_.launch.block_threads();
    for (uint32_t i = 0; i < warps_.size(); ++i) {
        const uint32_t count = std::min<uint32_t>(kLanes, threads - i * kLanes);
        warps_[i]->start(*state_.launch.kernel, i, count == kLanes ? kAllLanes : (Mask(1) << count) - 1);
    }
    random_ = state_.launch.seed ^ (index * 0x9e3779b97f4a7c15);
    for (size_t i = 0; i < round_.size(); ++i) round_[i] = warps_[i].get();
    left_in_round_ = round_.size();
    is_tired_ = false;
}

bool Block::is_over(const Deadline& deadline, uint64_t executed) {
    if ((unasked_ += executed) < kUnasked) return false;
    unasked_ = 0;
    return deadline.has_passed();
}

bool Block::go_on(const Deadline& deadline) {
    for (const auto& warp : warps_) warp->resume();
    for (;;) {
        // each warp once, in a different order each round
        while (left_in_round_ > 0) {
            random_ = random_ * 6364136223846793005 + 1442695040888963407;
            const size_t pick = size_t((random_ >> 33) % left_in_round_);
            std::swap(round_[pick], round_[--left_in_round_]);
            Warp& warp = *round_[left_in_round_];
            if (warp.done() || warp.waits()) continue;
            running_ = &warp;
            const uint64_t before = warp.executed();
            is_tired_ |= warp.run() == Warp::Stop::Tired;
            if (state_.launch.stopped.load(std::memory_order_relaxed)) return false;
            if (is_over(deadline, warp.executed() - before)) return true;
        }
        const bool was_tired = is_tired_;
        left_in_round_ = round_.size();
        is_tired_ = false;
        if (was_tired) {
            release_barriers();
            continue;
        }
        const bool done = std::all_of(warps_.begin(), warps_.end(), [](const auto& warp) { return warp->done(); });
        if (done) return false;
        if (!release_barriers()) deadlock();
    }
}

}  // namespace weft::emulator
