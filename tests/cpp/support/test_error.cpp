#include <gtest/gtest.h>

#include "support/error.h"

namespace weft {
namespace {

Source source_of(std::vector<std::string> lines, int first_line = 10) {
    Source source;
    source.path = "/home/me/sim.py";
    source.first_line = first_line;
    source.lines = std::move(lines);
    return source;
}

TEST(Source, gives_lines_by_absolute_number_and_nothing_outside) {
    const Source source = source_of({"def f():", "    pass"});
    EXPECT_EQ(source.line(10), "def f():");
    EXPECT_EQ(source.line(11), "    pass");
    EXPECT_EQ(source.line(12), "");
    EXPECT_EQ(source.line(9), "");
}

TEST(CompileError, shows_place_line_caret_and_notes) {
    const Source source = source_of({"def f(a: wp.vec3, b: int):", "    return a + b"});
    const CompileError error({&source, 11, 11, 16}, "no '+' for vec3f and int32",
                             {{Note::Kind::note, "'b' comes from here", {&source, 10, 18, 19}},
                              {Note::Kind::help, "a + wp.vec3(float(b))", {}}});
    EXPECT_STREQ(error.what(),
                 "/home/me/sim.py:11:12: error: no '+' for vec3f and int32\n"
                 "    return a + b\n"
                 "           ^~~~~\n"
                 "/home/me/sim.py:10:19: note: 'b' comes from here\n"
                 "    def f(a: wp.vec3, b: int):\n"
                 "                      ^\n"
                 "help: a + wp.vec3(float(b))");
    EXPECT_EQ(error.category, ErrorCategory::type);
}

TEST(CompileError, places_the_caret_by_characters_and_keeps_tabs) {
    const Source source = source_of({"\tx = \"déjà\" +\ty"});
    const CompileError error({&source, 10, 14, 15}, "m");
    EXPECT_STREQ(error.what(), "/home/me/sim.py:10:15: error: m\n    x = \"déjà\" +\ty\n                \t^");
}

TEST(CompileError, clips_a_span_at_the_end_of_the_line) {
    const Source source = source_of({"x = [1,"});
    EXPECT_STREQ(CompileError({&source, 10, 4, 40}, "m").what(),
                 "/home/me/sim.py:10:5: error: m\n    x = [1,\n        ^~~");
}

TEST(CompileError, without_text_shows_the_place_only) {
    const Source source = source_of({});
    EXPECT_STREQ(CompileError({&source, 10, 4, 5}, "m").what(), "/home/me/sim.py:10:5: error: m");
    EXPECT_STREQ(CompileError({}, "m").what(), "error: m");
}

TEST(UsageError, names_the_call) { EXPECT_STREQ(UsageError("launch()", "dim is -1").what(), "launch(): dim is -1"); }

TEST(InternalError, asks_for_a_report) {
    EXPECT_NE(std::string(InternalError("x").what()).find("please report it"), std::string::npos);
    EXPECT_THROW(WEFT_CHECK(1 == 2, "no"), InternalError);
}

TEST(JoinOr, writes_a_list_as_people_do) {
    EXPECT_EQ(join_or({}), "");
    EXPECT_EQ(join_or({"a"}), "a");
    EXPECT_EQ(join_or({"a", "b"}), "a or b");
    EXPECT_EQ(join_or({"a", "b", "c"}), "a, b or c");
}

TEST(Nearest, finds_misspelt_names_and_only_those) {
    const std::vector<std::string> names = {"normalize", "dot", "cross", "length", "length_sq", "min", "max"};
    EXPECT_EQ(nearest("normalise", names), std::vector<std::string>{"normalize"});
    EXPECT_EQ(nearest("lenght", names), std::vector<std::string>{"length"});
    EXPECT_EQ(nearest("Dot", names), std::vector<std::string>{"dot"});
    EXPECT_EQ(nearest("corss", names), std::vector<std::string>{"cross"});
    EXPECT_TRUE(nearest("velocity", names).empty());
    EXPECT_TRUE(nearest("q", names).empty());
    EXPECT_EQ(nearest("mix", names), (std::vector<std::string>{"min", "max"}));
    EXPECT_EQ(nearest("mix", names, 1).size(), 1u);
}

}  // namespace
}  // namespace weft
