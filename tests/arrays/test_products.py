"""Products of whole arrays against NumPy: wp.matmul and its kin, a @ b."""

import numpy as np
import pytest
import warp as wp
from hypothesis import given, settings
from hypothesis import strategies as st

pytestmark = pytest.mark.protected

random = np.random.default_rng(3)
FLOATS = {"float16": 2e-3, "float32": 1e-5, "float64": 1e-13}


def made(name, *shape):
    return random.standard_normal(shape).astype(name)


def check(result, expected, name, k):
    np.testing.assert_allclose(result.numpy(), expected, rtol=FLOATS[name], atol=FLOATS[name] * 4 * max(k, 1) ** 0.5)


# On a GPU the product is right; one that is tuned for it is to come, and only hardware tells its speed.
@pytest.mark.seed("S-MUL-001")
@pytest.mark.seed("S-MUL-004")
@pytest.mark.parametrize("name", FLOATS)
@pytest.mark.parametrize("m, k, n", [(1, 1, 1), (3, 5, 7), (64, 64, 64), (130, 257, 300), (1, 500, 1), (400, 1, 300)])
def test_matmul(name, m, k, n, device):
    a, b = made(name, m, k), made(name, k, n)
    A, B = wp.array(a, device=device), wp.array(b, device=device)
    C, D = wp.zeros((m, n), dtype=A.dtype, device=device), wp.empty((m, n), dtype=A.dtype, device=device)
    wp.matmul(A, B, C, D, device=device)
    check(D, a.astype(np.float64) @ b.astype(np.float64), name, k)


@pytest.mark.seed("S-MUL-002")
@pytest.mark.parametrize("name", FLOATS)
def test_matmul_with_alpha_and_beta(name):
    a, b, c = made(name, 20, 30), made(name, 30, 10), made(name, 20, 10)
    A, B, C = wp.array(a), wp.array(b), wp.array(c)
    D = wp.zeros((20, 10), dtype=A.dtype)
    wp.matmul(A, B, C, D, alpha=0.5, beta=-2.0, allow_tf32x3_arith=True)
    expected = 0.5 * (a.astype(float) @ b) - 2.0 * c.astype(float)
    check(D, expected, name, 30)
    wp.matmul(A, B, C, C, 0.5, -2.0)
    check(C, expected, name, 30)


def test_c_is_not_read_where_beta_is_0():
    a, b = made("float32", 4, 4), made("float32", 4, 4)
    C, D = wp.full((4, 4), np.nan), wp.full((4, 4), np.nan)
    wp.matmul(wp.array(a), wp.array(b), C, D)
    check(D, a @ b, "float32", 4)


def test_bfloat16_is_multiplied_in_single_precision():
    a, b = random.integers(-8, 8, (2, 16, 16))
    A, B = wp.array(a, dtype=wp.bfloat16), wp.array(b, dtype=wp.bfloat16)
    result = (A @ B).astype(wp.float32).numpy()
    np.testing.assert_allclose(result, a @ b, rtol=1 / 256)


STEPS = st.tuples(st.integers(1, 3), st.booleans(), st.booleans())


@settings(max_examples=80, deadline=None)
@given(st.tuples(*[st.integers(0, 12)] * 3), STEPS, STEPS, STEPS)
def test_views_of_any_strides(sizes, first, second, third):
    m, k, n = sizes
    steps = first, second, third

    def view(rows, columns, step):
        factor, transposed, flipped = step
        shape = (columns * factor, rows) if transposed else (rows, columns * factor)
        base = random.standard_normal(shape)
        array = wp.array(base, dtype=wp.float64) if base.size else wp.zeros(shape, dtype=wp.float64)
        for both in (base, array):
            part = both.transpose() if transposed else both
            part = part[:, :: -factor if flipped else factor]
            yield part

    a, A = view(m, k, steps[0])
    b, B = view(k, n, steps[1])
    _, D = view(m, n, steps[2])
    wp.matmul(A, B, D, D)
    np.testing.assert_allclose(D.numpy(), a @ b, rtol=1e-12, atol=1e-12)


def test_the_result_may_lie_in_an_operand():
    a = made("float64", 12, 12)
    A = wp.array(a)
    wp.matmul(A, A.transpose(), A, A, beta=1.0)
    np.testing.assert_allclose(A.numpy(), a @ a.T + a, rtol=1e-12, atol=1e-12)
    row = wp.array(made("float64", 1, 6))
    repeated = wp.array(ptr=row.ptr, shape=(4, 6), strides=(0, 8), dtype=wp.float64)
    np.testing.assert_allclose((repeated @ repeated.transpose()).numpy(), np.full((4, 4), (row.numpy() ** 2).sum()))


@pytest.mark.seed("S-MUL-007")
@pytest.mark.parametrize("name", FLOATS)
@pytest.mark.parametrize("batch, size", [(1, 5), (7, 20), (2, 200)])
def test_batched_matmul(name, batch, size):
    a, b, c = made(name, batch, size, size + 1), made(name, batch, size + 1, 9), made(name, batch, size, 9)
    A, B, C = wp.array(a), wp.array(b), wp.array(c)
    D = wp.zeros_like(C)
    wp.batched_matmul(A, B, C, D, alpha=2.0, beta=3.0)
    check(D, 2.0 * (a.astype(float) @ b) + 3.0 * c.astype(float), name, 8 * size)
    turned = wp.array(np.ascontiguousarray(a.transpose(2, 1, 0))).transpose((2, 1, 0))
    wp.batched_matmul(turned, B, C, D)
    check(D, a.astype(float) @ b, name, 8 * size)


@pytest.mark.seed("S-MUL-007")
@pytest.mark.parametrize("batch", [(), (3,)])
def test_adjoints_are_the_derivatives(batch):
    a, b, c, g = (random.standard_normal((*batch, *shape)) for shape in [(4, 5), (5, 6), (4, 6), (4, 6)])
    arrays = [wp.array(x, dtype=wp.float64) for x in (a, b, c)]
    gradients = [wp.ones_like(x) for x in arrays]
    function = wp.adj_batched_matmul if batch else wp.adj_matmul
    function(*arrays, *gradients, wp.array(g, dtype=wp.float64), alpha=0.7, beta=0.3)

    def loss(a, b, c):
        return ((0.7 * (a @ b) + 0.3 * c) * g).sum()

    for position, value in enumerate((a, b, c)):
        expected = np.ones_like(value)
        for at in np.ndindex(value.shape):
            high, low = [a, b, c], [a, b, c]
            step = np.zeros_like(value)
            step[at] = 1e-6
            high[position], low[position] = value + step, value - step
            expected[at] += (loss(*high) - loss(*low)) / 2e-6
        np.testing.assert_allclose(gradients[position].numpy(), expected, rtol=1e-6, atol=1e-6)


@pytest.mark.seed("S-MUL-006")
@pytest.mark.parametrize("name", FLOATS)
def test_gradients_reach_both_sides_of_at(name):
    a, b, seed = made(name, 3, 4), made(name, 4, 5), made(name, 3, 5)
    A, B = wp.array(a, requires_grad=True), wp.array(b, requires_grad=True)
    with wp.Tape() as tape:
        D = A @ B
    tape.backward(grads={D: wp.array(seed)})
    check(D, a.astype(np.float64) @ b, name, 4)
    check(A.grad, seed.astype(np.float64) @ b.T, name, 5)
    check(B.grad, a.T.astype(np.float64) @ seed, name, 3)


@pytest.mark.seed("S-MUL-006")
@pytest.mark.parametrize("left, right", [((4,), (4, 5)), ((3, 4), (4,)), ((2, 3, 4), (4, 5)), ((3, 4), (2, 4, 5))])
def test_at_takes_two_dimensions(left, right):
    with pytest.raises(ValueError, match="a @ b: '[ab]' must have 2 dimensions"):
        wp.zeros(left) @ wp.zeros(right)


@pytest.mark.seed("S-MUL-006")
@pytest.mark.seed("D-14")
def test_at_gives_a_new_array_that_requires_a_gradient():
    a, b = made("float32", 3, 4), made("float32", 4, 5)
    A = wp.array(a)
    result = A @ wp.array(b)
    assert result.ptr != A.ptr and np.array_equal(A.numpy(), a)
    assert result.shape == (3, 5) and result.requires_grad and result.dtype is wp.float32
    check(result, a @ b, "float32", 4)
    line = wp.zeros(4)
    with pytest.raises(ValueError, match=r"a @ b: 'a' must have 2 dimensions, got the shape \(4,\)"):
        line @ wp.array(b)
    with pytest.raises(TypeError):
        wp.array(a) @ 2.0
    assert isinstance(wp.array(a) @ b, np.ndarray) and isinstance(a @ wp.array(b), np.ndarray)
    np.testing.assert_array_equal(a @ wp.array(b), a @ b)


@pytest.mark.seed("S-MUL-003")
def test_errors_name_what_does_not_fit():
    def zeros(*shape, dtype=float):
        return wp.zeros(shape, dtype=dtype)

    a, b, c = zeros(2, 3), zeros(3, 4), zeros(2, 4)
    with pytest.raises(ValueError, match=r"matmul\(\): 'b' has the shape \(4, 4\), expected \(3, n\) to fit 'a'"):
        wp.matmul(a, zeros(4, 4), c, c)
    with pytest.raises(ValueError, match=r"'c' has the shape \(4, 2\), expected \(2, 4\)"):
        wp.matmul(a, b, zeros(4, 2), c)
    with pytest.raises(ValueError, match=r"'d' has the shape \(2, 5\), expected \(2, 4\)"):
        wp.matmul(a, b, c, zeros(2, 5))
    with pytest.raises(TypeError, match="same dtype, got float32 for 'a' and float64 for 'b'"):
        wp.matmul(a, zeros(3, 4, dtype=wp.float64), c, c)
    with pytest.raises(TypeError, match="arrays of int32 cannot be multiplied"):
        wp.matmul(*[zeros(2, 2, dtype=int)] * 4)
    with pytest.raises(TypeError, match="'c' must be a warp.array, got ndarray"):
        wp.matmul(a, b, np.zeros((2, 4)), c)
    with pytest.raises(ValueError, match=r"batched_matmul\(\): 'a' must have 3 dimensions"):
        wp.batched_matmul(a, b, c, c)
    with pytest.raises(ValueError, match=r"'b' has the shape \(5, 3, 4\), expected \(2, 3, n\)"):
        wp.batched_matmul(zeros(2, 6, 3), zeros(5, 3, 4), zeros(2, 6, 4), zeros(2, 6, 4))
    with pytest.raises(TypeError, match="'alpha' must be a number, got 'x'"):
        wp.matmul(a, b, c, c, alpha="x")
    with pytest.raises(RuntimeError, match="cuda"):
        wp.matmul(a, b, c, c, device="cuda:7")


def test_empty_products():
    assert (wp.zeros((0, 3)) @ wp.zeros((3, 2))).shape == (0, 2)
    result = wp.full((2, 2), 7.0)
    wp.matmul(wp.zeros((2, 0)), wp.zeros((0, 2)), result, result, beta=2.0)
    assert result.list() == [14.0] * 4
