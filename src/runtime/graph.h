// Graphs: work that was recorded once, to be done again and again without the host.
//
// While a thread captures a stream, the stream has a Recording, which becomes a Graph. For work that the host does, a
// HostRecording takes what the thread puts into its streams, as nodes in that order. A device that captures by itself
// (runtime/cuda/capture.h) gets the work as ever; the nodes of its Recording describe that work, for pictures and for
// what is to be looked at when it is done.
//
// What the nodes read and write stays as long as the graph: memory that everybody else has left goes to the graph
// (keep_for_graphs). So a node need not know who owns what it touches.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "runtime/array.h"
#include "runtime/device.h"

namespace weft::runtime {

class Graph;

// A piece of work.
class Node {
public:
    explicit Node(std::string name) : name_(std::move(name)) {}
    virtual ~Node() = default;
    Node(const Node&) = delete;
    Node& operator=(const Node&) = delete;

    const std::string& name() const { return name_; }
    // Of a graph that the host runs.
    virtual void run() = 0;
    // Whether it may run as one with the nodes before it, which do so with each other; then the first of all is asked
    // to run them.
    virtual bool joins(std::span<const std::unique_ptr<Node>> /*before*/) const { return false; }
    virtual void run_joined(std::span<const std::unique_ptr<Node>> /*all*/) {}
    virtual std::string details() const { return {}; }
    // The graphs that it may run.
    virtual std::vector<std::pair<std::string, const Graph*>> children() const { return {}; }
    // Of a graph that its device runs: whether its work may find a fault, and, when that is done, the fault as an
    // exception. Those of its children are asked, too.
    virtual bool may_fail() const { return false; }
    virtual void throw_fault() {}
    // Of a graph that its device runs: puts its work into the stream, which is captured, so that it becomes a node of
    // that graph too. What the node refers to is kept alive by its own graph.
    virtual void put_again(Stream& stream);

private:
    std::string name_;
};
using NodePtr = std::unique_ptr<Node>;

// One from a function.
class WorkNode final : public Node {
public:
    WorkNode(std::string name, std::function<void()> work) : Node(std::move(name)), work_(std::move(work)) {}
    void run() override { work_(); }

private:
    std::function<void()> work_;
};

class Graph {
public:
    virtual ~Graph() = default;
    Graph(const Graph&) = delete;
    Graph& operator=(const Graph&) = delete;

    Device& device() const { return device_; }
    // Puts all of its work into the stream. Throws what the work of a HostGraph does.
    virtual void launch(Stream& stream) = 0;
    // In the language of Graphviz. `verbose`: with what is known of each node beyond its name.
    std::string dot(bool verbose) const;
    std::size_t size() const { return nodes_.size(); }
    // Puts the work of its nodes, one after the other, into a stream that is captured.
    void put_again(Stream& stream) const;
    // Of a graph that its device runs, after its stream has been synchronized.
    bool may_fail() const { return may_fail_; }
    void throw_fault() const;

protected:
    Graph(Device& device, std::vector<NodePtr> nodes);

    const std::vector<NodePtr> nodes_;

private:
    // Whether the node with this number runs piece by piece with the one before it.
    virtual bool joins_the_one_before(std::size_t /*node*/) const { return false; }

    Device& device_;
    bool may_fail_;
};

// The memory that nodes use, while somebody may run them.
class KeptMemory {
public:
    KeptMemory();
    ~KeptMemory();
    KeptMemory(const KeptMemory&) = delete;
    KeptMemory& operator=(const KeptMemory&) = delete;

    // Memory in which these addresses lie.
    void add(std::span<const void* const> addresses);
    // Whatever it is.
    void hold(std::shared_ptr<const void> object);
    // Memory that a launch of the nodes writes to: each launch counts as a write (Buffer::version).
    void note_written(const BufferPtr& buffer);
    void count_writes() const;
    // What `other` keeps, which is empty then.
    void take(KeptMemory& other);

private:
    friend bool keep_for_graphs(Buffer& buffer);
    bool uses(const Buffer& buffer) const;

    std::vector<const void*> addresses_;  // sorted
    std::vector<std::shared_ptr<const void>> held_;
    std::vector<std::weak_ptr<Buffer>> written_;
    std::vector<BufferPtr> freed_;
};

class HostGraph final : public Graph {
public:
    HostGraph(Device& device, std::vector<NodePtr> nodes, std::unique_ptr<KeptMemory> memory);

    void launch(Stream& stream) override;

private:
    bool joins_the_one_before(std::size_t node) const override;

    std::vector<std::size_t> joined_;  // how many nodes run as one, from the first on
    std::unique_ptr<KeptMemory> memory_;
};

// What a condition chooses from: one body that is repeated, or one or two of which one is done.
enum class ConditionKind { repeat, choose };
struct Branches {
    bool on_true = true;  // the one that is repeated, too
    bool on_false = false;
};

class Recording {
public:
    virtual ~Recording();
    Recording(const Recording&) = delete;
    Recording& operator=(const Recording&) = delete;

    // Whether the host will run the nodes. Else the device has their work from whoever adds them.
    virtual bool runs_nodes() const = 0;
    // `addresses`: what the node reads and writes.
    void add(NodePtr node, std::span<const void* const> addresses);
    // A node that does `work`: when the graph runs; on a device that captures by itself, at once, into streams that are
    // captured.
    virtual void add(std::string name, std::function<void()> work, std::initializer_list<const void*> addresses) = 0;
    KeptMemory& memory() { return *memory_; }
    // Another stream, whose work comes after what has been recorded.
    virtual void join(Stream& stream);
    // For the last owner of a stream: deletes it. One that belongs to a capture stays as long as that: whatever thread
    // lets go of it, the capture goes on. Where a thread lets go of the stream in which it captures, or that thread has
    // ended, nobody can end the capture any more, and it is lost.
    static void let_go(Stream* stream) noexcept;

    // A condition, by element 0 of an array of int32 when the graph runs: begun before its bodies are captured, one
    // after the other, `on_true` (or the one that is repeated) and `on_false`, each between begin_branch() and
    // end_branch(); ended in any case, not complete after an exception. They nest. The node that has the bodies is
    // added by whoever asks for all this.
    virtual void begin_condition(const Array& condition, ConditionKind kind, Branches branches) = 0;
    virtual void begin_branch(bool on_true);
    virtual std::shared_ptr<Graph> end_branch();
    virtual void end_condition(bool is_complete) = 0;
    virtual bool is_in_branch() const { return !outer_.empty(); }

    // Of the nodes so far. The recording is over.
    virtual std::shared_ptr<Graph> finish() = 0;
    // Whether another library has begun the capture, and ends it: then it is that of every thread.
    bool is_external() const { return is_external_; }
    // Who records the stream, where it is another thread.
    struct Owner {
        std::string thread;      // in words; empty where it is this one, or nobody
        bool has_ended = false;  // the thread: nobody can end the recording any more
    };
    static Owner owner_of(const Stream& stream);
    // That of this thread, which it has begun by Weft; null where it has begun none. Asks no driver.
    static Recording* begun_here(const Stream& stream);
    // Not 0, and no other one's.
    std::uint64_t number() const { return number_; }
    Stream& stream() const { return *streams_.front(); }

protected:
    // Of the work that this thread puts into the stream.
    Recording(Stream& stream, const CaptureOptions& options);
    // Of what anybody puts into it: the stream finds the recording by itself.
    struct External {};
    Recording(Stream& stream, External);

    // The streams are recorded no more, each by release().
    void release_streams() noexcept;
    virtual void release(Stream& stream) noexcept;

    std::vector<Stream*> streams_;  // the first one is that of the capture
    std::vector<NodePtr> nodes_;
    std::unique_ptr<KeptMemory> memory_;
    struct Branch {
        std::vector<NodePtr> nodes;
        std::unique_ptr<KeptMemory> memory;
    };
    std::vector<Branch> outer_;

private:
    friend struct OwnRecordings;
    friend void end_abandoned_recordings() noexcept;
    // With the lock of all recordings.
    void take(Stream& stream);

    const std::string thread_;       // the name of the one whose work it is
    bool has_thread_ended_ = false;  // with the lock: nobody can end the recording any more
    bool is_external_ = false;
    std::uint64_t number_;
    std::vector<std::unique_ptr<Stream>> left_;  // by those who had them
};

class HostRecording final : public Recording {
public:
    HostRecording(Stream& stream, const CaptureOptions& options) : Recording(stream, options) {}

    bool runs_nodes() const override { return true; }
    using Recording::add;
    void add(std::string name, std::function<void()> work, std::initializer_list<const void*> addresses) override;
    void begin_condition(const Array&, ConditionKind, Branches) override {}
    void end_condition(bool) override {}
    std::shared_ptr<Graph> finish() override;
};

// The one of this thread with the number; null where it is over.
Recording* find_recording(std::uint64_t number);

// What would be done at once, on `device`, while this thread captures another one: throws UsageError.
void refuse_beside_recording(const Device& device, std::string_view api, std::string_view what);

// Those of this thread whose stream another thread has let go of: nobody can end them.
void end_abandoned_recordings() noexcept;
// Ends all recordings of this thread, which is about to end itself: their graphs are lost. The names of their devices.
std::vector<std::string> end_recordings_of_thread();
// For Device::begin_capture(): throws UsageError where the stream is recorded.
void refuse_second_recording(const Stream& stream);
// For devices whose work the host does: Device::begin_capture().
void begin_recording(Stream& stream, const CaptureOptions& options);
// Device::end_capture().
std::shared_ptr<Graph> end_recording(Stream& stream);
// The same where nobody wants the graph, after an exception: throws nothing.
void drop_recording(Stream& stream) noexcept;

// While it lives, what this thread does is done, and not recorded: a graph runs, or is prepared.
class WithoutRecording {
public:
    WithoutRecording();
    ~WithoutRecording();
    WithoutRecording(const WithoutRecording&) = delete;
    WithoutRecording& operator=(const WithoutRecording&) = delete;
};

// What records the work of this thread for a device; null where nobody does.
inline Recording* current_recording(const Device& device) { return current_stream(device).recording(); }

// After the memory has been written to, or what writes to it has been recorded: Buffer::version.
void count_write(const BufferPtr& buffer);
// Throws UsageError where the work of this thread is recorded: `api` would need numbers that are not there yet.
void refuse_recording(const Device& device, std::string_view api, std::string_view help);

// True where a graph uses the memory, and has taken what frees it. For Buffer's destructor.
bool keep_for_graphs(Buffer& buffer);

}  // namespace weft::runtime
