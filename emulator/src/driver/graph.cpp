#include "driver/graph.h"

#include <algorithm>
#include <map>

namespace weft::emulator {

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

}  // namespace weft::emulator
