#include "runtime/recording.h"

#include <algorithm>
#include <atomic>
#include <mutex>
#include <utility>

#include "support/error.h"

namespace weft::runtime {
namespace {

// Guards the start and end of recordings, and the release of streams that another thread may record.
std::mutex& recordings_mutex() {
    static std::mutex& made = *new std::mutex;
    return made;
}
std::atomic<std::uint64_t> last_number{0};

}  // namespace

// The recordings of a thread. Those that are left when it ends are marked but not destroyed, as the thread cannot call
// a driver any more.
struct OwnRecordings {
    std::vector<Recording*> all;
    ~OwnRecordings() {
        const std::lock_guard lock(recordings_mutex());
        for (Recording* recording : all) recording->has_thread_ended_ = true;
    }
};

namespace {

std::vector<Recording*>& own_recordings() {
    thread_local OwnRecordings own;
    return own.all;
}

}  // namespace

Recording::Recording(Stream& stream, const CaptureOptions& options)
    : memory_(std::make_unique<KeptMemory>()), thread_(options.thread), number_(++last_number) {
    const std::lock_guard lock(recordings_mutex());
    take(stream);
    own_recordings().push_back(this);
}

Recording::Recording(Stream& stream, External)
    : memory_(std::make_unique<KeptMemory>()), is_external_(true), number_(++last_number) {
    streams_.push_back(&stream);
}

Recording::~Recording() {
    if (is_external_) return;
    if (!has_thread_ended_) std::erase(own_recordings(), this);
    release_streams();
}

void Recording::take(Stream& stream) {
    streams_.push_back(&stream);
    stream.recording_thread_.store(Stream::this_thread(), std::memory_order_relaxed);
    stream.recording_.store(this, std::memory_order_release);
}

void Recording::release_streams() noexcept {
    for (Stream* stream : streams_) release(*stream);
    streams_.clear();
}

void Recording::release(Stream& stream) noexcept {
    const std::lock_guard lock(recordings_mutex());
    stream.recording_thread_ = 0;
    stream.recording_ = stream.idle_;
}

void Recording::let_go(Stream* stream) noexcept {
    Recording* ended = nullptr;
    {
        const std::lock_guard lock(recordings_mutex());
        Recording* const recording = stream->recording_;
        if (recording && recording != Stream::shared_mark()) {
            const bool is_first = recording->streams_.front() == stream;
            const bool is_own = stream->recording_thread_ == Stream::this_thread();
            if (!is_first || (!is_own && !recording->has_thread_ended_))
                return static_cast<void>(recording->left_.emplace_back(stream));
            ended = recording;
        }
    }
    delete ended;
    delete stream;
}

void end_abandoned_recordings() noexcept {
    const auto is_abandoned = [](const Recording* recording) {
        const std::lock_guard lock(recordings_mutex());
        return std::ranges::any_of(recording->left_, [&](const std::unique_ptr<Stream>& stream) {
            return stream.get() == recording->streams_.front();
        });
    };
    std::vector<Recording*>& own = own_recordings();
    for (std::size_t i = own.size(); i-- > 0;)
        if (is_abandoned(own[i])) delete own[i];
}

std::vector<std::string> end_recordings_of_thread() {
    std::vector<std::string> devices;
    for (std::vector<Recording*>& own = own_recordings(); !own.empty();) {
        devices.push_back(own.back()->stream().device().alias);
        delete own.back();
    }
    return devices;
}

Recording* Recording::begun_here(const Stream& stream) {
    Recording* const any = stream.recording_;
    return any && any != Stream::shared_mark() ? stream.recording_here(any) : nullptr;
}

Recording::Owner Recording::owner_of(const Stream& stream) {
    const std::lock_guard lock(recordings_mutex());
    const Recording* const recording = stream.recording_;
    if (!recording || recording == Stream::shared_mark() || stream.recording_thread_ == Stream::this_thread())
        return {};
    return {recording->thread_.empty() ? "another thread" : "the thread '" + recording->thread_ + "'",
            recording->has_thread_ended_};
}

void Recording::add(NodePtr node, std::span<const void* const> addresses) {
    memory_->add(addresses);
    nodes_.push_back(std::move(node));
}

void HostRecording::add(std::string name, std::function<void()> work, std::initializer_list<const void*> addresses) {
    add(std::make_unique<WorkNode>(std::move(name), std::move(work)), std::span(addresses.begin(), addresses.size()));
}

void Recording::join(Stream& stream) {
    if (stream.recording_ == this) return;
    if (stream.is_recorded())
        throw UsageError("wait_event()", "the event belongs to a capture, and the stream to another one");
    const std::lock_guard lock(recordings_mutex());
    take(stream);
}

void Recording::begin_branch(bool) {
    outer_.push_back({std::exchange(nodes_, {}), std::exchange(memory_, std::make_unique<KeptMemory>())});
}

std::shared_ptr<Graph> Recording::end_branch() {
    auto graph = std::make_shared<HostGraph>(stream().device(), std::exchange(nodes_, std::move(outer_.back().nodes)),
                                             std::exchange(memory_, std::move(outer_.back().memory)));
    outer_.pop_back();
    return graph;
}

std::shared_ptr<Graph> HostRecording::finish() {
    WEFT_CHECK(outer_.empty(), "a capture ends within a branch");
    return std::make_shared<HostGraph>(stream().device(), std::move(nodes_), std::move(memory_));
}

Recording* find_recording(std::uint64_t number) {
    for (Recording* recording : own_recordings())
        if (recording->number() == number) return recording;
    return nullptr;
}

namespace {

std::string left_by(const Recording::Owner& owner) {
    return ", by " + owner.thread +
           ", which has ended without capture_end(): the capture cannot be completed any more. help: use another "
           "stream, "
           "and wp.ScopedCapture() or capture_end() in the thread that begins";
}

}  // namespace

void refuse_second_recording(const Stream& stream) {
    if (!stream.is_recorded()) return;
    const Recording::Owner other = Recording::owner_of(stream);
    std::string text = "the stream of '" + stream.device().alias + "' is being captured already";
    if (other.has_ended)
        text += left_by(other);
    else if (!other.thread.empty())
        text += ", by " + other.thread + ". help: capture on a stream of its own";
    else
        text += ". help: capture_end() first, or capture on a stream of its own";
    throw UsageError("capture_begin()", text);
}

void begin_recording(Stream& stream, const CaptureOptions& options) {
    end_abandoned_recordings();
    refuse_second_recording(stream);
    new HostRecording(stream, options);  // end_recording() deletes it
}

std::shared_ptr<Graph> end_recording(Stream& stream) {
    if (!stream.is_recorded()) {
        throw UsageError("capture_end()", "nothing is being captured on this stream of '" + stream.device().alias +
                                              "'. help: capture_begin() first, with the same device and stream");
    }
    Recording* const found = stream.recording();
    if (!found) {
        const Recording::Owner other = Recording::owner_of(stream);
        throw UsageError("capture_end()",
                         other.has_ended
                             ? "the stream of '" + stream.device().alias + "' is being captured" + left_by(other)
                             : "another thread has begun this capture, and has to end it: " + other.thread);
    }
    if (&found->stream() != &stream) {
        throw UsageError("capture_end()",
                         "the stream has joined a capture of another stream. help: capture_end() with that one");
    }
    if (found->is_in_branch())
        throw UsageError("capture_end()",
                         "the body of a condition is being captured, which ends with it. help: capture_end() behind "
                         "capture_if() or capture_while()");
    const std::unique_ptr<Recording> recording(found);
    return recording->finish();
}

void drop_recording(Stream& stream) noexcept {
    Recording* const found = Recording::begun_here(stream);
    if (found && &found->stream() == &stream) delete found;
}

void count_write(const BufferPtr& buffer) {
    ++buffer->version;
    if (Recording* const recording = current_recording(*buffer->device)) recording->memory().note_written(buffer);
}

void count_write_by_graph(const BufferPtr& buffer, const Device& device) {
    if (!buffer || buffer->device == &device) return;
    if (Recording* const recording = current_recording(device)) recording->memory().note_written(buffer);
}

void refuse_beside_recording(const Device& device, std::string_view api, std::string_view what) {
    if (current_recording(device)) return;
    for (const Recording* recording : own_recordings()) {
        const Device& captured = recording->stream().device();
        if (&captured == &device) continue;
        throw UsageError(api, std::string(what) + " is of '" + device.alias + "', and a graph is being captured on '" +
                                  captured.alias + "', which would not have it. help: one of '" + captured.alias +
                                  "', or call " + std::string(api) + " outside of the capture");
    }
}

void refuse_recording(const Device& device, std::string_view api, std::string_view help) {
    if (!current_recording(device)) return;
    throw UsageError(api, "a graph is being captured, and its launches have not run. help: " + std::string(help));
}

}  // namespace weft::runtime
