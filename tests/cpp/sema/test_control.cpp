#include "sema/fixture.h"

namespace weft::sema::test {
namespace {

X n_range() { return call("range", "n"); }

TEST(Control, names_changed_in_one_arm_are_merged) {
    const auto kernel = function("color", {{"out", floats}, {"k", i32}},
                                 block(set("c", 1.0), if_(X("k") > 0, block(set("c", 2.0))), set(sub("out", 0), "c")));
    EXPECT_EQ(run(kernel, {0}, {1})[0], 2);
    EXPECT_EQ(run(kernel, {0}, {0})[0], 1);
}

TEST(Control, names_set_in_both_arms_are_definite) {
    const auto kernel =
        function("both", {{"out", floats}, {"k", i32}},
                 block(if_(X("k") > 0, block(set("c", 2.0)), block(set("c", 3.0))), set(sub("out", 0), "c")));
    EXPECT_EQ(run(kernel, {0}, {1})[0], 2);
    EXPECT_EQ(run(kernel, {0}, {0})[0], 3);
}

TEST(Control, names_set_in_one_arm_only_are_zero_in_the_other) {
    const auto kernel = function("one", {{"out", floats}, {"k", i32}},
                                 block(if_(X("k") > 0, block(set("c", 2.0))), set(sub("out", 0), "c")));
    EXPECT_EQ(run(kernel, {7}, {1})[0], 2);
    EXPECT_EQ(run(kernel, {7}, {0})[0], 0);
}

TEST(Control, names_that_nobody_read_behind_a_branch_may_have_two_types) {
    analyzed(function("types", {{"out", floats}, {"k", i32}},
                      block(if_(X("k") > 0, block(set("c", X("k") * 2), set("k", "c"))),
                            if_(X("k") > 1, block(set("c", 2.0), set(sub("out", 0), "c"))))));
}

TEST(Control, types_must_agree_where_paths_meet) {
    const std::string error = error_of(function(
        "types", {{"out", floats}, {"k", i32}},
        block(if_(X("k") > 0, block(set("c", sub("out", 0))), block(set("c", "k"))), set(sub("out", 0), "c"))));
    EXPECT_HAS(error, "'c' is int32 here and float32 on another path");
    EXPECT_HAS(error, "types.py:4");
    EXPECT_HAS(error, "types.py:3");
}

TEST(Control, temporaries_of_arms_are_not_yielded) {
    const std::string text = printed(function("temporary", {{"out", floats}, {"k", i32}},
                                              block(if_(X("k") > 0, block(set("t", 2.0), set(sub("out", 0), "t")),
                                                        block(set("t", 3.0), set(sub("out", 1), "t"))))));
    EXPECT_LACKS(text, "= if");
}

TEST(Control, early_return_moves_the_rest_into_the_other_arm) {
    const auto kernel = function("early", {{"out", floats}, {"k", i32}},
                                 block(if_(X("k") >= call("len", "out"), block(return_())), set(sub("out", "k"), 1.0)));
    EXPECT_EQ(run(kernel, {0, 0}, {1}), (std::vector<double>{0, 1}));
    EXPECT_EQ(run(kernel, {0, 0}, {2}), (std::vector<double>{0, 0}));
    const std::string text = printed(kernel);
    EXPECT_EQ(text.find("if "), text.rfind("if "));
    EXPECT_LACKS(text, "true");
}

TEST(Control, return_inside_nested_if_skips_the_rest) {
    const auto kernel =
        function("nested", {{"out", floats}, {"a", i32}, {"b", i32}},
                 block(set("x", 0.0),
                       if_(X("a") > 0, block(if_(X("b") > 0, block(return_())), set("x", 1.0)), block(set("x", 2.0))),
                       set(sub("out", 0), X("x") + 10.0)));
    EXPECT_EQ(run(kernel, {0}, {1, 1})[0], 0);
    EXPECT_EQ(run(kernel, {0}, {1, 0})[0], 11);
    EXPECT_EQ(run(kernel, {0}, {0, 1})[0], 12);
}

TEST(Control, dynamic_loops_carry_what_they_change) {
    const auto kernel =
        function("sum", {{"out", ints}, {"n", i32}},
                 block(set("s", 0), for_("k", n_range(), block(add_to("s", "k"))), set(sub("out", 0), "s")));
    EXPECT_EQ(run(kernel, {0}, {5})[0], 10);
    EXPECT_EQ(run(kernel, {7}, {0})[0], 0);
}

TEST(Control, ranges_of_every_kind_match_python) {
    // Digits in the order in which the loop meets them.
    const auto digits = [](X range) {
        return function("digits", {{"out", ints}, {"a", i32}, {"b", i32}, {"c", i32}},
                        block(set("s", 0), for_("k", std::move(range), block(set("s", X("s") * 10 + "k"))),
                              set(sub("out", 0), "s")));
    };
    EXPECT_EQ(run(digits(call("range", "a", "b")), {0}, {1, 4, 0})[0], 123);
    EXPECT_EQ(run(digits(call("range", "a", "b", "c")), {0}, {1, 8, 3})[0], 147);
    EXPECT_EQ(run(digits(call("range", "a", "b", "c")), {0}, {8, 0, -3})[0], 852);
    EXPECT_EQ(run(digits(call("range", "a", "b", "c")), {0}, {0, 8, -3})[0], 0);
    EXPECT_EQ(run(digits(call("range", "a", "b", "c")), {0}, {8, 0, 3})[0], 0);
    EXPECT_EQ(run(digits(call("range", "a", "b", 2)), {0}, {1, 6, 0})[0], 135);
    EXPECT_EQ(run(digits(call("range", "a", "b", -X(2))), {0}, {7, 0, 0})[0], 7531);
    EXPECT_EQ(run(digits(call("reversed", call("range", "a", "b"))), {0}, {1, 4, 0})[0], 321);
    EXPECT_EQ(run(digits(call("reversed", call("range", "a", "b", "c"))), {0}, {1, 9, 3})[0], 741);
    EXPECT_EQ(run(digits(call("reversed", call("range", "a", "b", "c"))), {0}, {9, 1, -3})[0], 369);
    EXPECT_EQ(run(digits(call("reversed", call("range", "a", "b"))), {0}, {4, 1, 0})[0], 0);
    EXPECT_EQ(run(digits(call("range", 3, 0, -X(1))), {0}, {0, 0, 0})[0], 321);
    EXPECT_EQ(run(digits(call("reversed", call("range", 5))), {0}, {0, 0, 0})[0], 43210);
}

TEST(Control, short_static_loops_are_unrolled) {
    const auto kernel = function(
        "unrolled", {{"out", ints}},
        block(set("v", tuple(4, 5, 6)),
              for_("k", call("range", 3), block(add_to(sub("out", 0), sub("v", "k") * call("wp.static", "k"))))));
    EXPECT_EQ(run(kernel, {0})[0], 17);
    EXPECT_LACKS(printed(kernel), "for ");
    const auto longer =
        function("rolled", {{"out", ints}}, block(for_("k", call("range", 17), block(set(sub("out", "k"), "k")))));
    EXPECT_HAS(printed(longer), "for ");
}

TEST(Control, return_inside_an_unrolled_loop_stops_it) {
    const auto kernel =
        function("stop", {{"out", ints}, {"n", i32}},
                 block(for_("k", call("range", 4),
                            block(if_(X("k") == "n", block(return_())), set(sub("out", 0), X("k") + 1)))));
    EXPECT_EQ(run(kernel, {0}, {2})[0], 2);
    EXPECT_EQ(run(kernel, {0}, {0})[0], 0);
    EXPECT_EQ(run(kernel, {0}, {9})[0], 4);
}

TEST(Control, loops_over_tuples_and_vectors) {
    const auto kernel = function("over", {{"out", floats}},
                                 block(for_("x", call("wp.vec3", 1.0, 2.0, 4.0), block(add_to(sub("out", 0), "x"))),
                                       for_("y", tuple(8.0, 16.0), block(add_to(sub("out", 0), "y")))));
    EXPECT_EQ(run(kernel, {0})[0], 31);
}

TEST(Control, break_and_continue) {
    const auto kernel = function("skip", {{"out", ints}, {"n", i32}},
                                 block(set("s", 0),
                                       for_("k", n_range(),
                                            block(if_(X("k") == 2, block(continue_())),
                                                  if_(X("k") > 4, block(break_())), set("s", X("s") * 10 + "k"))),
                                       set(sub("out", 0), "s")));
    EXPECT_EQ(run(kernel, {0}, {9})[0], 134);
    EXPECT_EQ(run(kernel, {0}, {4})[0], 13);
    EXPECT_HAS(printed(kernel), "guarded");
}

TEST(Control, break_keeps_what_the_iteration_has_done) {
    const auto kernel = function(
        "found", {{"out", ints}, {"n", i32}},
        block(set("at", -X(1)), for_("k", n_range(), block(if_(X("k") * "k" > 10, block(set("at", "k"), break_())))),
              set(sub("out", 0), "at")));
    EXPECT_EQ(run(kernel, {0}, {9})[0], 4);
    EXPECT_EQ(run(kernel, {0}, {3})[0], -1);
}

TEST(Control, break_inside_a_nested_if_skips_the_rest_of_the_body) {
    const auto kernel = function(
        "nested", {{"out", ints}, {"n", i32}},
        block(set("s", 0),
              for_("k", n_range(),
                   block(if_(X("k") > 1, block(if_(X("k") == 3, block(break_())), add_to("s", 100))), add_to("s", 1))),
              set(sub("out", 0), "s")));
    EXPECT_EQ(run(kernel, {0}, {9})[0], 103);
    EXPECT_EQ(run(kernel, {0}, {2})[0], 2);
}

TEST(Control, return_from_nested_loops_leaves_them_all) {
    const auto kernel =
        function("deep", {{"out", ints}, {"n", i32}},
                 block(for_("i", n_range(),
                            block(for_("j", n_range(),
                                       block(add_to(sub("out", 0), 1), if_(X("i") * 10 + "j" == 12, block(return_())))),
                                  add_to(sub("out", 1), 1))),
                       set(sub("out", 2), 1)));
    EXPECT_EQ(run(kernel, {0, 0, 0}, {3}), (std::vector<double>{6, 1, 0}));
    EXPECT_EQ(run(kernel, {0, 0, 0}, {2}), (std::vector<double>{4, 2, 1}));
}

TEST(Control, while_loops_with_break_and_short_circuit) {
    const auto kernel = function(
        "collatz", {{"out", ints}, {"n", i32}},
        block(
            set("x", "n"), set("steps", 0),
            while_(X("x") > 1, block(if_(X("steps") == 100, block(break_())),
                                     if_(X("x") % 2 == 0, block(set("x", X("x") / 2)), block(set("x", X("x") * 3 + 1))),
                                     add_to("steps", 1))),
            set(sub("out", 0), "steps")));
    EXPECT_EQ(run(kernel, {0}, {27})[0], 100);
    EXPECT_EQ(run(kernel, {0}, {6})[0], 8);
    EXPECT_EQ(run(kernel, {0}, {1})[0], 0);
}

TEST(Control, endless_loops_define_what_they_assign) {
    const auto kernel = function(
        "endless", {{"out", ints}, {"n", i32}},
        block(set("k", 0),
              while_(true, block(set("square", X("k") * "k"), if_(X("square") > "n", block(break_())), add_to("k", 1))),
              set(sub("out", 0), "square")));
    EXPECT_EQ(run(kernel, {0}, {10})[0], 16);
}

TEST(Control, static_trip_counts_define_what_they_assign) {
    const auto kernel = function(
        "counted", {{"out", ints}, {"n", i32}},
        block(for_("k", call("range", 20), block(set("last", X("k") * "n"))), set(sub("out", 0), X("last") + "k")));
    EXPECT_EQ(run(kernel, {0}, {2})[0], 57);
}

TEST(Control, names_that_iterations_may_not_assign_start_as_zero) {
    const auto dynamic = function("dynamic", {{"out", ints}, {"n", i32}},
                                  block(for_("k", n_range(), block(set("last", "k"))), set(sub("out", 0), "last")));
    EXPECT_EQ(run(dynamic, {7}, {5})[0], 4);
    EXPECT_EQ(run(dynamic, {7}, {0})[0], 0);
    const auto broken =
        function("broken", {{"out", ints}, {"n", i32}},
                 block(for_("k", call("range", 20), block(if_(X("k") == "n", block(break_())), set("last", "k"))),
                       set(sub("out", 0), "last")));
    EXPECT_EQ(run(broken, {7}, {5})[0], 4);
    EXPECT_EQ(run(broken, {7}, {0})[0], 0);
    // Later iterations read the names that one has assigned.
    const auto kept =
        function("kept", {{"out", ints}, {"n", i32}},
                 block(for_("k", n_range(),
                            block(if_(X("k") == 2, block(set("seen", X("k") * 10))), add_to(sub("out", 0), "seen")))));
    EXPECT_EQ(run(kept, {0}, {5})[0], 60);
}

TEST(Control, names_that_each_iteration_assigns_first_are_not_carried) {
    const std::string text = printed(
        function("fresh", {{"out", ints}, {"n", i32}},
                 block(set("t", 0), for_("k", n_range(), block(set("t", X("k") * 2), set(sub("out", "k"), "t"))))));
    EXPECT_LACKS(text, "carry");
}

TEST(Control, carried_names_keep_their_type) {
    const std::string error = error_of(
        function("grow", {{"out", floats}, {"n", i32}},
                 block(set("s", "n"), for_("k", n_range(), block(set("s", sub("out", 0)))), set(sub("out", 0), "s"))));
    EXPECT_HAS(error, "'s' becomes float32 in this loop and is int32 before it");
    EXPECT_HAS(error, "grow.py:4");
    EXPECT_HAS(error, "grow.py:2");
}

TEST(Control, views_may_be_rebound_in_a_loop_to_others_of_their_type) {
    const auto fine = function("rows", {{"a", floats2}, {"n", i32}},
                               block(for_("k", n_range(), block(set("row", sub("a", "k")), set(sub("row", 0), 1.0)))));
    analyzed(fine);
    analyzed(function("rows", {{"a", floats2}, {"n", i32}},
                      block(set("row", sub("a", 0)),
                            for_("k", n_range(), block(set(sub("row", 0), 1.0), set("row", sub("a", "k")))))));
    EXPECT_HAS(error_of(function("rows", {{"a", floats2}, {"n", i32}},
                                 block(set("row", sub("a", 0)),
                                       for_("k", n_range(), block(set(sub("row", 0), 1.0), set("row", "a")))))),
               "'row' becomes array");
}

TEST(Control, conditions_that_change_locals_move_into_the_body) {
    const auto kernel = function("query", {{"out", floats}},
                                 block(set("state", call("wp.rand_init", 1)),
                                       while_(call("wp.randf", "state") < 0.5, block(add_to(sub("out", 0), 1.0)))));
    const std::string text = printed(kernel);
    EXPECT_HAS(text, "while");
}

TEST(Control, unsupported_places_are_reported) {
    EXPECT_HAS(error_of(function("bad", {}, block(break_()))), "'break' outside a loop");
    EXPECT_HAS(error_of(function("bad", {}, block(for_("x", 1.5, block())))), "write for i in range(n)");
    EXPECT_HAS(error_of(function("bad", {}, block(for_("x", call("range", 1.5), block())))),
               "bounds of range() must be integers");
    EXPECT_HAS(error_of(function("bad", {}, block(for_("x", call("range", 0, 4, 0), block())))),
               "step of range() must not be 0");
    EXPECT_HAS(error_of(function("bad", {}, block(return_(1)))), "kernels cannot return a value");
}

TEST(Control, asserts_are_kept_in_debug_builds_only) {
    const auto kernel = function("check", {{"n", i32}}, block(assert_(X("n") > 0, "n must be positive")));
    EXPECT_LACKS(printed(kernel), "assert");
    Options debug;
    debug.debug = true;
    EXPECT_HAS(ir::print(*analyzed(kernel, debug), false), "n must be positive");
    EXPECT_HAS(error_of(function("check", {}, block(assert_("missing", "")))), "'missing' is not defined");
}

}  // namespace
}  // namespace weft::sema::test
