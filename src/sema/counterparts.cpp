// Counterparts in kernels of functions of NumPy, Python's math and random modules, and of operators that do not exist
// for their operands.
#include <map>
#include <string>

#include "builtins/registry.h"
#include "builtins/resolve.h"
#include "sema/messages.h"

namespace weft::sema {

namespace {

// Counterparts by the last part of the name. A text without a bracket or blank is a built-in function of that name.
// Names that are built-in functions themselves (sin, exp, ...) need no entry.
const std::map<std::string_view, std::string_view>& counterparts() {
    static const std::map<std::string_view, std::string_view> table = {
        // functions of numbers
        {"absolute", "abs"},
        {"fabs", "abs"},
        {"arccos", "acos"},
        {"arcsin", "asin"},
        {"arctan", "atan"},
        {"arctan2", "atan2"},
        {"arccosh", "wp.log(x + wp.sqrt(x * x - 1.0))"},
        {"arcsinh", "wp.log(x + wp.sqrt(x * x + 1.0))"},
        {"arctanh", "0.5 * wp.log((1.0 + x) / (1.0 - x))"},
        {"acosh", "wp.log(x + wp.sqrt(x * x - 1.0))"},
        {"asinh", "wp.log(x + wp.sqrt(x * x + 1.0))"},
        {"atanh", "0.5 * wp.log((1.0 + x) / (1.0 - x))"},
        {"power", "pow"},
        {"float_power", "pow"},
        {"maximum", "max"},
        {"minimum", "min"},
        {"fmax", "max"},
        {"fmin", "min"},
        {"amax", "max"},
        {"amin", "min"},
        {"mod", "mod"},
        {"fmod", "mod"},
        {"remainder", "mod"},
        {"clip", "clamp"},
        {"rint", "rint"},
        {"around", "round"},
        {"fix", "trunc"},
        {"deg2rad", "radians"},
        {"rad2deg", "degrees"},
        {"square", "x * x"},
        {"reciprocal", "1.0 / x"},
        {"hypot", "wp.length(wp.vec2(x, y))"},
        {"exp2", "wp.pow(2.0, x)"},
        {"expm1", "wp.exp(x) - 1.0"},
        {"log1p", "wp.log(1.0 + x)"},
        {"logaddexp", "wp.log(wp.exp(x) + wp.exp(y))"},
        {"cbrt", "cbrt"},
        {"isclose", "wp.abs(a - b) <= tolerance"},
        {"allclose", "wp.abs(a - b) <= tolerance, of each component"},
        {"heaviside", "wp.step(x), which is 1 for negative numbers"},
        {"copysign", "wp.abs(x) * wp.sign(y)"},
        {"modf", "wp.trunc(x) and wp.frac(x)"},
        {"divmod", "a // b and a % b"},
        {"floor_divide", "a // b"},
        {"true_divide", "a / b"},
        {"negative", "-x"},
        {"add", "a + b"},
        {"subtract", "a - b"},
        {"multiply", "a * b, or wp.cw_mul(a, b) of vectors"},
        {"divide", "a / b, or wp.cw_div(a, b) of vectors"},
        {"logical_and", "a and b"},
        {"logical_or", "a or b"},
        {"logical_not", "not a"},
        {"bitwise_and", "a & b"},
        {"bitwise_or", "a | b"},
        {"bitwise_xor", "a ^ b"},
        {"invert", "~a"},
        {"left_shift", "a << b"},
        {"right_shift", "a >> b"},
        {"fsum", "sum((a, b, c)) of values of known number, or a loop"},
        {"sum", "sum((a, b, c)) of values of known number, or a loop"},
        {"any", "a or b, or any((a, b, c)) of values of known number"},
        {"all", "a and b, or all((a, b, c)) of values of known number"},
        {"equal", "a == b"},
        {"not_equal", "a != b"},
        {"greater", "a > b"},
        {"greater_equal", "a >= b"},
        {"less", "a < b"},
        {"less_equal", "a <= b"},
        {"logical_xor", "a != b"},
        {"positive", "x"},
        {"signbit", "x < 0.0"},
        {"bitwise_invert", "~a"},
        {"bitwise_not", "~a"},
        {"bitwise_left_shift", "a << b"},
        {"bitwise_right_shift", "a >> b"},
        {"isqrt", "int(wp.sqrt(float(n)))"},
        {"ldexp", "x * wp.pow(2.0, n)"},
        {"diff", "a[i + 1] - a[i]"},
        {"std", "a sum of squares of differences to the mean"},
        {"var", "a sum of squares of differences to the mean"},
        {"nan_to_num", "wp.where(wp.isnan(x), 0.0, x)"},
        {"count_nonzero", "wp.atomic_add(counts, 0, 1) of each thread that finds one"},
        {"histogram", "wp.atomic_add(counts, bin, 1)"},
        {"bincount", "wp.atomic_add(counts, bin, 1)"},
        {"meshgrid", "i, j = wp.tid(), in a launch with dim=(n, m)"},
        {"reshape", "the array's shape of the launch: a.reshape(...) before it"},
        {"ravel", "the array's shape of the launch: a.flatten() before it"},
        {"flatten", "the array's shape of the launch: a.flatten() before it"},
        {"array", "wp.vec3(x, y, z); arrays are arguments of the kernel"},
        {"copy", "b[i] = a[i]; values are copied when they are assigned"},
        {"vecdot", "dot"},
        {"matvec", "a @ b"},
        {"vecmat", "a @ b"},
        {"kron", "wp.outer(a, b) of vectors"},
        {"einsum", "sums with loops, a @ b of matrices, wp.outer(a, b)"},
        {"tensordot", "sums with loops, a @ b of matrices"},
        {"list", "[a, b, c], of known length"},
        {"tuple", "(a, b, c)"},
        {"dict", "a @wp.struct"},
        {"set", "x in (a, b, c)"},
        {"frozenset", "x in (a, b, c)"},
        {"complex", "wp.vec2(real, imaginary)"},
        {"getattr", "s.field, by its name"},
        {"setattr", "s.field = value, by its name"},
        {"interp", "wp.lerp(a, b, t) between two values"},
        {"factorial", "a loop, or wp.static(math.factorial(n)) of a number that Python knows"},
        {"gcd", "a loop with a % b"},
        {"sigmoid", "1.0 / (1.0 + wp.exp(-x))"},
        {"relu", "wp.max(x, 0.0)"},
        // vectors and matrices
        {"norm", "length"},
        {"dist", "length"},
        {"inv", "inverse"},
        {"det", "determinant"},
        {"inner", "dot"},
        {"vdot", "dot"},
        {"matmul", "a @ b"},
        {"svd", "svd3"},
        {"qr", "qr3"},
        {"eig", "eig3"},
        {"eigh", "eig3"},
        {"solve", "wp.inverse(A) * b"},
        {"diagonal", "get_diag"},
        {"eye", "wp.identity(n=3, dtype=float)"},
        {"argmax", "argmax"},
        {"argmin", "argmin"},
        {"mean", "a sum, divided by the number of elements"},
        {"average", "a sum, divided by the number of elements"},
        {"prod", "a loop"},
        {"cumsum", "a loop; wp.utils.array_scan() before or after the launch"},
        // arrays
        {"zeros", "wp.zeros(shape=4, dtype=float), a small array of this thread"},
        {"empty", "wp.zeros(shape=4, dtype=float), a small array of this thread"},
        {"ones", "wp.zeros(shape=4, dtype=float), a small array of this thread, and a loop that fills it"},
        {"full", "wp.zeros(shape=4, dtype=float), a small array of this thread, and a loop that fills it"},
        {"zeros_like", "wp.zeros(shape=4, dtype=float), a small array of this thread; type(v)() is a zero vector"},
        {"ones_like", "type(v)(1.0), a vector of ones"},
        {"asarray", "wp.vec3(x, y, z); arrays are arguments of the kernel"},
        {"arange", "for i in range(n)"},
        {"linspace", "start + step * float(i)"},
        {"concatenate", "an array that both parts are written to, at their indices"},
        {"stack", "an array that both parts are written to, at their indices"},
        {"vstack", "an array that both parts are written to, at their indices"},
        {"hstack", "an array that both parts are written to, at their indices"},
        {"where", "where"},
        {"select", "where"},
        {"searchsorted", "lower_bound"},
        {"sort", "wp.utils.radix_sort_pairs() before or after the launch"},
        {"sorted", "wp.utils.radix_sort_pairs() before or after the launch"},
        {"argsort", "wp.utils.radix_sort_pairs() before or after the launch"},
        {"unique", "wp.utils.runlength_encode() before or after the launch"},
        // random numbers
        {"rand", "wp.randf(state), with state = wp.rand_init(seed, i)"},
        {"random", "wp.randf(state), with state = wp.rand_init(seed, i)"},
        {"random_sample", "wp.randf(state), with state = wp.rand_init(seed, i)"},
        {"uniform", "wp.randf(state, low, high), with state = wp.rand_init(seed, i)"},
        {"randint", "wp.randi(state, low, high), with state = wp.rand_init(seed, i)"},
        {"randrange", "wp.randi(state, low, high), with state = wp.rand_init(seed, i)"},
        {"integers", "wp.randi(state, low, high), with state = wp.rand_init(seed, i)"},
        {"choice", "a[wp.randi(state, 0, n)], with state = wp.rand_init(seed, i)"},
        {"randn", "randn"},
        {"normal", "wp.randn(state), with state = wp.rand_init(seed, i)"},
        {"standard_normal", "wp.randn(state), with state = wp.rand_init(seed, i)"},
        {"gauss", "wp.randn(state), with state = wp.rand_init(seed, i)"},
        {"normalvariate", "wp.randn(state), with state = wp.rand_init(seed, i)"},
        {"poisson", "poisson"},
        {"exponential", "-scale * wp.log(wp.randf(state)), with state = wp.rand_init(seed, i)"},
        {"default_rng", "wp.rand_init(seed, i)"},
        {"seed", "wp.rand_init(seed, i)"},
        {"shuffle", "a random key for each element, and wp.utils.radix_sort_pairs() before the launch"},
        {"permutation", "a random key for each element, and wp.utils.radix_sort_pairs() before the launch"},
        // Python's own
        {"isinstance", "type(x) == wp.float32, known when the kernel is compiled"},
        {"map", "a loop, or a comprehension of known length"},
        {"filter", "a loop with an if"},
        {"input", "an argument of the kernel"},
        {"open", "arguments of the kernel: files are read before the launch"},
        {"str", "print(x), which shows values; wp.static(str(...)) makes text when the kernel is built"},
        {"repr", "print(x), which shows values"},
        {"format", "print(f\"{x:.3f}\"), which shows values"},
        {"id", "wp.tid(), the number of the thread"},
        {"time", "wp.ScopedTimer around the launch"},
        {"perf_counter", "wp.ScopedTimer around the launch"},
        {"sleep", "nothing: kernels do not wait"},
    };
    return table;
}

std::string in_all_components(Type aggregate, bool has_literal) {
    return "a number is not added to every component by itself; write wp." + aggregate.python_name() +
           (has_literal ? "(1.0), with the number in the place of 1.0" : "(x)");
}

bool is_vector_of_three(Type type) { return type.is_vector() && type.rows() == 3; }

}  // namespace

std::vector<Note> weft_counterpart(std::string_view spelled) {
    std::string text(spelled);
    if (const auto found = counterparts().find(spelled); found != counterparts().end()) text = found->second;
    if (text.find_first_of(" (<>") != std::string::npos) return {help("in kernels: " + text)};
    if (builtins::overloads(text).empty()) return {};
    return {help("the built-in function is wp." + text)};
}

std::string how_else(std::string_view sign, Type a, Type b, bool has_literal) {
    const bool a_is_quaternion = a.is(Kind::quaternion), a_is_transform = a.is(Kind::transform);
    const bool both_vectors = a.is_vector() && b.is_vector(), both_matrices = a.is_matrix() && b.is_matrix();
    const bool is_sum = sign == "+" || sign == "-";
    if (sign == "*" && a_is_quaternion && is_vector_of_three(b)) return "wp.quat_rotate(q, v) rotates a vector";
    if (sign == "*" && b.is(Kind::quaternion) && is_vector_of_three(a))
        return "wp.quat_rotate(q, v) rotates a vector, wp.quat_rotate_inv(q, v) rotates it back";
    const bool is_transform = a_is_transform || (a.is_matrix() && a.rows() == 4 && a.cols() == 4);
    if ((sign == "*" || sign == "@") && is_transform && is_vector_of_three(b))
        return "wp.transform_point(t, p) moves a point, wp.transform_vector(t, v) turns a direction";
    if (sign == "@" && a.kind() == b.kind() && (a_is_quaternion || a_is_transform)) return "write a * b";
    if (both_vectors && a.rows() != b.rows()) return "the vectors must have one length";
    if (sign == "*" && both_vectors)
        return "wp.cw_mul(a, b) multiplies component by component, wp.dot(a, b) sums that up";
    if (sign == "@" && both_vectors) return "wp.dot(a, b) is a number, wp.outer(a, b) a matrix";
    if (sign == "/" && both_vectors) return "wp.cw_div(a, b) divides component by component";
    if (sign == "/" && both_matrices) return "wp.cw_div(a, b) divides component by component; a * wp.inverse(b)";
    if (sign == "/" && a.is_vector() && b.is_matrix()) return "wp.inverse(m) * v";
    if (is_sum && (a.is_vector() || a.is_matrix()) && b.is_scalar()) return in_all_components(a, has_literal);
    if (is_sum && (b.is_vector() || b.is_matrix()) && a.is_scalar()) return in_all_components(b, has_literal);
    if ((sign == "**" || sign == "//") && a.is_numeric_aggregate())
        return "the operator is for numbers; write it for each component";
    return {};
}

}  // namespace weft::sema
