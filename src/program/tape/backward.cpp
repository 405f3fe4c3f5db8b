#include "program/tape/backward.h"

#include <algorithm>
#include <iterator>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "program/host/host.h"
#include "program/tape/gradient_memory.h"
#include "program/tape/retained_gradients.h"
#include "program/tape/tape_start.h"
#include "runtime/graph.h"
#include "runtime/pinned.h"
#include "support/error.h"

namespace weft::program {

void BackwardHost::make_gradient(Variable& of) { program::make_gradient(of); }

void BackwardHost::share_gradient(Variable& to, const Variable& of) {
    to.gradient = of.gradient;
    to.requires_grad = true;
    to.array.view.grad = of.array.view.grad;
}

void BackwardHost::reverse(Tape& tape, std::size_t index, std::span<const SuppliedGradient> supplied) {
    tape.reverse(index, supplied);
}

void BackwardHost::tell_left_out(std::span<const std::string>) {}

namespace {

// Sets all numbers of a gradient to 1.
void fill_with_ones(const runtime::Array& gradient) {
    const Type dtype = gradient.dtype;
    if (!dtype.is_scalar() && !dtype.is_numeric_aggregate())
        throw UsageError("array.fill_()", "cannot fill an array of " + dtype.python_name() + " with 1",
                         ErrorCategory::value);
    const Scalar scalar = dtype.scalar();
    std::vector<std::byte> ones(static_cast<std::size_t>(dtype.size_bytes()));
    for (int i = 0; i < dtype.components(); ++i)
        write_scalar(scalar, convert(Number::real(1.0), Scalar::f64, scalar), ones.data() + i * info(scalar).bytes());
    runtime::fill(gradient, ones.data());
    runtime::count_write(gradient.buffer);
}

void assign(const runtime::Array& gradient, const runtime::Array& source) {
    runtime::refuse_lost_copy(*gradient.device, *source.device);
    {
        const runtime::RecordedCopies recorded;
        without_host(source.size_bytes(), [&] { runtime::copy(gradient, source); });
    }
    runtime::count_write(gradient.buffer);
    runtime::count_write_by_graph(gradient.buffer, *source.device);
}

// Of arrays with the same shape and dtype.
bool is_same_view(const runtime::Array& a, const runtime::Array& b) {
    return a.address() == b.address() && std::ranges::equal(a.strides(), b.strides());
}

runtime::Array copy_of(const runtime::Array& gradient) {
    const runtime::Array* const one = &gradient;
    return std::move(keep_together({&one, 1}).front());
}

// Lets other threads of the program and interrupts have their turn.
void yield_to_host() {
    bool is_interrupted = false;
    {
        const WithoutHost without;
        is_interrupted = host().interrupted && host().interrupted();
    }
    if (is_interrupted) host().stop();
}

class Pass {
public:
    Pass(Tape& tape, BackwardHost& host) : tape_(tape), host_(host), retained_(tape) {}

    void set(Variable* loss, std::span<const Seed> seeds);
    void run();
    // To be called after run(): seeds that lie in the gradients of their arrays become again what they were.
    void restore_seeds() const {
        for (const auto& [gradient, before] : own_) assign(gradient, before);
    }

private:
    struct Supplied {
        std::size_t entry;
        SuppliedGradient gradient;
    };

    void give_gradient(Variable& of);
    void set(const Seed& seed, std::span<const Variable* const> others);
    std::vector<SuppliedGradient> supplied_to(std::size_t entry) const;

    Tape& tape_;
    BackwardHost& host_;
    RetainedGradients retained_;
    std::vector<Supplied> supplied_;                              // seeds that are read from the caller's memory
    std::vector<std::pair<runtime::Array, runtime::Array>> own_;  // seeds in the gradients of their arrays; copies
};

void Pass::give_gradient(Variable& of) {
    if (of.requires_grad) return;
    const std::vector<const Variable*> others = standing_for(of, tape_);
    host_.make_gradient(of);
    // Entries refer to arrays of the program, which may be changed.
    for (const Variable* one : others) host_.share_gradient(const_cast<Variable&>(*one), of);
}

void Pass::set(Variable* loss, std::span<const Seed> seeds) {
    retained_.clear(/*all=*/loss || !seeds.empty());
    if (!loss && seeds.empty()) {
        loss = const_cast<Variable*>(implied_loss(tape_));
        if (loss) give_gradient(*loss);
    }
    std::vector<const Variable*> arrays;
    if (loss) {
        check_loss(*loss);
        fill_with_ones(gradient_of(*loss));
        arrays.push_back(loss);
    }
    for (const Seed& seed : seeds) {
        check_gradient(*seed.of, seed.gradient);
        give_gradient(*seed.of);
        arrays.push_back(seed.of);
    }
    for (const Seed& seed : seeds) set(seed, arrays);
    host_.begin(loss, arrays);
}

void Pass::set(const Seed& seed, std::span<const Variable* const> arrays) {
    const runtime::Array gradient = gradient_to_read(*seed.of);
    if (runtime::overlap(gradient, seed.gradient)) {
        own_.emplace_back(seed.gradient, copy_of(seed.gradient));
        if (!is_same_view(gradient, seed.gradient)) assign(gradient_of(*seed.of), own_.back().second);
        return;
    }
    std::vector<const Variable*> others;
    std::ranges::copy_if(arrays, std::back_inserter(others), [&](const Variable* one) { return one != seed.of; });
    if (const std::optional<Reader> reader = reader_of(*seed.of, seed.gradient, others, tape_)) {
        clear_gradient(*seed.of);  // that launch consumes it
        supplied_.push_back({reader->entry, {reader->argument, seed.gradient}});
    } else {
        assign(gradient_of(*seed.of), seed.gradient);
    }
}

std::vector<SuppliedGradient> Pass::supplied_to(std::size_t entry) const {
    std::vector<SuppliedGradient> found;
    for (const Supplied& one : supplied_)
        if (one.entry == entry) found.push_back(one.gradient);
    return found;
}

void Pass::run() {
    constexpr std::size_t kAtOnce = 256;
    tape_.memory().check_versions();
    std::vector<std::string> left_out;
    for (std::size_t i = tape_.entries().size(), count = 1;; ++count) {
        if (count % kAtOnce == 0) yield_to_host();
        i = std::min(i, tape_.entries().size());  // functions of the user and other threads may shorten the tape
        if (i == 0) break;
        const std::shared_ptr<TapeEntry> entry = tape_.entries()[--i];
        retained_.save(*entry);
        if (const std::string* const kernel = entry->left_out(); kernel && !std::ranges::count(left_out, *kernel))
            left_out.push_back(*kernel);
        if (supplied_.empty())
            host_.reverse(tape_, i, {});
        else
            host_.reverse(tape_, i, supplied_to(i));
    }
    retained_.restore();
    if (!left_out.empty()) host_.tell_left_out(left_out);
}

}  // namespace

void backward(Tape& tape, BackwardHost& host, Variable* loss, std::span<const Seed> seeds) {
    tape.memory().check_versions();
    Pass pass(tape, host);
    pass.set(loss, seeds);
    pass.run();
    pass.restore_seeds();
}

void reverse_all(Tape& tape, BackwardHost& host) { Pass(tape, host).run(); }

}  // namespace weft::program
