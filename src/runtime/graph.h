// Graphs: work that is recorded once (recording.h) and launched many times without the host.
//
// If the host does the device's work, the graph is a HostGraph, whose nodes do the work in their order. A device that
// captures by itself (runtime/cuda/capture.h) has its own graph of the work. The nodes only describe that work: for
// pictures, and for faults to read after a launch.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "runtime/device.h"
#include "runtime/kept_memory.h"

namespace weft::runtime {

class Graph;

// A piece of recorded work.
class Node {
public:
    explicit Node(std::string name) : name_(std::move(name)) {}
    virtual ~Node() = default;
    Node(const Node&) = delete;
    Node& operator=(const Node&) = delete;

    const std::string& name() const { return name_; }
    // Does the work. Called for nodes of a HostGraph only.
    virtual void run() = 0;
    // Whether the node may be fused with `before`, which are fused already. run_joined() is then called on the first of
    // them, with all of them.
    virtual bool can_fuse(std::span<const std::unique_ptr<Node>> /*before*/) const { return false; }
    virtual void run_joined(std::span<const std::unique_ptr<Node>> /*all*/) {}
    virtual std::string details() const { return {}; }
    // The graphs that the node may run, each with the name of its branch.
    virtual std::vector<std::pair<std::string, const Graph*>> children() const { return {}; }
    // Of graphs that their device runs: whether the work may report a fault that is not late. throw_fault() throws the
    // fault of finished work. The graph asks the node's children itself.
    virtual bool may_fail() const { return false; }
    virtual void throw_fault() {}
    // Of graphs that their device runs: enqueues the work into a stream that is being captured, so that it becomes a
    // node of that graph too. The caller keeps the objects alive that the node refers to.
    virtual void enqueue_into(Stream& stream);

private:
    std::string name_;
};
using NodePtr = std::unique_ptr<Node>;

// A node that calls a function.
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
    // Enqueues all of its work. A HostGraph runs it before the call returns and throws its exceptions.
    virtual void launch(Stream& stream) = 0;
    // The graph in Graphviz's language. `verbose` adds the details of each node to its name.
    std::string dot(bool verbose) const;
    std::size_t size() const { return nodes_.size(); }
    // Enqueues the work of its nodes, in order, into a stream that is being captured.
    void enqueue_into(Stream& stream) const;
    // Of graphs that their device runs. throw_fault() is to be called after the stream has been synchronized.
    bool may_fail() const { return may_fail_; }
    void throw_fault() const;
    // Whether a program that launches it waits until it has run: else it would find less than the graph has done.
    virtual bool is_waited_for() const { return may_fail_; }

protected:
    Graph(Device& device, std::vector<NodePtr> nodes);

    const std::vector<NodePtr> nodes_;

private:
    // Whether this node runs fused with the one before it.
    virtual bool joins_the_one_before(std::size_t /*node*/) const { return false; }

    Device& device_;
    bool may_fail_;
};

class HostGraph final : public Graph {
public:
    HostGraph(Device& device, std::vector<NodePtr> nodes, std::unique_ptr<KeptMemory> memory);

    void launch(Stream& stream) override;

private:
    bool joins_the_one_before(std::size_t node) const override;

    std::vector<std::size_t> fused_;  // sizes of the groups of fused nodes, in order
    std::unique_ptr<KeptMemory> memory_;
};

}  // namespace weft::runtime
