#include "program/launch/recorded_run.h"

#include <array>
#include <cstring>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "ir/typing.h"
#include "program/host/host.h"
#include "program/host/settings.h"
#include "program/kernel/object_ids.h"
#include "program/launch/fault.h"
#include "program/launch/late_fault.h"
#include "program/launch/launch_fusion.h"
#include "program/launch/strategies.h"
#include "runtime/bytes.h"
#include "runtime/handles.h"
#include "runtime/verify.h"
#include "support/error.h"

namespace weft::program {
namespace {

// Thrown by an interrupted launch; the host gives the reason when it has its lock again.
struct Interrupted {};

// Set while a graph runs without the host's lock.
constinit thread_local bool asks_for_interrupts = false;

bool is_interrupted() { return asks_for_interrupts && host().interrupted && host().interrupted(); }

std::string extents_text(const CompiledKernel& kernel, const Grid& grid) {
    std::string extents;
    for (int axis = 0; axis < std::max(1, kernel.tid_rank); ++axis)
        extents += (axis ? ", " : "") + std::to_string(grid.dim[axis]);
    return "dim (" + extents + ")";
}

class LaunchNode final : public runtime::Node {
public:
    LaunchNode(std::shared_ptr<const CompiledKernel> kernel, std::shared_ptr<const CompiledKernel> strategic,
               runtime::Stream& stream, const std::byte* block, const Grid& grid)
        : Node(kernel->description.name),
          kernel_(std::move(kernel)),
          strategic_(std::move(strategic)),
          stream_(stream),
          block_(block, block + kernel_->layout.size_bytes),
          grid_(grid),
          options_(kernel_->launch_options()),
          objects_(runtime::spatial::SnapshotScope::current()) {}

    void run() override {
        std::optional<runtime::spatial::SnapshotScope> snapshot_scope;
        if (objects_) snapshot_scope.emplace(objects_->for_launch());
        const PreparedLaunch launch(*kernel_, strategic_.get(), stream_.device(), block_.data(), grid_);
        const CompiledKernel& kernel = launch.kernel();
        Fault fault;
        runtime::LaunchOptions options = options_;
        if (!kernel.description.sites.empty()) options.fault = &fault;
        if (asks_for_interrupts) options.interrupted = host().interrupted;
        const std::span arguments(launch.block(), static_cast<std::size_t>(kernel.layout.size_bytes));
        if (!kernel.loaded->launch(arguments, grid_, options, stream_)) throw Interrupted{};
        if (!options.fault) return;
        stream_.synchronize();
        if (fault.claimed) program::throw_fault(kernel, fault, launch.block());
    }

    bool can_fuse(std::span<const runtime::NodePtr> before) const override {
        const std::vector<FixedLaunch> launches = launches_of(before);
        return launches.size() == before.size() && !options_.keeps_order && !objects_ &&
               stream_.device().is_host_memory && may_fuse(fixed(), launches);
    }

    void run_joined(std::span<const runtime::NodePtr> all) override {
        const std::vector<FixedLaunch> launches = launches_of(all);
        std::vector<runtime::FusedLaunch> fused;
        for (const FixedLaunch& one : launches) fused.push_back({one.kernel->loaded, one.block});
        runtime::LaunchOptions options;
        if (asks_for_interrupts) options.interrupted = host().interrupted;
        if (!kernel_->loaded->launch_fused(fused, fused_piece(launches), grid_, options)) throw Interrupted{};
    }

    std::string details() const override { return extents_text(*kernel_, grid_); }

private:
    FixedLaunch fixed() const { return {kernel_.get(), block_.data(), &grid_}; }
    // Shorter than `nodes` if some node is no launch on this device.
    std::vector<FixedLaunch> launches_of(std::span<const runtime::NodePtr> nodes) const {
        std::vector<FixedLaunch> launches;
        for (const runtime::NodePtr& node : nodes) {
            const auto* const launch = dynamic_cast<const LaunchNode*>(node.get());
            if (launch && &launch->stream_ == &stream_ && !launch->options_.keeps_order)
                launches.push_back(launch->fixed());
        }
        return launches;
    }

    std::shared_ptr<const CompiledKernel> kernel_, strategic_;
    runtime::Stream& stream_;  // the default one, which lives for ever
    std::vector<std::byte> block_;
    Grid grid_;
    runtime::LaunchOptions options_;
    runtime::spatial::PreviousObjectsPtr objects_;  // of an adjoint
};

// A launch that its device has captured: faults and output are read after the graph has run. Late faults are thrown by
// the next wait for the stream in which it ran.
class CapturedLaunch final : public runtime::Node {
public:
    CapturedLaunch(std::shared_ptr<const CompiledKernel> kernel, const std::byte* block, const Grid& grid)
        : Node(kernel->description.name),
          kernel_(std::move(kernel)),
          block_(block, block + kernel_->layout.size_bytes),
          grid_(grid),
          objects_(runtime::spatial::SnapshotScope::current()) {}

    // Puts it into the stream.
    void capture(runtime::Stream& stream) {
        runtime::LaunchOptions options = kernel_->launch_options();
        const std::shared_ptr<runtime::LateFault> late = late_fault(*kernel_, stream, block_.data());
        waits_ = !late && !kernel_->description.sites.empty();
        if (late)
            options.late_fault = &late;
        else if (waits_)
            options.fault = &fault_;
        kernel_->loaded->launch(block_, grid_, options, stream);
    }
    void run() override {}
    void enqueue_into(runtime::Stream& stream) override {
        std::optional<runtime::spatial::SnapshotScope> snapshot_scope;
        if (objects_) snapshot_scope.emplace(objects_);
        record_run(*stream.recording(), *kernel_, stream, block_.data(), grid_, /*checks_nan=*/false);
    }
    std::string details() const override { return extents_text(*kernel_, grid_); }
    bool may_fail() const override { return waits_; }
    void throw_fault() override {
        if (!fault_.claimed) return;
        const Fault found = std::exchange(fault_, {});
        program::throw_fault(*kernel_, found, block_.data());
    }

private:
    std::shared_ptr<const CompiledKernel> kernel_;
    std::vector<std::byte> block_;
    Grid grid_;
    runtime::spatial::PreviousObjectsPtr objects_;  // of an adjoint
    bool waits_ = false;                            // a launch of the graph waits for the fault
    Fault fault_{};
};

void add_addresses(Type type, const std::byte* at, std::vector<const void*>& addresses) {
    if (type.is_array()) {
        ArrayView view;
        std::memcpy(&view, at, sizeof view);
        const void* const both[] = {view.data, view.grad};
        addresses.insert(addresses.end(), std::begin(both), std::end(both));
    } else if (type.is_struct()) {
        for (const Type::Field& field : type.fields()) add_addresses(field.type, at + field.offset, addresses);
    }
}

// The ids that a launch of compiled code with this block may find at any time: those among its numbers; all existing
// ids if it may have them from an array or from elsewhere. Empty if it finds no objects.
std::vector<std::uint64_t> ids_for(const CompiledKernel& kernel, const std::byte* block) {
    if (!kernel.description.finds_objects()) return {};
    for (std::size_t i = 0; i < kernel.parameter_types.size() && i < kernel.effects.size(); ++i) {
        if (!kernel.effects[i].names_objects) continue;
        const Type type = kernel.parameter_types[i];
        // A parameter that cannot hold ids is marked when the source of an id is unknown (ir::effects()).
        if (!may_hold_ids(type) || type.is_array() || ir::holds_array(type)) return runtime::spatial::all_ids();
    }
    std::vector<std::uint64_t> ids;
    for_each_argument_id(kernel.parameter_types, kernel.layout, kernel.effects, block,
                         [&](std::size_t, std::uint64_t id) { ids.push_back(id); });
    return ids;
}

// Keeps an object that a launch finds, with its arrays, after its owner has released it.
class KeptObject {
public:
    explicit KeptObject(std::uint64_t id)
        : kept_(runtime::spatial::keep(
              id, [this](const runtime::spatial::Object& object) { arrays_.add(object.addresses()); })) {}

private:
    runtime::KeptMemory arrays_;
    std::shared_ptr<const void> kept_;
};

}  // namespace

void record_run(runtime::Recording& recording, const CompiledKernel& kernel, runtime::Stream& stream,
                const std::byte* block, const Grid& grid, bool checks_nan,
                std::shared_ptr<const CompiledKernel> strategic) {
    const std::string& name = kernel.description.name;
    if (checks_nan) {
        throw UsageError("launch()", "kernel '" + name +
                                         "' is launched in a graph capture, which verify_fp cannot check. help: "
                                         "wp.config.verify_fp = False around the capture");
    }
    const runtime::spatial::PreviousObjectsPtr& previous = runtime::spatial::SnapshotScope::current();
    WEFT_CHECK(!kernel.description.finds_objects() || !previous || previous->are_of_graph(),
               "a launch in a capture would find objects of an earlier time");
    for (const std::uint64_t id : ids_for(kernel, block)) recording.memory().hold(std::make_shared<KeptObject>(id));
    std::vector<const void*> addresses;
    for (std::size_t i = 0; i < kernel.parameter_types.size(); ++i)
        add_addresses(kernel.parameter_types[i], block + kernel.layout.offsets[i], addresses);
    auto kept = std::make_shared<const CompiledKernel>(kernel);
    if (recording.runs_nodes()) {
        recording.add(std::make_unique<LaunchNode>(std::move(kept), std::move(strategic),
                                                   stream.device().default_stream(), block, grid),
                      addresses);
        return;
    }
    auto node = std::make_unique<CapturedLaunch>(std::move(kept), block, grid);
    node->capture(stream);
    recording.add(std::move(node), addresses);
}

void launch_graph(const std::shared_ptr<runtime::Graph>& graph, runtime::Stream& stream) {
    if (&graph->device() != &stream.device()) {
        throw UsageError("capture_launch()", "the graph was captured on '" + graph->device().alias +
                                                 "', the stream is of '" + stream.device().alias +
                                                 "'. help: leave the stream out, or take one of '" +
                                                 graph->device().alias + "'");
    }
    runtime::refuse_beside_recording(stream.device(), "capture_launch()", "the graph");
    if (runtime::Recording* const recording = stream.recording()) {
        if (recording->runs_nodes()) {
            recording->add("graph", [graph, &stream = stream.device().default_stream()] { graph->launch(stream); }, {});
        } else {
            graph->launch(stream);
            recording->memory().hold(graph);
        }
        return;
    }
    try {
        const bool outer = std::exchange(asks_for_interrupts, true);
        struct Restore {
            bool outer;
            ~Restore() { asks_for_interrupts = outer; }
        } const restore{outer};
        const WithoutHost without;
        graph->launch(stream);
        if (graph->is_waited_for() || (runtime::verifies_cuda() && !stream.device().is_cpu)) stream.synchronize();
        graph->throw_fault();
    } catch (const Interrupted&) {
        flush_prints();
        host().stop();
    } catch (...) {
        flush_prints();
        throw;
    }
    flush_prints();
}

// ---- conditions ----

namespace {

bool holds(const runtime::Array& condition) {
    std::int32_t value = 0;
    condition.device->default_stream().synchronize();
    runtime::read_bytes(*condition.device, &value, condition.view.data, sizeof value);
    return value != 0;
}

// Captures the bodies of a condition again, for a node of a graph that its device runs.
void put_bodies(const runtime::Array& condition, runtime::ConditionKind kind, runtime::Stream& stream,
                std::array<const runtime::Graph*, 2> bodies, std::shared_ptr<runtime::Graph> (&made)[2]) {
    runtime::Recording& recording = *stream.recording();
    recording.begin_condition(condition, kind, {bodies[0] != nullptr, bodies[1] != nullptr});
    try {
        for (int i = 0; i < 2; ++i) {
            if (!bodies[static_cast<std::size_t>(i)]) continue;
            recording.begin_branch(/*on_true=*/i == 0);
            try {
                bodies[static_cast<std::size_t>(i)]->enqueue_into(stream);
            } catch (...) {
                recording.end_branch();
                throw;
            }
            made[i] = recording.end_branch();
        }
    } catch (...) {
        recording.end_condition(/*is_complete=*/false);
        throw;
    }
    recording.end_condition(/*is_complete=*/true);
}

class IfNode final : public runtime::Node {
public:
    IfNode(runtime::Array condition, std::shared_ptr<runtime::Graph> on_true, std::shared_ptr<runtime::Graph> on_false)
        : Node("if"), condition_(std::move(condition)), on_true_(std::move(on_true)), on_false_(std::move(on_false)) {}

    void run() override {
        const std::shared_ptr<runtime::Graph>& chosen = holds(condition_) ? on_true_ : on_false_;
        if (chosen) chosen->launch(condition_.device->default_stream());
    }
    void enqueue_into(runtime::Stream& stream) override {
        std::shared_ptr<runtime::Graph> made[2];
        put_bodies(condition_, runtime::ConditionKind::choose, stream, {{on_true_.get(), on_false_.get()}}, made);
        record_if(condition_, made[0], made[1]);
    }
    std::vector<std::pair<std::string, const runtime::Graph*>> children() const override {
        std::vector<std::pair<std::string, const runtime::Graph*>> all;
        if (on_true_) all.emplace_back("true", on_true_.get());
        if (on_false_) all.emplace_back("false", on_false_.get());
        return all;
    }

private:
    runtime::Array condition_;
    std::shared_ptr<runtime::Graph> on_true_, on_false_;
};

class WhileNode final : public runtime::Node {
public:
    WhileNode(runtime::Array condition, std::shared_ptr<runtime::Graph> body)
        : Node("while"), condition_(std::move(condition)), body_(std::move(body)) {}

    void run() override {
        while (holds(condition_)) {
            if (is_interrupted()) throw Interrupted{};
            body_->launch(condition_.device->default_stream());
        }
    }
    void enqueue_into(runtime::Stream& stream) override {
        std::shared_ptr<runtime::Graph> made[2];
        put_bodies(condition_, runtime::ConditionKind::repeat, stream, {{body_.get(), nullptr}}, made);
        record_while(condition_, made[0]);
    }
    std::vector<std::pair<std::string, const runtime::Graph*>> children() const override {
        return {{"body", body_.get()}};
    }

private:
    runtime::Array condition_;
    std::shared_ptr<runtime::Graph> body_;
};

}  // namespace

void record_if(const runtime::Array& condition, std::shared_ptr<runtime::Graph> on_true,
               std::shared_ptr<runtime::Graph> on_false) {
    runtime::Recording& recording = *runtime::current_recording(*condition.device);
    const void* const address = condition.view.data;
    recording.add(std::make_unique<IfNode>(condition, std::move(on_true), std::move(on_false)), {&address, 1});
}

void record_while(const runtime::Array& condition, std::shared_ptr<runtime::Graph> body) {
    runtime::Recording& recording = *runtime::current_recording(*condition.device);
    const void* const address = condition.view.data;
    recording.add(std::make_unique<WhileNode>(condition, std::move(body)), {&address, 1});
}

}  // namespace weft::program
