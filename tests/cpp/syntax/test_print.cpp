#include <gtest/gtest.h>

#include "syntax/tree.h"

namespace weft::syntax {
namespace {

template <class Node>
ExpressionPtr expression(Node node) {
    auto made = std::make_unique<Expression>();
    made->node = std::move(node);
    return made;
}
template <class Node>
std::unique_ptr<Statement> statement(Node node) {
    auto made = std::make_unique<Statement>();
    made->node = std::move(node);
    return made;
}
template <class... Parts>
std::vector<ExpressionPtr> list(Parts... parts) {
    std::vector<ExpressionPtr> made;
    (made.push_back(std::move(parts)), ...);
    return made;
}
ExpressionPtr name(const char* id) { return expression(Name{id}); }
ExpressionPtr integer(std::int64_t value) { return expression(IntegerLiteral{value, false, std::to_string(value)}); }

TEST(Print, shows_how_expressions_group) {
    Function function;
    function.name = "f";
    function.parameters = {{"x", {}, true, false}, {"n", {}, false, true}};
    function.body.push_back(statement(
        Assign{list(name("s")), expression(Binary{BinaryOperator::add, name("x"),
                                                  expression(Binary{BinaryOperator::mul, integer(2), name("n")})})}));
    function.body.push_back(statement(AugmentedAssign{
        expression(Subscript{name("y"), list(name("i"), expression(Slice{integer(1), nullptr, nullptr}))}),
        BinaryOperator::pow, expression(FloatLiteral{3.0})}));
    std::vector<Keyword> keywords;
    keywords.push_back({"dtype", expression(Attribute{name("wp"), "vec3"})});
    function.body.push_back(statement(ExpressionStatement{
        expression(Call{expression(Attribute{name("wp"), "zeros"}), list(integer(3)), std::move(keywords)})}));
    function.body.push_back(statement(Return{expression(Tuple{list(name("s"))})}));
    EXPECT_EQ(print(function),
              "def f(x: ..., n = ...):\n"
              "    s = (x + (2 * n))\n"
              "    y[i, 1:] **= 3.0\n"
              "    wp.zeros(3, dtype=wp.vec3)\n"
              "    return (s,)\n");
}

TEST(Print, indents_blocks) {
    Function function;
    function.name = "g";
    If choice;
    choice.condition =
        expression(Compare{integer(0), {CompareOperator::lt, CompareOperator::le}, list(name("x"), name("n"))});
    choice.then_block.push_back(statement(Break{}));
    choice.else_block.push_back(statement(
        Assert{expression(Unary{UnaryOperator::logical_not, name("x")}), expression(StringLiteral{"a \"b\"\n"})}));
    For loop{name("i"), expression(Call{name("range"), list(name("n")), {}}), {}};
    loop.body.push_back(statement(std::move(choice)));
    function.body.push_back(statement(std::move(loop)));
    function.body.push_back(statement(UnsupportedStatement{"try"}));
    EXPECT_EQ(print(function),
              "def g():\n"
              "    for i in range(n):\n"
              "        if (0 < x <= n):\n"
              "            break\n"
              "        else:\n"
              "            assert (not x), \"a \\\"b\\\"\\n\"\n"
              "    <unsupported: try>\n");
}

}  // namespace
}  // namespace weft::syntax
