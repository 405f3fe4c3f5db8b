#pragma once
// Graphs: ordered work, made by the capture of streams or node by node.
//
// A stream that is being captured has no tasks of its own: its work becomes nodes, each after the stream's frontier. A
// stream joins a capture when it waits for an event that was recorded in the capture.
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
    CUdeviceptr memory = 0;   // the memory that it allocates or frees
    CUevent event = nullptr;  // the event that it records or waits for
};

// An object that a graph owns, until the graph and everything made from it are destroyed.
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
    bool is_assigned = false;  // the initial value is assigned at each launch
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

// An executable graph: the nodes as they were at its creation.
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
    TaskPtr last;  // its last launch; the next one waits for it

    explicit GraphExec(const Graph& graph);
    // Precondition: the state is locked. Adds a task for each node, so that other work may run between them. `first`
    // precedes all nodes; the returned task follows all. `self` must be this object.
    TaskPtr put(const std::shared_ptr<const GraphExec>& self, const TaskPtr& first) const;
    // Fails if an event of a node has been destroyed.
    void require_events() const;

private:
    // One run of a condition's body.
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

// Precondition: the state is locked. Adds the stream's next work to its capture as a node. Fails if the capture is
// invalid.
GraphNode* add_node(Stream& stream, int type, Work work);
// Adds a node of an event outside of the capture: each launch of the graph records it, or waits for it.
void add_event_node(Stream& stream, int type, CUevent event);
// Work of the legacy stream would wait for a stream that is being captured: this is an error and invalidates the
// capture.
void require_no_implicit_capture(Stream& stream);
// A call that might wait for a stream that is being captured: this is an error and invalidates the capture, unless the
// thread's mode allows it.
void require_no_unsafe_capture();
// For calls that wait for the stream, or for the whole context.
void require_not_captured(Stream& stream);
void require_nothing_captured(Context& context);
// For a stream that is destroyed, by itself or with its context: invalidates its capture.
void leave_capture(Stream& stream);

}  // namespace weft::emulator
