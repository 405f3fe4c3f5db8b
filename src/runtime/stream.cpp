// Streams: which recording they have on this thread, and the current stream of a thread.
#include <algorithm>
#include <utility>

#include "runtime/device.h"

namespace weft::runtime {

// ---- recordings ----

static constinit thread_local int without_recording = 0;

std::uint64_t Stream::this_thread() {
    static std::atomic<std::uint64_t> last{0};
    thread_local const std::uint64_t own = ++last;
    return own;
}

Recording* Stream::recording_here(Recording* any) const {
    if (without_recording != 0) return nullptr;
    if (any == shared_mark()) return const_cast<Stream*>(this)->find_recording();
    return recording_thread_.load(std::memory_order_relaxed) == this_thread() ? any : nullptr;
}

void Stream::share() {
    idle_ = shared_mark();
    Recording* unset = nullptr;
    recording_.compare_exchange_strong(unset, idle_);
}

WithoutRecording::WithoutRecording() { ++without_recording; }
WithoutRecording::~WithoutRecording() { --without_recording; }

// ---- the current stream ----

namespace {

// The streams that a thread has chosen, at most one for each device.
struct ChosenStreams {
    std::vector<std::shared_ptr<Stream>> all;
    bool is_counted = false;

    void count() {
        if (is_counted == !all.empty()) return;
        is_counted = !is_counted;
        choosing_threads += is_counted ? 1 : -1;
    }
    ~ChosenStreams() {
        all.clear();
        count();
    }
};

ChosenStreams& own_streams() {
    thread_local ChosenStreams own;
    return own;
}

const std::shared_ptr<Stream>* find_chosen(const Device& device) {
    const std::vector<std::shared_ptr<Stream>>& all = own_streams().all;
    const auto found =
        std::ranges::find(all, &device, [](const std::shared_ptr<Stream>& stream) { return &stream->device(); });
    return found == all.end() ? nullptr : &*found;
}

}  // namespace

Stream& chosen_stream(const Device& device) {
    const std::shared_ptr<Stream>* const found = find_chosen(device);
    return found ? **found : device.default_stream();
}

std::shared_ptr<Stream> current_stream_ptr(const Device& device) {
    if (const std::shared_ptr<Stream>* const found = find_chosen(device)) return *found;
    return {std::shared_ptr<Stream>(), &device.default_stream()};  // lives for ever
}

void set_current_stream(std::shared_ptr<Stream> stream) {
    ChosenStreams& own = own_streams();
    const Device& device = stream->device();
    std::erase_if(own.all, [&](const std::shared_ptr<Stream>& other) { return &other->device() == &device; });
    if (stream.get() != &device.default_stream()) own.all.push_back(std::move(stream));
    own.count();
}

UseStream::UseStream(std::shared_ptr<Stream> stream) {
    if (!stream) return;
    before_ = current_stream_ptr(stream->device());
    set_current_stream(std::move(stream));
}

UseStream::~UseStream() {
    if (before_) set_current_stream(std::move(before_));
}

}  // namespace weft::runtime
