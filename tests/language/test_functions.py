"""User functions (S-FUN)."""

import numpy as np
import pytest
import warp as wp


@wp.func
def square(x: float):
    return x * x


@wp.func
def any_sum(a, b):
    return a + b


@wp.func
def both(x: float, y: float):
    return x + y, x * y


@wp.func
def later_user(x: float):
    return defined_later(x) + 1.0


@wp.func
def defined_later(x: float):
    return 10.0 * x


@wp.func
def row_sum(row: wp.array(dtype=float)):
    s = float(0.0)
    for i in range(row.shape[0]):
        s += row[i]
    return s


@wp.func
def first_above(limit: float, x: wp.array[float]) -> int:
    for i in range(x.shape[0]):
        if x[i] > limit:
            return i
    return -1


@pytest.mark.seed("S-FUN-001")
def test_function_without_return_annotation():
    @wp.kernel
    def k(x: wp.array[float]):
        i = wp.tid()
        x[i] = square(x[i])

    a = wp.array([1.0, 2.0, 3.0], dtype=float)
    wp.launch(k, dim=3, inputs=[a])
    assert a.numpy().tolist() == [1.0, 4.0, 9.0]


def test_function_of_any_types_is_made_for_each():
    @wp.kernel
    def k(x: wp.array[float], n: wp.array[int], v: wp.array[wp.vec3]):
        x[0] = any_sum(x[0], 0.5)
        n[0] = any_sum(n[0], 2)
        v[0] = any_sum(v[0], v[0])

    x, n, v = wp.ones(1), wp.ones(1, dtype=int), wp.array([(1.0, 2.0, 3.0)], dtype=wp.vec3)
    wp.launch(k, dim=1, inputs=[x, n, v])
    assert (x.numpy()[0], n.numpy()[0], v.numpy()[0].tolist()) == (1.5, 3, [2.0, 4.0, 6.0])


def test_function_returning_several_values():
    @wp.kernel
    def k(x: wp.array[float]):
        s, p = both(x[0], x[1])
        x[0] = s
        x[1] = p

    a = wp.array([3.0, 4.0], dtype=float)
    wp.launch(k, dim=1, inputs=[a])
    assert a.numpy().tolist() == [7.0, 12.0]


def test_function_defined_after_its_user():
    @wp.kernel
    def k(x: wp.array[float]):
        x[0] = later_user(x[0])

    a = wp.ones(1)
    wp.launch(k, dim=1, inputs=[a])
    assert a.numpy()[0] == 11.0


def test_function_closes_over_constants():
    def make(factor):
        @wp.func
        def scale(x: float):
            return factor * x

        @wp.kernel
        def k(x: wp.array[float]):
            x[wp.tid()] = scale(x[wp.tid()])

        return k

    a = wp.ones(2)
    wp.launch(make(3.0), dim=2, inputs=[a])
    wp.launch(make(5.0), dim=1, inputs=[a])
    assert a.numpy().tolist() == [15.0, 3.0]


@pytest.mark.seed("S-FUN-003")
def test_function_takes_a_slice_of_a_larger_array():
    @wp.kernel
    def k(a: wp.array2d[float], s: wp.array[float]):
        i = wp.tid()
        s[i] = row_sum(a[i])

    a = np.random.default_rng(0).standard_normal((5, 7)).astype(np.float32)
    s = wp.zeros(5)
    wp.launch(k, dim=5, inputs=[a, s])
    np.testing.assert_allclose(s.numpy(), a.sum(axis=1), rtol=1e-5, atol=1e-6)


@pytest.mark.seed("S-FUN-004")
def test_loop_body_moved_into_a_function():
    @wp.func
    def body(s: float, x: float):
        return s + x * x

    @wp.kernel
    def k(x: wp.array[float], n: int, out: wp.array[float]):
        s = float(0.0)
        for i in range(n):
            s = body(s, x[i])
        out[0] = s

    out = wp.zeros(1)
    wp.launch(k, dim=1, inputs=[np.arange(5, dtype=np.float32), 5, out])
    assert out.numpy()[0] == 30.0


@pytest.mark.seed("S-FUN-005")
def test_scalars_by_position_and_arithmetic_on_literals():
    @wp.func
    def rosenbrock(x: float, y: float):
        return (1.0 - x) ** 2.0 + 100.0 * (y - x**2.0) ** 2.0

    @wp.kernel
    def k(x: wp.array[wp.vec2], z: wp.array[float]):
        i = wp.tid()
        v = x[i]
        z[i] = rosenbrock(v[0], v[1])

    points = np.array([[1.0, 1.0], [-1.5, 0.5], [0.0, -2.0]], dtype=np.float32)
    z = wp.zeros(3)
    wp.launch(k, dim=3, inputs=[wp.array(points, dtype=wp.vec2), z])
    x, y = points.T
    np.testing.assert_allclose(z.numpy(), (1 - x) ** 2 + 100 * (y - x**2) ** 2, rtol=1e-5)


def test_early_return_from_a_loop_in_a_function():
    @wp.kernel
    def k(x: wp.array[float], limit: wp.array[float], found: wp.array[int]):
        i = wp.tid()
        found[i] = first_above(limit[i], x)

    x = np.array([0.1, 0.5, 0.3, 0.9], dtype=np.float32)
    limits = np.array([0.0, 0.2, 0.5, 0.95, 0.4, 0.85, 2.0, -1.0, 0.6], dtype=np.float32)
    found = wp.zeros(len(limits), dtype=int)
    wp.launch(k, dim=len(limits), inputs=[x, limits, found])
    expected = [next((i for i, v in enumerate(x) if v > limit), -1) for limit in limits]
    assert found.numpy().tolist() == expected


def test_default_arguments_and_keywords():
    @wp.func
    def affine(x: float, a: float = 2.0, b: float = 1.0):
        return a * x + b

    @wp.kernel
    def k(x: wp.array[float]):
        x[0] = affine(10.0)
        x[1] = affine(10.0, 3.0)
        x[2] = affine(10.0, b=5.0)

    a = wp.zeros(3)
    wp.launch(k, dim=1, inputs=[a])
    assert a.numpy().tolist() == [21.0, 31.0, 25.0]


def test_recursion_is_an_error():
    @wp.kernel
    def k(x: wp.array[float]):
        x[0] = endless(x[0])

    with pytest.raises(wp.CompileError, match="endless"):
        wp.launch(k, dim=1, inputs=[wp.zeros(1)])


@wp.func
def endless(x: float):
    return endless(x) + 1.0


def test_an_error_in_a_function_names_the_caller_too():
    @wp.func
    def inner(x: float):
        return x + 1  # fine

    @wp.func
    def wrong(x: float, n: int):
        return x + n

    @wp.kernel
    def k(x: wp.array[float]):
        x[0] = inner(x[0]) + wrong(x[0], 3)

    with pytest.raises(wp.CompileError) as error:
        wp.launch(k, dim=1, inputs=[wp.zeros(1)])
    assert "return x + n" in str(error.value) and "wrong(x[0], 3)" in str(error.value)


SCALE = 3.0


def test_functions_are_made_of_plain_ones_and_of_lambdas():
    by = 10.0
    scaled, module = wp.utils.create_warp_function(lambda x: SCALE * x + by)
    squared, _ = wp.utils.create_warp_function(plain_square)
    again, _ = wp.utils.create_warp_function(lambda x: SCALE * x + by)
    assert isinstance(scaled, wp.Function) and isinstance(module, wp.Module)
    assert scaled.key.startswith("func_") and scaled.key == again.key and squared.key == "plain_square"

    @wp.kernel
    def both(out: wp.array[float]):
        out[0] = scaled(2.0)
        out[1] = squared(out[0])

    out = wp.zeros(2, dtype=float)
    wp.launch(both, dim=1, inputs=[out])
    assert out.numpy().tolist() == [16.0, 256.0]
    with pytest.raises(TypeError, match=r"create_warp_function\(\): expected a Python function or a lambda, got 3"):
        wp.utils.create_warp_function(3)


def plain_square(x: float) -> float:
    return x * x
