"""Generic kernels and functions: typing.Any, type variables, patterns of vectors and arrays, overloads."""

from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np
import pytest
import warp as wp

Real = TypeVar("Real", wp.float32, wp.float64)
T = TypeVar("T")


@wp.kernel
def scale(x: wp.array(dtype=Any), s: Any):
    i = wp.tid()
    x[i] = x[i] * s


@wp.kernel
def axpy(a: Real, x: wp.array(dtype=Real), y: wp.array(dtype=Real)):
    i = wp.tid()
    y[i] = a * x[i] + y[i]


@wp.func
def total(v: wp.types.vector(length=Any, dtype=Any)):
    s = v.dtype(0)
    for i in range(len(v)):
        s += v[i]
    return s


@pytest.mark.parametrize("dtype", [wp.float32, wp.float64, wp.int32, wp.uint8])
def test_a_kernel_is_made_for_each_type_of_its_arguments(dtype):
    x = wp.array([1, 2, 3], dtype=dtype)
    wp.launch(scale, dim=3, inputs=[x, dtype(2)])
    assert x.dtype == dtype
    assert x.numpy().tolist() == [2, 4, 6]


def test_vectors_and_numpy_arrays_instantiate_a_generic_kernel():
    v = wp.array([(1.0, 2.0, 3.0)], dtype=wp.vec3)
    wp.launch(scale, dim=1, inputs=[v, 2.0])
    assert v.numpy().tolist() == [[2.0, 4.0, 6.0]]
    n = np.array([1.0, 2.0])
    wp.launch(scale, dim=2, inputs=[n, wp.float64(3.0)])
    assert n.tolist() == [3.0, 6.0]


@pytest.mark.parametrize("dtype", [wp.float32, wp.float64])
def test_a_number_takes_the_type_of_the_type_variable(dtype):
    x, y = wp.array([1.0, 2.0], dtype=dtype), wp.ones(2, dtype=dtype)
    wp.launch(axpy, dim=2, inputs=[0.1, x, y])
    assert y.numpy().tolist() == (dtype(0.1) * np.array([1, 2], y.numpy().dtype) + 1).astype(y.numpy().dtype).tolist()


@pytest.mark.host_memory("passes arrays of NumPy")
def test_inner_dimensions_of_numpy_arrays_are_components_where_the_pattern_asks_for_vectors():
    @wp.kernel
    def sums(v: wp.array(dtype=wp.types.vector(length=Any, dtype=Any)), out: wp.array(dtype=Any)):
        i = wp.tid()
        out[i] = total(v[i])

    v = np.arange(10.0).reshape(2, 5)
    out = wp.zeros(2, dtype=wp.float64)
    wp.launch(sums, dim=2, inputs=[v, out])
    assert out.numpy().tolist() == v.sum(axis=1).tolist()


def test_every_pattern_of_types_takes_its_kind():
    @wp.func
    def rows(m: wp.types.matrix(shape=(Any, Any), dtype=Any)):
        return len(m)

    @wp.func
    def real_part(q: wp.types.quaternion(dtype=Any)):
        return q[3]

    @wp.func
    def height(t: wp.types.transformation(dtype=Any)):
        return t.p[2]

    @wp.func
    def first(a: wp.array(dtype=T), b: T):
        return a[0] + b

    @wp.func
    def corner(a: wp.array2d[Any]):
        return a[0, 0]

    @wp.kernel
    def k(out: wp.array[float], a: wp.array2d[float]):
        out[0] = float(rows(wp.mat22(1.0, 0.0, 0.0, 1.0)))
        out[1] = real_part(wp.quat(0.0, 0.0, 0.0, 1.0))
        out[2] = height(wp.transform(wp.vec3(0.0, 0.0, 5.0), wp.quat_identity()))
        out[3] = first(a[1], 2.0)
        out[4] = corner(a)

    out = wp.zeros(5)
    wp.launch(k, dim=1, inputs=[out, np.array([[7.0, 0.0], [3.0, 0.0]], np.float32)])
    assert out.numpy().tolist() == [2.0, 1.0, 5.0, 5.0, 7.0]


def test_type_makes_values_of_the_type_of_an_argument():
    @wp.func
    def twice(x: Any):
        return x * type(x)(2) + type(x[0])(0) if wp.static(False) else x * type(x)(2)

    @wp.kernel
    def k(d: wp.array[wp.float64], n: wp.array[wp.int8]):
        d[0] = twice(d[0]) + type(d[0])(1.0)
        n[0] = twice(n[0])

    d, n = wp.ones(1, dtype=wp.float64), wp.ones(1, dtype=wp.int8)
    wp.launch(k, dim=1, inputs=[d, n])
    assert (d.numpy()[0], n.numpy()[0]) == (3.0, 2)


def test_overload_gives_a_kernel_for_types_chosen_beforehand():
    f64 = wp.overload(scale, [wp.array(dtype=wp.float64), wp.float64])
    assert f64 is wp.overload(scale, {"x": wp.array(dtype=wp.float64), "s": wp.float64})
    x = wp.ones(2, dtype=wp.float64)
    wp.launch(f64, dim=2, inputs=[x, 3.0])
    wp.launch(scale, dim=2, inputs=[x, wp.float64(2.0)])
    assert x.numpy().tolist() == [6.0, 6.0]


def test_a_number_means_the_declared_overload_that_it_fits():
    @wp.kernel
    def times(x: wp.array(dtype=Any), s: Any):
        x[wp.tid()] = x[wp.tid()] * s

    @wp.overload
    def times(x: wp.array(dtype=wp.float64), s: wp.float64): ...  # noqa: F811

    x = wp.ones(2, dtype=wp.float64)
    wp.launch(times, dim=2, inputs=[x, 0.1])
    assert x.numpy().tolist() == [0.1, 0.1]
    assert len(times.overloads) == 1


def test_recorded_launches_of_generic_kernels():
    x = wp.ones(2)
    command = wp.launch(scale, dim=2, inputs=[x, 2.0], record_cmd=True)
    command.launch()
    command.set_param_by_name("s", 3.0)
    command.launch()
    assert x.numpy().tolist() == [6.0, 6.0]


@pytest.mark.parametrize(
    ("inputs", "words"),
    [
        (lambda: [None, 1.0], ["'x' of kernel 'scale'", "None has no type", "wp.overload"]),
        (lambda: [wp.zeros((2, 2)), 1.0], ["array2d[float32]", "array[Any]"]),
        (lambda: [wp.zeros(2)], ["got 1 argument", "scale(x: array[Any], s: Any)"]),
        (lambda: [wp.zeros(2), "text"], ["'s' of kernel 'scale'", "str"]),
    ],
)
def test_a_launch_says_which_type_cannot_be_found(inputs, words):
    with pytest.raises(wp.UsageError) as error:
        wp.launch(scale, dim=2, inputs=inputs())
    for word in words:
        assert word in str(error.value)


def test_arguments_of_one_type_variable_must_agree():
    x, y = wp.ones(2), wp.ones(2, dtype=wp.float64)
    with pytest.raises(wp.UsageError, match=r"'y' .* is array\[float64\].*Real is float32 for the other arguments"):
        wp.launch(axpy, dim=2, inputs=[1.0, x, y])
    with pytest.raises(wp.UsageError, match="expected array\\[Real\\]"):
        wp.launch(axpy, dim=2, inputs=[1.0, wp.ones(2, dtype=int), wp.ones(2, dtype=int)])


@pytest.mark.parametrize(
    ("types", "words"),
    [
        ([float], "got 1 types"),
        ({"z": float}, "has no parameter 'z'"),
        ({"x": wp.array(dtype=float)}, "'s' of kernel 'scale' is Any: its type is missing"),
        ([float, float], "is array\\[Any\\], which cannot be float32"),
        ([wp.array(dtype=Any), float], "needs a type such as"),
        (3, "expected a list with one type per parameter"),
    ],
)
def test_overload_names_the_wrong_type(types, words):
    with pytest.raises(wp.UsageError, match=words):
        wp.overload(scale, types)


def test_overload_of_a_plain_kernel_is_an_error():
    @wp.kernel
    def plain(x: wp.array[float]):
        x[0] = 1.0

    with pytest.raises(wp.UsageError, match="is not generic"):
        wp.overload(plain, [wp.array[float]])
    with pytest.raises(wp.UsageError, match="no kernel 'unknown'"):

        @wp.overload
        def unknown(x: float): ...


# ---- overloads of functions ----


@wp.func
def name_of(x: float):
    return 1


@wp.func
def name_of(x: int):  # noqa: F811
    return 2


@wp.func
def name_of(x: Any):  # noqa: F811
    return 3


@wp.func
def name_of(x: wp.array(dtype=float), i: int):  # noqa: F811
    return 4


def test_definitions_of_one_name_are_overloads():
    @wp.kernel
    def k(x: wp.array[float], out: wp.array[int]):
        out[0] = name_of(1.5)
        out[1] = name_of(7)
        out[2] = name_of(wp.vec3(1.0, 2.0, 3.0))
        out[3] = name_of(x, 0)
        out[4] = name_of(wp.float64(1.0))
        out[5] = name_of(x[0])

    out = wp.zeros(6, dtype=int)
    wp.launch(k, dim=1, inputs=[wp.zeros(1), out])
    assert out.numpy().tolist() == [1, 2, 3, 4, 3, 1]


def test_a_call_that_no_overload_takes_lists_them():
    @wp.func
    def of(x: float):
        return 1

    @wp.func
    def of(x: int):  # noqa: F811
        return 2

    @wp.kernel
    def k(out: wp.array[int]):
        out[0] = of(wp.vec2(1.0, 2.0))

    with pytest.raises(wp.CompileError, match=r"no definition of 'of' takes \(vec2f\)") as error:
        wp.launch(k, dim=1, inputs=[wp.zeros(1, dtype=int)])
    assert "of(x: float32)" in str(error.value) and "of(x: int32)" in str(error.value)


# ---- functions as values ----


@wp.func
def square(x: float):
    return x * x


@wp.func
def cube(x: float):
    return x * x * x


@wp.func
def apply(f: Callable, x: float):
    return f(x)


FUNCTIONS = {"square": square, "cube": cube}


def test_functions_are_arguments_variables_and_items():
    @wp.kernel
    def k(out: wp.array[float]):
        out[0] = apply(square, 3.0)
        out[1] = apply(f=wp.sqrt, x=16.0)
        g = cube
        out[2] = g(2.0)
        out[3] = FUNCTIONS["cube"](3.0)
        for i in range(2):
            out[4] += wp.static([square, cube][i])(2.0)
        out[5] = apply(float, 1.0)

    out = wp.zeros(6)
    wp.launch(k, dim=1, inputs=[out])
    assert out.numpy().tolist() == [9.0, 4.0, 8.0, 27.0, 12.0, 1.0]


def test_a_value_is_no_function():
    @wp.kernel
    def k(out: wp.array[float]):
        out[0] = apply(2.0, 3.0)

    with pytest.raises(wp.CompileError, match="argument 'f' of 'apply' is the float literal 2.0, expected a function"):
        wp.launch(k, dim=1, inputs=[wp.zeros(1)])


def test_a_kernel_cannot_take_a_function():
    @wp.kernel
    def k(f: Callable, out: wp.array[float]):
        out[0] = f(1.0)

    with pytest.raises(wp.CompileError, match="which a launch cannot pass"):
        wp.launch(k, dim=1, inputs=[square, wp.zeros(1)])


@pytest.mark.parametrize(
    "make",
    [
        lambda: wp.types.vector(length=0, dtype=Any),
        lambda: wp.types.vector(length=Any, dtype="float"),
        lambda: wp.types.matrix(shape=(Any, -1), dtype=float),
        lambda: wp.types.quaternion(dtype=wp.types.vector(length=Any, dtype=Any)),
    ],
)
def test_wrong_patterns_are_errors(make):
    with pytest.raises(wp.UsageError):
        make()


@wp.func
def element_count(a: wp.array[Any, Any]):
    count = int(1)
    for axis in range(a.ndim):
        count *= a.shape[axis]
    return count


@wp.kernel
def count_elements(a: wp.array[Any, Any], b: wp.array[float, Any], out: wp.array[int]):
    out[0] = element_count(a)
    out[1] = element_count(b)


def test_arrays_of_any_number_of_dimensions():
    out = wp.zeros(2, dtype=int)
    wp.launch(count_elements, dim=1, inputs=[wp.zeros((2, 3), dtype=wp.vec3), wp.zeros(5), out])
    assert out.list() == [6, 5]
    wp.launch(count_elements, dim=1, inputs=[np.zeros(7), np.zeros((4, 2), np.float32), out])
    assert out.list() == [7, 8]
    with pytest.raises(TypeError, match=r"is array2d\[int32\], expected array\[float32, Any\]"):
        wp.launch(count_elements, dim=1, inputs=[wp.zeros(3), wp.zeros((2, 2), dtype=int), out])
    assert repr(wp.array[float, Any]) == "wp.array[wp.float32, Any]" and wp.array[Any, Any] == wp.array[Any, Any]
    with pytest.raises(wp.UsageError, match="field 'a' of Holder"):

        @wp.struct
        class Holder:
            a: wp.array[float, Any]


@wp.kernel
def double_chosen(x: wp.indexedarray[Any]):
    i = wp.tid()
    x[i] = x[i] + x[i]


@wp.kernel
def describe_indexed(x: wp.indexedarray[Real, Any], by: Real, out: wp.array[int]):
    out[0] = x.ndim
    out[1] = x.size
    out[2] = int(by)


def test_indexed_arrays_of_any_dtype():
    for dtype in (float, wp.int64, wp.vec2):
        a = wp.full(4, dtype(3), dtype=dtype)
        wp.launch(double_chosen, dim=2, inputs=[a[[3, 1]]])
        assert a.numpy().reshape(4, -1)[:, 0].tolist() == [3, 6, 3, 6]
    with pytest.raises(TypeError, match=r"expected indexedarray\[Any\]"):
        wp.launch(double_chosen, dim=2, inputs=[wp.zeros(4)])
    with pytest.raises(TypeError, match=r"expected indexedarray\[Any\]"):
        wp.launch(double_chosen, dim=2, inputs=[wp.zeros((4, 2))[[0, 1], [1]]])


def test_indexed_arrays_of_any_number_of_dimensions():
    out, a = wp.zeros(3, dtype=int), wp.zeros(4, dtype=wp.float64)
    wp.launch(describe_indexed, dim=1, inputs=[a[[0, 2]], 3.0, out])
    assert out.list() == [1, 2, 3]
    wp.launch(describe_indexed, dim=1, inputs=[wp.zeros((4, 2))[[0, 1, 3], [1]], 2.0, out])
    assert out.list() == [2, 3, 2]
    with pytest.raises(TypeError, match=r"expected indexedarray\[Real, Any\]"):
        wp.launch(describe_indexed, dim=1, inputs=[wp.zeros(4, dtype=int)[[0, 2]], 2, out])
