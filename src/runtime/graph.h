// Graphs: work that was recorded once, to be done again and again without the host.
//
// A device that has graphs of its own records by itself (its streams have no Recording). For work that the host does, a
// Recording takes what a thread puts into its streams, as nodes in that order, and becomes a HostGraph.
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
#include <thread>
#include <vector>

#include "runtime/array.h"
#include "runtime/device.h"

namespace weft::runtime {

class Graph {
public:
    virtual ~Graph() = default;
    Graph(const Graph&) = delete;
    Graph& operator=(const Graph&) = delete;

    Device& device() const { return device_; }
    // Puts all of its work into the stream. Throws what the work does.
    virtual void launch(Stream& stream) = 0;
    // In the language of Graphviz. `verbose`: with what is known of each node beyond its name.
    virtual std::string dot(bool verbose) const = 0;

protected:
    explicit Graph(Device& device) : device_(device) {}

private:
    Device& device_;
};

// A piece of work that the host does.
class Node {
public:
    explicit Node(std::string name) : name_(std::move(name)) {}
    virtual ~Node() = default;
    Node(const Node&) = delete;
    Node& operator=(const Node&) = delete;

    const std::string& name() const { return name_; }
    virtual void run() = 0;
    virtual std::string details() const { return {}; }
    // The graphs that it may run.
    virtual std::vector<std::pair<std::string, const Graph*>> children() const { return {}; }

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
    HostGraph(Device& device, std::vector<NodePtr> nodes, std::unique_ptr<KeptMemory> memory)
        : Graph(device), nodes_(std::move(nodes)), memory_(std::move(memory)) {}

    void launch(Stream& stream) override;
    std::string dot(bool verbose) const override;
    std::size_t size() const { return nodes_.size(); }

private:
    std::vector<NodePtr> nodes_;
    std::unique_ptr<KeptMemory> memory_;
};

class Recording {
public:
    // Of the work that this thread puts into the stream.
    explicit Recording(Stream& stream);
    ~Recording();
    Recording(const Recording&) = delete;
    Recording& operator=(const Recording&) = delete;

    // `addresses`: what the node reads and writes.
    void add(NodePtr node, std::span<const void* const> addresses);
    void add(std::string name, std::function<void()> work, std::initializer_list<const void*> addresses);
    KeptMemory& memory() { return *memory_; }
    // Another stream, whose work comes after what has been recorded.
    void join(Stream& stream);
    // The stream is gone.
    void leave(Stream& stream);
    // A graph of the nodes that are added between these two, as a branch of a condition. They nest.
    void begin_branch();
    std::shared_ptr<Graph> end_branch();
    // Of the nodes so far. The recording is over.
    std::shared_ptr<Graph> finish();
    // Not 0, and no other one's.
    std::uint64_t number() const { return number_; }
    bool is_of_this_thread() const { return owner_ == std::this_thread::get_id(); }
    Stream& stream() const { return *streams_.front(); }

private:
    std::thread::id owner_;
    std::uint64_t number_;
    std::vector<Stream*> streams_;
    std::vector<NodePtr> nodes_;
    std::unique_ptr<KeptMemory> memory_;
    struct Branch {
        std::vector<NodePtr> nodes;
        std::unique_ptr<KeptMemory> memory;
    };
    std::vector<Branch> outer_;
};

// The one of this thread with the number; null where it is over.
Recording* find_recording(std::uint64_t number);

// For devices whose work the host does: Device::begin_capture() and end_capture().
void begin_recording(Stream& stream);
std::shared_ptr<Graph> end_recording(Stream& stream);

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
