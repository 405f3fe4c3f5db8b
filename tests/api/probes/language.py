"""API-1.19, section 1: the meaning of kernels."""

import math
from typing import Any

import warp as wp
from probing import differs, floats, ints, launched


@wp.struct
class _Pair:
    a: float
    b: float


@wp.func
def add(x: _Pair, y: _Pair):
    p = _Pair()
    p.a = x.a + y.a
    p.b = x.b * y.b
    return p


@wp.kernel
def _combine(x: _Pair, y: _Pair, out: wp.array(dtype=float)):
    p = x + y
    out[0] = p.a
    out[1] = p.b


def adding_to_one_element_counts_every_thread():
    def kernel(s: wp.array(dtype=float)):
        s[0] += 1.0

    return launched(kernel, 10000, floats(0.0))


def subtracting_from_a_component_counts_every_thread():
    def kernel(v: wp.array(dtype=wp.vec3)):
        v[0].y -= 1.0

    return launched(kernel, 1000, wp.zeros(1, dtype=wp.vec3)).numpy().tolist()


def adding_to_an_entry_of_a_matrix_counts_every_thread():
    def kernel(m: wp.array(dtype=wp.mat22)):
        m[0][1, 1] += 1.0

    return launched(kernel, 1000, wp.zeros(1, dtype=wp.mat22)).numpy().tolist()


def or_of_every_thread_arrives():
    def kernel(a: wp.array(dtype=int)):
        a[0] |= 1 << (wp.tid() % 16)

    return launched(kernel, 1000, ints(0))


def one_name_in_a_launch_of_two_dimensions():
    def kernel(out: wp.array(dtype=int)):
        i = wp.tid()
        wp.atomic_add(out, i, 1)

    return launched(kernel, (2, 3), wp.zeros(6, dtype=int))


def two_names_in_a_launch_of_one_dimension():
    def kernel(out: wp.array(dtype=int)):
        i, j = wp.tid()
        out[i] = 10 * i + j

    return launched(kernel, 3, wp.zeros(3, dtype=int))


def computed_negative_index():
    def kernel(a: wp.array(dtype=float), out: wp.array(dtype=float)):
        j = wp.tid() - 1
        out[wp.tid()] = a[j]

    return launched(kernel, 2, floats(1.0, 2.0, 3.0), floats(0.0, 0.0))


def shape_beyond_the_dimensions():
    def kernel(a: wp.array2d(dtype=float), out: wp.array(dtype=int)):
        out[0] = a.shape[3]
        out[1] = a.shape[1]

    return launched(kernel, 1, wp.zeros((2, 3), dtype=float), ints(7, 7))


def slice_with_a_step():
    def kernel(a: wp.array(dtype=float), out: wp.array(dtype=float)):
        part = a[1:6:2]
        out[0] = part[0] + 10.0 * part[1] + 100.0 * part[2]
        out[1] = float(part.shape[0])

    return launched(kernel, 1, floats(0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0), floats(0.0, 0.0))


def lower_bound_above_all():
    def kernel(a: wp.array(dtype=float), out: wp.array(dtype=int)):
        out[0] = wp.lower_bound(a, 9.0)
        out[1] = wp.lower_bound(a, 0, 2, 9.0)

    return launched(kernel, 1, floats(1.0, 2.0, 3.0), ints(0, 0))


def explicit_conversions_of_literals_wrap():
    def kernel(out: wp.array(dtype=wp.uint32)):
        out[0] = wp.uint32(-1)
        out[1] = wp.uint32(wp.uint8(300))

    return launched(kernel, 1, wp.zeros(2, dtype=wp.uint32))


def names_without_prefix():
    def kernel(out: wp.array(dtype=float)):
        v = vec3(1.0, 2.0, 3.0)  # noqa: F821
        out[0] = dot(v, v)  # noqa: F821

    return launched(kernel, 1, floats(0.0))


def local_of_only_some_paths():
    def kernel(n: int, out: wp.array(dtype=int)):
        for j in range(n):
            last = j
        out[0] = last

    return launched(kernel, 1, 5, ints(0))


def function_without_a_return_on_some_path():
    @wp.func
    def above(x: float):
        if x > 0.0:
            return 2.0 * x

    def kernel(out: wp.array(dtype=float)):
        out[0] = above(3.0)

    return launched(kernel, 1, floats(0.0))


def bool_compared_with_zero():
    def kernel(n: int, out: wp.array(dtype=int)):
        flag = n > 1
        if flag == 0:
            out[0] = 1
        else:
            out[0] = 2

    return launched(kernel, 1, 5, ints(0))


def operator_of_the_program():
    x, y = _Pair(), _Pair()
    x.a, x.b, y.a, y.b = 1.0, 2.0, 3.0, 4.0
    wp.launch(_combine, dim=1, inputs=[x, y, out := floats(0.0, 0.0)])
    return out


@differs("array float32 (1,) ndarray float32 (1,) [3.0]")
def number_of_another_kind_beside_a_float():
    def kernel(x: float, out: wp.array(dtype=float)):
        out[0] = 2 * x

    return launched(kernel, 1, 1.5, floats(0.0))


def gradient_of_a_builtin_function():
    def kernel(out: wp.array(dtype=float)):
        gy, gx = wp.grad(wp.atan2)(1.0, 2.0)
        out[0] = gy
        out[1] = gx

    return launched(kernel, 1, floats(0.0, 0.0))


def matrix_of_a_quaternion_off_the_sphere():
    def kernel(out: wp.array(dtype=wp.mat33)):
        out[0] = wp.quat_to_matrix(wp.quat(0.0, 0.0, 0.0, 2.0))

    return launched(kernel, 1, wp.zeros(1, dtype=wp.mat33)).numpy().tolist()


def normalized_zero_quaternion():
    def kernel(out: wp.array(dtype=wp.quat)):
        out[0] = wp.normalize(wp.quat(0.0, 0.0, 0.0, 0.0))

    return launched(kernel, 1, wp.zeros(1, dtype=wp.quat)).numpy().tolist()


def first_normal_number():
    def kernel(out: wp.array(dtype=float)):
        state = wp.rand_init(42, 0)
        out[0] = wp.randn(state)

    return launched(kernel, 1, floats(0.0))


def functions_of_pythons_math():
    def kernel(out: wp.array(dtype=float)):
        out[0] = math.sqrt(2.0)

    return launched(kernel, 1, floats(0.0))


def transform_of_nothing_in_a_kernel():
    def kernel(out: wp.array(dtype=wp.transform)):
        out[0] = wp.transform()

    return launched(kernel, 1, wp.zeros(1, dtype=wp.transform)).numpy().tolist()


def static_arm_that_is_not_taken():
    flag = False

    def kernel(out: wp.array(dtype=float)):
        if wp.static(flag):
            out[0] = not_there()  # noqa: F821
        else:
            out[0] = 3.0

    return launched(kernel, 1, floats(0.0))


def reference_parameter():
    @wp.func
    def double(x: wp.ref[wp.float32]):
        x = 2.0 * x

    def kernel(out: wp.array(dtype=float)):
        y = float(4.0)
        double(y)
        out[0] = y

    wp.launch(made := wp.kernel(kernel, module="unique", enable_backward=False), dim=1, inputs=[out := floats(0.0)])
    return out


def integer_division_and_remainder():
    def kernel(a: int, b: int, out: wp.array(dtype=int)):
        out[0] = a / b
        out[1] = a // b
        out[2] = a % b

    return launched(kernel, 1, -7, 2, ints(0, 0, 0))


def generic_kernel():
    def kernel(a: wp.array(dtype=Any), out: wp.array(dtype=Any)):
        i = wp.tid()
        out[i] = a[i] + a[i]

    return launched(kernel, 2, wp.array([1.0, 2.0], dtype=wp.float64), wp.zeros(2, dtype=wp.float64))
