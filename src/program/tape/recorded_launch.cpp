#include "program/tape/recorded_launch.h"

#include <algorithm>
#include <cstring>
#include <optional>

#include "ir/typing.h"
#include "program/host/settings.h"
#include "program/tape/gradient_memory.h"
#include "runtime/recording.h"
#include "support/error.h"

namespace weft::program {

using transform::Gradient;

RecordedLaunch::RecordedLaunch(const DifferentiableKernel& kernel, runtime::Device& device, const std::byte* block,
                               std::span<const std::int64_t> dims, std::vector<Argument> arrays)
    : kernel_(&kernel), signature_(&kernel.signature()), device_(&device), dims_(dims), arrays_(std::move(arrays)) {
    const std::vector<BlockArray>& block_arrays = signature_->arrays;
    for (std::size_t i = 0; i < block_arrays.size(); ++i) {
        if (arrays_[i].array || !view_at(block, block_arrays[i].offset).data) continue;
        numbers_.assign(block, block + signature_->layout.size_bytes);
        return;
    }
    for (const auto& [offset, bytes] : signature_->numbers)
        numbers_.insert(numbers_.end(), block + offset, block + offset + bytes);
}

std::vector<std::byte> RecordedLaunch::block() const {
    const auto size = static_cast<std::size_t>(signature_->layout.size_bytes);
    std::vector<std::byte> block(size);
    if (numbers_.size() == size) {
        block = numbers_;
    } else {
        const std::byte* from = numbers_.data();
        for (const auto& [offset, bytes] : signature_->numbers) {
            std::memcpy(block.data() + offset, from, static_cast<std::size_t>(bytes));
            from += bytes;
        }
    }
    for (std::size_t i = 0; i < arrays_.size(); ++i)
        if (arrays_[i].array) view_at(block.data(), signature_->arrays[i].offset) = arrays_[i].array->array.view;
    return block;
}

// ---- objects ----

void RecordedLaunch::find_objects(const KernelFacts& facts, const std::byte* block) {
    std::vector<const Variable*> arrays;
    for (const Argument& argument : arrays_) arrays.push_back(argument.array);
    objects_ = std::make_unique<ReferencedObjects>(*signature_, facts, block, arrays,
                                                   [&](std::uint64_t id) { return arrays_of_object(id); });
}

bool RecordedLaunch::reads_objects() const {
    return std::ranges::any_of(needs_->contents, &transform::Contents::within);
}

void RecordedLaunch::refuse_written_objects() const {
    for (std::size_t k = 0; k < arrays_.size(); ++k)
        if (is_written(k) && objects_->overlapping(*arrays_[k].array))
            throw UsageError("Tape", "kernel '" + signature_->name +
                                         "' has no gradient: it writes to an array of the mesh that it looks into. "
                                         "help: write in a launch of its own");
}

void RecordedLaunch::throw_written_objects() const {
    throw UsageError(
        "Tape.backward()",
        "kernel '" + signature_->name +
            "' looked into a mesh, a BVH, a grid or a volume whose arrays, or whose ids in an array, have been "
            "written outside of the tape since, or which a graph has built again. help: write to them inside of "
            "'with tape:', or go back before");
}

std::shared_ptr<runtime::spatial::PreviousObjects> RecordedLaunch::previous_objects(
    const TapeMemory& memory, const ReferencedObjects::WithGradient& with_gradient) const {
    if (!objects_) return nullptr;
    auto previous = runtime::current_recording(*device_)
                        ? objects_->previous_in_graph(memory, reads_objects(), with_gradient, signature_->name)
                        : objects_->previous(memory, reads_objects(), with_gradient);
    if (!previous) throw_written_objects();
    return previous;
}

void RecordedLaunch::check_found(const runtime::spatial::PreviousObjectsPtr& previous) const {
    // In a graph, ids that are not among them have their present meaning.
    if (!previous || previous->are_of_graph()) return;
    device_->default_stream().synchronize();
    if (previous->has_missed())
        throw UsageError(
            "Tape.backward()",
            "kernel '" + signature_->name +
                "' finds meshes, grids or volumes by ids that it computes or writes itself; which ones it "
                "found is not known, and the gradients are wrong. help: pass the ids as arguments or in an "
                "array that the kernel only reads");
}

// ---- recording ----

std::shared_ptr<const LaunchNeeds> RecordedLaunch::needs_with(const KernelFacts& facts, const std::byte* block) const {
    constexpr std::size_t kFew = 64;
    std::uint8_t few[kFew] = {};
    std::vector<std::uint8_t> many;
    const std::size_t count = signature_->types.size();
    if (count > kFew) many.resize(count);
    const std::span<std::uint8_t> arguments(count > kFew ? many.data() : few, count);
    for (std::size_t i = 0; i < arrays_.size(); ++i) {
        const BlockArray& block_array = signature_->arrays[i];
        if (!arrays_[i].array || !block_array.is_parameter) continue;
        arguments[static_cast<std::size_t>(block_array.parameter)] =
            kIsArray | (arrays_[i].array->array.view.grad ? kHasGradient : 0);
    }
    const bool found_gradients = objects_ && objects_->have_gradients();
    for (std::size_t i = 0; found_gradients && i < count; ++i)
        if (facts.effects[i].names_objects) arguments[i] |= kLeadsToGradient;
    return kernel_->needs(launch(block), facts, arguments);
}

void RecordedLaunch::find_needs(const KernelFacts& facts, const std::byte* block, bool is_seen) {
    is_seen_ = is_seen;
    if (ReferencedObjects::finds_any(facts)) find_objects(facts, block);
    needs_ = needs_with(facts, block);
    if (objects_ && needs_->has_adjoint) {
        refuse_written_objects();
        objects_->keep(*device_);
    }
    if (needs_->returned.empty()) return;
    if (!is_seen) {
        throw UsageError("Tape.record_launch()",
                         "the gradient of kernel '" + signature_->name +
                             "' needs the results of its atomics, which only a launch that the tape records keeps. "
                             "help: launch it inside of 'with tape:'");
    }
    const Grid grid = make_grid(dims_.span(), facts.tid_rank, signature_->name);
    returned = open_atomic_results(needs_->returned, {grid.dim, static_cast<std::size_t>(std::max(facts.tid_rank, 1))},
                                   *device_);
}

void RecordedLaunch::record(TapeMemory& memory) {
    const std::vector<BlockArray>& block_arrays = signature_->arrays;
    const auto contents = [&](std::size_t i) {
        return needs_->contents[static_cast<std::size_t>(block_arrays[i].parameter)];
    };
    for (std::size_t i = 0; needs_->has_adjoint && i < block_arrays.size(); ++i)
        if (arrays_[i].array && contents(i).before) arrays_[i].before = memory.save(*arrays_[i].array);
    for (Nested& nested : nested_) {
        if (!needs_->contents[nested.parameter].within) continue;
        for (const Variable* array : nested.arrays) nested.primals.push_back(memory.save(*array));
    }
    if (objects_) objects_->record(memory, needs_->has_adjoint && reads_objects());
    if (memory.may_overlap()) {
        std::vector<SavedPrimalPtr*> all;
        if (objects_) objects_->add_primals(all);
        for (Argument& argument : arrays_)
            if (argument.before) all.push_back(&argument.before);
        for (Nested& nested : nested_)
            for (SavedPrimalPtr& primal : nested.primals) all.push_back(&primal);
        memory.join_overlapping(all);
    }
    for (std::size_t i = 0; i < block_arrays.size(); ++i)
        if (is_written(i)) memory.write(*arrays_[i].array, /*counts=*/true);
    for (const Nested& nested : nested_)
        if (needs_->writes_within[nested.parameter])
            for (const Variable* array : nested.arrays) memory.write(*array);
    for (std::size_t i = 0; needs_->has_adjoint && i < block_arrays.size(); ++i)
        if (arrays_[i].array && contents(i).after && block_arrays[i].is_parameter)
            after_.emplace_back(block_arrays[i].parameter, memory.save(*arrays_[i].array));
    for (const Nested& nested : nested_)
        if (needs_->writes_within[nested.parameter]) memory.count_writes(nested.arrays);
}

// ---- questions ----

int RecordedLaunch::overwritten(const Variable& array) const {
    if (!is_seen_) return -1;
    const int rank = static_cast<int>(needs_->tid_rank);
    const Grid grid = make_grid(dims_.span(), rank, signature_->name);
    for (std::size_t i = 0; i < arrays_.size(); ++i) {
        const int parameter = signature_->arrays[i].parameter;
        if (arrays_[i].array == &array &&
            overwrites(*needs_, static_cast<std::size_t>(parameter), array.array.view, grid))
            return parameter;
    }
    return -1;
}

std::vector<TapeEntry::Group> RecordedLaunch::written() const {
    std::vector<Group> groups;
    for (std::size_t i = 0; i < arrays_.size(); ++i)
        if (is_written(i)) groups.push_back({arrays_[i].array});
    for (const Nested& nested : nested_)
        if (needs_->writes_within[nested.parameter]) groups.push_back(nested.arrays);
    return groups;
}

void RecordedLaunch::for_each_array(const Visit& visit) const {
    for (std::size_t i = 0; i < arrays_.size(); ++i)
        if (arrays_[i].array) visit(*arrays_[i].array, is_written(i));
    for (const Nested& nested : nested_)
        for (const Variable* one : nested.arrays) visit(*one, needs_->writes_within[nested.parameter]);
    if (objects_) objects_->for_each_array([&](const Variable& one) { visit(one, false); });
}

std::string RecordedLaunch::text() const {
    return "<launch of " + signature_->name + ", dim " + runtime::shape_text(dims_.span()) + ">";
}

std::vector<TapeEntry::Use> RecordedLaunch::uses() const {
    std::vector<Use> found;
    if (needs_->is_left_out) return found;
    for (std::size_t i = 0; i < arrays_.size(); ++i) {
        const Variable* const array = arrays_[i].array;
        if (!array) continue;
        const bool is_written = this->is_written(i), is_overwritten = is_written && overwritten(*array) >= 0;
        const bool is_read = needs_->reads[static_cast<std::size_t>(signature_->arrays[i].parameter)];
        found.push_back({array, i, is_read, is_written, is_overwritten});
    }
    for (std::size_t i = 0; i < nested_.size(); ++i)
        for (const Variable* one : nested_[i].arrays)
            found.push_back({one, arrays_.size() + i, needs_->reads[nested_[i].parameter],
                             needs_->writes_within[nested_[i].parameter], false});
    return found;
}

std::size_t RecordedLaunch::parameter_at(std::size_t index) const {
    if (index >= arrays_.size()) return nested_[index - arrays_.size()].parameter;
    return static_cast<std::size_t>(signature_->arrays[index].parameter);
}

bool RecordedLaunch::has_derivative(const Use& written, const Use& read) const {
    return kernel_->has_derivative(launch(block().data()), parameter_at(written.index), parameter_at(read.index));
}

bool RecordedLaunch::any_nested_kept() const {
    return std::ranges::any_of(nested_, [](const Nested& nested) {
        return std::ranges::any_of(nested.primals,
                                   [](const SavedPrimalPtr& primal) { return primal->copy != nullptr; });
    });
}

// ---- going back ----

void RecordedLaunch::backward(const Backward& backward) {
    if (needs_->is_left_out) {
        for (const auto& [array, before] : arrays_) {
            if (!array || !array->array.view.grad || overwritten(*array) < 0) continue;
            clear_gradient(*array);  // the overwritten contents had no part in later results
        }
        return;
    }
    if (!needs_->has_adjoint && !has_new_gradients()) return;
    if (needs_->has_adjoint && run_adjoint(backward.memory, backward.supplied)) return;
    catch_up(backward.memory, backward.written_after());
    run_adjoint(backward.memory, backward.supplied);
}

// False if there are gradients that the needs did not expect.
bool RecordedLaunch::run_adjoint(const TapeMemory& memory, std::span<const SuppliedGradient> supplied) {
    const std::vector<BlockArray>& block_arrays = signature_->arrays;
    for (const auto& [array, primal] : arrays_) {
        if (!array) continue;
        const auto is_gone = [](const runtime::BufferPtr& buffer) { return buffer && buffer->is_gone(); };
        if (is_gone(array->array.buffer) || is_gone(array->gradient))
            runtime::throw_gone(array->array, "Tape.backward()", "an array of " + text());
    }
    std::vector<std::byte> before = block();
    DerivedLaunch what;
    what.derivation.gradients.resize(signature_->types.size(), Gradient::none);
    for (std::size_t i = 0; i < block_arrays.size(); ++i) {
        const auto parameter = static_cast<std::size_t>(block_arrays[i].parameter);
        ArrayView& view = view_at(before.data(), block_arrays[i].offset);
        if (!block_arrays[i].is_parameter) continue;
        Gradient& gradient = what.derivation.gradients[parameter];
        for (const SuppliedGradient& one : supplied) {
            if (one.parameter != parameter) continue;
            const auto same = [](std::span<const std::int64_t> a, const std::int64_t* b) {
                return std::equal(a.begin(), a.end(), b);
            };
            WEFT_CHECK(same(one.gradient.shape(), view.shape) && same(one.gradient.strides(), view.strides),
                       "a gradient is laid out in another way than the array");
            view.grad = one.gradient.view.data;
            gradient = Gradient::retained;
        }
        if (view.grad && gradient == Gradient::none) gradient = Gradient::used;
        if (view.grad && needs_->gradients[parameter] == Gradient::none) return false;
    }
    std::vector<std::byte> after = before;
    for (std::size_t i = 0; i < block_arrays.size(); ++i) {
        const SavedPrimalPtr& primal = arrays_[i].before;
        if (!primal || !primal->copy) continue;
        void* const data = primal->copy->view.data;
        view_at(before.data(), block_arrays[i].offset).data = data;
        if (!block_arrays[i].is_parameter) view_at(after.data(), block_arrays[i].offset).data = data;
    }
    for (const auto& [parameter, primal] : after_)
        view_at(after.data(), signature_->layout.offsets[parameter]).data = primal->contents().view.data;
    const runtime::spatial::PreviousObjectsPtr previous =
        previous_objects(memory, [](const Variable&) { return true; });
    std::vector<runtime::BufferPtr> holders;
    if (any_nested_kept()) holders = show_nested(before.data(), after.data());
    // Other threads may give arrays other gradients meanwhile; this keeps the memory of the present ones.
    GradientWrites writes(arrays_.size());
    const Grid grid = make_grid(dims_.span(), needs_->tid_rank, signature_->name);
    for (std::size_t i = 0; i < block_arrays.size(); ++i) {
        const auto parameter = static_cast<std::size_t>(block_arrays[i].parameter);
        const Variable* const array = arrays_[i].array;
        if (!array || !array->gradient) continue;
        const bool is_own = view_at(before.data(), block_arrays[i].offset).grad == array->array.view.grad;
        if (is_own)
            writes.begin(*array,
                         block_arrays[i].is_parameter && overwrites(*needs_, parameter, array->array.view, grid));
    }
    what.dims = dims_.span();
    what.before = before.data();
    what.after = after.data();
    what.returned = returned;
    what.device = device_;
    what.block_dim = blocks_.block_dim;
    what.max_blocks = blocks_.max_blocks;
    NanCheck check;
    const bool checks = settings().verify_fp;
    if (checks) watch_gradients(check, before.data());
    {
        std::optional<runtime::spatial::SnapshotScope> snapshot_scope;
        if (previous) snapshot_scope.emplace(previous);
        kernel_->launch_adjoint(what, checks ? &check : nullptr);
    }
    writes.done();
    check_found(previous);
    return true;
}

std::string RecordedLaunch::use_text(const Use& use) const {
    const bool is_argument = use.index < arrays_.size();
    const std::string name =
        is_argument ? signature_->array_names()[use.index] : signature_->parameter_names[parameter_at(use.index)];
    std::string location = kernel_->facts(launch(block().data())).location;  // "path:line:column"
    location.resize(std::min(location.rfind(':'), location.size()));
    return (is_argument ? "argument '" : "an array in the elements of argument '") + name + "' of kernel '" +
           signature_->name + "'" + (location.empty() ? "" : " (" + location + ")");
}

void RecordedLaunch::watch_gradients(NanCheck& check, const std::byte* block) const {
    const std::vector<std::string> names = signature_->array_names();
    for (std::size_t i = 0; i < arrays_.size(); ++i) {
        const ArrayView& view = view_at(block, signature_->arrays[i].offset);
        if (!arrays_[i].array || !view.grad) continue;
        runtime::Array gradient = arrays_[i].array->array;
        gradient.view.data = view.grad;
        gradient.view.grad = nullptr;
        check.watch(names[i], gradient);
    }
}

bool RecordedLaunch::has_new_gradients() const {
    const std::vector<BlockArray>& block_arrays = signature_->arrays;
    for (std::size_t i = 0; i < block_arrays.size(); ++i) {
        if (is_written(i) && arrays_[i].array->requires_grad && block_arrays[i].is_parameter) return true;
    }
    return false;
}

// Gradients have come since the launch was recorded, and with them further contents that the adjoint reads. These must
// still be there.
void RecordedLaunch::catch_up(TapeMemory& memory, const Group& written_after) {
    const std::vector<BlockArray>& block_arrays = signature_->arrays;
    const std::vector<std::byte> block = this->block();
    const bool had_atomic_results = !needs_->returned.empty();
    needs_ = needs_with(kernel_->facts(launch(block.data())), block.data());

    Group written = written_after;
    for (const Group& group : this->written()) written.insert(written.end(), group.begin(), group.end());
    const auto late_primal = [&](const Variable& of, const Group& changed) {
        for (const Variable* one : changed)
            if (runtime::overlap(of.array, one->array))
                too_late("an array of shape " + runtime::shape_text(of.array.shape()) +
                         " that it reads was overwritten since");
        return memory.save(of);
    };
    for (std::size_t i = 0; i < block_arrays.size(); ++i) {
        const auto parameter = static_cast<std::size_t>(block_arrays[i].parameter);
        auto& [array, before] = arrays_[i];
        if (!array) continue;
        if (needs_->contents[parameter].before && !before) before = late_primal(*array, written);
        const bool is_known = std::ranges::any_of(after_, [&](const auto& one) { return one.first == parameter; });
        if (needs_->contents[parameter].after && block_arrays[i].is_parameter && !is_known)
            after_.emplace_back(parameter, late_primal(*array, written_after));
    }
    for (Nested& nested : nested_) {
        if (!needs_->contents[nested.parameter].within || !nested.primals.empty()) continue;
        for (const Variable* array : nested.arrays) nested.primals.push_back(late_primal(*array, written));
    }
    if (objects_) {
        if (!objects_->are_kept() && !objects_->are_unchanged())
            too_late("a mesh, a grid or a volume has changed since");
        if (!objects_->are_kept()) objects_->keep(*device_);
        refuse_written_objects();
        if (reads_objects()) objects_->read_late([&](const Variable& array) { return late_primal(array, written); });
    }
    if (!needs_->returned.empty() && !had_atomic_results)
        too_late("it needs the results of the atomics of the launch, which were not kept");
}

void RecordedLaunch::too_late(const std::string& why) const {
    throw UsageError("Tape.backward()",
                     "an argument of " + text() +
                         " got its gradient after it was recorded, and the backward pass cannot be run any more: " +
                         why + ". help: make the arrays with requires_grad=True before they are recorded");
}

}  // namespace weft::program
