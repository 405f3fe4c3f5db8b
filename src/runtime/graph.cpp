#include "runtime/graph.h"

#include <algorithm>
#include <utility>

#include "runtime/timing.h"
#include "support/error.h"

namespace weft::runtime {

HostGraph::HostGraph(Device& device, std::vector<NodePtr> nodes, std::unique_ptr<KeptMemory> memory)
    : Graph(device, std::move(nodes)), memory_(std::move(memory)) {
    constexpr std::size_t kMost = 64;  // limits comparisons, as each node is compared with its whole group
    for (std::size_t i = 0, first = 0; i < nodes_.size(); ++i) {
        const std::span before(nodes_.data() + first, i - first);
        if (!before.empty() && before.size() < kMost && nodes_[i]->can_fuse(before)) {
            ++fused_.back();
        } else {
            fused_.push_back(1);
            first = i;
        }
    }
}

bool HostGraph::joins_the_one_before(std::size_t node) const {
    std::size_t first = 0;
    for (const std::size_t count : fused_) {
        if (node < first + count) return node > first;
        first += count;
    }
    return false;
}

void HostGraph::launch(Stream&) {
    const WithoutRecording without;
    const TimedHostWork timed(device(), kTimedGraph, "graph");
    memory_->prepare();
    memory_->count_writes();
    const NodePtr* node = nodes_.data();
    for (const std::size_t count : fused_) {
        if (count == 1)
            (*node)->run();
        else
            (*node)->run_joined({node, count});
        node += count;
    }
}

namespace {

std::string quoted(const std::string& text) {
    std::string result = "\"";
    for (const char letter : text) {
        if (letter == '"' || letter == '\\') result += '\\';
        result += letter == '\n' ? std::string("\\n") : std::string(1, letter);
    }
    return result + "\"";
}

}  // namespace

Graph::Graph(Device& device, std::vector<NodePtr> nodes)
    : nodes_(std::move(nodes)), device_(device), may_fail_(std::ranges::any_of(nodes_, [](const NodePtr& node) {
          return node->may_fail() ||
                 std::ranges::any_of(node->children(), [](const auto& child) { return child.second->may_fail(); });
      })) {}

void Node::enqueue_into(Stream&) { throw InternalError("the node '" + name_ + "' cannot be captured again"); }

void Graph::enqueue_into(Stream& stream) const {
    for (const NodePtr& node : nodes_) node->enqueue_into(stream);
}

void Graph::throw_fault() const {
    if (!may_fail_) return;
    for (const NodePtr& node : nodes_) {
        node->throw_fault();
        for (const auto& [branch, child] : node->children()) child->throw_fault();
    }
}

std::string Graph::dot(bool verbose) const {
    std::string text;
    int count = 0;
    const std::function<void(const Graph&, const std::string&)> write = [&](const Graph& graph,
                                                                            const std::string& indent) {
        int before = -1;
        for (std::size_t i = 0; i < graph.nodes_.size(); ++i) {
            const NodePtr& node = graph.nodes_[i];
            const int number = count++;
            std::string label = node->name();
            if (const std::string more = node->details(); verbose && !more.empty()) label += "\n" + more;
            if (verbose && graph.joins_the_one_before(i)) label += "\npiece by piece with the one before";
            text += indent + "node" + std::to_string(number) + " [label=" + quoted(label) + "];\n";
            if (before >= 0)
                text += indent + "node" + std::to_string(before) + " -> node" + std::to_string(number) + ";\n";
            before = number;
            for (const auto& [branch, child] : node->children()) {
                const int first = count;
                text += indent + "subgraph cluster" + std::to_string(first) + " {\n";
                text += indent + "    label=" + quoted(branch) + ";\n";
                write(*child, indent + "    ");
                text += indent + "}\n";
                if (count > first)
                    text += indent + "node" + std::to_string(number) + " -> node" + std::to_string(first) +
                            " [label=" + quoted(branch) + "];\n";
            }
        }
    };
    write(*this, "    ");
    return "digraph graph_of_" + device().alias.substr(0, device().alias.find(':')) + " {\n    node [shape=box];\n" +
           text + "}\n";
}

}  // namespace weft::runtime
