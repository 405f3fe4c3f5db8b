#include "weft/tape.h"

#include <algorithm>
#include <unordered_set>
#include <utility>
#include <vector>

#include "embed/access.h"
#include "embed/guarded.h"
#include "program/gradient_claim.h"
#include "program/grid.h"
#include "program/implicit_parameters.h"
#include "program/run.h"
#include "program/tape.h"

namespace weft {

namespace {

using program::Variable;

// One launch on a tape, with what its adjoint reads as it was then.
class Recorded : public program::TapeEntry {
public:
    Recorded(std::shared_ptr<const Access::KernelImplementation> kernel, std::span<const std::int64_t> dim,
             std::span<const Argument> arguments)
        : kernel_(std::move(kernel)), dim_(dim.begin(), dim.end()), block_(kernel_->block(arguments)) {
        for (const Argument& argument : arguments) {
            const auto* const array = std::get_if<Array>(&Access::value(argument));
            arrays_.push_back({array ? Access::variable(*array) : nullptr, nullptr, nullptr});
        }
        has_gradients_ = std::ranges::any_of(kernel_->dense.arrays, [&](const program::ArrayPlace& place) {
            return program::view_at(block_.data(), place.offset).grad != nullptr;
        });
        if (has_gradients_ && !kernel_->dense_adjoint)
            throw UsageError(
                "Tape::launch()",
                "kernel '" + kernel_->name +
                    "' has an argument with a gradient, and the file has no adjoint of it: " + kernel_->no_adjoint);
    }

    // Which of its two adjoints will run is known when it does: what either reads is kept.
    void record(program::TapeMemory& memory) override {
        const auto reads = [&](std::size_t i, bool transform::Contents::* when) {
            return has_gradients_ && arrays_[i].of &&
                   (kernel_->dense_adjoint->contents[i].*when || kernel_->general_adjoint->contents[i].*when);
        };
        for (std::size_t i = 0; i < arrays_.size(); ++i)
            if (reads(i, &transform::Contents::before)) arrays_[i].before = memory.need(*arrays_[i].of);
        if (memory.may_overlap()) {
            std::vector<program::NeedPtr*> all;
            for (Given& one : arrays_)
                if (one.before) all.push_back(&one.before);
            memory.join_overlapping(all);
        }
        for (const Group& group : written()) memory.write(*group.front(), /*counts=*/true);
        for (std::size_t i = 0; i < arrays_.size(); ++i)
            if (reads(i, &transform::Contents::after)) arrays_[i].after = memory.need(*arrays_[i].of);
    }

    void launch(std::span<const Argument> arguments) const { kernel_->launch(dim_, block_, arguments); }

    std::vector<Group> written() const override {
        std::vector<Group> groups;
        for (std::size_t i = 0; i < arrays_.size(); ++i)
            if (arrays_[i].of && kernel_->dense.effects[i].writes_itself) groups.push_back({arrays_[i].of.get()});
        return groups;
    }

    void for_each_array(const Visit& visit) const override {
        for (std::size_t i = 0; i < arrays_.size(); ++i)
            if (arrays_[i].of) visit(*arrays_[i].of, kernel_->dense.effects[i].writes_itself);
    }
    bool is_launch() const override { return true; }
    std::string text() const override { return "<launch of " + kernel_->name + ">"; }

    void go_back(const Backward&) override {
        const bool has_gradients =
            std::ranges::any_of(arrays_, [](const Given& one) { return one.of && one.of->requires_grad; });
        if (has_gradients && !has_gradients_)
            throw UsageError("Tape::backward()", "an argument of kernel '" + kernel_->name +
                                                     "' got its gradient after it was recorded. help: call "
                                                     "require_gradient() before");
        if (!has_gradients_) return;
        std::vector<std::byte> before = block_;
        std::vector<Variable> scratch;  // the adjoints are for gradients of all arrays
        scratch.reserve(arrays_.size());
        for (std::size_t i = 0; i < arrays_.size(); ++i) {
            const auto& [of, then, left] = arrays_[i];
            if (!of) continue;
            ArrayView& view = program::view_at(before.data(), kernel_->dense.layout.offsets[i]);
            view.grad = of->array.view.grad;
            if (!of->requires_grad && kernel_->is_smooth(i)) {
                make_gradient(scratch.emplace_back(Variable{.array = of->array}));
                view.grad = scratch.back().array.view.grad;
            }
        }
        std::vector<std::byte> after = before;
        for (std::size_t i = 0; i < arrays_.size(); ++i) {
            const auto& [of, then, left] = arrays_[i];
            const std::int64_t offset = kernel_->dense.layout.offsets[i];
            if (then) program::view_at(before.data(), offset).data = then->contents().view.data;
            if (left) program::view_at(after.data(), offset).data = left->contents().view.data;
        }
        run(before, after);
    }

private:
    struct Given {
        std::shared_ptr<Variable> of;  // null for what is no array
        program::NeedPtr before, after;
    };

    // The arguments, and what the compiler's own parameters show besides.
    static std::vector<std::byte> with_implicit_parameters(const program::CompiledKernel& adjoint,
                                                           const std::vector<std::byte>& before,
                                                           std::vector<std::byte> after) {
        std::vector<std::byte> block = before;
        block.resize(static_cast<std::size_t>(adjoint.layout.size_bytes));
        after.resize(block.size());
        program::point_implicit_parameters(adjoint, block.data(), after.data(),
                                           std::vector<ArrayView>(adjoint.implicit_parameters.size()));
        return block;
    }

    void run(const std::vector<std::byte>& before, const std::vector<std::byte>& after) const {
        const program::CompiledKernel* adjoint = &*kernel_->dense_adjoint;
        std::vector<std::byte> block = with_implicit_parameters(*adjoint, before, after);
        if (program::has_null(kernel_->dense.arrays, block.data()) ||
            program::arrangement(*adjoint, block.data(), /*with_gradients=*/true).index() != 0) {
            adjoint = &*kernel_->general_adjoint;
            block = with_implicit_parameters(*adjoint, before, after);
        }
        const program::GradientClaim claim(program::gradients_in(*adjoint, block.data()));
        runtime::Device& device = runtime::host_device();
        const std::vector<runtime::BufferPtr> copies = program::make_copies(*adjoint, block.data(), device);
        program::run(*adjoint, device.default_stream(), block.data(),
                     program::make_grid(dim_, adjoint->tid_rank, kernel_->name));
    }

    std::shared_ptr<const Access::KernelImplementation> kernel_;
    std::vector<std::int64_t> dim_;
    std::vector<std::byte> block_;
    std::vector<Given> arrays_;  // by parameter
    bool has_gradients_ = false;
};

}  // namespace

struct Tape::Implementation {
    program::Tape tape;

    void backward() {
        tape.memory().check_versions();
        for (std::size_t i = tape.entries().size(); i-- > 0;) tape.go_back(i, {});
    }
};

Tape::Tape() : implementation_(std::make_unique<Implementation>()) {}
Tape::Tape(Tape&&) noexcept = default;
Tape& Tape::operator=(Tape&&) noexcept = default;
Tape::~Tape() = default;

void Tape::launch(const Kernel& kernel, std::span<const std::int64_t> dim, std::span<const Argument> arguments) {
    guarded([&] {
        program::Tape& tape = implementation_->tape;
        const auto entry = std::make_shared<Recorded>(Access::implementation(kernel), dim, arguments);
        tape.record(entry);
        try {
            entry->launch(arguments);
        } catch (...) {
            tape.forget_last();
            throw;
        }
    });
}

void Tape::backward() {
    guarded([&] { implementation_->backward(); });
}

void Tape::backward(const Array& loss) {
    guarded([&] {
        const std::shared_ptr<Variable> variable = Access::variable(loss);
        const bool is_number = variable && variable->array.size() == 1 && variable->array.dtype.is_scalar() &&
                               variable->array.dtype.is_float();
        if (!is_number)
            throw UsageError("Tape::backward()", "the loss is " +
                                                     (variable ? variable->array.dtype.python_name() + " " +
                                                                     runtime::shape_text(variable->array.shape())
                                                               : std::string("no array")) +
                                                     ", expected an array of one floating-point number");
        if (!variable->requires_grad)
            throw UsageError("Tape::backward()",
                             "the loss has no gradient. help: loss.require_gradient() before it is recorded");
        std::vector<std::byte> one(static_cast<std::size_t>(variable->array.dtype.size_bytes()));
        write_scalar(variable->array.dtype.scalar(),
                     convert(Number::real(1.0), Scalar::f64, variable->array.dtype.scalar()), one.data());
        runtime::fill(gradient_of(*variable), one.data());
        implementation_->backward();
    });
}

void Tape::zero() {
    guarded([&] {
        std::unordered_set<const void*> seen;
        for (const auto& entry : implementation_->tape.entries())
            entry->for_each_array([&](const Variable& one, bool) {
                if (one.requires_grad && seen.insert(&one).second) runtime::zero(gradient_of(one));
            });
    });
}

void Tape::reset() {
    zero();
    implementation_->tape.clear();
}

std::size_t Tape::size() const { return implementation_->tape.entries().size(); }

}  // namespace weft
