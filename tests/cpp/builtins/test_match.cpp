#include <gtest/gtest.h>

#include <thread>

#include "builtins/pattern.h"
#include "builtins/registry.h"
#include "support/error.h"

namespace weft::builtins {
namespace {

Argument value(Type type) { return {.type = type}; }
Argument literal(std::int64_t v) {
    return {.type = i32_type(), .is_literal = true, .literal = Number::integer(v), .is_constant = true};
}
Argument literal(double v) {
    return {.type = f32_type(), .is_literal = true, .literal = Number::real(v), .is_constant = true};
}
Argument type_argument(Type type) { return {.type = type, .is_type = true}; }
const Argument kAbsent{};

Type vec3f() { return Type::vector(Scalar::f32, 3); }
Type f16_type() { return Type::scalar(Scalar::f16); }

// The first overload that takes the arguments, as sema picks it.
Match pick(std::string_view name, const std::vector<Argument>& arguments) {
    Match last;
    for (const Entry* entry : overloads(name)) {
        last = match(*entry, arguments);
        if (last.ok) return last;
    }
    return last;
}

Match match_text(const char* text, const std::vector<Argument>& arguments) {
    const Entry entry{"f", text, "", nullptr};
    return match(entry, arguments);
}

TEST(Match, equal_letters_mean_equal_types) {
    EXPECT_EQ(pick("add", {value(f64_type()), value(f64_type())}).result, f64_type());
    const Match mixed = match_text("(a: S, b: S) -> S", {value(f64_type()), value(f32_type())});
    EXPECT_FALSE(mixed.ok);
    EXPECT_EQ(mixed.why_not, "argument 'b' is float32, expected float64 as in 'a'");
}

TEST(Match, letters_with_digits_are_independent) {
    EXPECT_TRUE(match_text("(a: I, b: I2) -> I2", {value(i32_type()), value(i64_type())}).ok);
}

TEST(Match, bool_is_no_number) {
    EXPECT_FALSE(pick("add", {value(bool_type()), value(bool_type())}).ok);
    EXPECT_FALSE(pick("add", {value(bool_type()), literal(std::int64_t{1})}).ok);
    EXPECT_EQ(pick("bit_and", {value(bool_type()), value(bool_type())}).result, bool_type());
}

TEST(Match, literals_take_the_type_of_their_partner_on_either_side) {
    EXPECT_EQ(pick("max", {value(f16_type()), literal(std::int64_t{0})}).result, f16_type());
    const Match left = pick("max", {literal(std::int64_t{0}), value(u64_type())});
    EXPECT_EQ(left.result, u64_type());
    EXPECT_EQ(left.parameter_types[0], u64_type());
    EXPECT_EQ(pick("mul", {literal(2.0), value(vec3f())}).result, vec3f());
}

TEST(Match, literals_alone_are_int32_or_float32) {
    EXPECT_EQ(pick("max", {literal(std::int64_t{1}), literal(std::int64_t{2})}).result, i32_type());
    EXPECT_EQ(pick("max", {literal(std::int64_t{1}), literal(2.5)}).result, f32_type());
    EXPECT_EQ(pick("sin", {literal(std::int64_t{1})}).result, f32_type());
    EXPECT_EQ(pick("where", {value(bool_type()), literal(std::int64_t{1}), literal(0.5)}).result, f32_type());
}

TEST(Match, float_literals_never_become_integers) {
    const Match m = match_text("(a: S, b: S) -> S", {value(i32_type()), literal(2.5)});
    EXPECT_FALSE(m.ok);
    EXPECT_EQ(m.why_not, "argument 'b' is the literal 2.5, expected int32 as in 'a'");
    EXPECT_EQ(match_text("(a: I) -> I", {literal(2.5)}).why_not,
              "argument 'a' is the literal 2.5, expected an integer");
}

TEST(Match, literals_must_fit) {
    const Type u8 = Type::scalar(Scalar::u8);
    EXPECT_TRUE(pick("add", {value(u8), literal(std::int64_t{255})}).ok);
    const Match m = match_text("(a: S, b: S) -> S", {value(u8), literal(std::int64_t{256})});
    EXPECT_EQ(m.why_not, "argument 'b' is the literal 256, which does not fit uint8 as in 'a'");
    EXPECT_FALSE(pick("add", {value(u32_type()), literal(std::int64_t{-1})}).ok);
    EXPECT_FALSE(pick("add", {value(f16_type()), literal(1.0e6)}).ok);
    EXPECT_TRUE(pick("add", {value(f16_type()), literal(std::numeric_limits<double>::infinity())}).ok);
    EXPECT_FALSE(pick("abs", {literal(std::int64_t{1} << 40)}).ok);
}

TEST(Match, a_literal_is_no_vector_and_no_bool) {
    EXPECT_EQ(match_text("(a: Vec[n,S], b: Vec[n,S]) -> S", {value(vec3f()), literal(1.0)}).why_not,
              "argument 'b' is the literal 1.0, expected vec3f");
    EXPECT_FALSE(match_text("(a: B) -> B", {literal(std::int64_t{1})}).ok);
    EXPECT_TRUE(pick("unot", {literal(std::int64_t{1})}).ok);
}

TEST(Match, sizes_agree) {
    const Type mat23 = Type::matrix(Scalar::f32, 2, 3);
    EXPECT_EQ(pick("mul", {value(mat23), value(vec3f())}).result, Type::vector(Scalar::f32, 2));
    EXPECT_EQ(pick("matmul", {value(mat23), value(Type::matrix(Scalar::f32, 3, 5))}).result,
              Type::matrix(Scalar::f32, 2, 5));
    const Match m =
        match_text("(a: Vec[n,S], b: Vec[n,S]) -> S", {value(vec3f()), value(Type::vector(Scalar::f32, 2))});
    EXPECT_EQ(m.why_not, "argument 'b' is vec2f, expected vec3f as in 'a'");
    EXPECT_FALSE(pick("trace", {value(mat23)}).ok);
    EXPECT_FALSE(pick("mul", {value(vec3f()), value(vec3f())}).ok);
}

TEST(Match, unbound_patterns_are_described) {
    EXPECT_EQ(pick("cross", {value(f32_type()), value(f32_type())}).why_not,
              "argument 'a' is float32, expected a vector of length 3 of numbers");
    EXPECT_EQ(pick("sin", {value(i32_type())}).why_not, "argument 'x' is int32, expected a float");
}

TEST(Match, argument_counts_are_checked) {
    EXPECT_EQ(pick("clamp", {value(f32_type())}).why_not, "takes 3 arguments, 1 given");
    EXPECT_EQ(pick("sin", {value(f32_type()), value(f32_type())}).why_not, "takes 1 argument, 2 given");
    EXPECT_EQ(pick("clamp", {value(f32_type()), kAbsent, value(f32_type())}).why_not, "argument 'low' is missing");
}

TEST(Match, defaults_take_the_type_of_their_partner) {
    const Type vec2d = Type::vector(Scalar::f64, 2);
    const Match m = pick("norm_huber", {value(vec2d), kAbsent});
    ASSERT_TRUE(m.ok) << m.why_not;
    EXPECT_EQ(m.parameter_types[1], f64_type());
    EXPECT_EQ(default_number(signature(*m.entry).parameters[1]), Number::real(1.0));
    EXPECT_TRUE(pick("norm_huber", {value(vec2d)}).ok);
}

TEST(Match, static_arguments_shape_the_result) {
    const Match m = pick("identity", {literal(std::int64_t{3}), type_argument(f64_type())});
    ASSERT_TRUE(m.ok) << m.why_not;
    EXPECT_EQ(m.result, Type::matrix(Scalar::f64, 3, 3));
    EXPECT_EQ(m.sizes.at("n"), 3);
    EXPECT_EQ(pick("identity", {literal(std::int64_t{2}), kAbsent}).result, Type::matrix(Scalar::f32, 2, 2));
    EXPECT_EQ(pick("identity", {value(i32_type()), kAbsent}).why_not,
              "argument 'n' is int32 known only at run time, expected an integer known at compile time");
    EXPECT_EQ(pick("identity", {literal(std::int64_t{2}), type_argument(vec3f())}).why_not,
              "argument 'dtype' is the type vec3f, expected a scalar type");
    EXPECT_EQ(pick("identity", {literal(std::int64_t{0}), kAbsent}).why_not, "argument 'n' is 0, expected 1 or more");
}

TEST(Match, variadic_arguments_agree_and_are_counted) {
    EXPECT_EQ(pick("matrix_from_cols", {value(vec3f()), value(vec3f())}).result, Type::matrix(Scalar::f32, 3, 2));
    EXPECT_EQ(pick("matrix_from_rows", {value(vec3f()), value(vec3f())}).result, Type::matrix(Scalar::f32, 2, 3));
    EXPECT_EQ(pick("matrix_from_rows", {value(vec3f()), value(Type::vector(Scalar::f64, 3))}).why_not,
              "argument 'args[1]' is vec3d, expected vec3f");
    EXPECT_FALSE(pick("matrix_from_rows", {}).ok);
}

TEST(Match, inout_arguments_are_variables) {
    EXPECT_EQ(pick("randf", {value(u32_type())}).result, f32_type());
    EXPECT_EQ(match(*overloads("randf")[0], std::vector{literal(std::int64_t{1})}).why_not,
              "argument 'state' is the literal 1, expected a variable that the call can assign");
}

TEST(Match, integers_to_a_literal_power_stay_integers) {
    EXPECT_EQ(pick("pow", {value(i64_type()), literal(std::int64_t{3})}).result, i64_type());
    EXPECT_FALSE(pick("pow", {value(i64_type()), literal(std::int64_t{-1})}).ok);
    EXPECT_EQ(pick("pow", {value(f32_type()), literal(std::int64_t{2})}).result, f32_type());
}

TEST(Match, atomics_take_the_type_of_the_element) {
    const Type array = Type::array(vec3f(), 2);
    EXPECT_EQ(pick("atomic_add", {value(array), value(i32_type()), value(i64_type()), value(vec3f())}).result, vec3f());
    EXPECT_FALSE(pick("atomic_add", {value(array), value(i32_type()), value(vec3f())}).ok);
    const Match counted =
        pick("atomic_add", {value(Type::array(u64_type(), 1)), literal(std::int64_t{0}), literal(std::int64_t{1})});
    ASSERT_TRUE(counted.ok) << counted.why_not;
    EXPECT_EQ(counted.parameter_types[2], u64_type());
    EXPECT_FALSE(
        pick("atomic_xor", {value(Type::array(f32_type(), 1)), literal(std::int64_t{0}), value(f32_type())}).ok);
    const Type flags = Type::array(bool_type(), 1);
    EXPECT_FALSE(pick("atomic_add", {value(flags), literal(std::int64_t{0}), value(bool_type())}).ok);
}

TEST(Match, cast_needs_equal_sizes) {
    EXPECT_EQ(pick("cast", {value(f32_type()), type_argument(u32_type())}).result, u32_type());
    EXPECT_FALSE(pick("cast", {value(f32_type()), type_argument(u64_type())}).ok);
    EXPECT_EQ(pick("cast", {value(vec3f()), type_argument(Type::vector(Scalar::i32, 3))}).result,
              Type::vector(Scalar::i32, 3));
}

TEST(Signature, of_every_entry_is_in_the_notation) {
    for (const Group& group : groups()) {
        for (const Entry& entry : group.entries) {
            EXPECT_NO_THROW(signature(entry)) << entry.name << entry.signature;
            EXPECT_EQ(std::string_view(entry.doc).back(), '.') << entry.name;
        }
    }
}

TEST(Signature, tells_its_parts) {
    const Entry entry{"f",
                      "(state: inout uint32, n: static int, x: Vec[n,F] = 1.5, *rest: Array[S,2]) -> (F, Vec[n,S])", "",
                      nullptr};
    const Signature& s = signature(entry);
    ASSERT_EQ(s.parameters.size(), 4u);
    EXPECT_TRUE(s.parameters[0].is_inout);
    EXPECT_EQ(s.parameters[0].pattern, "uint32");
    EXPECT_TRUE(s.parameters[1].is_static);
    EXPECT_EQ(s.parameters[1].pattern, "int");
    EXPECT_EQ(s.parameters[2].pattern, "Vec[n,F]");
    EXPECT_EQ(s.parameters[2].default_value, "1.5");
    EXPECT_TRUE(s.parameters[3].is_variadic);
    EXPECT_EQ(s.result, "(F, Vec[n,S])");
}

TEST(Signature, mistakes_are_reported_with_their_place) {
    for (const char* wrong : {"a: S) -> S", "(a S) -> S", "(a: Vec[n]) -> S", "(a: Foo) -> S", "(a: S)",
                              "(a: S) -> S S", "(*a: S, b: S) -> S", "(a: static float) -> S"}) {
        EXPECT_THROW(parse_signature(wrong), InternalError) << wrong;
    }
}

TEST(Registry, names_are_sorted_and_known) {
    EXPECT_TRUE(std::is_sorted(names().begin(), names().end()));
    EXPECT_EQ(std::adjacent_find(names().begin(), names().end()), names().end());
    for (const std::string& name : names()) EXPECT_FALSE(overloads(name).empty());
    EXPECT_TRUE(overloads("no_such_builtin").empty());
}

TEST(Registry, many_threads_may_look_up_at_once) {
    std::vector<std::thread> threads;
    for (int i = 0; i < 8; ++i) {
        threads.emplace_back([] {
            for (const std::string& name : names())
                for (const Entry* entry : overloads(name)) EXPECT_EQ(&signature(*entry), &signature(*entry));
        });
    }
    for (std::thread& thread : threads) thread.join();
}

}  // namespace
}  // namespace weft::builtins
