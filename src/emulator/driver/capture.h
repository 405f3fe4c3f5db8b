#pragma once
// Graphs: work with its order, made by the capture of streams or node by node.
//
// A captured stream has no tasks of its own: what is put into it becomes a node, which comes after the stream's
// frontier. Streams join a capture when they wait for an event that was recorded in it.
#include <cstdint>
#include <functional>
#include <memory>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "emulator/driver/abi.h"
#include "emulator/driver/task.h"

namespace weft::emulator {

struct GraphNode {
    int type = 0;  // CU_GRAPH_NODE_TYPE_…
    Graph* graph = nullptr;
    std::vector<GraphNode*> after;
    Work work;
    std::vector<std::unique_ptr<Graph>> bodies;  // of a child graph and of a condition
    CUgraphConditionalHandle handle = 0;         // of a condition
    bool is_loop = false;
    CUdeviceptr memory = 0;   // that it allocates or frees
    CUevent event = nullptr;  // that it records or waits for
};

// What a graph keeps alive, until it and all that was made from it are gone.
struct UserObject {
    void* pointer = nullptr;
    CUhostFn destroy = nullptr;
    ~UserObject() {
        if (destroy) destroy(pointer);
    }
};

struct Condition {
    CUgraphConditionalHandle handle = 0;
    unsigned int initial = 0;
    bool is_assigned = false;  // the initial value, at each launch
};

struct Graph {
    Context* context = nullptr;
    std::vector<std::unique_ptr<GraphNode>> nodes;
    std::vector<Condition> conditions;
    std::vector<std::shared_ptr<UserObject>> objects;
    std::vector<std::shared_ptr<void>> memory;  // of its own allocations

    GraphNode* add(int type, std::vector<GraphNode*> after, Work work = nullptr);
    bool has(int type, bool in_children) const;
};

// What is launched: the nodes as they were when it was made.
struct GraphExec {
    struct Node {
        int type = 0;
        std::vector<size_t> after;
        Work work;
        std::vector<GraphExec> bodies;
        CUgraphConditionalHandle handle = 0;
        bool is_loop = false;
        CUdeviceptr memory = 0;
        CUevent event = nullptr;
    };
    Context* context = nullptr;
    std::vector<Node> nodes;
    std::vector<Condition> conditions;
    std::vector<std::shared_ptr<UserObject>> objects;
    std::vector<std::shared_ptr<void>> memory;
    TaskPtr last;  // its last launch, which the next one waits for

    explicit GraphExec(const Graph& graph);
    // With the state locked: a task for each node, so that other work may fall between them. `first` comes before all;
    // the last one comes after all. `self` is what has to live as long.
    TaskPtr put(const std::shared_ptr<const GraphExec>& self, const TaskPtr& first) const;
    // Fails where an event that a node names is gone.
    void require_events() const;

private:
    // Of the body of a condition, once.
    class Pass;
    void assign_conditions() const;
    Pieces pieces_of(const Node& node) const;
};

struct Capture {
    uint64_t id = 0;
    int mode = 0;
    std::thread::id thread;
    Stream* origin = nullptr;
    Graph* graph = nullptr;
    std::set<Stream*> streams;
    bool is_invalid = false;
};

// With the state locked: what the stream's next task would be becomes a node. Fails where the capture is invalid.
GraphNode* add_node(Stream& stream, int type, Work work);
// The same of an event that lives outside of the capture: each launch of the graph records it, or waits for it.
void add_event_node(Stream& stream, int type, CUevent event);
// Work of the legacy stream would wait for a stream that is captured: an error, which ends the capture.
void require_no_implicit_capture(Stream& stream);
// A call that might wait for a stream that is captured: an error, which ends the capture, unless the thread's mode
// allows it.
void require_no_unsafe_capture();
// A call that waits for the stream, or for all of the context.
void require_not_captured(Stream& stream);
void require_nothing_captured(Context& context);
// The stream, or the context, is gone.
void leave_capture(Stream& stream);

}  // namespace weft::emulator
