// The properties of a library function reach the effects, the analyses and the derivatives.
#include <gtest/gtest.h>

#include "ir/ir.h"
#include "support/error.h"
#include "transform/pipeline.h"
#include "transform/plan.h"

namespace weft::transform {
namespace {

// A kernel that calls a function with a handle and a number, and adds what it gives to y.
std::string kernel_with(const std::string& words, const std::string& handle = "%id") {
    return "kernel @k(%x: array<f32, 1>, %id: u64, %y: array<f32, 1>, %ids: array<u64, 1>) tid 1 {\n  %i = tid 0\n"
           "  %two = constant 2 : u64\n  %other = add %id, %two\n  %from = load %ids[%i]\n  %a = load %x[%i]\n"
           "  %r = call_library \"ask\"(" +
           handle + ", %a) " + words + " : f32\n  %b = atomic.add %y[%i], %r\n  return\n}\n";
}

std::vector<ParameterEffects> effects(const std::string& text) {
    const auto module = ir::parse(text);
    ir::verify(*module);
    EXPECT_EQ(ir::print(*ir::parse(ir::print(*module))), ir::print(*module));
    return ir::effects(*module->functions[0]);
}

TEST(Library, reads_through_a_handle_are_reads_of_the_parameter_that_it_comes_from) {
    EXPECT_FALSE(effects(kernel_with("pure"))[1].reads);
    EXPECT_TRUE(effects(kernel_with("pure reads 0"))[1].reads);
    EXPECT_FALSE(effects(kernel_with("pure reads 0"))[1].writes);
    EXPECT_TRUE(effects(kernel_with("pure reads 0", "%other"))[1].reads);
    EXPECT_TRUE(effects(kernel_with("pure reads 0", "%from"))[3].reads);
    EXPECT_FALSE(effects(kernel_with("pure reads 0", "%from"))[1].reads);
}

TEST(Library, writes_through_a_handle_are_writes) {
    EXPECT_TRUE(effects(kernel_with("writes 0"))[1].writes);
    EXPECT_TRUE(effects(kernel_with("writes 0"))[1].writes_itself);
}

TEST(Library, operands_that_are_not_there_are_refused) {
    EXPECT_THROW(ir::verify(*ir::parse(kernel_with("pure reads 2"))), Error);
    EXPECT_THROW(ir::verify(*ir::parse(kernel_with("pure writes 0"))), Error);
    EXPECT_THROW(ir::verify(*ir::parse(kernel_with("lanes writes 0"))), Error);
}

KernelPlan planned(const ir::Module& module) { return std::move(plan(module).back()); }

TEST(Library, memory_that_it_reaches_may_be_any) {
    const auto plain = ir::parse(kernel_with("pure")), reads = ir::parse(kernel_with("pure reads 0"));
    EXPECT_EQ(planned(*plain).privatised.size(), 1u);
    EXPECT_TRUE(planned(*reads).privatised.empty());
}

TEST(Library, results_are_uniform_where_operands_are_unless_it_says_otherwise) {
    const auto kind_of = [](const std::string& words) {
        const auto module = ir::parse("kernel @k(%id: u64) tid 1 {\n  %r = call_library \"ask\"(%id) " + words +
                                      " : f32\n  return\n}\n");
        const KernelPlan plan = planned(*module);
        return plan.uniformity.shape(module->functions[0]->body.operations[0]->result()).kind;
    };
    EXPECT_EQ(kind_of("pure"), LaneShape::Kind::uniform);
    EXPECT_EQ(kind_of("pure varying"), LaneShape::Kind::varying);
}

TEST(Library, runs_in_lanes_without_a_remark) {
    const auto remarks = [](const std::string& words) {
        const auto module = ir::parse(kernel_with(words));
        return planned(*module).uniformity.remarks.size();
    };
    EXPECT_EQ(remarks("pure"), 1u);
    EXPECT_EQ(remarks("pure lanes"), 0u);
}

std::string derived(const std::string& text, bool adjoint) {
    const auto module = ir::parse(text);
    PipelineOptions options;
    if (adjoint) {
        options.adjoint.emplace();
        options.adjoint->gradients.assign(4, Gradient::used);
    } else {
        options.jvp.emplace();
        options.jvp->active.assign(4, true);
    }
    run_pipeline(*module, options);
    return ir::print(*module);
}

TEST(Library, derivatives_are_functions_of_the_library) {
    const std::string text = kernel_with("pure lanes reads 0 adjoint \"ask_back\" tangent \"ask_along\"");
    const std::string adjoint = derived(text, true), tangent = derived(text, false);
    EXPECT_NE(adjoint.find("call_library \"ask_back\"(%id, %a, "), std::string::npos) << adjoint;
    EXPECT_NE(adjoint.find("pure lanes reads 0 : f32"), std::string::npos) << adjoint;
    EXPECT_EQ(adjoint.find("\"ask\""), std::string::npos) << "its value is not needed:\n" << adjoint;
    EXPECT_NE(tangent.find("call_library \"ask_along\"(%id, %a, "), std::string::npos) << tangent;
    EXPECT_NE(tangent.find("\"ask\""), std::string::npos) << tangent;
}

void expect_error(const std::string& text, bool adjoint, const std::string& part) {
    try {
        derived(text, adjoint);
        FAIL() << "it has no derivative";
    } catch (const CompileError& error) {
        EXPECT_NE(std::string(error.what()).find(part), std::string::npos) << error.what();
    }
}

TEST(Library, functions_without_a_derivative_are_named) {
    expect_error(kernel_with("pure"), true, "it calls the library function 'ask', whose derivative is not known");
    expect_error(kernel_with("pure"), false, "it calls the library function 'ask', whose derivative is not known");
    expect_error(kernel_with("writes 0 adjoint \"ask_back\""), true, "the library function 'ask', which writes");
}

}  // namespace
}  // namespace weft::transform
