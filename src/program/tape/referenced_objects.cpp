#include "program/tape/referenced_objects.h"

#include <algorithm>

#include "ir/typing.h"
#include "program/kernel/object_ids.h"
#include "runtime/array.h"
#include "runtime/bytes.h"
#include "runtime/recording.h"
#include "support/error.h"
#include "types/tree_of_mesh.h"

namespace weft::program {

namespace spatial = runtime::spatial;

namespace {

// Arrays with more numbers are not read.
constexpr std::int64_t kMostRead = 1 << 16;

// False if the array is too long, or has no ids although `has_ids` says so.
bool read_array(const runtime::Array& array, bool has_ids, std::vector<std::uint64_t>& ids) {
    const std::int64_t ids_each = id_count(array.dtype), count = array.size();
    if (has_ids && ids_each == 0) return false;
    if (count * ids_each > kMostRead) return false;
    if (ids_each == 0 || count == 0) return true;
    const runtime::Array host = runtime::on_host(array);
    std::vector<std::int64_t> index(static_cast<std::size_t>(host.ndim), 0);
    for (std::int64_t i = 0; i < count; ++i) {
        std::int64_t offset = 0;
        for (std::size_t axis = 0; axis < index.size(); ++axis) offset += index[axis] * host.strides()[axis];
        for_each_id(array.dtype, runtime::host_data(host) + offset, [&](std::uint64_t id) { ids.push_back(id); });
        for (std::size_t axis = index.size(); axis-- > 0 && ++index[axis] == host.shape()[axis];) index[axis] = 0;
    }
    return true;
}

}  // namespace

ReferencedObjects::ReferencedObjects(const KernelSignature& kernel, const KernelFacts& facts, const std::byte* block,
                                     std::span<const Variable* const> arrays, const ArraysOf& arrays_of)
    : changes_(spatial::changes()) {
    std::vector<std::uint64_t> ids;
    for_each_argument_id(kernel.types, kernel.layout, facts.effects, block,
                         [&](std::size_t, std::uint64_t id) { ids.push_back(id); });
    // If the source of an id is unknown, all parameters are marked (ir::effects()), also those that cannot hold ids.
    bool are_all_known = true;
    for (std::size_t i = 0; i < kernel.types.size(); ++i)
        are_all_known &= !facts.effects[i].names_objects || may_hold_ids(kernel.types[i]);
    for (std::size_t k = 0; k < arrays.size(); ++k) {
        const BlockArray& block_array = kernel.arrays[k];
        if (!facts.effects[static_cast<std::size_t>(block_array.parameter)].names_objects) continue;
        if (!view_at(block, block_array.offset).data) continue;
        const bool is_read = arrays[k] && read_array(arrays[k]->array, block_array.is_parameter, ids);
        are_all_known &= is_read && !ir::holds_array(block_array.type.element());
        if (arrays[k]) ids_.push_back({arrays[k], nullptr, 0});
    }
    if (!are_all_known) ids = spatial::all_ids();
    std::ranges::sort(ids);
    ids.erase(std::ranges::unique(ids).begin(), ids.end());
    for (const std::uint64_t id : ids) {
        ReferencedObject& found = found_.emplace_back(ReferencedObject{id, {}, {}});
        for (const Variable* array : arrays_of(id)) found.parts.push_back({array, nullptr, 0});
    }
}

// ---- questions ----

void ReferencedObjects::for_each_array(const std::function<void(const Variable&)>& visit) const {
    for (const ReferencedObject& found : found_)
        for (const ObjectArray& part : found.parts)
            if (part.array) visit(*part.array);
}

bool ReferencedObjects::have_gradients() const {
    bool found = false;
    for_each_array([&](const Variable& array) { found |= array.array.view.grad != nullptr; });
    return found;
}

const Variable* ReferencedObjects::overlapping(const Variable& array) const {
    const Variable* found = nullptr;
    for_each_array([&](const Variable& one) {
        if (runtime::overlap(one.array, array.array)) found = &one;
    });
    return found;
}

// ---- recording ----

void ReferencedObjects::keep(runtime::Device& device) {
    for (ReferencedObject& found : found_) {
        // Launches that store into a volume must be done: they would take the snapshot for one from before. Devices
        // with geometry of their own copy it when such a launch is enqueued.
        const bool is_volume = found.id >> 56 == static_cast<std::uint64_t>(ObjectKind::volume);
        if (is_volume && !device.geometry()) device.default_stream().synchronize();
        found.kept = spatial::Snapshot(found.id);
    }
    is_kept_ = true;
    runtime::Recording* const recording = runtime::current_recording(device);
    if (!recording || !recording->runs_nodes()) return;
    for (ReferencedObject& found : found_) {
        found.kept_in_graph = std::make_shared<spatial::Snapshot>();
        recording->add("keep an object", [id = found.id, kept = found.kept_in_graph] { *kept = spatial::Snapshot(id); },
                       {});
    }
}

void ReferencedObjects::record(TapeMemory& memory, bool reads) {
    const auto note = [&](ObjectArray& part, bool is_needed) {
        if (!part.array) return;
        if (is_needed) part.primal = memory.save(*part.array);
        part.writes_of_others = memory.writes_of_others(*part.array);
    };
    for (ReferencedObject& found : found_)
        for (ObjectArray& part : found.parts) note(part, reads);
    for (ObjectArray& part : ids_) note(part, false);
}

void ReferencedObjects::read_late(const std::function<SavedPrimalPtr(const Variable&)>& save) {
    for (ReferencedObject& found : found_)
        for (ObjectArray& part : found.parts)
            if (part.array && !part.primal) part.primal = save(*part.array);
}

void ReferencedObjects::add_primals(std::vector<SavedPrimalPtr*>& to) {
    for (ReferencedObject& found : found_)
        for (ObjectArray& part : found.parts)
            if (part.primal) to.push_back(&part.primal);
}

// ---- going back ----

bool ReferencedObjects::is_as_it_was(const ObjectArray& part, const TapeMemory& memory) {
    if (!part.array) return true;
    const bool is_copy = part.primal && part.primal->copy;
    return part.writes_of_others == (is_copy ? part.primal->writes_of_others : memory.writes_of_others(*part.array));
}

std::optional<std::vector<ArrayView>> ReferencedObjects::views(const ReferencedObject& of, const TapeMemory& memory,
                                                               bool reads, const WithGradient& with_gradient) {
    std::vector<ArrayView> views;
    for (const ObjectArray& part : of.parts) {
        if (reads && !is_as_it_was(part, memory)) return std::nullopt;
        ArrayView& view = views.emplace_back();
        if (!part.array) continue;
        view = part.array->array.view;
        if (part.primal) view.data = part.primal->contents().view.data;
        if (with_gradient(*part.array))
            mark_gradient_escaped(*part.array);
        else
            view.grad = nullptr;
    }
    return views;
}

std::shared_ptr<spatial::PreviousObjects> ReferencedObjects::previous(const TapeMemory& memory, bool reads,
                                                                      const WithGradient& with_gradient) const {
    auto previous = std::make_shared<spatial::PreviousObjects>();
    for (const ObjectArray& part : ids_)
        if (!is_as_it_was(part, memory)) return nullptr;
    for (const ReferencedObject& found : found_) {
        if (found.kept.is_empty()) {
            previous->add(found.id, nullptr, nullptr);
            continue;
        }
        if (reads && !found.kept.is_current()) return nullptr;
        const spatial::Contents contents = found.kept.contents();
        const auto arrays = views(found, memory, reads, with_gradient);
        if (!arrays) return nullptr;
        std::shared_ptr<const void> descriptor = arrays->empty() ? nullptr : contents.object->descriptor_with(*arrays);
        if (descriptor)
            previous->add(found.id, descriptor.get(),
                          std::make_shared<std::pair<decltype(descriptor), spatial::Contents>>(descriptor, contents),
                          contents.table);
        else
            previous->add(found.id, contents.descriptor, contents.object, contents.table);
    }
    return previous;
}

void ReferencedObjects::add_in_graph(const ReferencedObject& found, std::vector<ArrayView> arrays, std::uint64_t as,
                                     spatial::PreviousObjects& to) {
    const spatial::Contents contents = found.kept.contents();
    const bool is_present = contents.object == spatial::present_contents(found.id).object;
    if (is_present || found.kept_in_graph) return to.follow(found.id, std::move(arrays), found.kept_in_graph, as);
    // The copy that the graph makes before it changes the object.
    auto held = std::make_shared<std::pair<std::shared_ptr<const void>, spatial::Contents>>(nullptr, contents);
    if (!arrays.empty()) held->first = contents.object->descriptor_with(arrays);
    const void* const descriptor = held->first ? held->first.get() : contents.descriptor;
    to.add(as, descriptor, std::move(held), contents.table);
}

std::shared_ptr<spatial::PreviousObjects> ReferencedObjects::previous_in_graph(const TapeMemory& memory, bool reads,
                                                                               const WithGradient& with_gradient,
                                                                               const std::string& kernel) const {
    auto previous = std::make_shared<spatial::PreviousObjects>(/*are_all=*/false);
    previous->set_of_graph();
    for (const ObjectArray& part : ids_)
        if (!is_as_it_was(part, memory)) return nullptr;
    for (const ReferencedObject& found : found_) {
        if (found.kept.is_empty()) {
            previous->add(found.id, nullptr, nullptr);
            continue;
        }
        if (reads && !found.kept.is_current()) return nullptr;
        auto arrays = views(found, memory, reads, with_gradient);
        if (!arrays) return nullptr;
        const spatial::Contents contents = found.kept.contents();
        const bool is_present = contents.object == spatial::present_contents(found.id).object;
        if (is_present && found.kept.was_built_again())
            throw UsageError("Tape.backward()",
                             "the capture builds a grid again that kernel '" + kernel +
                                 "' has looked into, and the graph would find the later one. help: a grid of its own "
                                 "for each build, or call backward() in the capture before the next build");
        add_in_graph(found, std::move(*arrays), found.id, *previous);
    }
    return previous;
}

void ReferencedObjects::add_tangents(const TangentOf& tangent, spatial::PreviousObjects& to) const {
    for (const ReferencedObject& found : found_) {
        std::vector<ArrayView> views;
        bool any = false;
        for (const ObjectArray& part : found.parts) {
            const ArrayView* const view = part.array ? tangent(*part.array) : nullptr;
            views.push_back(view ? *view : ArrayView());
            any |= view != nullptr;
        }
        if (!any || found.kept.is_empty()) continue;
        if (to.are_of_graph()) {
            add_in_graph(found, std::move(views), found.id | kTangentsOfMesh, to);
            continue;
        }
        const spatial::Contents contents = found.kept.contents();
        std::shared_ptr<const void> descriptor = contents.object->descriptor_with(views);
        const void* const at = descriptor.get();
        to.add(found.id | kTangentsOfMesh, at, std::move(descriptor), contents.table);
    }
}

void ReferencedObjects::for_each_primal(
    const std::function<void(const Variable&, const SavedPrimalPtr&)>& visit) const {
    for (const ReferencedObject& found : found_)
        for (const ObjectArray& part : found.parts)
            if (part.array) visit(*part.array, part.primal);
}

}  // namespace weft::program
