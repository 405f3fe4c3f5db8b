// Kernels as PTX, on a machine without a GPU: their text, for the oldest and the newest processors.
#include <gtest/gtest.h>

#include <cstdlib>
#include <string>

#include "jit/jit.h"
#include "jit/libdevice.h"
#include "support/error.h"
#include "transform/pipeline.h"

namespace weft::jit {
namespace {

std::string ptx(const std::string& body, const std::string& processor = "sm_75", bool debug = false) {
    const auto module = ir::parse(
        "kernel @k(%x: array<f32, 1>, %h: array<f16, 1>, %n: array<i32, 1>, %a: f32) tid 3 {\n  %i = tid 0\n"
        "  %j = tid 1\n  %k = tid 2\n  %one = constant 1 : i32\n" +
        body + "  return\n}\n");
    ir::verify(*module);
    transform::run_pipeline(*module);
    Options options;
    options.target = {Target::Kind::cuda, "nvptx64-nvidia-cuda", processor, ""};
    options.codegen.lanes = 1;
    options.codegen.debug = debug;
    return listing(*module, options, Listing::assembly);
}

bool has(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

TEST(Nvptx, writes_the_least_version_for_each_processor) {
    for (const auto& [processor, version] :
         {std::pair("sm_75", "6.3"), {"sm_80", "7.0"}, {"sm_90", "7.8"}, {"sm_120", "8.7"}}) {
        const std::string text = ptx("  store %x[%i], %a\n", processor);
        EXPECT_TRUE(has(text, std::string(".version ") + version)) << text;
        EXPECT_TRUE(has(text, std::string(".target ") + processor)) << text;
    }
    EXPECT_THROW(ptx("", "sm_70"), UsageError);
    EXPECT_THROW(ptx("", "sm_999"), UsageError);
}

TEST(Nvptx, has_its_own_libdevice) {
    // As `make setup` builds it, or the one that WARP_LIBDEVICE names.
    ASSERT_FALSE(bundled_libdevice().empty());
    if (std::getenv("WARP_LIBDEVICE") == nullptr) {
        EXPECT_EQ(libdevice().name, "Weft's own libdevice");
    }
    const std::string text = ptx("  %b = load %x[%i]\n  %c = sin %b\n  %d = pow %c, %a\n  store %x[%i], %d\n");
    EXPECT_FALSE(has(text, "__nv_sinf") || has(text, ".extern")) << text;
}

TEST(Nvptx, calls_what_would_have_thousands_of_copies) {
    std::string body = "  %b0 = load %x[%i]\n";
    for (int i = 0; i < 500; ++i) body += "  %b" + std::to_string(i + 1) + " = sin %b" + std::to_string(i) + "\n";
    const std::string text = ptx(body + "  store %x[%i], %b500\n");
    EXPECT_TRUE(has(text, ".func") && has(text, "__nv_sinf")) << text.substr(0, 2000);
    EXPECT_LT(text.size(), 300'000u);
}

TEST(Nvptx, rounds_each_operation_and_divides_no_index) {
    const std::string text =
        ptx("  %b = load %x[%k]\n  %c = mul %a, %b\n  %d = add %c, %b\n  %e = div %d, %b\n"
            "  %f = sqrt %e\n  %g = sub %f, %a\n  store %x[%j], %g\n");
    for (const char* operation : {"fma.rn.f32", "div.rn.f32", "sqrt.rn.f32", "sub.rn.f32"})
        EXPECT_TRUE(has(text, operation)) << operation << text;
    for (const char* other : {"div.u64", "div.s64", "rem.", ".approx", ".ftz", "add.f32", "mul.f32", ".local"})
        EXPECT_FALSE(has(text, other)) << other << text;
    EXPECT_TRUE(has(text, "mul.hi.u64") && has(text, "ld.global.b32") && has(text, "st.global.b32")) << text;
}

TEST(Nvptx, atomics_hold_within_the_device) {
    const std::string text =
        ptx("  %old = atomic.add %n[%i], %one\n  %sum = atomic.add %x[%i], %a\n  %least = atomic.min %x[%j], %a\n");
    // The default scope is .gpu.
    EXPECT_TRUE(has(text, "atom.global.add.u32") && has(text, "atom.global.add.f32")) << text;
    EXPECT_TRUE(has(text, "gpu.global.cas.b32")) << text;
    EXPECT_FALSE(has(text, ".sys")) << text;
}

TEST(Nvptx, reports_by_functions_of_the_library) {
    const std::string text = ptx("  %b = load %x[%i]\n  print \"%d %g\\n\", %i, %b\n", "sm_90", true);
    EXPECT_TRUE(has(text, "weft_lib_report_fault") && has(text, "weft_lib_report_print")) << text;
    EXPECT_FALSE(has(text, ".extern")) << text;
    EXPECT_FALSE(has(text, "37, 100, 32")) << "texts stay on the host:\n" << text;
}

}  // namespace
}  // namespace weft::jit
