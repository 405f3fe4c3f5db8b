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
    bundle.kernels = {kernel, kernel};
    return bundle;
}

TEST(Bundle, ComesBackAsItWas) {
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
    }
}

TEST(Bundle, EveryDamagedByteAndEveryCutIsAnError) {
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
