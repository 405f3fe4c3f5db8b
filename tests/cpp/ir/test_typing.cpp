#include <gtest/gtest.h>

#include "ir/ir.h"
#include "ir/typing.h"
#include "support/error.h"

namespace weft::ir {
namespace {

// Every operation below stands in a function with these parameters.
constexpr const char* kBegin = R"(struct @S = "S" "k" { x: vec3<f32>, n: i32 }
func @callee(%f: f32, %i: i32) -> f64 {
  %r = constant 1 : f64
  return %r
}
kernel @kernel() tid 1 {
  return
}
func @test(%f: f32, %d: f64, %i: i32, %u: u64, %b: bool, %v: vec3<f32>, %w: vec3<i32>, %e: vec3<bool>, %m: mat2x3<f32>,
           %q: quat<f32>, %s: struct @S, %t: tuple<f32, i32>, %a: array<f32, 2>, %av: array<vec3<f32>, 1>,
           %am: array<mat2x3<f32>, 1>, %as: array<struct @S, 1>, %ai: array<i32, 1>) {
)";

std::unique_ptr<Module> function_with(const std::string& operation) {
    return parse(kBegin + ("  " + operation) + "\n  return\n}\n");
}

// The message of parse() about the operation, without the line.
std::string mistake(const std::string& operation) {
    try {
        function_with(operation);
    } catch (const UsageError& error) {
        const std::string what = error.what();
        return what.substr(what.find('\''));
    }
    return "no error";
}

struct Case {
    const char* operation;
    const char* answer;
};

TEST(Typing, results_follow_from_operands) {
    const Case kCases[] = {
        {"%r = neg %v", "vec3<f32>"},
        {"%r = invert %e", "vec3<bool>"},
        {"%r = add %m, %m", "mat2x3<f32>"},
        {"%r = and %b, %b", "bool"},
        {"%r = shl %w, %w", "vec3<i32>"},
        {"%r = pow %d, %d", "f64"},
        {"%r = cmp.eq %b, %b", "bool"},
        {"%r = cmp.le %d, %d", "bool"},
        {"%r = isnan %f", "bool"},
        {"%r = bit_count %u", "i32"},
        {"%r = fma %q, %q, %q", "quat<f32>"},
        {"%r = select %b, %a, %a", "array<f32, 2>"},
        {"%r = cast %w : vec3<f64>", "vec3<f64>"},
        {"%r = bitcast %f : u32", "u32"},
        {"%r = constant (1, 2, 3, 4) : struct @S", "struct @S"},
        {"%r = make %v, %i : struct @S", "struct @S"},
        {"%r = make %f, %i : tuple<f32, i32>", "tuple<f32, i32>"},
        {"%r = splat %i : vec3<i32>", "vec3<i32>"},
        {"%r = extract %s[0]", "vec3<f32>"},
        {"%r = extract %s[0, 2]", "f32"},
        {"%r = extract %s[1]", "i32"},
        {"%r = extract %t[1]", "i32"},
        {"%r = extract %m[1]", "vec3<f32>"},
        {"%r = extract %m[1, 2]", "f32"},
        {"%r = insert %s[0, 2], %f", "struct @S"},
        {"%r = extract_at %m[%i]", "vec3<f32>"},
        {"%r = extract_at %m[%i, %u]", "f32"},
        {"%r = extract_at %q[%i]", "f32"},
        {"%r = insert_at %m[%i], %v", "mat2x3<f32>"},
        {"%r = insert_at %m[%i, %i], %f", "mat2x3<f32>"},
        {"%r = insert_at %v[%i], %f", "vec3<f32>"},
        {"%r = reduce_add %m", "f32"},
        {"%r = matmul %m, %v", "vec2<f32>"},
        {"%r = transpose %m", "mat3x2<f32>"},
        {"%r = load %a[%i, %u]", "f32"},
        {"%r = loaded %a[%i, %i], %f", "f32"},
        {"%r = view %a[%i]", "array<f32, 1>"},
        {"%r = components %av", "array<f32, 2>"},
        {"%r = components %am", "array<f32, 3>"},
        {"%r = member %as[0]", "array<vec3<f32>, 1>"},
        {"%r = member %as[1]", "array<i32, 1>"},
        {"%r = dim %a[1]", "i32"},
        {"%r = slice %a[1], %i", "array<f32, 1>"},
        {"%r = slice %a[0], %i, %i", "array<f32, 2>"},
        {"%r = slice %ai[0], %u, %i, %i", "array<i32, 1>"},
        {"%r = is_null %a", "bool"},
        {"%r = grad_of %av", "array<vec3<f32>, 1>"},
        {"%r = address %a", "u64"},
        {"%r = argument %v", "array<vec3<f32>, 1>"},
        {"%r = argument %s", "array<struct @S, 1>"},
        {"%r = null : array<f32, 2>", "array<f32, 2>"},
        {"%r = local_array [3, 1] : array<f32, 2>", "array<f32, 2>"},
        {"%r = stack %i : array<f64, 1>", "array<f64, 1>"},
        {"%r = stack %i, %i : array<f64, 1>", "array<f64, 1>"},
        {"%r = array_at %u, %i, %i : array<f32, 2>", "array<f32, 2>"},
        {"%r = overlay %a, %u, %i : array<f64, 1>", "array<f64, 1>"},
        {"%r = atomic.add %av[%i], %v", "vec3<f32>"},
        {"%r = atomic.or %ai[%i], %i", "i32"},
        {"%r = atomic.exch %a[%i, %i], %f", "f32"},
        {"%r = atomic.cas %a[%i, %i], %f, %f", "f32"},
        {"%r = call @callee(%f, %i)", "f64"},
        {"%r = call_library \"g\"(%f) pure : f64", "f64"},
        {"%r = tid 3", "i32"},
        {"%r = block_dim", "i32"},
    };
    for (const Case& c : kCases) {
        const auto module = function_with(c.operation);
        const Operation& made = *module->find("test")->body.operations.front();
        EXPECT_EQ(made.result()->type.ir_name(), c.answer) << c.operation;
    }
}

TEST(Typing, mistakes_say_what_was_expected_and_found) {
    const Case kCases[] = {
        // arithmetic
        {"%r = neg %f, %f", "'neg' takes 1 operands, found 2"},
        {"%r = neg %a", "'neg' expected a scalar or numeric aggregate, found (array<f32, 2>)"},
        {"%r = neg %b", "'neg' expected numbers, found (bool)"},
        {"%r = abs %e", "'abs' expected numbers, found (vec3<bool>)"},
        {"%r = invert %f", "'invert' expected integers or bool, found (f32)"},
        {"%r = sqrt %i", "'sqrt' expected floats, found (i32)"},
        {"%r = add %f", "'add' takes 2 operands, found 1"},
        {"%r = add %f, %d", "'add' expected two scalars or numeric aggregates of one type, found (f32, f64)"},
        {"%r = add %a, %a",
         "'add' expected two scalars or numeric aggregates of one type, found (array<f32, 2>, array<f32, 2>)"},
        {"%r = add %b, %b", "'add' expected numbers, found (bool, bool)"},
        {"%r = and %f, %f", "'and' expected integers or bool, found (f32, f32)"},
        {"%r = or %f, %f", "'or' expected integers or bool, found (f32, f32)"},
        {"%r = xor %f, %f", "'xor' expected integers or bool, found (f32, f32)"},
        {"%r = shl %b, %b", "'shl' expected integers, found (bool, bool)"},
        {"%r = shr %f, %f", "'shr' expected integers, found (f32, f32)"},
        {"%r = pow %i, %i", "'pow' expected floats, found (i32, i32)"},
        {"%r = atan2 %i, %i", "'atan2' expected floats, found (i32, i32)"},
        {"%r = copysign %i, %i", "'copysign' expected floats, found (i32, i32)"},
        {"%r = cmp.lt %f", "'cmp.lt' takes 2 operands, found 1"},
        {"%r = cmp.lt %f, %d", "'cmp.lt' expected two scalars of one type, found (f32, f64)"},
        {"%r = cmp.eq %v, %v", "'cmp.eq' expected two scalars of one type, found (vec3<f32>, vec3<f32>)"},
        {"%r = cmp.lt %b, %b", "'cmp.lt' expected numbers, found (bool, bool)"},
        {"%r = isnan %f, %f", "'isnan' takes 1 operands, found 2"},
        {"%r = isnan %i", "'isnan' expected a float scalar, found (i32)"},
        {"%r = bit_count %f", "'bit_count' expected an integer scalar, found (f32)"},
        {"%r = bit_count %i, %i", "'bit_count' takes 1 operands, found 2"},
        {"%r = fma %f, %f", "'fma' takes 3 operands, found 2"},
        {"%r = fma %i, %i, %i", "'fma' expected three scalars or aggregates of one float type, found (i32, i32, i32)"},
        {"%r = fma %a, %a, %a",
         "'fma' expected three scalars or aggregates of one float type, found (array<f32, 2>, array<f32, 2>, "
         "array<f32, 2>)"},
        {"%r = fma %f, %d, %f", "'fma' expected three scalars or aggregates of one float type, found (f32, f64, f32)"},
        {"%r = fma %f, %f, %d", "'fma' expected three scalars or aggregates of one float type, found (f32, f32, f64)"},
        {"%r = select %b, %f", "'select' takes 3 operands, found 2"},
        {"%r = select %i, %f, %f", "'select' expected (bool, T, T), found (i32, f32, f32)"},
        {"%r = select %b, %f, %d", "'select' expected (bool, T, T), found (bool, f32, f64)"},
        {"%r = cast %f, %f : f64", "'cast' takes 1 operands, found 2"},
        {"%r = cast %v : f64", "'cast' expected the shape of 'f64', found (vec3<f32>)"},
        {"%r = cast %a : f64", "'cast' expected the shape of 'f64', found (array<f32, 2>)"},
        {"%r = cast %f : array<f64, 1>", "'cast' expected the shape of 'array<f64, 1>', found (f32)"},
        {"%r = bitcast %f, %f : u32", "'bitcast' takes 1 operands, found 2"},
        {"%r = bitcast %f : u64", "'bitcast' expected a scalar of the size of 'u64', found (f32)"},
        {"%r = bitcast %v : f32", "'bitcast' expected a scalar of the size of 'f32', found (vec3<f32>)"},
        {"%r = bitcast %d : vec2<f32>", "'bitcast' expected a scalar of the size of 'vec2<f32>', found (f64)"},
        // values made of parts
        {"%r = constant (1, 2) : vec3<f32>", "'constant' a constant of type 'vec3<f32>' has 3 numbers, found 2"},
        {"%r = make %f, %f : vec3<f32>", "'make' a 'vec3<f32>' is made of 3 parts, found 2"},
        {"%r = make %f, %f, %i : vec3<f32>", "'make' expected components of type 'f32', found (f32, f32, i32)"},
        {"%r = make %v : struct @S", "'make' a 'struct @S' is made of 2 parts, found 1"},
        {"%r = make %v, %f : struct @S", "'make' expected field 'n' of type 'i32', found (vec3<f32>, f32)"},
        {"%r = make %f : tuple<f32, i32>", "'make' a 'tuple<f32, i32>' is made of 2 parts, found 1"},
        {"%r = make %f, %f : tuple<f32, i32>", "'make' expected element 1 of type 'i32', found (f32, f32)"},
        {"%r = make %f : f32", "'make' makes aggregates, structs and tuples, not 'f32'"},
        {"%r = splat %f, %f : vec3<f32>", "'splat' takes 1 operands, found 2"},
        {"%r = splat %i : vec3<f32>", "'splat' expected the scalar of 'vec3<f32>', found (i32)"},
        {"%r = splat %f : f32", "'splat' expected the scalar of 'f32', found (f32)"},
        {"%r = extract %s[]", "'extract' the path is empty"},
        {"%r = extract %s[2]", "'extract' part 2 of 'struct @S', which has 2"},
        {"%r = extract %s[-1]", "'extract' part -1 of 'struct @S', which has 2"},
        {"%r = extract %t[2]", "'extract' part 2 of 'tuple<f32, i32>', which has 2"},
        {"%r = extract %m[2]", "'extract' part 2 of 'mat2x3<f32>', which has 2"},
        {"%r = extract %m[1, 3]", "'extract' part 3 of 'vec3<f32>', which has 3"},
        {"%r = extract %q[4]", "'extract' part 4 of 'quat<f32>', which has 4"},
        {"%r = extract %f[0]", "'extract' 'f32' has no parts"},
        {"%r = insert %s[], %f", "'insert' the path is empty"},
        {"%r = insert %s[0], %f", "'insert' expected a part of type 'vec3<f32>', found (struct @S, f32)"},
        {"%r = insert %s[1], %i, %i", "'insert' takes 2 operands, found 3"},
        {"%r = extract_at %v[]", "'extract_at' an index is missing"},
        {"%r = extract_at %f[%i]", "'extract_at' expected a numeric aggregate first, found (f32, i32)"},
        {"%r = extract_at %a[%i]", "'extract_at' expected a numeric aggregate first, found (array<f32, 2>, i32)"},
        {"%r = extract_at %v[%f]", "'extract_at' expected integer indices, found (vec3<f32>, f32)"},
        {"%r = extract_at %v[%i, %i]",
         "'extract_at' expected one index, or two into a matrix, found (vec3<f32>, i32, i32)"},
        {"%r = extract_at %m[%i, %i, %i]",
         "'extract_at' expected one index, or two into a matrix, found (mat2x3<f32>, i32, i32, i32)"},
        {"%r = insert_at %v[], %f", "'insert_at' an index is missing"},
        {"%r = insert_at %s[%i], %i", "'insert_at' expected a numeric aggregate first, found (struct @S, i32, i32)"},
        {"%r = insert_at %v[%i], %i", "'insert_at' expected a part of type 'f32', found (vec3<f32>, i32, i32)"},
        {"%r = insert_at %m[%i], %f", "'insert_at' expected a part of type 'vec3<f32>', found (mat2x3<f32>, f32, i32)"},
        {"%r = reduce_add %f", "'reduce_add' expected an aggregate of numbers, found (f32)"},
        {"%r = reduce_add %e", "'reduce_add' expected an aggregate of numbers, found (vec3<bool>)"},
        {"%r = reduce_add %v, %v", "'reduce_add' takes 1 operands, found 2"},
        {"%r = matmul %m", "'matmul' takes 2 operands, found 1"},
        {"%r = matmul %v, %v",
         "'matmul' expected a matrix and a matrix or vector of the same scalar, found (vec3<f32>, vec3<f32>)"},
        {"%r = matmul %m, %w",
         "'matmul' expected a matrix and a matrix or vector of the same scalar, found (mat2x3<f32>, vec3<i32>)"},
        {"%r = matmul %m, %a",
         "'matmul' expected a matrix and a matrix or vector of the same scalar, found (mat2x3<f32>, array<f32, 2>)"},
        {"%r = matmul %m, %m",
         "'matmul' expected as many columns on the left as rows on the right, found (mat2x3<f32>, mat2x3<f32>)"},
        {"%r = matmul %m, %q",
         "'matmul' expected a vector as long as the matrix has columns, found (mat2x3<f32>, quat<f32>)"},
        {"%r = matmul %v, %m",
         "'matmul' expected a vector as long as the matrix has rows, found (vec3<f32>, mat2x3<f32>)"},
        {"%r = transpose %v", "'transpose' expected a matrix, found (vec3<f32>)"},
        {"%r = transpose %m, %m", "'transpose' takes 1 operands, found 2"},
        // arrays
        {"%r = load %f[%i]", "'load' expected an array first, found (f32, i32)"},
        {"%r = load %a[%i]", "'load' 'array<f32, 2>' takes 2 indices, found 1"},
        {"%r = load %a[%i, %f]", "'load' expected integer indices, found (array<f32, 2>, i32, f32)"},
        {"%r = load %a[%i, %i, %i]", "'load' takes 3 operands, found 4"},
        {"store %a[%i, %i], %i", "'store' expected a value of type 'f32', found (array<f32, 2>, i32, i32, i32)"},
        {"store %a[%i, %i]", "'store' takes 4 operands, found 3"},
        {"%r = loaded %a[%i, %i], %i", "'loaded' expected a value of type 'f32', found (array<f32, 2>, i32, i32, i32)"},
        {"%r = loaded %a[%i, %i]", "'loaded' takes 4 operands, found 3"},
        {"%r = view %f[%i]", "'view' expected an array first, found (f32, i32)"},
        {"%r = view %a[%i, %i]", "'view' expected fewer indices than dimensions, found (array<f32, 2>, i32, i32)"},
        {"%r = view %a[%f]", "'view' expected integer indices, found (array<f32, 2>, f32)"},
        {"%r = components %v", "'components' expected an array first, found (vec3<f32>)"},
        {"%r = components %a", "'components' expected an array of numeric aggregates, found (array<f32, 2>)"},
        {"%r = components %av, %av", "'components' takes 1 operands, found 2"},
        {"%r = member %a[0]", "'member' expected an array of structs, found (array<f32, 2>)"},
        {"%r = member %s[0]", "'member' expected an array of structs, found (struct @S)"},
        {"%r = member %as[2]", "'member' the struct has 2 fields, asked for 2"},
        {"%r = member %as[-1]", "'member' the struct has 2 fields, asked for -1"},
        {"%r = member %as[0, 0]", "'member' takes 1 static numbers, found 2"},
        {"%r = dim %f[0]", "'dim' expected an array first, found (f32)"},
        {"%r = dim %a[2]", "'dim' axis 2 of 'array<f32, 2>'"},
        {"%r = dim %a[-1]", "'dim' axis -1 of 'array<f32, 2>'"},
        {"%r = dim %a[]", "'dim' takes 1 static numbers, found 0"},
        {"%r = slice %a[0], %i, %i, %i, %i", "'slice' takes an array, a start, a count and a step"},
        {"%r = slice %v[0], %i", "'slice' expected an array first, found (vec3<f32>, i32)"},
        {"%r = slice %a[0, 1], %i", "'slice' takes 1 static numbers, found 2"},
        {"%r = slice %a[2], %i", "'slice' axis 2 of 'array<f32, 2>'"},
        {"%r = slice %a[-1], %i", "'slice' axis -1 of 'array<f32, 2>'"},
        {"%r = slice %a[0], %f", "'slice' expected integer indices, found (array<f32, 2>, f32)"},
        {"%r = slice %a[0], %i, %u",
         "'slice' expected a count and a step of type i32, found (array<f32, 2>, i32, u64)"},
        {"%r = slice %a[0], %i, %i, %u",
         "'slice' expected a count and a step of type i32, found (array<f32, 2>, i32, i32, u64)"},
        {"%r = slice %ai[0], %i", "'slice' expected an array of more than one dimension, found (array<i32, 1>, i32)"},
        {"%r = is_null %f", "'is_null' expected an array first, found (f32)"},
        {"%r = is_null %a, %a", "'is_null' takes 1 operands, found 2"},
        {"%r = grad_of %f", "'grad_of' expected an array first, found (f32)"},
        {"%r = grad_of %a, %a", "'grad_of' takes 1 operands, found 2"},
        {"%r = address %f", "'address' expected an array first, found (f32)"},
        {"%r = address %a, %a", "'address' takes 1 operands, found 2"},
        {"%r = null : f32", "'null' expected an array type, found ()"},
        {"%r = local_array [3] : array<f32, 2>",
         "'local_array' expected an array type and one extent per dimension, found ()"},
        {"%r = local_array [3] : f32", "'local_array' expected an array type and one extent per dimension, found ()"},
        {"%r = local_array [3, 0] : array<f32, 2>", "'local_array' the extent 0, expected at least 1"},
        {"%r = stack %i, %i, %i : array<f32, 1>", "'stack' takes 1 operands, found 3"},
        {"%r = stack %f : array<f32, 1>",
         "'stack' expected an integer count, and another one where fewer elements will do, for an array of one "
         "dimension, found (f32)"},
        {"%r = stack %i, %f : array<f32, 1>",
         "'stack' expected an integer count, and another one where fewer elements will do, for an array of one "
         "dimension, found (i32, f32)"},
        {"%r = stack %i : array<f32, 2>",
         "'stack' expected an integer count, and another one where fewer elements will do, for an array of one "
         "dimension, found (i32)"},
        {"%r = stack %i : f32",
         "'stack' expected an integer count, and another one where fewer elements will do, for an array of one "
         "dimension, found (i32)"},
        {"%r = argument %a", "'argument' expected a value that is no array, found (array<f32, 2>)"},
        {"%r = array_at %u : array<f32, 1>",
         "'array_at' expected an address and one extent per dimension, found (u64)"},
        {"%r = array_at %u, %i : f32", "'array_at' expected an address and one extent per dimension, found (u64, i32)"},
        {"%r = array_at %i, %i : array<f32, 1>", "'array_at' expected an address of type u64, found (i32, i32)"},
        {"%r = array_at %u, %u : array<f32, 1>", "'array_at' expected extents of type i32, found (u64, u64)"},
        {"%r = overlay %f, %u, %i : array<f32, 1>", "'overlay' expected an array first, found (f32, u64, i32)"},
        {"%r = overlay %a, %u : array<f32, 1>",
         "'overlay' expected an array, an offset and one extent per dimension, found (array<f32, 2>, u64)"},
        {"%r = overlay %a, %u, %i : f32",
         "'overlay' expected an array, an offset and one extent per dimension, found (array<f32, 2>, u64, i32)"},
        {"%r = overlay %a, %i, %i : array<f32, 1>",
         "'overlay' expected an offset of type u64, found (array<f32, 2>, i32, i32)"},
        {"%r = overlay %a, %u, %u : array<f32, 1>",
         "'overlay' expected extents of type i32, found (array<f32, 2>, u64, u64)"},
        {"%r = atomic.add %a[%i, %i]", "'atomic.add' takes 4 operands, found 3"},
        {"%r = atomic.add %a[%i, %i], %i",
         "'atomic.add' expected a value of type 'f32', found (array<f32, 2>, i32, i32, i32)"},
        {"%r = atomic.add %as[%i], %s",
         "'atomic.add' expected an array of numbers, found (array<struct @S, 1>, i32, struct @S)"},
        {"%r = atomic.and %a[%i, %i], %f", "'atomic.and' expected integers, found (array<f32, 2>, i32, i32, f32)"},
        {"%r = atomic.or %a[%i, %i], %f", "'atomic.or' expected integers, found (array<f32, 2>, i32, i32, f32)"},
        {"%r = atomic.xor %a[%i, %i], %f", "'atomic.xor' expected integers, found (array<f32, 2>, i32, i32, f32)"},
        {"%r = atomic.cas %ai[%i], %i", "'atomic.cas' takes 4 operands, found 3"},
        {"%r = atomic.cas %ai[%i], %f, %i",
         "'atomic.cas' expected a value of type 'i32', found (array<i32, 1>, i32, f32, i32)"},
        {"%r = atomic.cas %av[%i], %v, %v",
         "'atomic.cas' expected an array of scalars, found (array<vec3<f32>, 1>, i32, vec3<f32>, vec3<f32>)"},
        // calls and the outside world
        {"call @kernel()", "'call' calls kernel 'kernel'; only functions can be called"},
        {"%r = call @callee(%f)", "'call' 'callee' takes 2 arguments, found 1"},
        {"%r = call @callee(%f, %f)", "'call' argument 1 of 'callee' is 'f32', expected 'i32'"},
        {"%r = tid 4", "'tid' axis 4, expected 0 to 3"},
        {"%r = tid -1", "'tid' axis -1, expected 0 to 3"},
        {"%r = block_dim %i", "'block_dim' takes 0 operands, found 1"},
        {"print \"%g\\n\", %a", "'print' expected scalars or numeric aggregates, found (array<f32, 2>)"},
        {"raise \"ValueError: %g\", %a", "'raise' expected scalars or numeric aggregates, found (array<f32, 2>)"},
        {"require \"r\", %i", "'require' expected a bool, found (i32)"},
        {"require \"r\"", "'require' takes 1 operands, found 0"},
        {"assert \"a\", %i", "'assert' expected a bool, found (i32)"},
        {"note_finite %f", "'note_finite' expected a bool, found (f32)"},
    };
    for (const Case& c : kCases) EXPECT_EQ(mistake(c.operation), c.answer) << c.operation;
}

}  // namespace
}  // namespace weft::ir
