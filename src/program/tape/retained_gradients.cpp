#include "program/tape/retained_gradients.h"

#include <algorithm>
#include <map>
#include <memory>
#include <mutex>
#include <ranges>
#include <unordered_set>

#include "program/host/host.h"
#include "program/tape/gradient_memory.h"
#include "runtime/graph.h"

namespace weft::program {
namespace {

// The gradients that passes left, with the number of writes to their memory at that time.
class LeftGradients {
public:
    void add(const runtime::Array& gradient) {
        const std::lock_guard lock(mutex_);
        if (all_.size() >= swept_at_) {
            std::erase_if(all_, [](const auto& one) { return one.second.memory.expired(); });
            swept_at_ = std::max(kFewest, 2 * all_.size());
        }
        all_[gradient.extent()] = {gradient.buffer, gradient.buffer->version};
    }
    // Whether a pass left it, and nothing has been written to its memory since.
    bool has(const runtime::Array& gradient) {
        const std::lock_guard lock(mutex_);
        const auto found = all_.find(gradient.extent());
        return found != all_.end() && found->second.memory.lock() == gradient.buffer &&
               found->second.writes == gradient.buffer->version;
    }

private:
    struct Left {
        std::weak_ptr<runtime::Buffer> memory;
        std::uint64_t writes;
    };
    static constexpr std::size_t kFewest = 64;
    std::mutex mutex_;
    std::map<std::pair<const std::byte*, const std::byte*>, Left> all_;  // by the bytes of the gradient
    std::size_t swept_at_ = kFewest;
};

// Never freed: threads may look while the process ends.
LeftGradients& left_gradients() {
    static LeftGradients& made = *new LeftGradients;
    return made;
}

}  // namespace

RetainedGradients::RetainedGradients(const Tape& tape) {
    std::unordered_set<const Variable*> seen;
    for (const auto& entry : tape.entries())
        for (const TapeEntry::Group& group : entry->written())
            for (const Variable* one : group)
                if (one->retain_grad && seen.insert(one).second) arrays_.push_back(one);
}

void RetainedGradients::clear(bool all) const {
    for (const Variable* one : arrays_)
        if (one->gradient && (all || left_gradients().has(gradient_to_read(*one)))) clear_gradient(*one);
}

void RetainedGradients::save(const TapeEntry& entry) {
    if (arrays_.empty()) return;
    for (const TapeEntry::Group& group : entry.written()) {
        for (const Variable* one : group) {
            if (!one->retain_grad || !one->gradient) continue;
            const runtime::Array gradient = gradient_of(*one);
            const runtime::Array* const shown = &gradient;
            saved_.emplace_back(gradient, std::move(keep_together({&shown, 1}).front()));
        }
    }
}

void RetainedGradients::restore() {
    for (const auto& [gradient, copy] : std::views::reverse(saved_)) {
        without_host(gradient.size_bytes(), [&] { runtime::copy(gradient, copy); });
        runtime::count_write(gradient.buffer);
    }
    for (const auto& [gradient, copy] : saved_) left_gradients().add(gradient);
}

}  // namespace weft::program
