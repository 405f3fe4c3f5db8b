// Parts of values: fields of structs, rows and entries of matrices, halves of transforms; as values, as places and in
// memory.
#include "sema/fixture.h"

namespace weft::sema::test {
namespace {

const Type mat22 = Type::matrix(Scalar::f32, 2, 2);
const Type transform = Type::transform(Scalar::f32);

Type particle() {
    return Type::structure("Particle", "test.Particle", {{"mass", f32_type()}, {"at", Type::vector(Scalar::f32, 3)}});
}
Type holder() {
    return Type::structure("Holder", "test.Holder", {{"n", i32_type()}, {"points", Type::array(f32_type(), 1)}});
}

TEST(Parts, fields_of_struct_parameters) {
    const std::string text =
        printed(function("fields", {{"h", holder()}}, block(set(sub("h.points", "h.n"), call("float", "h.n")))));
    EXPECT_HAS(text, "store");
    EXPECT_HAS(error_of(function("fields", {{"h", holder()}}, block(set("x", "h.point")))), "did you mean 'points'?");
}

TEST(Parts, one_field_of_an_element_is_stored_through_member) {
    const std::string text =
        printed(function("move", {{"p", Type::array(particle(), 1)}},
                         block(set(attr(sub("p", 0), "mass"), 2.0), set(attr(attr(sub("p", 0), "at"), "y"), 1.0),
                               add_to(sub(attr(sub("p", 1), "at"), 0), 1.0))));
    EXPECT_HAS(text, "member");
    EXPECT_HAS(text, "components");
}

TEST(Parts, local_structs_are_values) {
    const std::string text = printed(function("local", {{"out", Type::array(particle(), 1)}},
                                              block(set("p", call("Particle")), set("p.mass", 2.0), set("p.at.z", 3.0),
                                                    add_to(sub("p.at", 0), 1.0), set(sub("out", 0), "p")),
                                              {{"Particle", type_binding(particle())}}));
    EXPECT_HAS(text, "insert");
}

TEST(Parts, constructors_of_structs_take_fields) {
    const std::map<std::string, Binding> globals = {{"Particle", type_binding(particle())},
                                                    {"Holder", type_binding(holder())}};
    printed(function("make", {}, block(set("p", with(call("Particle", 1.0), "at", call("wp.vec3", 1.0)))), globals));
    EXPECT_HAS(error_of(function("make", {}, block(set("p", with(call("Particle"), "mas", 1.0))), globals)),
               "did you mean 'mass'?");
    EXPECT_HAS(printed(function("make", {}, block(set("p", call("Holder"))), globals)), "null");
}

TEST(Parts, rows_and_entries_of_matrices) {
    const std::string text = printed(function(
        "matrix", {{"m", mat22}, {"out", Type::array(mat22, 1)}, {"k", i32}},
        block(set(sub("m", 0, 1), 5.0), set(sub("m", 1), call("wp.vec2", 1.0, 2.0)), set(sub(sub("m", 1), 0), 3.0),
              set(sub("m", "k", 0), 1.0), set("row", sub("m", "k")), set(sub(sub("out", 0), 1, 0), attr("row", "x")),
              set(sub(sub("out", 0), 1), "row"), set(sub("out", 1), X("m") * "m" + "m"))));
    EXPECT_HAS(text, "matmul");
    EXPECT_HAS(error_of(function("matrix", {{"m", mat22}}, block(set("x", sub("m", 2, 0))))),
               "index 2 is outside mat22f, which has 2 rows");
}

TEST(Parts, halves_of_transforms) {
    const std::string text =
        printed(function("rigid", {{"t", Type::array(transform, 1)}},
                         block(set("a", sub("t", 0)), set("a.p", X("a.p") * 2.0), set("a.p.x", 1.0),
                               set(attr(sub("t", 1), "p"), "a.p"), set(sub("t", 0), "a"))));
    EXPECT_HAS(text, "insert");
}

TEST(Parts, components_cannot_be_assigned_twice) {
    EXPECT_HAS(error_of(function("twice", {{"v", vec3}}, block(set("v.xx", call("wp.vec2", 1.0, 2.0))))),
               "appears twice");
}

TEST(Parts, wrong_types_of_parts_are_reported) {
    EXPECT_HAS(error_of(function("wrong", {{"v", vec3}}, block(set("v.x", 3.0), set("v.y", call("int", 3))))),
               "the value assigned to this part of 'v' is int32, expected float32");
    EXPECT_HAS(error_of(function("wrong", {{"a", floats}}, block(set(sub("a", 0), call("int", 3))))),
               "the value stored here is int32");
    EXPECT_HAS(error_of(function("wrong", {{"a", floats2}}, block(set(sub("a", 0), 3.0)))), "an index is missing");
    EXPECT_HAS(error_of(function("wrong", {{"a", floats}}, block(set(sub("a", 1.5), 3.0)))),
               "an index must be an integer");
}

TEST(Parts, globals_cannot_be_changed) {
    Binding v;
    v.kind = Binding::Kind::constant;
    v.type = vec3;
    v.numbers = {Number::real(1), Number::real(2), Number::real(3)};
    EXPECT_HAS(error_of(function("global", {}, block(set("V.x", 3.0)), {{"V", v}})), "no local variable");
    EXPECT_EQ(run(function("global", {{"out", floats}}, block(set(sub("out", 0), X("V.z") + sub("V", 0))), {{"V", v}}),
                  {0})[0],
              4);
    Binding list;
    list.kind = Binding::Kind::unsupported;
    list.text = "a dict";
    EXPECT_HAS(error_of(function("global", {}, block(set("x", "D")), {{"D", list}})),
               "kernels cannot use 'D', which is a dict");
}

TEST(Parts, membership_in_tuples) {
    const auto kernel =
        function("in", {{"out", ints}, {"k", i32}},
                 block(if_(compare("k", syntax::CompareOperator::in, tuple(2, 3, 5)), block(set(sub("out", 0), 1)))));
    EXPECT_EQ(run(kernel, {0}, {3})[0], 1);
    EXPECT_EQ(run(kernel, {0}, {4})[0], 0);
}

TEST(Parts, vectors_compare_by_all_components) {
    const auto kernel = function("same", {{"out", floats}, {"k", i32}},
                                 block(set("v", call("wp.vec3", call("float", "k"), 2.0, 3.0)),
                                       if_(X("v") == call("wp.vec3", 1.0, 2.0, 3.0), block(set(sub("out", 0), 1.0)))));
    EXPECT_EQ(run(kernel, {0}, {1})[0], 1);
    EXPECT_EQ(run(kernel, {0}, {2})[0], 0);
}

TEST(Parts, keywords_and_static_parameters_reach_the_table) {
    const std::string text =
        printed(function("identity", {{"out", Type::array(f64, 1)}},
                         block(set("m", with(with(call("wp.identity"), "n", 5), "dtype", "wp.float64")),
                               set(sub("out", 0), sub("m", 4, 4)),
                               set(sub("out", 1), with(with(call("wp.clamp", sub("out", 0)), "high", 1), "low", 0)))));
    EXPECT_HAS(text, "f64");
    EXPECT_HAS(error_of(function("identity", {{"n", i32}}, block(set("m", with(call("wp.identity"), "n", "n"))))),
               "known only at run time");
}

TEST(Parts, atomics_take_views_and_indices) {
    const std::string text = printed(
        function("count", {{"a", floats2}},
                 block(do_(call("wp.atomic_add", "a", 0, 1, 2.0)), do_(call("wp.atomic_add", sub("a", 1), 1, 2.0)))));
    EXPECT_HAS(text, "atomic.add");
}

}  // namespace
}  // namespace weft::sema::test
