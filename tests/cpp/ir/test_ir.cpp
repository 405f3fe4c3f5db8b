#include <gtest/gtest.h>

#include <map>
#include <optional>
#include <set>

#include "ir/builder.h"
#include "ir/random_module.h"
#include "ir/typing.h"
#include "ir/walk.h"
#include "support/error.h"

namespace weft::ir {
namespace {

TEST(Ops, have_names_that_lead_back_to_them) {
    std::set<std::string> seen;
#define WEFT_OP(id, ...)                          \
    EXPECT_EQ(parse_op(op_name(Op::id)), Op::id); \
    EXPECT_TRUE(seen.insert(op_name(Op::id)).second);
#include "ir/ops.def"
    EXPECT_STREQ(op_name(Op::cmp_lt), "cmp.lt");
    EXPECT_STREQ(op_name(Op::atomic_add), "atomic.add");
    EXPECT_STREQ(op_name(Op::if_), "if");
    EXPECT_STREQ(op_name(Op::bit_count), "bit_count");
    EXPECT_EQ(parse_op("nothing"), std::nullopt);
}

TEST(Ops, of_the_class_atomic_say_what_they_apply) {
    std::map<Op, std::optional<Op>> found;
#define WEFT_OP(id, ...) \
    if (is_atomic(Op::id)) found[Op::id] = applied(Op::id);
#include "ir/ops.def"
    const std::map<Op, std::optional<Op>> expected = {
        {Op::atomic_add, Op::add},  {Op::atomic_sub, Op::sub},       {Op::atomic_min, Op::min},
        {Op::atomic_max, Op::max},  {Op::atomic_and, Op::and_},      {Op::atomic_or, Op::or_},
        {Op::atomic_xor, Op::xor_}, {Op::atomic_exch, std::nullopt}, {Op::atomic_cas, std::nullopt},
    };
    EXPECT_EQ(found, expected);
    EXPECT_EQ(applied(Op::add), std::nullopt);
    EXPECT_EQ(values_behind_indices(Op::load), 0u);
    EXPECT_EQ(values_behind_indices(Op::store), 1u);
    EXPECT_EQ(values_behind_indices(Op::atomic_max), 1u);
    EXPECT_EQ(values_behind_indices(Op::atomic_cas), 2u);
}

TEST(Modules, are_copied_with_everything_that_is_said_of_their_functions) {
    for (unsigned seed = 0; seed < 40; ++seed) {
        const auto module = RandomModule(seed).make();
        Function& kernel = *module->find("kernel");
        Function& callee = *module->find("helper<f32>");
        callee.gradient = module->add("gradient");
        callee.gradient->reverse_of = &callee;
        callee.gradient->sees_after = true;
        kernel.uncontended_parameters = {1};
        kernel.implicit_parameters = {{ImplicitParameter::Kind::copy, 0}};
        const auto copy = clone(*module);
        EXPECT_EQ(print(*copy), print(*module));
        EXPECT_EQ(copy->sources, module->sources);
        ASSERT_EQ(copy->functions.size(), module->functions.size());
        std::set<const Function*> own;
        for (const auto& function : copy->functions) own.insert(function.get());
        for (const auto& function : copy->functions)
            for_each_operation(function->body, [&](const Operation& operation) {
                EXPECT_TRUE(!operation.function || own.contains(operation.function));
            });
        const Function& same = *copy->find("kernel");
        EXPECT_TRUE(same.is_kernel);
        EXPECT_EQ(same.tid_rank, kernel.tid_rank);
        EXPECT_EQ(same.uncontended_parameters, kernel.uncontended_parameters);
        ASSERT_EQ(same.implicit_parameters.size(), 1u);
        EXPECT_EQ(same.span.line, kernel.span.line);
        const Function& copied = *copy->find("helper<f32>");
        EXPECT_EQ(copied.result, callee.result);
        EXPECT_EQ(copied.gradient, copy->find("gradient"));
        EXPECT_EQ(copied.gradient->reverse_of, &copied);
        EXPECT_TRUE(copied.gradient->sees_after);
        // A change of one does not change the other.
        module->find("kernel")->body.operations.clear();
        EXPECT_FALSE(same.body.operations.empty());
    }
}

struct OneFunction : testing::Test {
    Function function;
    Builder b{function, function.body};
    Value* f = function.add_argument(&function.body, f32_type(), "f");
    Value* i = function.add_argument(&function.body, i32_type(), "i");
    Value* v = function.add_argument(&function.body, Type::vector(Scalar::f32, 3), "v");
    Value* m = function.add_argument(&function.body, Type::matrix(Scalar::f32, 2, 3), "m");
    Value* a = function.add_argument(&function.body, Type::array(f32_type(), 2), "a");
};
using Building = OneFunction;
using Verifying = OneFunction;

TEST_F(Building, result_types_follow_from_operands) {
    EXPECT_EQ(b.binary(Op::add, v, v)->type, v->type);
    EXPECT_EQ(b.compare(Op::cmp_lt, f, f)->type, bool_type());
    EXPECT_EQ(b.cast(v, Scalar::f64)->type, Type::vector(Scalar::f64, 3));
    EXPECT_EQ(b.matmul(m, v)->type, Type::vector(Scalar::f32, 2));
    EXPECT_EQ(b.matmul(m, b.transpose(m))->type, Type::matrix(Scalar::f32, 2, 2));
    EXPECT_EQ(b.extract(m, {1})->type, Type::vector(Scalar::f32, 3));
    EXPECT_EQ(b.extract(m, {1, 2})->type, f32_type());
    EXPECT_EQ(b.extract_at(m, {i})->type, Type::vector(Scalar::f32, 3));
    EXPECT_EQ(b.load(a, {i, i})->type, f32_type());
    EXPECT_EQ(b.view(a, {i})->type, Type::array(f32_type(), 1));
    EXPECT_EQ(b.dim(a, 1)->type, i32_type());
    EXPECT_EQ(b.reduce_add(m)->type, f32_type());
}

TEST_F(Building, constants_are_fitted_to_their_type) {
    EXPECT_EQ(b.integer(300, Type::scalar(Scalar::u8))->definition->numbers[0].i, 44);
    EXPECT_EQ(b.one(f32_type())->definition->numbers[0], Number::real(1.0));
    EXPECT_EQ(b.real(0.1)->definition->numbers[0].f, 0.1f);
    EXPECT_EQ(b.zero(Type::matrix(Scalar::f64, 2, 2))->definition->numbers.size(), 4u);
}

TEST_F(Building, wrong_uses_are_internal_errors) {
    EXPECT_THROW(b.binary(Op::add, f, i), InternalError);
    EXPECT_THROW(b.binary(Op::shl, f, f), InternalError);
    EXPECT_THROW(b.unary(Op::sqrt, i), InternalError);
    EXPECT_THROW(b.unary(Op::add, f), InternalError);
    EXPECT_THROW(b.compare(Op::cmp_lt, v, v), InternalError);
    EXPECT_THROW(b.select(f, f, f), InternalError);
    EXPECT_THROW(b.extract(v, {3}), InternalError);
    EXPECT_THROW(b.extract(f, {0}), InternalError);
    EXPECT_THROW(b.load(a, {i}), InternalError);
    EXPECT_THROW(b.load(a, {i, f}), InternalError);
    EXPECT_THROW(b.store(a, {i, i}, i), InternalError);
    EXPECT_THROW(b.view(a, {i, i}), InternalError);
    EXPECT_THROW(b.matmul(v, v), InternalError);
    EXPECT_THROW(b.matmul(m, m), InternalError);
    EXPECT_THROW(b.make(v->type, {f, f}), InternalError);
    EXPECT_THROW(b.constant(a->type, {}), InternalError);
    EXPECT_THROW(b.integer(1)->type.element(), InternalError);
    EXPECT_THROW(b.bitcast(f, Scalar::f64), InternalError);
    EXPECT_THROW(b.if_(i, {}), InternalError);
    EXPECT_THROW(b.for_(i, i, f, {}), InternalError);
    EXPECT_THROW(b.for_(i, i, i, {f}, true), InternalError);
}

TEST_F(Verifying, accepts_what_the_builder_makes) {
    Operation* choice = b.if_(b.compare(Op::cmp_gt, f, b.zero(f32_type())), {f32_type()});
    for (Region* arm : choice->regions) {
        const Builder::Inside inside(b, *arm);
        b.yield({f});
    }
    function.result = f32_type();
    b.return_({choice->result()});
    EXPECT_NO_THROW(verify(function));
}

TEST_F(Verifying, refuses_a_value_used_outside_its_region) {
    Operation* choice = b.if_(b.boolean(true), {});
    Value* inner = nullptr;
    {
        const Builder::Inside inside(b, choice->body(0));
        inner = b.unary(Op::neg, f);
        b.yield({});
    }
    {
        const Builder::Inside inside(b, choice->body(1));
        b.yield({});
    }
    b.unary(Op::neg, inner);
    b.return_({});
    EXPECT_THROW(verify(function), InternalError);
}

TEST_F(Verifying, refuses_wrong_yields_returns_and_missing_ends) {
    EXPECT_THROW(verify(function), InternalError);
    b.return_({f});
    EXPECT_THROW(verify(function), InternalError);
    function.result = f32_type();
    EXPECT_NO_THROW(verify(function));
    Operation* choice = b.append(Op::if_, {b.boolean(true)}, {f32_type()});
    function.new_region(choice);
    EXPECT_THROW(verify(function), InternalError);
}

TEST_F(Verifying, refuses_formats_that_do_not_fit) {
    b.print("%d %d\n", {i});
    b.return_({});
    EXPECT_THROW(verify(function), InternalError);
}

TEST(Effects, follow_views_members_branches_loops_and_calls) {
    const auto module = parse(R"(
struct @S = "S" "k" { p: array<f32, 1>, n: i32 }
func @touch(%a: array<f32, 1>, %b: array<f32, 1>) {
  %z = constant 0 : i32
  %v = load %a[%z]
  store %b[%z], %v
  return
}
kernel @k(%a: array<f32, 2>, %b: array<f32, 1>, %c: array<f32, 1>, %s: struct @S, %d: array<f32, 1>, %e: array<f32, 1>, %c2: bool) tid 1 {
  %z = constant 0 : i32
  %one = constant 1 : i32
  %row = view %a[%z]
  %p = extract %s[0]
  call @touch(%row, %p)
  %chosen = if %c2 {
    yield %b
  } else {
    yield %c
  }
  %r = for %i = %z to %one step %one carry (%x = %chosen) {
    %w = load %x[%i]
    yield %d
  }
  %v = constant 1 : f32
  %o = atomic.add %r[%z], %v
  return
}
)");
    const auto found = effects(*module->find("k"));
    const auto expect = [&](std::size_t parameter, bool reads, bool writes) {
        EXPECT_EQ(found[parameter].reads, reads) << parameter;
        EXPECT_EQ(found[parameter].writes, writes) << parameter;
    };
    expect(0, true, false);  // a, through a view and the callee
    expect(1, true, true);   // b and c: the loop starts with one of them, and they remain if it does not run
    expect(2, true, true);
    expect(3, false, true);  // the array in s, through the callee
    expect(4, true, true);   // d, carried round
    expect(5, false, false);
    expect(6, false, false);
}

TEST(Walk, clones_regions_with_fresh_values) {
    const auto module = parse(R"(
func @f(%a: f32, %n: i32) -> f32 {
  %one = constant 1 : i32
  %s = for %i = %one to %n step %one carry (%x = %a) {
    %y = add %x, %a
    yield %y
  }
  return %s
}
)");
    Function& f = *module->functions[0];
    Function copy;
    copy.name = "g";
    copy.result = f.result;
    ValueMap map(f);
    for (const Value* parameter : f.parameters()) {
        map.set(parameter, copy.add_argument(&copy.body, parameter->type, parameter->name));
    }
    clone_operations(copy, f.body, copy.body, map);
    Builder(copy, copy.body).return_({map[f.body.terminator()->operands[0]]});
    verify(copy);
    f.name = "g";
    EXPECT_EQ(print(copy), print(f));
}

TEST(Walk, replaces_along_chains) {
    const auto module = parse(R"(
func @f(%a: f32) -> f32 {
  %b = neg %a
  %c = neg %b
  %d = neg %c
  return %d
}
)");
    Function& f = *module->functions[0];
    const auto& ops = f.body.operations;
    ValueMap map(f);
    map.set(ops[1]->result(), ops[0]->result());
    map.set(ops[2]->result(), ops[1]->result());
    replace_uses(f.body, map);
    EXPECT_EQ(f.body.terminator()->operands[0], ops[0]->result());
}

}  // namespace
}  // namespace weft::ir
