#include "sema/fixture.h"

namespace weft::sema::test {
namespace {

TEST(Expressions, saxpy_becomes_loads_and_a_store) {
    const auto kernel =
        function("saxpy", {{"y", floats}, {"x", floats}, {"a", f32}},
                 block(set("i", call("wp.tid")), set(sub("y", "i"), X("a") * sub("x", "i") + sub("y", "i"))));
    const auto module = analyzed(kernel);
    EXPECT_TRUE(module->functions[0]->is_kernel);
    EXPECT_EQ(module->functions[0]->tid_rank, 1);
    Memory x{{2}, {1, 2}}, y{{2}, {10, 20}};
    Interpreter interpreter;
    interpreter.thread = {1};
    interpreter.run(*module->functions[0], {&y, &x, 3.0});
    EXPECT_EQ(y.numbers(), (std::vector<double>{10, 26}));
}

TEST(Expressions, two_names_for_tid_make_a_two_dimensional_kernel) {
    const auto module = analyzed(
        function("grid", {{"a", floats2}}, block(set(tuple("i", "j"), call("wp.tid")), set(sub("a", "i", "j"), 1.0))));
    EXPECT_EQ(module->functions[0]->tid_rank, 2);
}

TEST(Expressions, the_most_names_for_tid_make_the_rank) {
    const auto module = analyzed(
        function("grid", {{"a", floats}},
                 block(set("k", call("wp.tid")), set(tuple("i", "j"), call("wp.tid")), set(sub("a", "k"), 1.0))));
    EXPECT_EQ(module->functions[0]->tid_rank, 2);
}

TEST(Expressions, literals_take_the_type_of_their_partner) {
    const std::string text =
        printed(function("half", {{"x", Type::array(f64, 1)}}, block(set(sub("x", 0), sub("x", 0) * 0.5 + 1))));
    EXPECT_HAS(text, "f64");
    EXPECT_LACKS(text, "f32");
    EXPECT_LACKS(text, "cast");
}

TEST(Expressions, folded_literals_stay_exact_for_doubles) {
    const std::string text = printed(
        function("third", {{"x", Type::array(f64, 1)}}, block(set(sub("x", 0), sub("x", 0) * (X(1.0) / X(3.0))))));
    EXPECT_HAS(text, "0.333333333333333");
    EXPECT_LACKS(text, "div");
}

TEST(Expressions, typed_values_never_convert) {
    const std::string error =
        error_of(function("mixed", {{"x", floats}}, block(set(sub("x", 0), call("float", 0.0) + call("int", 4)))));
    EXPECT_HAS(error, "'+' does not take float32 and int32");
    EXPECT_HAS(error, "help:");
}

TEST(Expressions, integer_literals_must_fit) {
    const std::string alone = error_of(function("big", {}, block(set("x", X(2147483647) + 1))));
    EXPECT_HAS(alone, "2147483648 does not fit int32");
    EXPECT_HAS(alone, "wp.int64(2147483648)");
    const std::string small =
        error_of(function("small", {{"x", Type::array(Type::scalar(Scalar::i8), 1)}}, block(set(sub("x", 0), 200))));
    EXPECT_HAS(small, "-128 to 127");
}

TEST(Expressions, chained_subscripts_are_one_load) {
    const std::string text =
        printed(function("rows", {{"out", floats}, {"a", floats2}}, block(set(sub("out", 0), sub(sub("a", 1), 2)))));
    EXPECT_LACKS(text, "view");
    EXPECT_HAS(text, "load %1[%2, %3]");
}

TEST(Expressions, fewer_indices_give_a_view_and_its_shape) {
    const std::string text = printed(function("rows", {{"a", floats2}},
                                              block(set("row", sub("a", 1)), set(sub("row", 0), 2.0),
                                                    set(sub("row", 1), call("float", sub("row.shape", 0))))));
    EXPECT_HAS(text, "view");
}

TEST(Expressions, negative_constant_indices_count_from_the_end) {
    EXPECT_EQ(run(function("last", {{"a", floats}}, block(set(sub("a", -X(1)), 5.0))), {0, 0, 0}),
              (std::vector<double>{0, 0, 5}));
}

TEST(Expressions, too_many_indices_are_refused) {
    EXPECT_HAS(error_of(function("deep", {{"a", floats}}, block(set(sub("a", 0, 1), 1.0)))), "2 indices for");
}

TEST(Expressions, components_and_swizzles) {
    const auto kernel = function("swizzle", {{"out", floats}},
                                 block(set("v", call("wp.vec3", 1.0, 2.0, 3.0)), set("v.x", 7.0), set("v.yz", "v.zy"),
                                       set(sub("v", 1), sub("v", -X(1)) * 10.0), set(sub("out", 0), "v.x"),
                                       set(sub("out", 1), "v.y"), set(sub("out", 2), "v.z")));
    EXPECT_EQ(run(kernel, {0, 0, 0}), (std::vector<double>{7, 20, 2}));
}

TEST(Expressions, component_of_an_element_is_stored_alone) {
    const auto kernel =
        function("part", {{"v", vectors}}, block(set(attr(sub("v", 1), "y"), 4.0), add_to(sub(sub("v", 0), 2), 1.0)));
    const auto module = analyzed(kernel);
    EXPECT_HAS(ir::print(*module, false), "components");
    Memory memory{{2}, {1, 2, 3, 4, 5, 6}, 3};
    Interpreter interpreter;
    interpreter.run(*module->functions[0], {&memory});
    EXPECT_EQ(memory.numbers(), (std::vector<double>{1, 2, 4, 4, 4, 6}));
}

TEST(Expressions, dynamic_component_of_a_local) {
    const auto kernel = function("dynamic", {{"out", floats}, {"k", i32}},
                                 block(set("v", call("wp.vec3")), set(sub("v", "k"), 3.0),
                                       set(sub("out", 0), sub("v", "k")), set(sub("out", 1), "v.x")));
    EXPECT_EQ(run(kernel, {9, 9}, {2}), (std::vector<double>{3, 0}));
}

TEST(Expressions, components_of_wrong_type_name_the_expected_one) {
    const std::string error =
        error_of(function("wrong", {}, block(set("v", call("wp.vec3d", call("wp.float16", 1.0), 2.0, 3.0)))));
    EXPECT_HAS(error, "component 0 of vec3d is float16, expected float64");
}

TEST(Expressions, anonymous_vectors_and_matrices) {
    const std::string text =
        printed(function("anonymous", {{"out", Type::array(f64, 1)}},
                         block(set("m", with(call("wp.matrix", call("wp.float64", 1.0)), "shape", tuple(3, 2))),
                               set("v", with(with(call("wp.vector"), "length", 5), "dtype", "wp.float64")),
                               set(sub("out", 0), sub("m", 2, 1) + sub("v", 4)))));
    EXPECT_HAS(text, "f64");
    EXPECT_HAS(error_of(function("none", {}, block(set("v", call("wp.vector"))))), "needs its length");
}

TEST(Expressions, a_local_may_change_its_type_in_straight_line) {
    const auto kernel = function(
        "rebind", {{"out", floats}},
        block(set("m", 3), set("m", call("wp.vec3", 1.0)), set("m", attr("m", "z") + 1.0), set(sub("out", 0), "m")));
    EXPECT_EQ(run(kernel, {0}), (std::vector<double>{2}));
}

TEST(Expressions, chained_comparison) {
    const auto kernel = function("chain", {{"out", floats}, {"k", i32}},
                                 block(if_(chained_less(0, "k", 5), block(set(sub("out", 0), 1.0)))));
    EXPECT_EQ(run(kernel, {0}, {3}), (std::vector<double>{1}));
    EXPECT_EQ(run(kernel, {0}, {5}), (std::vector<double>{0}));
    EXPECT_EQ(run(kernel, {0}, {0}), (std::vector<double>{0}));
}

TEST(Expressions, and_runs_its_right_side_only_where_needed) {
    const auto kernel =
        function("guarded", {{"x", floats}, {"k", i32}},
                 block(if_(all_of(X("k") < call("len", "x"), sub("x", "k") > 0.0), block(set(sub("x", 0), 9.0)))));
    EXPECT_EQ(run(kernel, {1, 2}, {1}), (std::vector<double>{9, 2}));
    EXPECT_EQ(run(kernel, {1, 2}, {7}), (std::vector<double>{1, 2}));  // an evaluated x[7] would throw
}

TEST(Expressions, cheap_conditions_need_no_branch) {
    const std::string text =
        printed(function("cheap", {{"out", ints}, {"a", i32}, {"b", i32}},
                         block(set(sub("out", 0), either(all_of(X("a") > 0, X("b") > 0), X("a") + 1, 2)))));
    EXPECT_LACKS(text, "if ");
    EXPECT_HAS(text, "select");
    EXPECT_HAS(text, "and ");
}

TEST(Expressions, ternary_with_a_load_stays_a_branch) {
    const auto kernel =
        function("safe", {{"x", floats}, {"k", i32}}, block(set(sub("x", 0), either(X("k") < 2, sub("x", "k"), 5))));
    EXPECT_EQ(run(kernel, {1, 3}, {1}), (std::vector<double>{3, 3}));
    EXPECT_EQ(run(kernel, {1, 3}, {8}), (std::vector<double>{5, 3}));
}

TEST(Expressions, none_tells_whether_an_array_was_passed) {
    const auto kernel =
        function("optional", {{"x", floats}, {"y", floats}},
                 block(if_(compare("y", syntax::CompareOperator::is, none()), block(set(sub("x", 0), 1.0)))));
    const auto module = analyzed(kernel);
    Memory x{{1}, {0}};
    Interpreter interpreter;
    interpreter.run(*module->functions[0], {&x, static_cast<Memory*>(nullptr)});
    EXPECT_EQ(x.numbers(), (std::vector<double>{1}));
}

TEST(Expressions, static_and_constants_fold_branches_away) {
    const auto kernel = function(
        "folded", {{"x", floats}},
        block(if_(call("wp.static", "DEBUG"), block(set("unknown", "nowhere")), block(set(sub("x", 0), "SCALE")))),
        {{"DEBUG", boolean(false)}, {"SCALE", literal(Number::real(2.5))}});
    EXPECT_EQ(run(kernel, {0}), (std::vector<double>{2.5}));
    EXPECT_HAS(error_of(function("bad", {}, block(set("x", call("wp.static", "missing"))))), "NameError");
}

TEST(Expressions, inout_arguments_rebind_the_local) {
    const auto kernel =
        function("random", {{"out", floats}},
                 block(set("state", call("wp.rand_init", 42)), set(sub("out", 0), call("wp.randf", "state")),
                       set(sub("out", 1), call("wp.randf", "state"))));
    analyzed(kernel);
    // A state that is no variable stays as it is.
    analyzed(
        function("random", {{"out", floats}}, block(set(sub("out", 0), call("wp.randf", call("wp.rand_init", 42))))));
}

TEST(Expressions, print_writes_a_format) {
    Interpreter interpreter;
    run(function("show", {{"x", floats}, {"n", i32}},
                 block(do_(call("print", text("100%"), "n", call("wp.vec3", sub("x", 0)))),
                       do_(call("wp.printf", text("%d %5.2f %s\n"), "n", sub("x", 0), text("end"))))),
        {1}, {3}, &interpreter);
    ASSERT_EQ(interpreter.printed.size(), 2u);
    EXPECT_EQ(interpreter.printed[0].format, "100%% %d %g %g %g\n");
    EXPECT_EQ(interpreter.printed[1].format, "%d %5.2f end\n");
    EXPECT_HAS(error_of(function("show", {{"x", floats}}, block(do_(call("wp.printf", text("%d\n"), sub("x", 0)))))),
               "needs an integer, not float32");
    EXPECT_HAS(error_of(function("show", {}, block(do_(call("wp.printf", text("%d\n")))))), "asks for more values");
}

TEST(Expressions, mistakes_name_candidates) {
    EXPECT_HAS(error_of(function("typo", {{"x", floats}}, block(set("speed", 1.0), set(sub("x", 0), "sped")))),
               "did you mean 'speed'?");
    EXPECT_HAS(error_of(function("typo", {{"x", floats}}, block(set(sub("x", 0), call("wp.sqr", 1.0))))), "'sqrt'");
    EXPECT_HAS(error_of(function("typo", {{"v", vec3}}, block(set("w", attr("v", "w"))))), "has no attribute 'w'");
    const std::string overload = error_of(function("typo", {{"v", vec3}}, block(set("w", call("wp.dot", "v", 1.0)))));
    EXPECT_HAS(overload, "no overload of wp.dot() takes (vec3f, the float literal 1.0)");
    EXPECT_HAS(overload, "dot(a: Vec[n,S], b: Vec[n,S]) -> S");
}

TEST(Expressions, parameters_need_annotations) {
    EXPECT_HAS(error_of(function("bare", {{"x", untyped}}, block())),
               "parameter 'x' of kernel 'bare' has no type annotation");
}

TEST(Expressions, unsupported_syntax_says_so) {
    EXPECT_HAS(error_of(function("bad", {}, block(unsupported("try")))), "'try' is not supported in kernels");
    EXPECT_HAS(error_of(function("bad", {}, block(set("x", X::of(syntax::Unsupported{"a lambda"}))))),
               "a lambda is not supported");
}

}  // namespace
}  // namespace weft::sema::test
