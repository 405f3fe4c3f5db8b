#include "sema/fixture.h"

namespace weft::sema::test {
namespace {

std::map<std::string, Binding> with_function(const std::shared_ptr<FunctionSource>& f) {
    return {{f->tree->name, function_binding(f)}};
}

TEST(Functions, are_instantiated_once_per_argument_types) {
    const auto square = function("square", {{"x", untyped}}, block(return_(X("x") * "x")));
    const auto kernel = function(
        "use", {{"out", floats}},
        block(set(sub("out", 0), call("square", sub("out", 0))), set(sub("out", 1), call("square", sub("out", 1))),
              set(sub("out", 2), call("float", call("square", 3)))),
        with_function(square));
    EXPECT_EQ(run(kernel, {2, 3, 0}), (std::vector<double>{4, 9, 9}));
    EXPECT_EQ(analyzed(kernel)->functions.size(), 3u);
}

TEST(Functions, return_several_values) {
    const auto both = function("both", {{"x", f32}}, block(return_(tuple(X("x") + 1.0, X("x") * 2.0))));
    const auto kernel =
        function("use", {{"out", floats}},
                 block(set(tuple("a", "b"), call("both", sub("out", 0))), set(sub("out", 0), X("a") + "b")),
                 with_function(both));
    const auto module = analyzed(kernel);
    EXPECT_TRUE(module->functions[1]->result.is_tuple());
}

TEST(Functions, return_from_inside_a_loop) {
    const auto find = function(
        "find", {{"a", ints}, {"wanted", i32}},
        block(for_("k", call("range", call("len", "a")), block(if_(sub("a", "k") == "wanted", block(return_("k"))))),
              return_(-X(1))));
    const auto kernel = function("use", {{"out", ints}, {"wanted", i32}},
                                 block(set(sub("out", 0), call("find", "out", "wanted"))), with_function(find));
    EXPECT_EQ(run(kernel, {5, 6, 7}, {7})[0], 2);
    EXPECT_EQ(run(kernel, {5, 6, 7}, {8})[0], -1);
}

TEST(Functions, return_from_nested_loops_carries_the_value_out) {
    const auto find =
        function("find", {{"n", i32}, {"wanted", i32}},
                 block(for_("i", call("range", "n"),
                            block(for_("j", call("range", "n"),
                                       block(if_(X("i") * "j" == "wanted", block(return_(X("i") * 10 + "j"))))))),
                       return_(-X(1))));
    const auto kernel = function("use", {{"out", ints}, {"wanted", i32}},
                                 block(set(sub("out", 0), call("find", 5, "wanted"))), with_function(find));
    EXPECT_EQ(run(kernel, {0}, {6})[0], 23);
    EXPECT_EQ(run(kernel, {0}, {11})[0], -1);
}

TEST(Functions, paths_without_return_give_zero) {
    const auto sometimes = function("sometimes", {{"x", f32}}, block(if_(X("x") > 0.0, block(return_("x")))));
    const auto use = function("use", {{"out", floats}}, block(set(sub("out", 0), call("sometimes", sub("out", 0)))),
                              with_function(sometimes));
    EXPECT_EQ(run(use, {3})[0], 3);
    EXPECT_EQ(run(use, {-3})[0], 0);
    const auto always =
        function("always", {{"x", f32}}, block(if_(X("x") > 0.0, block(return_("x")), block(return_(0.0)))));
    EXPECT_EQ(run(function("use", {{"out", floats}}, block(set(sub("out", 0), call("always", sub("out", 0)))),
                           with_function(always)),
                  {3})[0],
              3);
}

TEST(Functions, returns_must_agree) {
    const auto mixed =
        function("mixed", {{"x", f32}}, block(if_(X("x") > 0.0, block(return_("x"))), return_(call("int", 1))));
    EXPECT_HAS(error_of(function("use", {}, block(do_(call("mixed", 1.0))), with_function(mixed))),
               "returns int32 here and float32 elsewhere");
}

TEST(Functions, arguments_are_checked) {
    const auto f = function("f", {{"a", f32}, {"b", f64}}, block(return_("a")));
    const auto error = [&](X made) {
        return error_of(function("use", {{"x", f32}}, block(set("r", std::move(made))), with_function(f)));
    };
    EXPECT_HAS(error(call("f", "x")), "argument 'b' of 'f' is missing");
    EXPECT_HAS(error(call("f", "x")), "f(a: float32, b: float64)");
    EXPECT_HAS(error(call("f", "x", 1.0, 2.0)), "'f' takes 2 arguments, got 3");
    EXPECT_HAS(error(call("f", "x", "x")), "argument 'b' of 'f' is float32, expected float64");
    EXPECT_HAS(error(with(call("f", "x"), "c", 1.0)), "no parameter 'c'");
    EXPECT_EQ(error(with(call("f", "x"), "b", 1.0)), "no error");
}

TEST(Functions, defaults_fill_missing_arguments) {
    const auto f = function("f", {{"a", f32}, {"b", f32}}, block(return_(X("a") + "b")));
    f->defaults = {Binding{}, literal(Number::real(10.0))};
    EXPECT_EQ(
        run(function("use", {{"out", floats}}, block(set(sub("out", 0), call("f", sub("out", 0)))), with_function(f)),
            {1})[0],
        11);
}

TEST(Functions, recursion_names_the_cycle) {
    const auto a = function("a", {}, block(return_(call("b"))));
    const auto b = function("b", {}, block(return_(call("a"))), with_function(a));
    static_cast<FakeEnvironment&>(*a->environment).globals = with_function(b);
    EXPECT_HAS(error_of(function("use", {}, block(set("x", call("a"))), with_function(a))), "'a' calls 'b' calls 'a'");
    static_cast<FakeEnvironment&>(*a->environment).globals.clear();  // a and b hold each other
}

TEST(Functions, views_and_functions_are_arguments) {
    const auto fill =
        function("fill", {{"row", floats}, {"f", untyped}}, block(set(sub("row", 0), call("f", sub("row", 0)))));
    const auto twice = function("twice", {{"x", f32}}, block(return_(X("x") * 2.0)));
    auto globals = with_function(fill);
    globals["twice"] = function_binding(twice);
    const auto module =
        analyzed(function("use", {{"a", floats2}}, block(do_(call("fill", sub("a", 1), "twice"))), globals));
    Memory a{{2, 2}, {1, 2, 3, 4}};
    Interpreter interpreter;
    interpreter.run(*module->functions[0], {&a});
    EXPECT_EQ(a.numbers(), (std::vector<double>{1, 2, 6, 4}));
}

TEST(Functions, nothing_cannot_be_used_as_a_value) {
    const auto f = function("f", {}, block(do_(call("print", 1))));
    EXPECT_HAS(error_of(function("use", {}, block(set("x", call("f"))), with_function(f))), "returns nothing");
}

TEST(Functions, tid_in_a_function_makes_the_kernels_rank) {
    const auto f = function("where", {}, block(set(tuple("i", "j"), call("wp.tid")), return_(X("i") + "j")));
    EXPECT_EQ(analyzed(function("use", {{"out", ints}}, block(set(sub("out", 0), call("where"))), with_function(f)))
                  ->functions[0]
                  ->tid_rank,
              2);
}

}  // namespace
}  // namespace weft::sema::test
