// How many operations adjoint() writes, before anything is simplified: time to compile goes with them.
#include <gtest/gtest.h>

#include <string>

#include "ir/ir.h"
#include "ir/walk.h"
#include "transform/pipeline.h"

namespace weft::transform {
namespace {

// The rest of a loop's body with so many breaks to come. Each lies in an arm of the one before.
std::string with_breaks(int breaks, const std::string& s) {
    if (breaks == 0) return "  yield %go, " + s + "\n";
    const std::string n = std::to_string(breaks);
    return "  %a" + n + " = mul " + s + ", %x0\n  %b" + n + " = sin %a" + n + "\n  %c" + n + " = cmp.gt %b" + n +
           ", %x0\n  %e" + n + ", %f" + n + " = if %c" + n + " {\n  yield %false, %b" + n + "\n} else {\n" +
           with_breaks(breaks - 1, "%b" + n) + "}\n  yield %e" + n + ", %f" + n + "\n";
}

// Operations of the adjoint of a loop with so many breaks, as adjoint() writes it and simplified.
struct Size {
    std::size_t written = 0, simplified = 0;
};
Size adjoint_of_breaks(int breaks) {
    const auto module = ir::parse(
        "kernel @k(%x: array<f32, 1>, %y: array<f32, 1>) tid 1 {\n  %i = tid 0\n  %x0 = load %x[%i]\n"
        "  %true = constant true : bool\n  %false = constant false : bool\n"
        "  %going, %end = while carry (%g = %true, %s = %x0) {\n  yield %g\n} do (%go, %t) {\n" +
        with_breaks(breaks, "%t") + "}\n  store %y[%i], %end\n  return\n}\n");
    ir::verify(*module);
    Size size;
    PipelineOptions options;
    options.adjoint = AdjointOptions{{Gradient::used, Gradient::used}};
    options.after_pass = [&](std::string_view pass, const ir::Module& after) {
        std::size_t count = 0;
        ir::for_each_operation(after.functions.front()->body, [&](const ir::Operation&) { ++count; });
        if (pass == "adjoint") size.written = count;
        size.simplified = count;
    };
    run_pipeline(*module, options);
    return size;
}

TEST(AdjointSize, grows_with_the_number_of_breaks_and_not_with_its_square) {
    const Size few = adjoint_of_breaks(10), many = adjoint_of_breaks(40);
    EXPECT_GT(few.simplified, 100u);
    EXPECT_LT(many.written, 5 * few.written);
    EXPECT_LT(many.simplified, 5 * few.simplified);
    EXPECT_LT(many.written, 2 * many.simplified);
}

}  // namespace
}  // namespace weft::transform
