"""Operators, conversions and constants in kernels (S-OPR, S-CNV, S-CON, S-TYP)."""

import math

import numpy as np
import pytest
import warp as wp
from hypothesis import given, settings
from hypothesis import strategies as st

TYPE_SPHERE = wp.constant(0)


HALF = wp.constant(wp.float64(0.5))


AXIS = wp.constant(wp.vec3(0.0, 1.0, 0.0))


class Shape:
    BOX = wp.constant(2)


@wp.kernel
def integer_operators(a: wp.array[int], b: wp.array[int], out: wp.array2d[int]):
    i = wp.tid()
    x = a[i]
    y = b[i]
    out[0, i] = x + y
    out[1, i] = x - y
    out[2, i] = x * y
    out[3, i] = x / y
    out[4, i] = x // y
    out[5, i] = x % y
    out[6, i] = x & y
    out[7, i] = x | y
    out[8, i] = x ^ y
    out[9, i] = -x
    out[10, i] = ~x
    out[11, i] = x << (y & 7)
    out[12, i] = x >> (y & 7)


@pytest.mark.seed("S-OPR-004")
@pytest.mark.seed("S-OPR-006")
@pytest.mark.seed("S-OPR-008")
@pytest.mark.seed("S-OPR-006")
@pytest.mark.seed("S-OPR-005")
@pytest.mark.seed("S-OPR-006")
@pytest.mark.seed("S-OPR-008")
@settings(max_examples=50, deadline=None)
@given(
    st.lists(
        st.tuples(st.integers(-(2**31), 2**31 - 1), st.integers(-(2**31), 2**31 - 1).filter(bool)),
        min_size=1,
        max_size=20,
    )
)
def test_integer_operators_agree_with_c_and_python(pairs):
    a, b = (np.array(v, dtype=np.int32) for v in zip(*pairs))
    out = wp.zeros((13, len(a)), dtype=int)
    wp.launch(integer_operators, dim=len(a), inputs=[a, b, out])

    def wrap(value):
        return (value + 2**31) % 2**32 - 2**31

    for i, (x, y) in enumerate(pairs):
        quotient = abs(x) // abs(y) * (1 if (x < 0) == (y < 0) else -1)  # toward zero
        expected = [
            x + y, x - y, x * y, quotient, x // y, x - quotient * y, x & y, x | y, x ^ y, -x, ~x,
            x << (y & 7), x >> (y & 7),
        ]  # fmt: skip
        assert out.numpy()[:, i].tolist() == [wrap(e) for e in expected], (x, y)


@pytest.mark.seed("S-OPR-005", "S-OPR-006", "S-OPR-008")
@pytest.mark.parametrize("name", "int8 uint8 int16 uint16 int32 uint32 int64 uint64".split())
def test_division_and_remainder_of_every_integer_type(name):
    """`/` goes toward zero and stays an integer, `//` floors, `%` has the sign of the dividend; nothing converts."""
    dtype = getattr(wp, name)

    @wp.kernel(module="unique")
    def k(a: wp.array(dtype=dtype), b: wp.array(dtype=dtype), out: wp.array2d(dtype=dtype)):
        i = wp.tid()
        out[0, i] = a[i] / b[i]
        out[1, i] = a[i] // b[i]
        out[2, i] = a[i] % b[i]
        out[3, i] = a[i] / b[i] * b[i] + a[i] % b[i]

    info = np.iinfo(name)
    values = [7, -7, 2, -3, 1, -1, 0, info.max, info.min, info.max // 2, info.min + 1]
    values = sorted({v for v in values if info.min <= v <= info.max})
    pairs = [(x, y) for x in values for y in values if y != 0 and (x, y) != (info.min, -1)]
    a, b = (np.array(side, dtype=name) for side in zip(*pairs, strict=True))
    out = wp.zeros((4, len(pairs)), dtype=dtype)
    wp.launch(k, dim=len(pairs), inputs=[a, b, out])
    quotients = [abs(x) // abs(y) * (1 if (x < 0) == (y < 0) else -1) for x, y in pairs]
    assert out.numpy()[0].tolist() == quotients
    assert out.numpy()[1].tolist() == [x // y for x, y in pairs]
    assert out.numpy()[2].tolist() == [x - q * y for (x, y), q in zip(pairs, quotients, strict=True)]
    assert out.numpy()[3].tolist() == [x for x, _ in pairs]


@pytest.mark.seed("S-OPR-005", "S-OPR-006")
@pytest.mark.parametrize("name", ["float16", "float32", "float64"])
def test_division_of_floats_is_rounded_right_and_floor_division_floors(name):
    dtype = getattr(wp, name)

    @wp.kernel(module="unique")
    def k(a: wp.array(dtype=dtype), b: wp.array(dtype=dtype), out: wp.array2d(dtype=dtype)):
        i = wp.tid()
        out[0, i] = a[i] / b[i]
        out[1, i] = a[i] // b[i]

    rng = np.random.default_rng(0)
    a = np.concatenate([[-3.5, 3.5, -4.0, 7.0, 0.0], rng.uniform(-100, 100, 200)]).astype(name)
    b = np.concatenate([[2.0, -2.0, 2.0, 2.0, 3.0], rng.uniform(0.5, 20, 200)]).astype(name)
    out = wp.zeros((2, a.size), dtype=dtype)
    wp.launch(k, dim=a.size, inputs=[a, b, out])
    np.testing.assert_array_equal(out.numpy()[0], a / b)
    np.testing.assert_array_equal(out.numpy()[1][:5], [-2.0, -2.0, -2.0, 3.0, 0.0])
    np.testing.assert_array_equal(out.numpy()[1], np.floor(a / b))


@pytest.mark.seed("S-OPR-006")
def test_floor_division_of_negative_numbers():
    @wp.kernel
    def k(x: wp.array[int], y: wp.array[float]):
        x[0] = -3 // 2
        x[1] = x[1] // 2
        y[0] = y[0] // 2.0

    x, y = wp.array([0, -3], dtype=int), wp.array([-3.0], dtype=float)
    wp.launch(k, dim=1, inputs=[x, y])
    assert x.numpy().tolist() == [-2, -2] and y.numpy()[0] == -2.0


@pytest.mark.seed("S-OPR-002")
@pytest.mark.seed("D-15")
@pytest.mark.parametrize("lanes", [1, 8])
def test_what_stands_on_the_right_runs_only_where_it_is_needed(lanes):
    @wp.func
    def counted(counts: wp.array[int], at: int, truth: bool):
        wp.atomic_add(counts, at, 1)
        return truth

    @wp.kernel(module="unique", module_options={"lanes": lanes})
    def k(n: wp.array[int], counts: wp.array[int], out: wp.array2d[int]):
        i = wp.tid()
        a = n[i] % 2 == 0
        b = n[i] % 3 == 0
        if counted(counts, 0, a) and counted(counts, 1, b):
            out[i, 0] = 1
        if counted(counts, 2, a) or counted(counts, 3, b):
            out[i, 1] = 1
        if not (a and not b):
            out[i, 2] = 1

    n = np.arange(37, dtype=np.int32)
    a, b = n % 2 == 0, n % 3 == 0
    counts, out = wp.zeros(4, dtype=int), wp.zeros((37, 3), dtype=int)
    wp.launch(k, dim=37, inputs=[n, counts, out])
    np.testing.assert_array_equal(out.numpy(), np.stack([a & b, a | b, ~(a & ~b)], axis=1))
    assert counts.numpy().tolist() == [37, a.sum(), 37, (~a).sum()]


def test_a_chain_of_comparisons_computes_each_operand_once():
    @wp.func
    def counted(counts: wp.array[int], at: int, value: int):
        wp.atomic_add(counts, at, 1)
        return value

    @wp.kernel
    def k(n: wp.array[int], counts: wp.array[int], out: wp.array[int]):
        i = wp.tid()
        if 0 < counted(counts, 0, n[i]) < counted(counts, 1, n[i] + 1) <= counted(counts, 2, 5):
            out[i] = 1

    n = np.arange(-3, 9, dtype=np.int32)
    counts, out = wp.zeros(3, dtype=int), wp.zeros(n.size, dtype=int)
    wp.launch(k, dim=n.size, inputs=[n, counts, out])
    assert out.numpy().tolist() == [int(0 < v < v + 1 <= 5) for v in n.tolist()]
    assert counts.numpy().tolist() == [n.size] * 3  # release 1.19 of the API computes all of them, too


@pytest.mark.seed("S-OPR-001")
@pytest.mark.seed("S-OPR-002")
def test_and_or_not_short_circuit():
    @wp.kernel
    def k(n: wp.array[int], x: wp.array[float], out: wp.array[int]):
        i = wp.tid()
        # x[n[i]] is outside of x if n[i] is past its end: it must not be read
        if n[i] < x.shape[0] and x[n[i]] > 0.5:
            out[i] = 1
        if not (n[i] >= x.shape[0] or x[n[i]] <= 0.5):
            out[i] += 10

    n = np.array([0, 1, 2, 2**30, -0, 1, 2**30, 0, 2], dtype=np.int32)
    x = np.array([1.0, 0.0, 0.7], dtype=np.float32)
    out = wp.zeros(len(n), dtype=int)
    wp.launch(k, dim=len(n), inputs=[n, x, out])
    assert out.numpy().tolist() == [11 if v < 3 and x[v] > 0.5 else 0 for v in n]


@pytest.mark.seed("S-OPR-003")
def test_comparisons_and_chains():
    @wp.kernel
    def k(x: wp.array[float], out: wp.array2d[int]):
        i = wp.tid()
        v = x[i]
        if v > 1.0:
            out[i, 0] = 1
        if v < 1.0:
            out[i, 1] = 1
        if v >= 1.0:
            out[i, 2] = 1
        if v <= 1.0:
            out[i, 3] = 1
        if v == 1.0:
            out[i, 4] = 1
        if v != 1.0:
            out[i, 5] = 1
        if 0.0 < v <= 2.0 != v:
            out[i, 6] = 1

    values = [0.5, 1.0, 1.5, 2.0, -1.0, math.nan, math.inf]
    out = wp.zeros((len(values), 7), dtype=int)
    wp.launch(k, dim=len(values), inputs=[np.array(values, dtype=np.float32), out])
    expected = [[v > 1, v < 1, v >= 1, v <= 1, v == 1, v != 1, 0 < v <= 2 != v] for v in values]
    np.testing.assert_array_equal(out.numpy(), np.array(expected, dtype=int))


@pytest.mark.seed("S-OPR-007")
def test_power_with_negative_bases():
    @wp.kernel
    def k(x: wp.array[float], y: wp.array2d[float]):
        i = wp.tid()
        y[0, i] = x[i] ** 2.0
        y[1, i] = (x[i] - 1.0) ** 3.0
        y[2, i] = x[i] ** 0.5

    x = np.array([-3.0, -0.5, 0.0, 2.0], dtype=np.float32)
    y = wp.zeros((3, 4))
    wp.launch(k, dim=4, inputs=[x, y])
    with np.errstate(invalid="ignore"):
        np.testing.assert_allclose(y.numpy(), np.stack([x**2, (x - 1) ** 3, x**0.5]), rtol=1e-6)


@pytest.mark.seed("S-OPR-007")
@pytest.mark.parametrize("name, tolerance", [("float16", 2e-3), ("float32", 1e-6), ("float64", 1e-14)])
def test_the_gradient_of_a_power_with_a_negative_base(name, tolerance):
    dtype = getattr(wp, name)

    @wp.func
    def squared(x: dtype):
        return x ** dtype(2.0)

    @wp.kernel(module="unique")
    def k(x: wp.array(dtype=dtype), p: dtype, y: wp.array2d(dtype=dtype)):
        i = wp.tid()
        y[0, i] = x[i] ** 2.0
        y[1, i] = (x[i] - dtype(1.0)) ** p
        y[2, i] = squared(x[i]) ** 2

    values = np.array([-3.0, -0.5, 0.0, 2.0, 1.0])
    expected = np.stack([2.0 * values, 3.0 * (values - 1.0) ** 2, 4.0 * values**3])
    for row, slope in enumerate(expected):
        x = wp.array(values, dtype=dtype, requires_grad=True)
        y = wp.zeros((3, 5), dtype=dtype, requires_grad=True)
        with wp.Tape() as tape:
            wp.launch(k, dim=5, inputs=[x, 3.0, y])
        seed = np.zeros((3, 5))
        seed[row] = 1.0
        tape.backward(grads={y: wp.array(seed, dtype=dtype)})
        np.testing.assert_allclose(x.grad.numpy(), slope, rtol=tolerance, atol=tolerance)


@pytest.mark.seed("S-OPR-007")
def test_a_power_of_integers_has_an_exponent_known_at_compile_time():
    @wp.kernel
    def k(x: wp.array[int], y: wp.array2d[int]):
        i = wp.tid()
        y[0, i] = x[i] ** 2
        y[1, i] = x[i] ** 5
        y[2, i] = x[i] ** 0

    @wp.kernel
    def computed(x: wp.array[int], n: int):
        x[0] = x[0] ** n

    x = np.array([-7, -1, 0, 1, 3, 12], dtype=np.int32)
    y = wp.zeros((3, 6), dtype=int)
    wp.launch(k, dim=6, inputs=[x, y])
    np.testing.assert_array_equal(y.numpy(), [x**2, x**5, x**0])
    with pytest.raises(wp.CompileError, match="expected an integer known at compile time"):
        wp.launch(computed, dim=1, inputs=[wp.ones(1, dtype=int), 2])


LITERALS = """
    2 ** 40
    2 ** 62
    (-2) ** 63
    7 ** 22
    (-7) ** 21
    (-1) ** 101
    (-1) ** 1000000
    1 ** 10000000000
    0 ** 0
    0 ** 5
    10 ** 18
    -(10 ** 18)
    9223372036854775806 + 1
    -9223372036854775807 - 1
    3037000499 * 3037000499
    -7 // 2
    (-9223372036854775807 - 1) // 1
    1 << 62
    -8 >> 1
    ~(2 ** 62)
    5 ^ 2 ** 40 | 1 & 3
    -(-9223372036854775807)
"""


def test_arithmetic_of_literals_is_exact(tmp_path):
    expressions = [line.strip() for line in LITERALS.strip().splitlines()]
    text = "import warp as wp\n@wp.kernel\ndef k(out: wp.array[wp.int64]):\n"
    text += "".join(f"    out[{i}] = wp.int64({one})\n" for i, one in enumerate(expressions))
    path = tmp_path / "literals.py"
    path.write_text(text)
    names = {"__name__": "literals"}
    exec(compile(text, str(path), "exec"), names)
    out = wp.zeros(len(expressions), dtype=wp.int64)
    wp.launch(names["k"], dim=1, inputs=[out])
    assert out.list() == [eval(one) for one in expressions]


@pytest.mark.parametrize("dtype", [float, wp.float64])
def test_a_negative_power_of_a_literal_is_a_float_as_in_python(dtype):
    @wp.kernel(module="unique")
    def k(out: wp.array(dtype=dtype)):
        out[0] = 3**-1
        out[1] = (-2) ** -3
        out[2] = 10**-4 * 3

    out = wp.zeros(3, dtype=dtype)
    wp.launch(k, dim=1, inputs=[out])
    expected = np.array([3**-1, (-2) ** -3, 10**-4 * 3])
    np.testing.assert_array_equal(out.numpy(), expected.astype(wp.dtype_to_numpy(dtype)))


@pytest.mark.seed("S-OPR-008")
def test_float_modulus_has_the_sign_of_the_dividend():
    @wp.kernel
    def k(a: wp.array[float], b: wp.array[float], c: wp.array[float]):
        i = wp.tid()
        c[i] = a[i] % b[i]

    a = np.array([5.5, -5.5, 5.5, -5.5, 1e6, 0.3], dtype=np.float32)
    b = np.array([2.0, 2.0, -2.0, -2.0, 0.7, 0.1], dtype=np.float32)
    c = wp.zeros(6)
    wp.launch(k, dim=6, inputs=[a, b, c])
    np.testing.assert_array_equal(c.numpy(), np.fmod(a, b))


@pytest.mark.seed("S-OPR-009")
@pytest.mark.seed("D-14")
def test_star_and_at_of_matrices():
    @wp.kernel
    def k(a: wp.mat22, b: wp.mat22, v: wp.vec2, m: wp.array[wp.mat22], w: wp.array[wp.vec2]):
        m[0] = a * b
        m[1] = a @ b
        m[2] = 2.0 * a
        m[3] = a * 2.0
        w[0] = a * v
        w[1] = a @ v
        w[2] = v * a

    a, b, v = np.array([[1.0, 2.0], [3.0, 4.0]]), np.array([[0.5, -1.0], [2.0, 1.0]]), np.array([5.0, 7.0])
    m, w = wp.zeros(4, dtype=wp.mat22), wp.zeros(3, dtype=wp.vec2)
    wp.launch(k, dim=1, inputs=[a, b, v, m, w])
    np.testing.assert_allclose(m.numpy(), [a @ b, a @ b, 2 * a, 2 * a])
    np.testing.assert_allclose(w.numpy(), [a @ v, a @ v, v @ a])


@pytest.mark.seed("S-OPR-010")
def test_compound_assignment_everywhere():
    @wp.kernel
    def k(x: wp.array[float], v: wp.array[wp.vec3], n: wp.array[int]):
        s = float(1.0)
        s += 2.0
        s -= 0.5
        s *= 4.0
        s /= 5.0
        x[0] += s
        x[0] *= 2.0
        w = wp.vec3(1.0, 2.0, 3.0)
        w += wp.vec3(1.0, 1.0, 1.0)
        w[1] += 10.0
        w.z -= 1.0
        v[0] += w
        v[0][1] += 100.0
        v[0].x *= 3.0
        n[0] |= 6
        n[0] &= 3
        n[0] ^= 1
        n[0] <<= 4
        n[0] >>= 1
        n[0] %= 13
        n[0] //= 2

    x, v, n = wp.ones(1), wp.zeros(1, dtype=wp.vec3), wp.ones(1, dtype=int)
    wp.launch(k, dim=1, inputs=[x, v, n])
    assert x.numpy()[0] == 6.0
    assert v.numpy()[0].tolist() == [6.0, 113.0, 3.0]
    assert n.numpy()[0] == ((((1 | 6) & 3) ^ 1) << 4 >> 1) % 13 // 2


# fmt: off
@pytest.mark.seed("S-OPR-011")
def test_conditions_in_parentheses():
    @wp.kernel
    def k(x: wp.array[int]):
        t = x[0]
        if (t == TYPE_SPHERE):
            x[0] = 5
        while(x[0] < 9):
            x[0] = x[0] + 1

    x = wp.zeros(1, dtype=int)
    wp.launch(k, dim=1, inputs=[x])
    assert x.numpy()[0] == 9


# ---- constants ----
PLAIN_NUMBER = 2.5


PLAIN_VECTOR = wp.vec3(1.0, 2.0, 4.0)


@pytest.mark.seed("D-19")
def test_constants_and_plain_globals_mean_the_same():
    declared_number, declared_vector = wp.constant(PLAIN_NUMBER), wp.constant(PLAIN_VECTOR)

    @wp.kernel
    def k(x: wp.array2d[float]):
        x[0, 0] = PLAIN_NUMBER * 2.0 + PLAIN_VECTOR[2]
        x[1, 0] = declared_number * 2.0 + declared_vector[2]
        x[0, 1] = wp.length_sq(PLAIN_VECTOR)
        x[1, 1] = wp.length_sq(declared_vector)

    x = wp.zeros((2, 2))
    wp.launch(k, dim=1, inputs=[x])
    assert x.numpy().tolist() == [[9.0, 21.0]] * 2


@pytest.mark.seed("S-CON-001")
@pytest.mark.seed("S-CON-002")
def test_constants_from_globals_class_attributes_and_closures():
    local = wp.constant(7)

    @wp.kernel
    def k(n: wp.array[int], d: wp.array[wp.float64], v: wp.array[wp.vec3]):
        n[0] = TYPE_SPHERE + 10
        n[1] = Shape.BOX
        n[2] = local
        d[0] = HALF * 3.0
        v[0] = AXIS * 2.0

    n, d, v = wp.zeros(3, dtype=int), wp.zeros(1, dtype=wp.float64), wp.zeros(1, dtype=wp.vec3)
    wp.launch(k, dim=1, inputs=[n, d, v])
    assert n.numpy().tolist() == [10, 2, 7] and d.numpy()[0] == 1.5 and v.numpy()[0].tolist() == [0.0, 2.0, 0.0]


@pytest.mark.seed("S-CON-003")
def test_constant_returns_its_argument_and_refuses_others():
    assert wp.constant(3) == 3 and wp.constant(2.5) == 2.5
    v = wp.vec3(1.0, 2.0, 3.0)
    assert wp.constant(v) is v
    with pytest.raises(wp.UsageError, match="dict"):
        wp.constant({})


def test_static_expressions():
    table = {"gravity": -9.81}
    sizes = [3, 4, 5]

    @wp.kernel
    def k(x: wp.array[float], n: wp.array[int]):
        x[0] = wp.static(table["gravity"] * 2.0)
        n[0] = wp.static(len(sizes))
        s = 0
        for i in range(wp.static(len(sizes))):
            s += wp.static(sizes[i])
        n[1] = s

    x, n = wp.zeros(1), wp.zeros(2, dtype=int)
    wp.launch(k, dim=1, inputs=[x, n])
    assert x.numpy()[0] == np.float32(-19.62) and n.numpy().tolist() == [3, 12]
