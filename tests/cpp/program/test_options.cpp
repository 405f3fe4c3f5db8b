// The rows of ir/specialization.def: each property reaches its readers, and distinguishes code that differs by it.
#include <gtest/gtest.h>

#include <set>
#include <string>

#include "ir/ir.h"
#include "program/kernel/options.h"

namespace weft::program {

namespace {

bool other(bool value) { return !value; }
int other(int value) { return value + 1; }
std::optional<bool> other(std::optional<bool> value) { return !value.value_or(true); }

// A copy of `options` with another value of one property; `name` is its name.
template <typename Options, typename Property>
Options changed(Options options, Property Options::* property) {
    options.*property = other(options.*property);
    return options;
}

}  // namespace

TEST(Specialization, each_property_of_a_launch_changes_the_index_of_the_variant) {
    std::set<std::size_t> seen = {Variant().index()};
    int count = 1;
    const auto add = [&](const Variant& variant, const char* name) {
        EXPECT_TRUE(seen.insert(variant.index()).second) << name;
        ++count;
    };
#define WEFT_OF_LAUNCH(type, name, ...) add(changed(Variant(), &Variant::name), #name);
#define WEFT_OF_REQUEST(type, name, ...) add(changed(Variant(), &Variant::name), #name);
#include "ir/specialization.def"
    // Numbers do not run into each other.
    for (int rank = 2; rank <= 4; ++rank) {
        Variant variant;
        variant.launch_rank = rank;
        add(variant, "launch_rank");
        variant.gpu = rank;
        add(variant, "gpu");
    }
    EXPECT_EQ(seen.size(), static_cast<std::size_t>(count));
}

TEST(Specialization, each_property_of_the_layout_changes_its_index) {
    EXPECT_EQ(LaunchLayout().index(), 0u);
    std::set<std::size_t> seen = {0};
    const auto add = [&](const LaunchLayout& layout) {
        EXPECT_LT(layout.index(), LaunchLayout::kCount);
        EXPECT_TRUE(seen.insert(layout.index()).second);
    };
    LaunchLayout all;
#define WEFT_OF_LAYOUT(type, name, ...)                \
    add(changed(LaunchLayout(), &LaunchLayout::name)); \
    all.name = other(all.name);
#include "ir/specialization.def"
    EXPECT_EQ(all.index(), LaunchLayout::kCount - 1);
}

TEST(Specialization, properties_of_variant_and_layout_reach_the_request_for_code) {
#define WEFT_OF_LAUNCH(type, name, ...) \
    EXPECT_EQ(CompileOptions(changed(Variant(), &Variant::name), {}), changed(CompileOptions(), &CompileOptions::name));
#define WEFT_OF_LAYOUT(type, name, ...)                                         \
    EXPECT_EQ(CompileOptions({}, changed(LaunchLayout(), &LaunchLayout::name)), \
              changed(CompileOptions(), &CompileOptions::name));
#include "ir/specialization.def"
    Variant alone;
    alone.single = true;
    alone.gpu = 1;
    EXPECT_EQ(CompileOptions(alone, {}), CompileOptions());
}

TEST(Specialization, a_property_is_in_the_keys_of_its_readers) {
    const auto module = ir::parse("kernel @k(%a: array<f32, 1>) tid 1 {\n  return\n}\n");
    const CompileOptions usual;
    const auto key = [&](const CompileOptions& options) { return jit::cache_key(*module, options.code()); };
    std::string names;
    const auto check = [&](const char* name, const CompileOptions& options, bool passes, bool code, bool launches) {
        names += std::string(name) + " ";
        EXPECT_FALSE(options == usual) << name;
        EXPECT_EQ(options.passes() == usual.passes(), !passes) << name;
        EXPECT_EQ(options.launches() == usual.launches(), !launches) << name;
        EXPECT_TRUE(!code || key(options) != key(usual)) << name;
    };
#define WEFT_OF_REQUEST(...)
#define WEFT_PROPERTY(type, name, usual, passes, analyses, code, launches)                           \
    check(#name, changed(CompileOptions(), &CompileOptions::name), std::string(#passes) == "passes", \
          std::string(#code) == "code", std::string(#launches) == "launches");
#include "ir/specialization.def"
    EXPECT_NE(names.find("grid_order "), std::string::npos);
}

TEST(Specialization, code_for_one_lane_is_chosen_if_threads_must_be_known) {
    CompileOptions options;
    options.lanes = 8;
    EXPECT_EQ(options.code().codegen.lanes, 8);
    EXPECT_EQ(changed(options, &CompileOptions::serial).code().codegen.lanes, 1);
    EXPECT_EQ(changed(options, &CompileOptions::nan_check).code().codegen.lanes, 1);
    EXPECT_EQ(changed(options, &CompileOptions::huge).code().codegen.lanes, 1);
}

}  // namespace weft::program
