// Which arrays a kernel only combines into, by which atomic, and which gradients threads only add to.
#include <gtest/gtest.h>

#include "ir/ir.h"
#include "transform/analysis/privatised.h"

namespace weft::transform {
namespace {

using ir::Op;
using Kinds = std::map<Memory, Op>;

std::unique_ptr<ir::Module> kernel_of(const std::string& body, bool is_adjoint, const std::string& parameter = "") {
    return ir::parse(
        "struct @Held = \"Held\" \"k\" { a: array<f32, 1> }\n"
        "func @f(%a: array<f32, 1>) {\n  return\n}\n"
        "kernel @k(%x: array<f32, 1>, %y: array<f32, 1>, %n: array<i32, 1>, %m: array<array<f32, 1>, 1>" +
        parameter + ") " + (is_adjoint ? "adjoint " : "") +
        "tid 1 {\n  %i = tid 0\n  %zero = constant 0 : i32\n  %one = constant 1 : f32\n" + body + "  return\n}\n");
}

Kinds combined(const std::string& body, bool is_adjoint = false, const std::string& parameter = "") {
    return privatised_memories(*kernel_of(body, is_adjoint, parameter)->find("k"));
}

const Memory kX{0, false}, kY{1, false}, kN{2, false}, kGradientOfX{0, true}, kGradientOfY{1, true};
const std::string kAdd = "  %a = atomic.add %x[%zero], %one\n";

TEST(Combined, by_atomics_of_one_kind_that_commutes) {
    EXPECT_EQ(combined(kAdd), (Kinds{{kX, Op::atomic_add}}));
    EXPECT_EQ(combined(kAdd + "  %b = atomic.sub %x[%i], %one\n"), (Kinds{{kX, Op::atomic_add}}));
    EXPECT_EQ(combined("  %a = atomic.min %x[%zero], %one\n"), (Kinds{{kX, Op::atomic_min}}));
    EXPECT_EQ(combined("  %a = atomic.max %n[%zero], %i\n"), (Kinds{{kN, Op::atomic_max}}));
    EXPECT_EQ(combined("  %a = atomic.or %n[%zero], %i\n"), (Kinds{{kN, Op::atomic_or}}));
    EXPECT_EQ(combined("  %a = atomic.and %n[%zero], %i\n"), (Kinds{{kN, Op::atomic_and}}));
    EXPECT_EQ(combined("  %a = atomic.xor %n[%zero], %i\n"), (Kinds{{kN, Op::atomic_xor}}));
    EXPECT_EQ(combined(kAdd + "  %b = atomic.min %x[%zero], %one\n"), Kinds{});
    EXPECT_EQ(combined("  %b = atomic.min %x[%zero], %one\n  %c = atomic.max %x[%zero], %one\n" + kAdd), Kinds{});
    EXPECT_EQ(combined("  %a = atomic.exch %x[%zero], %one\n"), Kinds{});
    EXPECT_EQ(combined("  %a = atomic.cas %x[%zero], %one, %one\n"), Kinds{});
}

TEST(Combined, not_where_somebody_looks) {
    EXPECT_EQ(combined(kAdd + "  store %y[%i], %a\n"), Kinds{}) << "at the old value";
    EXPECT_EQ(combined(kAdd + "  %b = load %x[%i]\n"), Kinds{});
    EXPECT_EQ(combined(kAdd + "  store %x[%i], %one\n"), Kinds{});
    EXPECT_EQ(combined("  %b = load %x[%i]\n" + kAdd), Kinds{});
    EXPECT_EQ(combined(kAdd + "  %b = load %y[%i]\n  store %y[%i], %b\n"), (Kinds{{kX, Op::atomic_add}}));
    EXPECT_EQ(combined(kAdd + "  %c = atomic.min %y[%i], %one\n"), (Kinds{{kX, Op::atomic_add}, {kY, Op::atomic_min}}));
}

TEST(Combined, beside_what_a_hash_grid_has_in_memory) {
    const auto reading = [](const std::string& kind) {
        return "  %o = object %id[" + kind +
               "]\n  %d = array_at %o, %zero : array<struct @Held, 1>\n  %f = member %d[0]\n  %l = load %f[%zero]\n"
               "  %b = load %l[%zero]\n";
    };
    EXPECT_EQ(combined(kAdd + reading("3"), false, ", %id: u64"), (Kinds{{kX, Op::atomic_add}}));
    EXPECT_EQ(combined(kAdd + reading("2"), false, ", %id: u64"), Kinds{}) << "a mesh shows arrays of the user's";
    EXPECT_EQ(combined(kAdd + reading("3") + "  store %l[%zero], %one\n", false, ", %id: u64"), Kinds{});
}

TEST(Combined, not_where_an_array_may_be_any_other) {
    EXPECT_EQ(combined(kAdd + "  call @f(%x)\n"), Kinds{});
    EXPECT_EQ(combined(kAdd + "  %b = load %m[%zero]\n"), Kinds{});
    EXPECT_EQ(combined(kAdd + "  %p = address %y\n  %c = array_at %p, %zero : array<f32, 1>\n  %d = load %c[%i]\n"),
              Kinds{});
    EXPECT_EQ(combined(kAdd, false, ", %held: struct @Held"), Kinds{});
    EXPECT_EQ(combined(kAdd + "  %own = local_array [3] : array<f32, 1>\n  store %own[%zero], %one\n"),
              (Kinds{{kX, Op::atomic_add}}))
        << "of this thread";
}

TEST(Combined, gradients_in_adjoints_only) {
    const std::string gradient = "  %g = grad_of %x\n  %b = atomic.add %g[%zero], %one\n";
    EXPECT_EQ(combined(gradient, true), (Kinds{{kGradientOfX, Op::atomic_add}}));
    EXPECT_EQ(combined(gradient), Kinds{});
    EXPECT_EQ(combined(gradient + "  %c = atomic.add %y[%zero], %one\n"), Kinds{});
    EXPECT_EQ(combined(kAdd, true), (Kinds{{kX, Op::atomic_add}}));
}

std::map<int, std::int64_t> scattered(const std::string& body, bool is_adjoint = true) {
    std::map<int, std::int64_t> found;
    const std::string gradients = "  %gx = grad_of %x\n  %gy = grad_of %y\n  %q = load %n[%i]\n";
    for (const Scattered& one : scattered_gradients(*kernel_of(gradients + body, is_adjoint)->find("k")))
        found[one.parameter] = one.additions;
    return found;
}

TEST(Scattered, additions_at_places_that_differ_and_may_meet) {
    using Found = std::map<int, std::int64_t>;
    const std::string add = "  %b = atomic.add %gx[%q], %one\n";
    EXPECT_EQ(scattered(add), (Found{{0, 1}}));
    EXPECT_EQ(scattered(add, false), Found{});
    EXPECT_EQ(scattered(add + "  %c = atomic.sub %gx[%q], %one\n  %d = atomic.add %gy[%q], %one\n"),
              (Found{{0, 2}, {1, 1}}));
    EXPECT_EQ(scattered("  %b = atomic.add %gx[%zero], %one\n"), Found{}) << "one place";
    EXPECT_EQ(scattered("  %b = atomic.add %gx[%i], %one\n"), Found{}) << "neighbours";
    EXPECT_EQ(scattered("  %b = atomic.min %gx[%q], %one\n"), Found{});
    EXPECT_EQ(scattered("  %b = atomic.add %x[%q], %one\n"), Found{}) << "no gradient";
    EXPECT_EQ(scattered(add + "  %c = load %gx[%i]\n"), Found{});
}

TEST(Scattered, additions_in_loops_count_more) {
    const std::string add = "  %b = atomic.add %gx[%q], %one\n";
    const auto loops = [&](int depth) {
        std::string text;
        for (int i = 0; i < depth; ++i)
            text += "  %n" + std::to_string(i) + " = cast %q : i32\n  for %k" + std::to_string(i) + " = %zero to %n" +
                    std::to_string(i) + " step %q {\n";
        text += add;
        for (int i = 0; i < depth; ++i) text += "  }\n";
        return scattered(text).at(0);
    };
    EXPECT_EQ(loops(0), 1);
    EXPECT_EQ(loops(1), 8);
    EXPECT_EQ(loops(2), 64);
    EXPECT_EQ(loops(3), 512);
    EXPECT_EQ(loops(4), 512);
    EXPECT_EQ(scattered("  %c = cmp.lt %q, %zero\n  if %c {\n" + add + "  }\n").at(0), 1) << "a branch is no loop";
}

}  // namespace
}  // namespace weft::transform
