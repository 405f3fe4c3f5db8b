#pragma once
// Graphs: ordered work, made by the capture of streams (capture.h) or node by node.
#include <cstddef>
#include <memory>
#include <vector>

#include "driver/abi.h"
#include "driver/work.h"

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
};

}  // namespace weft::emulator
