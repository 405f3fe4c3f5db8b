// Backward passes through launches of a kernel that is no Weft code: DifferentiableKernel is all that a tape needs.
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "program/tape/backward.h"
#include "program/tape/recorded_launch.h"
#include "program/tape/recorded_write.h"
#include "support/error.h"

namespace weft::program {
namespace {

using transform::Gradient;

const Type kArray = Type::array(Type::scalar(Scalar::f64), 1);

// y[i] = x[i]^2 for each thread.
class Squares final : public DifferentiableKernel {
public:
    Squares() : DifferentiableKernel(own_), own_("squares", {kArray, kArray}, {"x", "y"}) {
        facts_ = KernelFacts(own_.types, {{.reads = true}, {.writes = true, .writes_itself = true}});
        facts_.tid_rank = 1;
        LaunchNeeds needs{};
        needs.contents = {{.before = true}, {}};
        needs.reads = {true, false};
        needs.writes = {false, true};
        needs.writes_within = {false, false};
        needs.overwritten = {{}, {0}};
        needs.gradients = {Gradient::used, Gradient::used};
        needs.tid_rank = 1;
        needs.has_adjoint = true;
        needs_ = std::make_shared<const LaunchNeeds>(std::move(needs));
    }

    const KernelFacts& facts(const Launch&) const override { return facts_; }
    std::shared_ptr<const LaunchNeeds> needs(const Launch&, const KernelFacts&,
                                             std::span<const std::uint8_t>) const override {
        return needs_;
    }
    bool has_derivative(const Launch&, std::size_t, std::size_t) const override { return true; }
    void launch_adjoint(const DerivedLaunch& what, const NanCheck*) const override {
        const ArrayView &x = view_at(what.before, own_.arrays[0].offset),
                        &y = view_at(what.before, own_.arrays[1].offset);
        const bool is_retained = what.derivation.gradients[1] == Gradient::retained;
        for (std::int64_t i = 0; i < what.dims[0]; ++i) {
            double& gradient = static_cast<double*>(y.grad)[i];
            if (x.grad) static_cast<double*>(x.grad)[i] += 2.0 * static_cast<double*>(x.data)[i] * gradient;
            if (!is_retained) gradient = 0.0;
        }
        was_retained = is_retained;
    }

    mutable bool was_retained = false;  // the last launch read its seed from memory of the caller

private:
    KernelSignature own_;
    KernelFacts facts_;
    std::shared_ptr<const LaunchNeeds> needs_;
};

class Host final : public BackwardHost {
public:
    void begin(const Variable* loss, std::span<const Variable* const> seeds) override {
        this->loss = loss;
        this->seeds.assign(seeds.begin(), seeds.end());
    }
    const Variable* loss = nullptr;
    std::vector<const Variable*> seeds;
};

Variable variable(std::vector<double> numbers, bool has_gradient = true) {
    const std::vector<std::int64_t> shape{static_cast<std::int64_t>(numbers.size())};
    Variable made{.array = runtime::zeros(kArray.element(), shape, runtime::host_device())};
    std::ranges::copy(numbers, static_cast<double*>(made.array.view.data));
    if (has_gradient) make_gradient(made);
    return made;
}

std::vector<double> numbers(const runtime::Array& array) {
    const auto* const from = static_cast<const double*>(array.view.data);
    return {from, from + array.size()};
}

std::vector<double> gradient(const Variable& of) { return numbers(gradient_of(of)); }

class Backward : public testing::Test {
protected:
    void record(Variable& x, Variable& y) {
        std::vector<std::byte> block(static_cast<std::size_t>(kernel.signature().layout.size_bytes));
        view_at(block.data(), kernel.signature().arrays[0].offset) = x.array.view;
        view_at(block.data(), kernel.signature().arrays[1].offset) = y.array.view;
        const std::vector<std::int64_t> dims{x.array.size()};
        auto entry = std::make_shared<RecordedLaunch>(kernel, runtime::host_device(), block.data(), dims,
                                                      std::vector<RecordedLaunch::Argument>{{&x, {}}, {&y, {}}});
        entry->find_needs(kernel.facts({runtime::host_device(), dims, block.data()}), block.data(), /*is_seen=*/true);
        tape.record(entry);
        for (std::int64_t i = 0; i < x.array.size(); ++i) {
            const double of_x = static_cast<const double*>(x.array.view.data)[i];
            static_cast<double*>(y.array.view.data)[i] = of_x * of_x;
        }
        ++y.array.buffer->version;
    }

    Squares kernel;
    Tape tape;
    Host host;
};

TEST_F(Backward, starts_from_the_loss_that_the_last_launch_wrote) {
    Variable x = variable({3.0}), y = variable({0.0});
    record(x, y);
    backward(tape, host, nullptr, {});
    EXPECT_EQ(host.loss, &y);
    EXPECT_EQ(gradient(x), std::vector{6.0});
    EXPECT_EQ(gradient(y), std::vector{0.0});
}

TEST_F(Backward, reads_saved_contents) {
    Variable x = variable({2.0, 5.0}), y = variable({0.0, 0.0});
    record(x, y);
    tape.record(std::make_shared<RecordedWrite>(x, nullptr));
    static_cast<double*>(x.array.view.data)[1] = 100.0;
    ++x.array.buffer->version;
    const Variable seed = variable({1.0, 10.0}, /*has_gradient=*/false);
    // The write ends the gradient of x, and clears what was there.
    const std::vector<Seed> seeds{{&y, seed.array}};
    backward(tape, host, nullptr, seeds);
    EXPECT_EQ(gradient(x), (std::vector{4.0, 100.0}));
    EXPECT_EQ(host.seeds, std::vector<const Variable*>{&y});
}

TEST_F(Backward, reads_seeds_in_place_or_copies_them) {
    for (const bool is_copied : {false, true}) {
        tape.clear();
        Variable x = variable({2.0, 5.0}), y = variable({0.0, 0.0});
        record(x, y);
        if (is_copied) record(y, x);  // y is read, too
        const Variable seed = variable({1.0, 10.0}, /*has_gradient=*/false);
        static_cast<double*>(gradient_of(y).view.data)[0] = 7.0;  // replaced by the seed
        const std::vector<Seed> seeds{{&y, seed.array}};
        backward(tape, host, nullptr, seeds);
        EXPECT_EQ(kernel.was_retained, !is_copied);
        EXPECT_EQ(gradient(x), (std::vector{4.0, 100.0}));
        EXPECT_EQ(gradient(y), (std::vector{0.0, 0.0}));
        EXPECT_EQ(numbers(seed.array), (std::vector{1.0, 10.0}));
    }
}

TEST_F(Backward, retained_gradients_are_no_seeds_of_the_next_pass) {
    Variable x = variable({3.0}), y = variable({0.0});
    y.retain_grad = true;
    record(x, y);
    for (int times = 1; times <= 2; ++times) {
        backward(tape, host, nullptr, {});
        EXPECT_EQ(gradient(x), std::vector{6.0 * times});
        EXPECT_EQ(gradient(y), std::vector{1.0});
    }
    static_cast<double*>(gradient_of(y).view.data)[0] = 5.0;
    ++y.gradient->version;
    backward(tape, host, nullptr, {});
    EXPECT_EQ(gradient(x), std::vector{12.0 + 30.0});
}

TEST_F(Backward, refuses_seeds_of_other_shapes) {
    Variable x = variable({3.0}), y = variable({0.0});
    record(x, y);
    const Variable seed = variable({1.0, 10.0}, /*has_gradient=*/false);
    const std::vector<Seed> seeds{{&y, seed.array}};
    EXPECT_THROW(backward(tape, host, nullptr, seeds), UsageError);
    EXPECT_EQ(gradient(x), std::vector{0.0});
}

}  // namespace
}  // namespace weft::program
