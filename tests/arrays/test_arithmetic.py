"""Operators of arrays and wp.map, against NumPy."""

import operator
import subprocess
import sys

import numpy as np
import pytest
import warp as wp
from hypothesis import given, settings
from hypothesis import strategies as st

pytestmark = pytest.mark.protected

random = np.random.default_rng(11)
SHAPES = [((5,), (5,)), ((3, 4), (3, 4)), ((3, 4), (4,)), ((3, 1), (1, 4)), ((2, 3, 4), (3, 1)), ((1,), (2, 2, 2, 2))]


@pytest.mark.parametrize("name", ["float32", "int64"])
@pytest.mark.parametrize("op", [operator.sub, operator.mul])
@pytest.mark.parametrize("shapes", SHAPES)
def test_operators_broadcast_as_numpy_does(name, op, shapes):
    a, b = (random.integers(-9, 9, shape).astype(name) for shape in shapes)
    result = op(wp.array(a), wp.array(b))
    assert result.dtype is getattr(wp, name)
    np.testing.assert_array_equal(result.numpy(), op(a, b))


@settings(max_examples=40, deadline=None)
@given(st.lists(st.sampled_from([1, 3]), min_size=1, max_size=4), st.data())
def test_broadcasting_of_random_shapes(shape, data):
    other = [n if data.draw(st.booleans()) else 1 for n in shape][data.draw(st.integers(0, len(shape) - 1)) :]
    a, b = random.integers(0, 99, shape).astype(np.int32), random.integers(0, 99, other).astype(np.int32)
    np.testing.assert_array_equal((wp.array(a) + wp.array(b)).numpy(), a + b)
    np.testing.assert_array_equal((wp.array(b) - wp.array(a)).numpy(), b - a)


def test_division_and_power():
    a, b = np.array([7.0, -7.0, 1.0]), np.array([2.0, 2.0, 0.0])
    x, y = wp.array(a, dtype=wp.float64), wp.array(b, dtype=wp.float64)
    with np.errstate(divide="ignore"):
        np.testing.assert_array_equal((x / y).numpy(), a / b)
    np.testing.assert_array_equal((x[:2] // y[:2]).numpy(), a[:2] // b[:2])
    np.testing.assert_allclose((x**2.0).numpy(), a**2)
    np.testing.assert_allclose((2.0**y).numpy(), 2.0**b)
    # Of integers as in kernels: C's division and remainder, floored //.
    i, j = wp.array([7, -7], dtype=int), wp.array([2, 2], dtype=int)
    assert (i / j).list() == [3, -3] and (i % j).list() == [1, -1] and (i // j).list() == [3, -4]


POWERS = [
    0.0,
    -0.0,
    1.0,
    -1.0,
    0.5,
    2.0,
    -3.0,
    1.7,
    -2.6,
    1e-310,
    -1e-310,
    5e-324,
    1e300,
    -1e300,
    np.inf,
    -np.inf,
    np.nan,
]


@pytest.mark.parametrize(
    "number", [2.0, -1.0, 0.5, -0.5, 3.0, -3.0, 1.7, 0.0, -0.0, 1.0, 1e-310, np.inf, -np.inf, np.nan]
)
def test_powers_of_every_kind_of_number(number):
    a = np.array(POWERS)
    x, exponents = wp.array(a), np.full(len(a), number)  # an array, as a**0.5 is a square root
    with np.errstate(all="ignore"):
        for found, expected in ((x**number, np.power(a, exponents)), (number**x, np.power(exponents, a))):
            np.testing.assert_allclose(found.numpy(), expected, rtol=1e-14, atol=0.0)
            is_number = ~np.isnan(expected)
            np.testing.assert_array_equal(np.signbit(found.numpy())[is_number], np.signbit(expected)[is_number])


def test_bits_and_shifts():
    a, b = np.array([12, 10, -1], dtype=np.int32), np.array([10, 3, 1], dtype=np.int32)
    x, y = wp.array(a), wp.array(b)
    for op in (operator.and_, operator.or_, operator.xor, operator.lshift, operator.rshift):
        np.testing.assert_array_equal(op(x, y).numpy(), op(a, b))
    np.testing.assert_array_equal((~x).numpy(), ~a)


def test_numbers_take_the_type_of_the_array():
    a = wp.array([1.0, 2.0], dtype=wp.float64)
    for result in (2 * a, a * 2, 2.0 * a, a * np.float64(2.0), np.float64(2.0) * a):
        assert result.dtype is wp.float64 and result.list() == [2.0, 4.0]
    i = wp.array([1, 2], dtype=wp.uint8)
    assert (
        (i + 3).dtype is wp.uint8
        and (i + 3).list() == [4, 5]
        and (3 - i).list() == [2, 1]
        and (-wp.array([1.5])).list() == [-1.5]
    )
    with pytest.raises(TypeError, match=r"a \+ b: 0.5 does not fit the elements, uint8"):
        i + 0.5
    with pytest.raises(OverflowError, match="300 does not fit uint8"):
        i + 300


@pytest.mark.parametrize("op", [operator.lt, operator.le, operator.gt, operator.ge])
def test_comparisons_give_bools(op):
    a, b = random.integers(0, 3, (2, 50)).astype(np.float32)
    result = op(wp.array(a), wp.array(b))
    assert result.dtype is wp.bool
    np.testing.assert_array_equal(result.numpy().view(np.uint8), op(a, b))  # bytes that are 0 or 1
    np.testing.assert_array_equal(op(wp.array(a), 1.0).numpy(), op(a, 1.0))
    np.testing.assert_array_equal(op(1, wp.array(a)).numpy(), op(1, a))


def test_equality_is_identity():
    a, b = wp.zeros(3), wp.zeros(3)
    assert (a == a) is True and (a == b) is False and (a != b) is True and (a != a) is False
    assert (a == None) is False and (a == 0.0) is False and a != "x" and None != a
    assert a in [b, a] and [b, a].index(a) == 1 and {a: 1, b: 2}[b] == 2 and hash(a) == hash(a)
    assert a[:] != a, "a view is another array"
    assert (a == np.zeros(3)).tolist() == (np.zeros(3) == a).tolist() == [True] * 3, "NumPy compares elements"


def test_an_array_is_true_where_it_has_elements():
    for dtype in (float, int, bool, wp.vec3):
        assert wp.zeros(1, dtype=dtype) and wp.zeros((2, 2), dtype=dtype) and not wp.zeros(0, dtype=dtype)


def test_vectors_and_matrices():
    a, b = random.standard_normal((2, 20, 3)).astype(np.float32)
    x, y = wp.array(a, dtype=wp.vec3), wp.array(b, dtype=wp.vec3)
    np.testing.assert_allclose((x + y).numpy(), a + b)
    np.testing.assert_allclose((2.0 * x - y / 4.0).numpy(), 2 * a - b / 4, rtol=1e-6)
    np.testing.assert_allclose((x + wp.vec3(1.0, 2.0, 3.0)).numpy(), a + [1, 2, 3], rtol=1e-6)
    s = random.standard_normal(20).astype(np.float32)
    np.testing.assert_allclose((wp.array(s) * x).numpy(), s[:, None] * a, rtol=1e-6)
    m = random.standard_normal((20, 3, 3)).astype(np.float32)
    np.testing.assert_allclose((wp.array(m, dtype=wp.mat33) * x).numpy(), np.einsum("nij,nj->ni", m, a), atol=1e-5)
    with pytest.raises(TypeError, match="vectors are not multiplied by"):
        x * y


def test_elements_of_thousands_of_components_are_an_error_that_says_what_works():
    huge = wp.ones(3, dtype=wp.types.vector(60000, wp.float32))
    for function in (lambda: huge + huge, lambda: 2.0 * huge, lambda: -huge, lambda: operator.iadd(huge, huge)):
        with pytest.raises(ValueError, match=r"1024 components, got .*60000.* help: a.view\(wp.float32\)"):
            function()
    scalars = huge.view(wp.float32)
    np.testing.assert_array_equal((scalars + scalars).numpy(), np.full((3, 60000), 2.0))


@pytest.mark.parametrize("op", [operator.add, operator.mul, operator.lt, operator.iadd, operator.isub])
def test_an_operator_means_the_same_the_second_time(op):
    """From the second time on the kernel is known and fewer things are looked at."""

    class Named(wp.array):
        pass

    pair = random.integers(1, 50, (2, 3, 4)).astype(np.float32)
    make = [wp.array, lambda d: wp.array(d.T.copy()).T, Named, lambda d: wp.array(np.repeat(d, 2, axis=1))[:, ::2]]
    for first in make:
        for second in [*make, lambda d: d[0, 0], lambda d: float(d[0, 0]), lambda d: int(d[0, 0])]:
            for _ in range(2):
                a, b = pair.copy()
                x, y = first(a), second(b)
                expected = op(a, b if isinstance(y, wp.array) else b[0, 0])
                np.testing.assert_array_equal(op(x, y).numpy(), expected)
                np.testing.assert_array_equal(x.numpy(), a)
    # An extent of 1 is not divided by; the last one has several blocks of threads.
    for shape in ((1, 2, 3), (3, 1, 2), (2, 3, 1), (2, 2, 2), (5, 7, 20)):
        for _ in range(2):
            a, b = random.integers(1, 50, (2, *shape)).astype(np.float32)
            for y, expected in ((wp.array(b), op(a.copy(), b)), (wp.array(b[0, 0]), op(a.copy(), b[0, 0]))):
                np.testing.assert_array_equal(op(wp.array(a), y).numpy(), expected)
            number = float(b[0, 0, 0])
            np.testing.assert_array_equal(op(wp.array(a.T.copy()).T, number).numpy(), op(a.copy(), b[0, 0, 0]))
    line = wp.array(np.arange(9.0), dtype=float)
    line[1:] += line[:-1]
    line[1:] += line[:-1]
    step = np.array([0, 1, 3, 5, 7, 9, 11, 13, 15])
    np.testing.assert_array_equal(line.numpy(), step + np.concatenate([[0], step[:-1]]))
    for name in ("int8", "uint32"):
        for number in (1, 5, -200):
            if number > 0:
                assert (wp.ones(2, dtype=getattr(wp, name)) + number).list() == [number + 1] * 2
            else:
                with pytest.raises(OverflowError, match="-200 does not fit"):
                    wp.ones(2, dtype=getattr(wp, name)) + number


def test_whole_powers_are_products_and_bools_are_negated():
    whole = wp.array([-2, 3], dtype=wp.int8)
    assert (whole**3).list() == [-8, 27] and (whole**0).list() == [1, 1]
    whole **= 2
    assert whole.list() == [4, 9] and whole.dtype is wp.int8
    a = random.standard_normal(30)
    np.testing.assert_allclose((wp.array(a) ** 3).numpy(), a**3, rtol=1e-14)
    np.testing.assert_allclose((wp.array(a) ** -2).numpy(), a**-2.0, rtol=1e-13)
    assert (~wp.array([True, False])).list() == [False, True]


def test_one_element_is_a_number():
    assert float(wp.array([2.5], dtype=wp.bfloat16)) == 2.5 and int(wp.array([[7]], dtype=wp.uint8)) == 7
    for wrong in [wp.zeros(2), wp.zeros(0), wp.zeros(1, dtype=wp.vec3)]:
        with pytest.raises(TypeError, match=r"float\(\): an array of .* is not one number"):
            float(wrong)


def test_elements_chosen_by_indices():
    a = np.arange(12.0).reshape(3, 4)
    x = wp.array(a)
    chosen, rows = x[[2, 0]], a[[2, 0]]
    np.testing.assert_array_equal((1.0 - chosen * 2.0).numpy(), 1 - rows * 2)
    np.testing.assert_array_equal((x[:2] + chosen).numpy(), a[:2] + rows)
    np.testing.assert_array_equal((chosen > chosen[:, [0]]).numpy(), rows > rows[:, [0]])
    np.testing.assert_array_equal(wp.map(wp.sqrt, chosen).numpy(), np.sqrt(rows))
    x[[2, 0]] += 10.0
    a[[2, 0]] += 10
    np.testing.assert_array_equal(x.numpy(), a)


def test_augmented_assignment_of_arrays_works_in_place():
    base = np.arange(6.0)
    a = wp.array(base, dtype=wp.float64)
    same = a
    a += 1.0
    a *= a
    a -= wp.array(base, dtype=wp.float64)
    assert same is a
    np.testing.assert_array_equal(a.numpy(), (base + 1) ** 2 - base)
    a[1:3] += 100.0
    a[0] += 5.0
    np.testing.assert_array_equal(a.numpy()[:3], [6.0, 103.0, 107.0])
    b = wp.array([1, 2, 3, 4], dtype=int)
    b += b[::-1]
    assert b.list() == [5, 5, 5, 5]
    c = wp.zeros((2, 3))
    c += wp.array([1.0, 2.0, 3.0], dtype=float)
    assert c.list() == [1.0, 2.0, 3.0] * 2
    with pytest.raises(ValueError, match=r"a \+= b: 'out' has the shape \(3,\), expected \(2, 3\)"):
        d = wp.zeros(3)
        d += c
    e = wp.zeros(3)
    e += np.ones(3, dtype=np.float32)
    assert e.list() == [1.0] * 3


def test_with_numpy_arrays_the_result_is_numpy():
    a, b = wp.array([1.0, 2.0], dtype=float), np.array([3.0, 4.0])
    for result in (a + b, b + a):
        assert isinstance(result, np.ndarray) and result.tolist() == [4.0, 6.0]
    assert (a - b).tolist() == [-2.0, -2.0] and (b - a).tolist() == [2.0, 2.0]
    assert np.sin(a).tolist() == np.sin(np.array([1.0, 2.0], dtype=np.float32)).tolist()


def test_operators_say_what_is_wrong():
    a = wp.zeros(3)
    with pytest.raises(TypeError, match=r"a \+ b: expected equal scalar types, got float32 and int32. help: astype"):
        a + wp.zeros(3, dtype=int)
    with pytest.raises(ValueError, match=r"the shapes \(3,\) and \(4,\) cannot be broadcast together"):
        a + wp.zeros(4)
    with pytest.raises(TypeError):
        a + "x"
    with pytest.raises(OverflowError, match=r"a \+ b: 1000 does not fit int8"):
        wp.zeros(3, dtype=wp.int8) + 1000
    with pytest.raises(wp.UsageError, match=r"a \+ b: '\+' does not take float32 and vec3f"):
        a + wp.zeros(3, dtype=wp.vec3)
    with pytest.raises(wp.UsageError, match="-a: '-' does not take bool"):
        -wp.zeros(3, dtype=bool)
    with pytest.raises(TypeError):
        wp.array[float] + 1.0
    assert (wp.zeros(0) + 1.0).shape == (0,)

    @wp.struct
    class S:
        x: float

    with pytest.raises(TypeError, match="have no arithmetic"):
        wp.zeros(2, dtype=S) + wp.zeros(2, dtype=S)


# ---- wp.map ----


@wp.func
def blend(a: float, b: float, t: float):
    return a + (b - a) * t


def test_map_of_functions_builtins_and_lambdas():
    a, b = random.standard_normal((2, 4, 5)).astype(np.float32)
    x, y = wp.array(a), wp.array(b)
    np.testing.assert_allclose(wp.map(blend, x, y, 0.25).numpy(), a + (b - a) * np.float32(0.25), rtol=1e-6)
    np.testing.assert_allclose(wp.map(wp.sin, x).numpy(), np.sin(a), atol=1e-6)
    np.testing.assert_allclose(wp.map(lambda p: 2.0 * p + 1.0, x).numpy(), 2 * a + 1, rtol=1e-6)
    scale = 3.0
    np.testing.assert_allclose(wp.map(lambda p, q: wp.max(p, q) * scale, x, y).numpy(), np.maximum(a, b) * 3, rtol=1e-6)

    def plain(p, q):
        if p > q:
            return p
        return -q

    np.testing.assert_array_equal(wp.map(plain, x, y).numpy(), np.where(a > b, a, -b))
    row = wp.array(a[0])
    np.testing.assert_allclose(wp.map(wp.atan2, x, row).numpy(), np.arctan2(a, a[0]), atol=1e-6)
    np.testing.assert_allclose(wp.map(wp.clamp, x, -0.5, 0.5).numpy(), np.clip(a, -0.5, 0.5))


def test_numbers_take_the_type_of_an_annotated_parameter():
    @wp.func
    def power(x: float, n: int):
        result = float(1.0)
        for _ in range(n):
            result *= x
        return result

    assert wp.map(power, wp.array([2.0, 3.0], dtype=float), 3).list() == [8.0, 27.0]


def test_two_lambdas_on_one_line_are_told_apart():
    a = wp.array([1.0, 2.0])
    first, second = wp.map(lambda x: x + 1.0, a), wp.map(lambda x: x + 2.0, a)
    assert first.list() == [2.0, 3.0] and second.list() == [3.0, 4.0]
    results = [wp.map(lambda x: x * factor, a).list() for factor in (2.0, 3.0)]
    assert results == [[2.0, 4.0], [3.0, 6.0]]


def test_map_of_several_results_into_given_arrays():
    a = random.standard_normal(10).astype(np.float32)
    x = wp.array(a)

    @wp.func
    def both(v: float):
        return wp.sin(v), wp.vec2(v, -v)

    s, v = wp.map(both, x)
    assert s.dtype is wp.float32 and v.dtype is wp.vec2
    np.testing.assert_allclose(s.numpy(), np.sin(a), atol=1e-6)
    np.testing.assert_array_equal(v.numpy(), np.stack([a, -a], axis=1))
    assert wp.map(both, x, out=[s, v])[0] is s
    out = wp.zeros(10)
    assert wp.map(lambda p: p * p, x, out=out) is out
    assert wp.map(lambda p: p + p, x, out=x) is x
    np.testing.assert_array_equal(x.numpy(), a + a)


def test_map_can_give_its_kernel():
    a = wp.array([[1.0, 2.0], [3.0, 4.0]])
    kernel = wp.map(lambda p, s: p * s, a, 2.0, return_kernel=True)
    assert isinstance(kernel, wp.Kernel)
    out = wp.zeros_like(a)
    wp.launch(kernel, a.shape, [a, 5.0, out])
    assert out.list() == [5.0, 10.0, 15.0, 20.0]


def test_map_of_strided_and_overlapping_views():
    a = np.arange(12, dtype=np.float32).reshape(3, 4)
    x = wp.array(a)
    np.testing.assert_array_equal(wp.map(lambda p, q: p - q, x.transpose(), x[:, ::-1].transpose()).numpy(),
                                  a.T - a[:, ::-1].T)  # fmt: skip
    wp.map(lambda p: p * 2.0, x[0:2], out=x[1:3])
    np.testing.assert_array_equal(x.numpy(), np.concatenate([a[:1], 2 * a[:2]]))


def test_map_keeps_gradients_asked_for():
    assert wp.map(wp.sin, wp.zeros(3, requires_grad=True)).requires_grad
    assert not wp.map(wp.sin, wp.zeros(3)).requires_grad


def test_map_says_what_is_wrong():
    a = wp.zeros(3)
    with pytest.raises(ValueError, match=r"map\(\): expected at least one warp.array"):
        wp.map(wp.sin, 1.0)
    with pytest.raises(TypeError, match="an argument is list; expected"):
        wp.map(wp.max, a, [1.0])
    with pytest.raises(TypeError, match="'out' is an array of int32, and the result is float32"):
        wp.map(wp.sin, a, out=wp.zeros(3, dtype=int))
    with pytest.raises(TypeError, match=r"'out' has the shape \(4,\), expected \(3,\)"):
        wp.map(wp.sin, a, out=wp.zeros(4))
    with pytest.raises(wp.UsageError, match=r"map\(\): no overload of wp.sin\(\) takes \(int32\)"):
        wp.map(wp.sin, wp.zeros(3, dtype=int))
    with pytest.raises(wp.CompileError):
        wp.map(blend, wp.zeros(3, dtype=int), a, a)
    with pytest.raises(OverflowError, match=r"map\(\): 300 does not fit int8"):
        wp.map(wp.add, wp.zeros(3, dtype=wp.int8), 300)
    with pytest.raises(TypeError, match="expected a function, got 3"):
        wp.map(3, a)

    @wp.func
    def nothing(v: float):
        print(v)

    with pytest.raises(TypeError, match="returns nothing"):
        wp.map(nothing, a)


# ---- threads ----


def test_threads_begin_at_the_same_time():
    """Threads that use it first import and compile it once, and none waits for ever."""
    code = """
import threading
import numpy as np
import warp as wp

wrong, start = [], threading.Barrier(6)

def work(seed):
    x = np.random.default_rng(seed).standard_normal((40, 40))
    a = wp.array(x)
    start.wait()
    for found, expected in (
        (a @ a, x @ x),
        (a * 2.0 + a, x * 3),
        (wp.map(wp.sin, a), np.sin(x)),
        (a[[3, 1]].contiguous(), x[[3, 1]]),
        (wp.utils.array_sum(a, axis=0), x.sum(axis=0, keepdims=True)),
    ):
        if not np.allclose(found.numpy(), expected):
            wrong.append(seed)

threads = [threading.Thread(target=work, args=(seed,)) for seed in range(6)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
print(wrong)
"""
    for _ in range(3):
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120)
        assert (done.stdout, done.stderr) == ("[]\n", "")
