// Graphs: their nodes and their execution.
#include <algorithm>
#include <cstdio>

#include "emulator/driver/capture.h"
#include "emulator/driver/state.h"
#include "emulator/engine/system.h"

namespace weft::emulator {

struct UserObjectHandle {
    std::shared_ptr<UserObject> object;
    unsigned int uses = 0;
};

GraphNode* Graph::add(int type, std::vector<GraphNode*> after, Work work) {
    nodes.push_back(std::make_unique<GraphNode>());
    GraphNode* node = nodes.back().get();
    node->type = type;
    node->graph = this;
    node->after = std::move(after);
    node->work = std::move(work);
    return node;
}

bool Graph::has(int type, bool in_children) const {
    return std::ranges::any_of(nodes, [&](const std::unique_ptr<GraphNode>& node) {
        return node->type == type || (in_children && std::ranges::any_of(node->bodies, [&](const auto& body) {
                                          return body->has(type, true);
                                      }));
    });
}

GraphExec::GraphExec(const Graph& graph)
    : context(graph.context), conditions(graph.conditions), objects(graph.objects), memory(graph.memory) {
    std::map<const GraphNode*, size_t> places;
    for (const std::unique_ptr<GraphNode>& node : graph.nodes) {
        places[node.get()] = nodes.size();
        Node& copied = nodes.emplace_back();
        copied.type = node->type;
        copied.work = node->work;
        copied.handle = node->handle;
        copied.is_loop = node->is_loop;
        copied.memory = node->memory;
        copied.event = node->event;
        for (const std::unique_ptr<Graph>& body : node->bodies) copied.bodies.emplace_back(*body);
    }
    for (const std::unique_ptr<GraphNode>& node : graph.nodes) {
        for (const GraphNode* before : node->after) nodes[places[node.get()]].after.push_back(places.at(before));
    }
}

void GraphExec::require_events() const {
    for (const Node& node : nodes) {
        if (node.event) State::instance().event(node.event);
        if (node.type == CU_GRAPH_NODE_TYPE_GRAPH) node.bodies.front().require_events();
    }
}

void GraphExec::assign_conditions() const {
    for (const Condition& condition : conditions) {
        if (condition.is_assigned) set_condition(condition.handle, condition.initial);
    }
}

// The order of independent nodes is adversarial, as that of tasks.
class GraphExec::Pass {
public:
    explicit Pass(const GraphExec& graph) : graph_(graph), missing_(graph.nodes.size()), next_(graph.nodes.size()) {
        graph.assign_conditions();
        for (size_t i = 0; i < graph.nodes.size(); ++i) {
            missing_[i] = graph.nodes[i].after.size();
            for (const size_t before : graph.nodes[i].after) next_[before].push_back(i);
            if (missing_[i] == 0) ready_.push_back(i);
        }
    }

    // True if it was suspended; the next call continues.
    bool go_on(const Deadline& deadline) {
        for (;;) {
            if (graph_.context->failed != CUDA_SUCCESS) return false;
            if (!pieces_) {
                if (ready_.empty()) return false;
                begin_next();
            }
            if (pieces_) {
                if (pieces_(deadline) != Progress::Done) {
                    if (deadline.has_passed()) return true;
                    continue;
                }
                pieces_ = nullptr;
            }
            for (const size_t later : next_[current_]) {
                if (--missing_[later] == 0) ready_.push_back(later);
            }
            if (deadline.has_passed()) return true;
        }
    }

private:
    void begin_next() {
        Order& order = Tasks::instance().order();
        auto chosen = ready_.begin();
        if (order.kind == Order::Kind::Random) chosen += ptrdiff_t(order.below(ready_.size()));
        if (order.kind == Order::Kind::Latest) chosen = std::ranges::max_element(ready_);
        current_ = *chosen;
        ready_.erase(chosen);
        const Node& node = graph_.nodes[current_];
        if (node.work.whole) node.work.whole();
        pieces_ = graph_.pieces_of(node);
    }

    const GraphExec& graph_;
    std::vector<size_t> ready_, missing_;
    std::vector<std::vector<size_t>> next_;
    size_t current_ = 0;
    Pieces pieces_;  // of the current node, which is not done yet
};

// The part of a node's work after its `whole`; null if there is none. A piece of a condition is one iteration.
Pieces GraphExec::pieces_of(const Node& node) const {
    if (node.work.in_pieces) return node.work.in_pieces();
    if (node.type == CU_GRAPH_NODE_TYPE_GRAPH) {
        return [pass = std::make_shared<Pass>(node.bodies.front())](const Deadline& deadline) {
            return pass->go_on(deadline) ? Progress::Left : Progress::Done;
        };
    }
    if (node.type != CU_GRAPH_NODE_TYPE_CONDITIONAL) return nullptr;
    return [&node, this, holds = false, pass = std::shared_ptr<Pass>()](const Deadline& deadline) mutable {
        if (!pass) {
            holds = condition_value(node.handle) != 0;
            if (holds || node.bodies.size() == 2) pass = std::make_shared<Pass>(node.bodies[holds ? 0 : 1]);
        }
        if (pass && pass->go_on(deadline)) return Progress::Left;
        pass = nullptr;
        return node.is_loop && holds && context->failed == CUDA_SUCCESS ? Progress::More : Progress::Done;
    };
}

// Each node runs after its dependencies, as they were when the graph was made.
TaskPtr GraphExec::put(const std::shared_ptr<const GraphExec>& self, const TaskPtr& first) const {
    State& state = State::instance();
    Tasks& tasks = Tasks::instance();
    const TaskPtr begin = tasks.add(*context, [this, self] { assign_conditions(); }, {first});
    const auto kept = [&](Pieces pieces) -> Pieces {
        return [pieces = std::move(pieces), self](const Deadline& deadline) { return pieces(deadline); };
    };
    std::vector<TaskPtr> made, all{begin};
    for (const Node& node : nodes) {
        std::vector<TaskPtr> after{begin};
        for (const size_t before : node.after) after.push_back(made[before]);
        TaskPtr task;
        switch (node.type) {
            case CU_GRAPH_NODE_TYPE_GRAPH:
                task = node.bodies.front().put(self, tasks.add(*context, nullptr, after));
                break;
            case CU_GRAPH_NODE_TYPE_CONDITIONAL:
                task = tasks.add(*context, nullptr, after);
                task->pieces = kept(pieces_of(node));
                break;
            case CU_GRAPH_NODE_TYPE_EVENT_RECORD: {
                Event& event = *state.event(node.event);
                task = event.record = tasks.add(*context, nullptr, after);
                event.capture = nullptr;
                event.frontier.clear();
                break;
            }
            case CU_GRAPH_NODE_TYPE_WAIT_EVENT:
                after.push_back(state.event(node.event)->record);
                task = tasks.add(*context, nullptr, after);
                break;
            default:
                task = tasks.add(*context, nullptr, after);
                if (node.work.whole) task->whole = [&node, self] { node.work.whole(); };
                if (node.work.in_pieces) task->pieces = kept(node.work.in_pieces());
        }
        made.push_back(task);
        all.push_back(task);
    }
    return tasks.add(*context, nullptr, all);
}

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
            graph->require_events();
            // The launches of one executable graph are ordered across streams.
            const TaskPtr first = Tasks::instance().put(into, nullptr, graph->last);
            last = graph->last = into.last = graph->put(graph, first);
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
