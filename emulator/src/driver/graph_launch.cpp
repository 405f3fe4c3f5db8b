#include "driver/graph_launch.h"

#include <algorithm>

#include "driver/state.h"
#include "driver/task.h"
#include "engine/system.h"

namespace weft::emulator {

namespace {

void assign_conditions(const GraphExec& graph) {
    for (const Condition& condition : graph.conditions) {
        if (condition.is_assigned) set_condition(condition.handle, condition.initial);
    }
}

Pieces pieces_of(const GraphExec& graph, const GraphExec::Node& node);

// One run of a child graph, or of a condition's body. The order of independent nodes is adversarial, as that of tasks.
class Pass {
public:
    explicit Pass(const GraphExec& graph) : graph_(graph), missing_(graph.nodes.size()), next_(graph.nodes.size()) {
        assign_conditions(graph);
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
        const GraphExec::Node& node = graph_.nodes[current_];
        if (node.work.whole) node.work.whole();
        pieces_ = pieces_of(graph_, node);
    }

    const GraphExec& graph_;
    std::vector<size_t> ready_, missing_;
    std::vector<std::vector<size_t>> next_;
    size_t current_ = 0;
    Pieces pieces_;  // of the current node, which is not done yet
};

// The part of a node's work after its `whole`; null if there is none. A piece of a condition is one iteration.
Pieces pieces_of(const GraphExec& graph, const GraphExec::Node& node) {
    if (node.work.in_pieces) return node.work.in_pieces();
    if (node.type == CU_GRAPH_NODE_TYPE_GRAPH) {
        return [pass = std::make_shared<Pass>(node.bodies.front())](const Deadline& deadline) {
            return pass->go_on(deadline) ? Progress::Left : Progress::Done;
        };
    }
    if (node.type != CU_GRAPH_NODE_TYPE_CONDITIONAL) return nullptr;
    return [&node, context = graph.context, holds = false,
            pass = std::shared_ptr<Pass>()](const Deadline& deadline) mutable {
        if (!pass) {
            holds = condition_value(node.handle) != 0;
            if (holds || node.bodies.size() == 2) pass = std::make_shared<Pass>(node.bodies[holds ? 0 : 1]);
        }
        if (pass && pass->go_on(deadline)) return Progress::Left;
        pass = nullptr;
        return node.is_loop && holds && context->failed == CUDA_SUCCESS ? Progress::More : Progress::Done;
    };
}

// `owner` keeps the graph, of which it is the whole or a part.
// Each node runs after its dependencies, as they were when the graph was made.
TaskPtr enqueue(const GraphExec& graph, const std::shared_ptr<const GraphExec>& owner, const TaskPtr& first) {
    State& state = State::instance();
    Tasks& tasks = Tasks::instance();
    Context& context = *graph.context;
    const TaskPtr begin = tasks.add(context, [&graph, owner] { assign_conditions(graph); }, {first});
    const auto kept = [&](Pieces pieces) -> Pieces {
        return [pieces = std::move(pieces), owner](const Deadline& deadline) { return pieces(deadline); };
    };
    std::vector<TaskPtr> made, all{begin};
    for (const GraphExec::Node& node : graph.nodes) {
        std::vector<TaskPtr> after{begin};
        for (const size_t before : node.after) after.push_back(made[before]);
        TaskPtr task;
        switch (node.type) {
            case CU_GRAPH_NODE_TYPE_GRAPH:
                task = enqueue(node.bodies.front(), owner, tasks.add(context, nullptr, after));
                break;
            case CU_GRAPH_NODE_TYPE_CONDITIONAL:
                task = tasks.add(context, nullptr, after);
                task->pieces = kept(pieces_of(graph, node));
                break;
            case CU_GRAPH_NODE_TYPE_EVENT_RECORD: {
                Event& event = *state.event(node.event);
                task = event.record = tasks.add(context, nullptr, after);
                event.capture = nullptr;
                event.frontier.clear();
                break;
            }
            case CU_GRAPH_NODE_TYPE_WAIT_EVENT:
                after.push_back(state.event(node.event)->record);
                task = tasks.add(context, nullptr, after);
                break;
            default:
                task = tasks.add(context, nullptr, after);
                if (node.work.whole) task->whole = [&node, owner] { node.work.whole(); };
                if (node.work.in_pieces) task->pieces = kept(node.work.in_pieces());
        }
        made.push_back(task);
        all.push_back(task);
    }
    return tasks.add(context, nullptr, all);
}

}  // namespace

TaskPtr enqueue(const std::shared_ptr<const GraphExec>& graph, const TaskPtr& first) {
    return enqueue(*graph, graph, first);
}

void require_events(const GraphExec& graph) {
    for (const GraphExec::Node& node : graph.nodes) {
        if (node.event) State::instance().event(node.event);
        if (node.type == CU_GRAPH_NODE_TYPE_GRAPH) require_events(node.bodies.front());
    }
}

}  // namespace weft::emulator
