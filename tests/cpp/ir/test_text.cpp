#include <gtest/gtest.h>

#include <bit>
#include <cmath>

#include "ir/random_module.h"
#include "support/error.h"

namespace weft::ir {
namespace {

TEST(Text, any_module_printed_parsed_and_printed_again_is_equal) {
    for (unsigned seed = 0; seed < 500; ++seed) {
        const std::unique_ptr<Module> module = RandomModule(seed).make();
        ASSERT_NO_THROW(verify(*module)) << seed;
        for (const bool names : {true, false}) {
            const std::string text = print(*module, names);
            std::unique_ptr<Module> again;
            ASSERT_NO_THROW(again = parse(text)) << text;
            ASSERT_EQ(print(*again, names), text) << seed;
        }
        // Names and places say nothing about the program.
        ASSERT_EQ(print(*parse(print(*module)), false), print(*module, false)) << seed;
    }
}

TEST(Text, every_kind_of_number_is_read_back_bit_by_bit) {
    Module module;
    Function* function = module.add("f");
    Builder builder(*function, function->body);
    for (const double value : {0.0, -0.0, 0.1, 1e308, 5e-324, 1.0 / 3.0}) {
        for (const Scalar scalar : {Scalar::f16, Scalar::bf16, Scalar::f32, Scalar::f64})
            builder.real(value, Type::scalar(scalar));
    }
    for (const double value : {HUGE_VAL, -HUGE_VAL}) builder.real(value, f64_type());
    builder.real(std::numeric_limits<double>::quiet_NaN(), f32_type());
    builder.real(-std::numeric_limits<double>::quiet_NaN(), f64_type());
    builder.integer(std::numeric_limits<std::int64_t>::min(), i64_type());
    builder.integer(-1, u64_type());
    builder.integer(-1, Type::scalar(Scalar::u8));
    builder.boolean(true);
    builder.zero(Type::matrix(Scalar::f32, 4, 4));
    builder.constant(Type::vector(Scalar::f32, 2), {Number::real(0.0), Number::real(-0.0)});
    builder.return_({});

    const std::unique_ptr<Module> again = parse(print(module));
    const Region& a = function->body;
    const Region& b = again->functions[0]->body;
    ASSERT_EQ(a.operations.size(), b.operations.size());
    for (std::size_t i = 0; i < a.operations.size(); ++i) {
        const auto& x = a.operations[i]->numbers;
        const auto& y = b.operations[i]->numbers;
        ASSERT_EQ(x.size(), y.size());
        for (std::size_t k = 0; k < x.size(); ++k) {
            EXPECT_EQ(std::bit_cast<std::uint64_t>(x[k].f), std::bit_cast<std::uint64_t>(y[k].f));
            EXPECT_EQ(x[k].i, y[k].i);
        }
    }
}

TEST(Text, views_with_a_step_and_exceptions) {
    const char* kSource = R"(kernel @k(%x: array<f32, 2>) tid 1 {
  %i = tid 0
  %by = constant -2 : i32
  %part = slice %x[1], %i, %i, %by
  %v = load %part[%i, %i]
  raise "ValueError: %g", %v
  return
}
)";
    EXPECT_EQ(print(*parse(kSource)), kSource);
}

TEST(Text, canonical_form_leaves_out_names_and_places_only) {
    const char* kSource = R"(kernel @k(%x: array<f32, 1>) tid 1 {  // a.py:1
  %i = tid 0  // a.py:2
  %v = load %x[%i]
  store %x[%i], %v  // a.py:3
  return
}
)";
    EXPECT_EQ(print(*parse(kSource)), kSource);
    EXPECT_EQ(print(*parse(kSource), false), R"(kernel @k(%0: array<f32, 1>) tid 1 {
  %1 = tid 0
  %2 = load %0[%1]
  store %0[%1], %2
  return
}
)");
}

TEST(Text, spans_are_read_back_from_comments) {
    const auto module =
        parse("kernel @k() tid 1 {  // dir name/a.py:7\n  %i = tid 0  // dir name/a.py:9\n  return\n}\n");
    const Function& kernel = *module->functions[0];
    EXPECT_EQ(kernel.span.source->path, "dir name/a.py");
    EXPECT_EQ(kernel.span.line, 7);
    EXPECT_EQ(kernel.body.operations[0]->span.line, 9);
    EXPECT_EQ(kernel.body.operations[1]->span.line, 9);
}

std::string parse_error(const std::string& text) {
    try {
        parse(text);
    } catch (const UsageError& error) {
        return error.what();
    }
    return "no error";
}

TEST(Text, mistakes_are_reported_with_line_and_column) {
    EXPECT_EQ(parse_error("func @f() {\n  %a = add %b, %b\n  return\n}\n"), "parse(): 2:12: %b is not defined above");
    EXPECT_EQ(parse_error("func @f() {\n  frob\n}\n"), "parse(): 2:3: there is no operation 'frob'");
    EXPECT_EQ(parse_error("func @f(%a: f33) {\n}\n"), "parse(): 1:13: 'f33' is no type");
    EXPECT_EQ(parse_error("func @f(%a: f32) {\n  %b = add %a, %a, %a\n  return\n}\n"),
              "parse(): 2:8: 'add' takes 2 operands, found 3");
    EXPECT_EQ(parse_error("func @f(%a: f32) {\n  %a = neg %a\n  return\n}\n"), "parse(): 2:3: %a is defined twice");
    EXPECT_EQ(parse_error("func @f() {\n  %a = constant 300 : u8\n  return\n}\n"),
              "parse(): 2:17: 300 does not fit u8");
    EXPECT_EQ(parse_error("func @f() {\n"), "parse(): 2:1: expected '}', found the end of the text");
    EXPECT_EQ(parse_error("hello"), "parse(): 1:1: expected 'kernel', 'func' or 'struct', found 'hello'");
    EXPECT_NE(parse_error("func @f() {\n}\n").find("expected a region to end in a yield or return"), std::string::npos);
}

TEST(Text, damaged_text_never_does_worse_than_an_error) {
    const std::string text = print(*RandomModule(7).make());
    for (std::size_t at = 0; at < text.size(); at += 3) {
        std::string damaged = text;
        damaged.erase(at, 1 + at % 5);
        try {
            parse(damaged);
        } catch (const Error&) {
        }
    }
}

}  // namespace
}  // namespace weft::ir
