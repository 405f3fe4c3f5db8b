#include <gtest/gtest.h>

#include "binary/bundle.h"
#include "support/error.h"

namespace weft {
namespace {

Bundle sample() {
    Bundle bundle;
    bundle.name = "simulation";
    bundle.triple = "x86_64-unknown-linux-gnu";
    bundle.processor = "znver3";
    bundle.features = {"avx2", "fma"};
    Type inner = Type::structure("Inner", "m.Inner#1", {{"v", Type::vector(Scalar::f64, 5)}});
    Type outer = Type::structure("Outer", "m.Outer#2",
                                 {{"flag", bool_type()}, {"inner", inner}, {"data", Type::array(inner, 2)}});
    BundledKernel kernel;
    kernel.name = "step";
    kernel.parameters = {{"n", i32_type()},
                         {"m", Type::matrix(Scalar::f16, 3, 2)},
                         {"q", Type::quaternion(Scalar::f32)},
                         {"t", Type::transform(Scalar::f64)},
                         {"o", outer},
                         {"a", Type::array(outer, 4)}};
    kernel.dense.code = {std::byte{1}, std::byte{2}};
    kernel.dense.kernels = {{"step", "weft_step"}};
    kernel.huge.code = {std::byte{4}};
    kernel.narrow = {{5, 2}, {-1, -1}};
    BundledDerived adjoint;
    adjoint.code.code = {std::byte{3}};
    adjoint.code.kernels = {{"step", "weft_step_adjoint"}};
    adjoint.added = {{Type::array(outer, 4), 1, 5}, {Type::array(f32_type(), 2), 0, -1}};
    adjoint.reads = {{}, {true, false}, {false, true}, {true, true, true}, {false, false, true}, {}};
    adjoint.narrow = {{4, 1}};
    kernel.adjoints = {adjoint, adjoint, adjoint};
    kernel.no_adjoint = "none";
    kernel.returned = {{i32_type(), false}, {Type::vector(Scalar::f32, 3), true}};
    const BundledDerived recording{.code = adjoint.code, .added = adjoint.added};
    kernel.recording = {recording, recording, recording};
    bundle.kernels = {kernel, kernel};
    return bundle;
}

TEST(Bundle, comes_back_as_it_was) {
    const Bundle before = sample(), after = deserialize_bundle(serialize(before));
    EXPECT_EQ(after.name, before.name);
    EXPECT_EQ(after.triple, before.triple);
    EXPECT_EQ(after.processor, before.processor);
    EXPECT_EQ(after.features, before.features);
    ASSERT_EQ(after.kernels.size(), 2u);
    for (const BundledKernel& kernel : after.kernels) {
        EXPECT_EQ(kernel.name, "step");
        ASSERT_EQ(kernel.parameters.size(), before.kernels[0].parameters.size());
        for (std::size_t i = 0; i < kernel.parameters.size(); ++i) {
            const BundledParameter &x = kernel.parameters[i], &y = before.kernels[0].parameters[i];
            EXPECT_EQ(x.name, y.name);
            EXPECT_TRUE(x.type == y.type) << x.type.python_name();
        }
        EXPECT_EQ(kernel.dense.code, before.kernels[0].dense.code);
        EXPECT_EQ(kernel.dense.kernels.front().symbol, "weft_step");
        EXPECT_EQ(kernel.huge.code, before.kernels[0].huge.code);
        ASSERT_EQ(kernel.narrow.size(), 2u);
        EXPECT_TRUE(kernel.narrow[0].parameter == 5 && kernel.narrow[0].axis == 2);
        EXPECT_TRUE(kernel.narrow[1].parameter == -1 && kernel.narrow[1].axis == -1);
        EXPECT_EQ(kernel.no_adjoint, "none");
        ASSERT_EQ(kernel.adjoints.size(), 3u);
        ASSERT_EQ(kernel.returned.size(), 2u);
        EXPECT_TRUE(kernel.returned[0].element == i32_type() && !kernel.returned[0].is_log);
        EXPECT_TRUE(kernel.returned[1].element == Type::vector(Scalar::f32, 3) && kernel.returned[1].is_log);
        ASSERT_EQ(kernel.recording.size(), 3u);
        EXPECT_EQ(kernel.recording[1].added.size(), 2u);
        EXPECT_TRUE(kernel.recording[1].reads.empty());
        const BundledDerived &adjoint = kernel.adjoints[1], &expected = before.kernels[0].adjoints[1];
        EXPECT_EQ(adjoint.code.kernels.front().symbol, "weft_step_adjoint");
        ASSERT_EQ(adjoint.added.size(), 2u);
        for (std::size_t i = 0; i < 2; ++i) {
            EXPECT_TRUE(adjoint.added[i].type == expected.added[i].type);
            EXPECT_EQ(adjoint.added[i].kind, expected.added[i].kind);
            EXPECT_EQ(adjoint.added[i].of, expected.added[i].of);
        }
        ASSERT_EQ(adjoint.narrow.size(), 1u);
        EXPECT_TRUE(adjoint.narrow[0].parameter == 4 && adjoint.narrow[0].axis == 1);
        ASSERT_EQ(adjoint.reads.size(), expected.reads.size());
        for (std::size_t i = 0; i < adjoint.reads.size(); ++i) {
            EXPECT_EQ(adjoint.reads[i].before, expected.reads[i].before);
            EXPECT_EQ(adjoint.reads[i].after, expected.reads[i].after);
            EXPECT_EQ(adjoint.reads[i].within, expected.reads[i].within);
        }
    }
}

TEST(Bundle, every_damaged_byte_and_every_cut_is_an_error) {
    const std::vector<std::byte> whole = serialize(sample());
    for (std::size_t i = 0; i < whole.size(); ++i) {
        std::vector<std::byte> damaged = whole;
        damaged[i] ^= std::byte{0x41};
        EXPECT_THROW(deserialize_bundle(damaged), UsageError) << i;
        damaged.assign(whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(i));
        EXPECT_THROW(deserialize_bundle(damaged), UsageError) << i;
    }
}

}  // namespace
}  // namespace weft
