// The facts that codegen gets of a kernel beside its IR, and those that each promise removes.
#include <gtest/gtest.h>

#include "ir/ir.h"
#include "ir/walk.h"
#include "transform/plan.h"

namespace weft::transform {
namespace {

using ir::Op;
using ir::Operation;

class Planned {
public:
    explicit Planned(const std::string& body, const PlanOptions& options = {}, const std::string& words = "tid 1",
                     const std::string& before = "", const std::string& more = "")
        : module_(ir::parse(
              before + "kernel @k(%x: array<f32, 1>, %y: array<f32, 1>, %n: i32, %m: array<array<f32, 1>, 1>" +
              (more.empty() ? "" : ", " + more) + ") " + words +
              " {\n  %i = tid 0\n  %zero = constant 0 : i32\n  %one = constant 1 : f32\n" + body + "  return\n}\n")),
          plans_(plan(*module_, options)) {
        ir::verify(*module_);
    }
    const KernelPlan& kernel() const { return plans_.back(); }
    const ModulePlan& all() const { return plans_; }
    // The operations of one kind, in the order of the program.
    std::vector<const Operation*> operations(Op op) const {
        std::vector<const Operation*> found;
        ir::for_each_operation(kernel().function->body, [&](const Operation& operation) {
            if (operation.op == op) found.push_back(&operation);
        });
        return found;
    }

private:
    std::unique_ptr<ir::Module> module_;
    ModulePlan plans_;
};

const std::string kTotal = "  %a = atomic.add %x[%zero], %one\n";
const std::string kScattered = "  %q = load %y[%i]\n  %j = cast %q : i32\n  %b = atomic.add %x[%j], %one\n";
const std::string kLoop =
    "  %step = constant 1 : i32\n  for %k = %zero to %n step %step {\n    %c = atomic.add %x[%k], %one\n    yield\n  "
    "}\n";

TEST(Plan, tells_where_an_atomic_goes) {
    const Planned planned(kTotal + kScattered);
    const auto atomics = planned.operations(Op::atomic_add);
    ASSERT_EQ(atomics.size(), 2u);
    for (const Operation* atomic : atomics) EXPECT_EQ(planned.kernel().atomics.at(atomic).memory, (Memory{0, false}));
    EXPECT_TRUE(planned.kernel().atomics.at(atomics[0]).is_fixed);
    EXPECT_FALSE(planned.kernel().atomics.at(atomics[1]).is_fixed);
    EXPECT_EQ(planned.kernel().privatised, (std::map<Memory, Op>{{{0, false}, Op::atomic_add}}));
    EXPECT_TRUE(planned.kernel().depends_on_order);
}

TEST(Plan, puts_no_contributions_together_without_the_promises) {
    for (const PlanOptions& options :
         {PlanOptions{.noalias = false}, PlanOptions{.debug = true}, PlanOptions{.null_arrays = true}})
        EXPECT_TRUE(Planned(kTotal, options).kernel().privatised.empty());
}

TEST(Plan, tells_which_loops_the_launch_knows) {
    const Planned known(kLoop),
        unknown("  %q = load %y[%i]\n  %e = cast %q : i32\n" + std::string(kLoop).replace(kLoop.find("%n"), 2, "%e"));
    EXPECT_EQ(known.kernel().loops_of_launch.size(), 1u);
    EXPECT_TRUE(unknown.kernel().loops_of_launch.empty());
}

TEST(Plan, has_the_neighbours_and_the_reach_of_adjoints) {
    const std::string body =
        "  %step = constant 1 : i32\n  %g = grad_of %x\n  %next = add %i, %step\n"
        "  %a = atomic.add %g[%next], %one\n  %b = atomic.add %g[%i], %one\n";
    const Planned adjoint(body, {}, "adjoint tid 1");
    EXPECT_EQ(adjoint.kernel().halo.most, 1);
    ASSERT_EQ(adjoint.kernel().adjacent_additions.size(), 1u);
    for (const Operation* atomic : adjoint.operations(Op::atomic_add)) {
        EXPECT_EQ(adjoint.kernel().adjacent_additions_of.at(atomic), &adjoint.kernel().adjacent_additions[0]);
        EXPECT_EQ(adjoint.kernel().atomics.at(atomic).first_index, atomic->operands[1]);
    }
    EXPECT_TRUE(Planned(body).kernel().adjacent_additions.empty());
    EXPECT_TRUE(Planned(body, {.noalias = false}, "adjoint tid 1").kernel().halo.memories.empty());
}

TEST(Plan, gives_scattered_gradients_to_one_worker_only_where_that_is_promised) {
    const std::string body =
        "  %q = load %y[%i]\n  %j = cast %q : i32\n  %g = grad_of %x\n  %a = atomic.add %g[%j], %one\n";
    EXPECT_TRUE(Planned(body, {}, "adjoint tid 1").kernel().uncontended.empty());
    EXPECT_EQ(Planned(body, {.private_gradients = true}, "adjoint tid 1").kernel().uncontended,
              (std::set<Memory>{{0, true}}));
}

TEST(Plan, fuses_a_product_with_the_only_sum_that_uses_it) {
    const std::string load = "  %a = load %x[%i]\n  %p = mul %a, %a\n";
    const auto fused = [&](const std::string& body) {
        return Planned(load + body).kernel().arithmetic.fused_products.size();
    };
    EXPECT_EQ(fused("  %s = add %p, %one\n  store %y[%i], %s\n"), 1u);
    EXPECT_EQ(fused("  %s = add %p, %one\n  store %y[%i], %s\n  store %x[%i], %p\n"), 0u);
    EXPECT_EQ(fused("  %s = max %p, %one\n  store %y[%i], %s\n"), 0u);
    EXPECT_EQ(fused("  %q = constant 0 : f16\n  %r = mul %q, %q\n  %s = add %r, %q\n  %t = cast %s : f32\n"
                    "  store %y[%i], %t\n"),
              0u);
}

TEST(Plan, pairs_the_sine_and_cosine_of_an_angle_in_adjoints) {
    const std::string body =
        "  %a = load %x[%i]\n  %s = sin %a\n  %c = cos %a\n  %t = cos %s\n  %p = mul %s, %c\n"
        "  %q = mul %p, %t\n  store %y[%i], %q\n";
    const Planned adjoint(body, {}, "adjoint tid 1");
    const Operation *sine = adjoint.operations(Op::sin)[0], *cosine = adjoint.operations(Op::cos)[0];
    EXPECT_EQ(adjoint.kernel().arithmetic.angle_partners.at(sine), cosine);
    EXPECT_EQ(adjoint.kernel().arithmetic.angle_partners.at(cosine), sine);
    EXPECT_EQ(adjoint.kernel().arithmetic.angle_partners.size(), 2u);
    EXPECT_TRUE(Planned(body).kernel().arithmetic.angle_partners.empty());
}

TEST(Plan, finds_choices_between_ends_that_only_choose_elements) {
    const auto chosen = [](const std::string& uses, const PlanOptions& options, const std::string& extent) {
        const Planned planned("  %j = load %p[%i]\n  %negative = cmp.lt %j, %zero\n  %e = " + extent +
                                  "\n  %c = add %j, %e\n  %at = select %negative, %c, %j\n" + uses,
                              options, "tid 1", "", "%p: array<i32, 1>");
        const auto& found = planned.kernel().choices_of_accesses;
        return found == std::unordered_set<const Operation*>{planned.operations(Op::select)[0]};
    };
    const std::string dim = "dim %x[0]", load = "  %v = load %x[%at]\n";
    const std::string others = "  %a = atomic.add %x[%at], %one\n  store %y[%at], %one\n";
    EXPECT_TRUE(chosen(load, {.coarsens = true}, dim));
    EXPECT_TRUE(chosen(load + others, {.coarsens = true}, dim));
    // As a number it has to be exact for every index.
    EXPECT_FALSE(chosen(load + "  store %p[%i], %at\n", {.coarsens = true}, dim));
    EXPECT_FALSE(chosen(load + "  %s = add %at, %zero\n", {.coarsens = true}, dim));
    EXPECT_FALSE(chosen(load, {.coarsens = true}, "add %n, %zero"));
    EXPECT_FALSE(chosen(load, {.debug = true, .coarsens = true}, dim));
    EXPECT_FALSE(chosen(load, {}, dim));
}

TEST(Plan, tells_which_arrays_may_be_none) {
    EXPECT_FALSE(Planned("").kernel().parameters_may_be_null);
    EXPECT_FALSE(Planned("").kernel().others_may_be_null);
    EXPECT_TRUE(Planned("", {.null_arrays = true}).kernel().parameters_may_be_null);
    EXPECT_TRUE(Planned("", {.null_arrays = true}).kernel().others_may_be_null);
    const Planned loads("  %row = load %m[%i]\n");
    EXPECT_FALSE(loads.kernel().parameters_may_be_null);
    EXPECT_TRUE(loads.kernel().others_may_be_null);
}

TEST(Plan, asks_large_functions_and_callees_nothing_about_lanes) {
    EXPECT_TRUE(Planned(kTotal).kernel().uniformity.runs_in_lanes);
    EXPECT_FALSE(Planned(kTotal, {.most_operations_in_lanes = 2}).kernel().uniformity.runs_in_lanes);
    const Planned calls("  %a = call @f(%n)\n", {}, "tid 1", "func @f(%a: i32) -> i32 {\n  return %a\n}\n");
    ASSERT_EQ(calls.all().size(), 2u);
    EXPECT_FALSE(calls.all()[0].uniformity.runs_in_lanes);
    EXPECT_FALSE(calls.kernel().uniformity.runs_in_lanes);
    EXPECT_EQ(calls.kernel().uniformity.remarks.size(), 1u);
}

}  // namespace
}  // namespace weft::transform
