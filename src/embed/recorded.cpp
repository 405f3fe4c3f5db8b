#include "embed/recorded.h"

#include <algorithm>
#include <utility>

#include "embed/shown_arrays.h"
#include "program/kernel/grid.h"
#include "program/launch/atomic_result_buffers.h"
#include "program/launch/gradient_claim.h"
#include "program/launch/implicit_parameters.h"
#include "program/launch/run.h"
#include "support/error.h"

namespace weft {

using program::BlockArray;
using program::Variable;

Recorded::Recorded(std::shared_ptr<const Access::KernelImplementation> kernel, std::span<const std::int64_t> dim,
                   std::span<const Argument> arguments)
    : kernel_(std::move(kernel)),
      device_(kernel_->device(arguments)),
      dim_(dim.begin(), dim.end()),
      block_(kernel_->block(arguments)) {
    for (const BlockArray& place : kernel_->dense.arrays) {
        const ArrayView& view = program::view_at(block_.data(), place.offset);
        RecordedArray& given = arrays_.emplace_back();
        if (place.is_parameter)
            given.of = Access::variable(std::get<Array>(Access::value(arguments[place.parameter])));
        else if (view.data)
            given.of = std::make_shared<const Variable>(shown_array(view, place.type));
        has_gradients_ |= view.grad != nullptr;
    }
    if (has_gradients_ && !kernel_->dense_adjoint)
        throw UsageError(
            "Tape::launch()",
            "kernel '" + kernel_->name +
                "' has an argument with a gradient, and the file has no adjoint of it: " + kernel_->no_adjoint);
    for (std::size_t i = 0; i < arrays_.size(); ++i)
        if (arrays_[i].of && (effects(i).writes_within || (has_gradients_ && contents(i).within)))
            arrays_[i].within = arrays_within(arrays_[i].of->array);
    if (!has_gradients_ || kernel_->returned.empty()) return;
    const int rank = kernel_->dense.description.tid_rank;
    const program::Grid grid = program::make_grid(dim, rank, kernel_->name);
    returned_ = program::open_atomic_results(kernel_->returned, {grid.dim, static_cast<std::size_t>(std::max(rank, 1))},
                                             device_);
}

// Which of the adjoints will run is only known at that time, so everything that any of them reads is saved.
transform::Contents Recorded::contents(std::size_t place) const {
    const auto parameter = static_cast<std::size_t>(kernel_->dense.arrays[place].parameter);
    transform::Contents all;
    const program::KernelFacts* const adjoints[] = {&*kernel_->dense_adjoint, &*kernel_->general_adjoint,
                                                    &kernel_->huge_adjoint->facts()};
    for (const program::KernelFacts* adjoint : adjoints) {
        const transform::Contents& one = adjoint->contents[parameter];
        all.before |= one.before;
        all.after |= one.after;
        all.within |= one.within;
    }
    return all;
}

const ParameterEffects& Recorded::effects(std::size_t place) const {
    return kernel_->dense.effects[static_cast<std::size_t>(kernel_->dense.arrays[place].parameter)];
}

// ---- recording ----

void Recorded::record(program::TapeMemory& memory) {
    std::vector<program::SavedPrimalPtr*> all;
    for (std::size_t i = 0; has_gradients_ && i < arrays_.size(); ++i) {
        RecordedArray& given = arrays_[i];
        if (given.of && contents(i).before) given.before = memory.need(*given.of);
        if (given.before) all.push_back(&given.before);
        if (contents(i).within)
            for (const Variable& one : given.within) given.within_before.push_back(memory.need(one));
        for (program::SavedPrimalPtr& need : given.within_before) all.push_back(&need);
    }
    if (memory.may_overlap()) memory.join_overlapping(all);
    for (std::size_t i = 0; i < arrays_.size(); ++i) {
        const RecordedArray& given = arrays_[i];
        if (given.of && effects(i).writes_itself) memory.write(*given.of, /*counts=*/true);
        if (!effects(i).writes_within) continue;
        std::vector<const Variable*> within;
        for (const Variable& one : given.within) {
            memory.write(one);
            within.push_back(&one);
        }
        memory.count_writes(within);
    }
    for (std::size_t i = 0; has_gradients_ && i < arrays_.size(); ++i)
        if (arrays_[i].of && contents(i).after && kernel_->dense.arrays[i].is_parameter)
            arrays_[i].after = memory.need(*arrays_[i].of);
}

void Recorded::launch(std::span<const Argument> arguments) { kernel_->launch(dim_, block_, arguments, returned_); }

// ---- questions ----

std::vector<program::TapeEntry::Group> Recorded::written() const {
    std::vector<Group> groups;
    for (std::size_t i = 0; i < arrays_.size(); ++i) {
        if (arrays_[i].of && effects(i).writes_itself) groups.push_back({arrays_[i].of.get()});
        if (!effects(i).writes_within || arrays_[i].within.empty()) continue;
        Group& within = groups.emplace_back();
        for (const Variable& one : arrays_[i].within) within.push_back(&one);
    }
    return groups;
}

void Recorded::for_each_array(const Visit& visit) const {
    for (std::size_t i = 0; i < arrays_.size(); ++i) {
        if (arrays_[i].of) visit(*arrays_[i].of, effects(i).writes_itself);
        for (const Variable& one : arrays_[i].within) visit(one, effects(i).writes_within);
    }
}

std::vector<program::TapeEntry::Use> Recorded::uses() const {
    std::vector<Use> found;
    for (std::size_t i = 0; i < arrays_.size(); ++i)
        if (arrays_[i].of) found.push_back({arrays_[i].of.get(), i, effects(i).reads, effects(i).writes_itself, false});
    return found;
}

std::string Recorded::use_text(const Use& use) const {
    const auto parameter = static_cast<std::size_t>(kernel_->dense.arrays[use.place].parameter);
    return "argument '" + kernel_->parameters[parameter].name + "' of kernel '" + kernel_->name + "'";
}

// ---- backward pass ----

bool Recorded::gives_gradients_late() const {
    return !has_gradients_ &&
           std::ranges::any_of(arrays_, [](const RecordedArray& one) { return one.of && one.of->requires_grad; });
}

void Recorded::check_within() const {
    for (std::size_t i = 0; i < arrays_.size(); ++i)
        for (const program::SavedPrimalPtr& need : arrays_[i].within_before)
            if (need->copy)
                throw UsageError(
                    "Tape::backward()",
                    "kernel '" + kernel_->name + "' reads an array of shape " +
                        runtime::shape_text(need->of->array.shape()) + " that elements of its argument '" +
                        kernel_->parameters[static_cast<std::size_t>(kernel_->dense.arrays[i].parameter)].name +
                        "' lead to, and a later launch has overwritten it. help: write to another array");
}

void Recorded::backward(const Backward&) {
    if (gives_gradients_late())
        throw UsageError("Tape::backward()", "an argument of kernel '" + kernel_->name +
                                                 "' got its gradient after it was recorded. help: call "
                                                 "require_gradient() before");
    if (!has_gradients_) return;
    check_within();
    std::vector<std::byte> before = block_;
    std::vector<Variable> scratch;  // the adjoints expect gradients of all arrays that are arguments
    scratch.reserve(arrays_.size());
    const std::vector<BlockArray>& places = kernel_->dense.arrays;
    for (std::size_t i = 0; i < arrays_.size(); ++i) {
        const auto& of = arrays_[i].of;
        if (!of || !places[i].is_parameter) continue;
        ArrayView& view = program::view_at(before.data(), places[i].offset);
        view.grad = of->array.view.grad;
        if (!of->requires_grad && kernel_->is_smooth(static_cast<std::size_t>(places[i].parameter))) {
            make_gradient(scratch.emplace_back(Variable{.array = of->array}));
            view.grad = scratch.back().array.view.grad;
        }
    }
    std::vector<std::byte> after = before;
    for (std::size_t i = 0; i < arrays_.size(); ++i) {
        const program::SavedPrimalPtr &then = arrays_[i].before, &left = arrays_[i].after;
        const std::int64_t offset = places[i].offset;
        if (then) program::view_at(before.data(), offset).data = then->contents().view.data;
        if (then && !places[i].is_parameter) program::view_at(after.data(), offset).data = then->contents().view.data;
        if (left) program::view_at(after.data(), offset).data = left->contents().view.data;
    }
    run(before, after);
}

// The arguments, followed by the values of the compiler's own parameters.
std::vector<std::byte> Recorded::with_implicit_parameters(const program::CompiledKernel& adjoint,
                                                          const std::vector<std::byte>& before,
                                                          std::vector<std::byte> after) const {
    std::vector<std::byte> block = before;
    block.resize(static_cast<std::size_t>(adjoint.layout.size_bytes));
    after.resize(block.size());
    std::vector<ArrayView> returned;
    for (const runtime::Array& one : returned_) returned.push_back(one.view);
    program::point_implicit_parameters(adjoint, block.data(), after.data(), returned);
    return block;
}

void Recorded::run(const std::vector<std::byte>& before, const std::vector<std::byte>& after) {
    const program::CompiledKernel* adjoint = &*kernel_->dense_adjoint;
    std::vector<std::byte> block = with_implicit_parameters(*adjoint, before, after);
    const program::LaunchLayout arranged =
        program::launch_layout(*adjoint, block.data(), /*with_gradients=*/true, kernel_->is_for_gpus());
    if (arranged.index() != 0 || program::has_null(kernel_->dense.arrays, block.data())) {
        adjoint = arranged.huge ? &kernel_->huge_adjoint->code() : &*kernel_->general_adjoint;
        block = with_implicit_parameters(*adjoint, before, after);
        kernel_->check_extents(*adjoint, block.data(), "Tape::backward()");
    }
    const program::GradientClaim claim(program::gradients_in(*adjoint, block.data()));
    const std::vector<runtime::BufferPtr> copies = program::make_copies(*adjoint, block.data(), device_);
    program::run(*adjoint, device_.default_stream(), block.data(),
                 program::make_grid(dim_, adjoint->tid_rank, kernel_->name));
}

}  // namespace weft
