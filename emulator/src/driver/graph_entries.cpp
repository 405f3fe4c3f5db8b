// The driver's functions of graphs.
#include <algorithm>
#include <cstdio>

#include "driver/capture.h"
#include "driver/graph_launch.h"
#include "driver/state.h"
#include "driver/task.h"

namespace weft::emulator {

struct UserObjectHandle {
    std::shared_ptr<UserObject> object;
    unsigned int uses = 0;
};

namespace {

// A graph of the program, the target of a stream's capture, or a condition's body in one of these.
Graph& known_graph(State& state, CUgraph graph) {
    const std::function<bool(const Graph&)> holds = [&](const Graph& inner) {
        return &inner == graph || std::ranges::any_of(inner.nodes, [&](const auto& node) {
            return std::ranges::any_of(node->bodies, [&](const auto& body) { return holds(*body); });
        });
    };
    require(graph && std::ranges::any_of(state.graphs, [&](const auto& one) { return holds(*one.second); }),
            CUDA_ERROR_INVALID_VALUE);
    return *graph;
}

std::vector<GraphNode*> known_nodes(const Graph& graph, const CUgraphNode* nodes, size_t count) {
    require(nodes || count == 0);
    for (size_t i = 0; i < count; ++i) require(nodes[i] && nodes[i]->graph == &graph);
    return {nodes, nodes + count};
}

std::unique_ptr<Graph> cloned(const Graph& graph) {
    auto copy = std::make_unique<Graph>();
    copy->context = graph.context;
    copy->conditions = graph.conditions;
    copy->objects = graph.objects;
    copy->memory = graph.memory;
    std::map<const GraphNode*, GraphNode*> same;
    for (const std::unique_ptr<GraphNode>& node : graph.nodes) {
        GraphNode* made = same[node.get()] = copy->add(node->type, {}, node->work);
        made->event = node->event;
        for (const std::unique_ptr<Graph>& body : node->bodies) made->bodies.push_back(cloned(*body));
    }
    for (const std::unique_ptr<GraphNode>& node : graph.nodes) {
        for (const GraphNode* before : node->after) same[node.get()]->after.push_back(same.at(before));
    }
    return copy;
}

GraphNode* add_child(Graph& graph, std::vector<GraphNode*> after, const Graph& child) {
    for (const int type : {CU_GRAPH_NODE_TYPE_MEM_ALLOC, CU_GRAPH_NODE_TYPE_MEM_FREE, CU_GRAPH_NODE_TYPE_CONDITIONAL})
        require(!child.has(type, true));
    GraphNode* node = graph.add(CU_GRAPH_NODE_TYPE_GRAPH, std::move(after));
    node->bodies.push_back(cloned(child));
    return node;
}

GraphNode* add_condition(Graph& graph, std::vector<GraphNode*> after, CUDA_CONDITIONAL_NODE_PARAMS& asked) {
    const bool is_loop = asked.type == CU_GRAPH_COND_TYPE_WHILE;
    require((is_loop || asked.type == CU_GRAPH_COND_TYPE_IF) && asked.size >= 1 && asked.size <= (is_loop ? 1 : 2));
    require(asked.handle != 0 && asked.ctx == graph.context);
    GraphNode* node = graph.add(CU_GRAPH_NODE_TYPE_CONDITIONAL, std::move(after));
    node->handle = asked.handle;
    node->is_loop = is_loop;
    // the program reads them from an array that the driver owns
    auto bodies = std::make_shared<std::vector<CUgraph>>();
    for (unsigned int i = 0; i < asked.size; ++i) {
        node->bodies.push_back(std::make_unique<Graph>());
        node->bodies.back()->context = graph.context;
        bodies->push_back(node->bodies.back().get());
    }
    asked.phGraph_out = bodies->data();
    graph.memory.push_back(std::move(bodies));
    return node;
}

// Checks that a condition's bodies have only allowed nodes, and that each handle belongs to a node.
void check_bodies(const Graph& graph, bool is_inside) {
    for (const Condition& condition : graph.conditions)
        require(std::ranges::any_of(graph.nodes, [&](const auto& node) { return node->handle == condition.handle; }));
    for (const std::unique_ptr<GraphNode>& node : graph.nodes) {
        const bool is_condition = node->type == CU_GRAPH_NODE_TYPE_CONDITIONAL;
        require(!is_inside || is_condition || node->type == CU_GRAPH_NODE_TYPE_KERNEL ||
                    node->type == CU_GRAPH_NODE_TYPE_MEMCPY || node->type == CU_GRAPH_NODE_TYPE_MEMSET ||
                    node->type == CU_GRAPH_NODE_TYPE_GRAPH || node->type == CU_GRAPH_NODE_TYPE_EMPTY,
                CUDA_ERROR_NOT_SUPPORTED);
        for (const std::unique_ptr<Graph>& body : node->bodies) check_bodies(*body, is_inside || is_condition);
    }
}

GraphExec& known_exec(State& state, CUgraphExec exec) {
    require(state.executables.contains(exec), CUDA_ERROR_INVALID_VALUE);
    return *exec;
}

const char* name_of_type(int type) {
    switch (type) {
        case CU_GRAPH_NODE_TYPE_KERNEL:
            return "kernel";
        case CU_GRAPH_NODE_TYPE_MEMCPY:
            return "memcpy";
        case CU_GRAPH_NODE_TYPE_MEMSET:
            return "memset";
        case CU_GRAPH_NODE_TYPE_HOST:
            return "host";
        case CU_GRAPH_NODE_TYPE_GRAPH:
            return "graph";
        case CU_GRAPH_NODE_TYPE_MEM_ALLOC:
            return "mem_alloc";
        case CU_GRAPH_NODE_TYPE_MEM_FREE:
            return "mem_free";
        case CU_GRAPH_NODE_TYPE_EVENT_RECORD:
            return "event_record";
        case CU_GRAPH_NODE_TYPE_WAIT_EVENT:
            return "event_wait";
        case CU_GRAPH_NODE_TYPE_CONDITIONAL:
            return "conditional";
        default:
            return "empty";
    }
}

}  // namespace

extern "C" {

CUresult cuGraphCreate(CUgraph* graph, unsigned int flags) {
    return locked([&](State& state) {
        require(graph && flags == 0);
        auto made = std::make_unique<Graph>();
        made->context = &current_context();
        *graph = made.get();
        state.graphs[*graph] = std::move(made);
    });
}

CUresult cuGraphDestroy(CUgraph graph) {
    return locked([&](State& state) { require(state.graphs.erase(graph)); });
}

CUresult cuGraphAddNode_v2(CUgraphNode* node, CUgraph graph, const CUgraphNode* dependencies, const CUgraphEdgeData*,
                           size_t count, CUgraphNodeParams* asked) {
    return locked([&](State& state) {
        require(node && asked);
        Graph& found = known_graph(state, graph);
        std::vector<GraphNode*> after = known_nodes(found, dependencies, count);
        switch (asked->type) {
            case CU_GRAPH_NODE_TYPE_EMPTY:
                *node = found.add(CU_GRAPH_NODE_TYPE_EMPTY, std::move(after));
                break;
            case CU_GRAPH_NODE_TYPE_GRAPH:
                *node = add_child(found, std::move(after), known_graph(state, asked->graph.graph));
                break;
            case CU_GRAPH_NODE_TYPE_CONDITIONAL:
                *node = add_condition(found, std::move(after), asked->conditional);
                break;
            default:
                fail(CUDA_ERROR_NOT_SUPPORTED);
        }
    });
}

CUresult cuGraphAddChildGraphNode(CUgraphNode* node, CUgraph graph, const CUgraphNode* dependencies, size_t count,
                                  CUgraph child) {
    return locked([&](State& state) {
        require(node);
        Graph& found = known_graph(state, graph);
        *node = add_child(found, known_nodes(found, dependencies, count), known_graph(state, child));
    });
}

CUresult cuGraphConditionalHandleCreate(CUgraphConditionalHandle* handle, CUgraph graph, CUcontext context,
                                        unsigned int initial, unsigned int flags) {
    return locked([&](State& state) {
        require(handle && flags <= CU_GRAPH_COND_ASSIGN_DEFAULT);
        Graph& found = known_graph(state, graph);
        require(!context || context == found.context, CUDA_ERROR_INVALID_CONTEXT);
        static CUgraphConditionalHandle last = 0;
        *handle = ++last;
        found.conditions.push_back({*handle, initial, flags == CU_GRAPH_COND_ASSIGN_DEFAULT});
    });
}

CUresult cuGraphGetNodes(CUgraph graph, CUgraphNode* nodes, size_t* count) {
    return locked([&](State& state) {
        require(count);
        const Graph& found = known_graph(state, graph);
        for (size_t i = 0; nodes && i < *count; ++i) nodes[i] = i < found.nodes.size() ? found.nodes[i].get() : nullptr;
        if (!nodes || *count > found.nodes.size()) *count = found.nodes.size();
    });
}

CUresult cuGraphNodeGetType(CUgraphNode node, CUgraphNodeType* type) {
    return locked([&](State& state) {
        require(node && type);
        known_graph(state, node->graph);
        *type = node->type;
    });
}

CUresult cuGraphDebugDotPrint(CUgraph graph, const char* path, unsigned int) {
    return locked([&](State& state) {
        require(path);
        const Graph& found = known_graph(state, graph);
        std::FILE* file = std::fopen(path, "w");
        require(file);
        std::map<const GraphNode*, size_t> numbers;
        std::fprintf(file, "digraph dot {\n");
        for (const std::unique_ptr<GraphNode>& node : found.nodes) {
            const size_t number = numbers[node.get()] = numbers.size();
            std::fprintf(file, "    node%zu [label=\"%s\"];\n", number, name_of_type(node->type));
            for (const GraphNode* before : node->after)
                std::fprintf(file, "    node%zu -> node%zu;\n", numbers.at(before), number);
        }
        std::fprintf(file, "}\n");
        std::fclose(file);
    });
}

CUresult cuGraphInstantiateWithFlags(CUgraphExec* exec, CUgraph graph, unsigned long long) {
    return locked([&](State& state) {
        require(exec);
        const Graph& found = known_graph(state, graph);
        check_bodies(found, false);
        auto made = std::make_shared<GraphExec>(found);
        *exec = made.get();
        state.executables[*exec] = std::move(made);
    });
}

CUresult cuGraphExecDestroy(CUgraphExec exec) {
    return locked([&](State& state) {
        known_exec(state, exec);
        state.executables.erase(exec);
    });
}

CUresult cuGraphUpload(CUgraphExec exec, CUstream stream) {
    return locked([&](State& state) {
        known_exec(state, exec);
        state.stream(stream);
    });
}

CUresult cuGraphLaunch(CUgraphExec exec, CUstream stream) {
    return entry([&] {
        TaskPtr last;
        {
            State& state = State::instance();
            const std::lock_guard lock(state.mutex);
            known_exec(state, exec);
            const std::shared_ptr<GraphExec> graph = state.executables.at(exec);
            Stream& into = *state.stream(stream);
            require(into.context == graph->context, CUDA_ERROR_INVALID_VALUE);
            require(!into.capture, CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
            require_no_implicit_capture(into);
            require_events(*graph);
            // The launches of one executable graph are ordered across streams.
            const TaskPtr first = Tasks::instance().put(into, nullptr, graph->last);
            last = graph->last = into.last = enqueue(graph, first);
        }
        Tasks::instance().settle(last);
    });
}

CUresult cuUserObjectCreate(CUuserObject* object, void* pointer, CUhostFn destroy, unsigned int uses,
                            unsigned int flags) {
    return locked([&](State&) {
        require(object && destroy && uses > 0 && flags == CU_USER_OBJECT_NO_DESTRUCTOR_SYNC);
        *object = new UserObjectHandle{std::make_shared<UserObject>(), uses};
        (*object)->object->pointer = pointer;
        (*object)->object->destroy = destroy;
    });
}

CUresult cuUserObjectRelease(CUuserObject object, unsigned int count) {
    return locked([&](State&) {
        require(object && count > 0 && count <= object->uses);
        object->uses -= count;
        if (object->uses == 0) delete object;
    });
}

// Each graph has one reference, even if it retains the object several times.
CUresult cuGraphRetainUserObject(CUgraph graph, CUuserObject object, unsigned int count, unsigned int flags) {
    return locked([&](State& state) {
        require(object && count > 0 && flags <= CU_GRAPH_USER_OBJECT_MOVE);
        known_graph(state, graph).objects.push_back(object->object);
        if (flags != CU_GRAPH_USER_OBJECT_MOVE) return;
        require(count <= object->uses);
        object->uses -= count;
        if (object->uses == 0) delete object;
    });
}

}  // extern "C"

}  // namespace weft::emulator
