#include "runtime/graph.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <utility>

#include "runtime/timing.h"
#include "support/error.h"

namespace weft::runtime {
namespace {

// Number of KeptMemory objects: without any, freeing memory skips the lock.
std::atomic<int> kept_count{0};

struct KeptMemoryRegistry {
    std::mutex mutex;
    std::vector<KeptMemory*> memories;
};
// Never freed: arrays may outlive static objects.
KeptMemoryRegistry& all_kept() {
    static KeptMemoryRegistry& made = *new KeptMemoryRegistry;
    return made;
}

constinit thread_local int without_recording = 0;

// Guards the start and end of recordings, and the release of streams that another thread may record.
std::mutex& recordings_mutex() {
    static std::mutex& made = *new std::mutex;
    return made;
}
std::atomic<std::uint64_t> last_number{0};

// Unique to this thread: the system reuses its own numbers of threads.
std::uint64_t thread_number() {
    static std::atomic<std::uint64_t> last{0};
    thread_local const std::uint64_t own = ++last;
    return own;
}

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

// ---- memory ----

KeptMemory::KeptMemory() {
    const std::lock_guard lock(all_kept().mutex);
    all_kept().memories.push_back(this);
    ++kept_count;
}

// Memory that is released now may be used by another graph, which then keeps it.
KeptMemory::~KeptMemory() {
    const std::lock_guard lock(all_kept().mutex);
    std::erase(all_kept().memories, this);
    --kept_count;
}

void KeptMemory::add(std::span<const void* const> addresses) {
    const std::lock_guard lock(all_kept().mutex);
    for (const void* address : addresses) {
        const auto at = std::ranges::lower_bound(addresses_, address, std::less<>());
        if (address && (at == addresses_.end() || *at != address)) addresses_.insert(at, address);
    }
}

void KeptMemory::hold(std::shared_ptr<const void> object) {
    if (std::ranges::find(held_, object) == held_.end()) held_.push_back(std::move(object));
}

void KeptMemory::note_written(const BufferPtr& buffer) {
    for (const std::weak_ptr<Buffer>& known : written_)
        if (!known.owner_before(buffer) && !buffer.owner_before(known)) return;
    written_.push_back(buffer);
}

void KeptMemory::count_writes() const {
    for (const std::weak_ptr<Buffer>& each : written_)
        if (const BufferPtr buffer = each.lock()) ++buffer->version;
}

void KeptMemory::take(KeptMemory& other) {
    add(other.addresses_);
    for (std::shared_ptr<const void>& object : other.held_) hold(std::move(object));
    for (const std::weak_ptr<Buffer>& each : other.written_)
        if (const BufferPtr buffer = each.lock()) note_written(buffer);
    const std::lock_guard lock(all_kept().mutex);
    freed_.insert(freed_.end(), other.freed_.begin(), other.freed_.end());
    other.freed_.clear();
}

bool KeptMemory::uses(const Buffer& buffer) const {
    const auto first = std::ranges::lower_bound(addresses_, buffer.data, std::less<>());
    return first != addresses_.end() &&
           std::less<>()(*first,
                         static_cast<const void*>(static_cast<const std::byte*>(buffer.data) + buffer.size_bytes));
}

// The buffer is being destroyed: a new one takes over its memory.
bool keep_for_graphs(Buffer& buffer) {
    if (kept_count.load(std::memory_order_relaxed) == 0 || !buffer.data) return false;
    const std::lock_guard lock(all_kept().mutex);
    const auto user =
        std::ranges::find_if(all_kept().memories, [&](const KeptMemory* memory) { return memory->uses(buffer); });
    if (user == all_kept().memories.end()) return false;
    auto kept = std::make_shared<Buffer>();
    kept->data = buffer.data;
    kept->size_bytes = buffer.size_bytes;
    kept->device = buffer.device;
    kept->release = std::exchange(buffer.release, {});
    kept->watched = std::exchange(buffer.watched, 0);
    kept->references.add_all(buffer.references, *kept);
    (*user)->freed_.push_back(std::move(kept));
    return true;
}

// ---- graphs ----

HostGraph::HostGraph(Device& device, std::vector<NodePtr> nodes, std::unique_ptr<KeptMemory> memory)
    : Graph(device, std::move(nodes)), memory_(std::move(memory)) {
    constexpr std::size_t kMost = 64;  // limits comparisons, as each node is compared with its whole group
    for (std::size_t i = 0, first = 0; i < nodes_.size(); ++i) {
        const std::span before(nodes_.data() + first, i - first);
        if (!before.empty() && before.size() < kMost && nodes_[i]->can_fuse(before)) {
            ++fused_.back();
        } else {
            fused_.push_back(1);
            first = i;
        }
    }
}

bool HostGraph::joins_the_one_before(std::size_t node) const {
    std::size_t first = 0;
    for (const std::size_t count : fused_) {
        if (node < first + count) return node > first;
        first += count;
    }
    return false;
}

void HostGraph::launch(Stream&) {
    const WithoutRecording without;
    const TimedHostWork timed(device(), kTimedGraph, "graph");
    memory_->count_writes();
    const NodePtr* node = nodes_.data();
    for (const std::size_t count : fused_) {
        if (count == 1)
            (*node)->run();
        else
            (*node)->run_joined({node, count});
        node += count;
    }
}

namespace {

std::string quoted(const std::string& text) {
    std::string result = "\"";
    for (const char letter : text) {
        if (letter == '"' || letter == '\\') result += '\\';
        result += letter == '\n' ? std::string("\\n") : std::string(1, letter);
    }
    return result + "\"";
}

}  // namespace

Graph::Graph(Device& device, std::vector<NodePtr> nodes)
    : nodes_(std::move(nodes)), device_(device), may_fail_(std::ranges::any_of(nodes_, [](const NodePtr& node) {
          return node->may_fail() ||
                 std::ranges::any_of(node->children(), [](const auto& child) { return child.second->may_fail(); });
      })) {}

void Node::enqueue_into(Stream&) { throw InternalError("the node '" + name_ + "' cannot be captured again"); }

void Graph::enqueue_into(Stream& stream) const {
    for (const NodePtr& node : nodes_) node->enqueue_into(stream);
}

void Graph::throw_fault() const {
    if (!may_fail_) return;
    for (const NodePtr& node : nodes_) {
        node->throw_fault();
        for (const auto& [branch, child] : node->children()) child->throw_fault();
    }
}

std::string Graph::dot(bool verbose) const {
    std::string text;
    int count = 0;
    const std::function<void(const Graph&, const std::string&)> write = [&](const Graph& graph,
                                                                            const std::string& indent) {
        int before = -1;
        for (std::size_t i = 0; i < graph.nodes_.size(); ++i) {
            const NodePtr& node = graph.nodes_[i];
            const int number = count++;
            std::string label = node->name();
            if (const std::string more = node->details(); verbose && !more.empty()) label += "\n" + more;
            if (verbose && graph.joins_the_one_before(i)) label += "\npiece by piece with the one before";
            text += indent + "node" + std::to_string(number) + " [label=" + quoted(label) + "];\n";
            if (before >= 0)
                text += indent + "node" + std::to_string(before) + " -> node" + std::to_string(number) + ";\n";
            before = number;
            for (const auto& [branch, child] : node->children()) {
                const int first = count;
                text += indent + "subgraph cluster" + std::to_string(first) + " {\n";
                text += indent + "    label=" + quoted(branch) + ";\n";
                write(*child, indent + "    ");
                text += indent + "}\n";
                if (count > first)
                    text += indent + "node" + std::to_string(number) + " -> node" + std::to_string(first) +
                            " [label=" + quoted(branch) + "];\n";
            }
        }
    };
    write(*this, "    ");
    return "digraph graph_of_" + device().alias.substr(0, device().alias.find(':')) + " {\n    node [shape=box];\n" +
           text + "}\n";
}

// ---- recording ----

Recording* Stream::recording_here(Recording* any) const {
    if (without_recording != 0) return nullptr;
    if (any == shared_mark()) return const_cast<Stream*>(this)->find_recording();
    return recording_thread_.load(std::memory_order_relaxed) == thread_number() ? any : nullptr;
}

void Stream::share() {
    idle_ = shared_mark();
    Recording* nobody = nullptr;
    recording_.compare_exchange_strong(nobody, idle_);
}

Stream::~Stream() { drop_recording(*this); }

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
    stream.recording_thread_.store(thread_number(), std::memory_order_relaxed);
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
            if (is_first && recording->has_thread_ended_)
                ended = recording;
            else if (!is_first || stream->recording_thread_ != thread_number())
                return static_cast<void>(recording->left_.emplace_back(stream));
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
    if (!recording || recording == Stream::shared_mark() || stream.recording_thread_ == thread_number()) return {};
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

WithoutRecording::WithoutRecording() { ++without_recording; }
WithoutRecording::~WithoutRecording() { --without_recording; }

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
