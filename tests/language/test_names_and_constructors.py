"""Names, literals and constructors in kernels as of release 1.19, with its values."""

import ctypes
import math
from typing import Any

import numpy as np
import pytest
import warp as wp


def written(function, *inputs, dtype=wp.float64, count=8):
    """The value that one thread writes to the kernel's last parameter."""
    out = wp.zeros(count, dtype=dtype)
    wp.launch(wp.kernel(function), dim=1, inputs=[*inputs, out])
    return out.numpy().tolist()


# ---- names ----


@wp.struct
class Inner:
    v: wp.vec3
    n: int


@wp.struct
class Outer:
    x: float
    inner: Inner


@wp.func
def sum_of(s: Outer):
    return s.x + s.inner.v[1]


def test_builtins_and_types_need_no_prefix():
    def k(out: wp.array[wp.float64]):
        v = vec3d(1.0, 2.0, 3.0)  # noqa: F821
        out[0] = dot(v, v)  # noqa: F821
        out[1] = float64(sqrt(4.0)) + float64(tid())  # noqa: F821

    assert written(k)[:2] == [14, 2]


def test_names_of_the_program_win_over_builtins():
    @wp.func
    def dot(a: wp.vec3d, b: wp.vec3d):
        return a[0] * b[0]

    def k(out: wp.array[wp.float64]):
        v = wp.vec3d(2.0, 2.0, 3.0)
        out[0] = dot(v, v)

    assert written(k)[0] == 4


def test_a_struct_of_static_is_a_constant():
    made = Outer()
    made.x = 3.0
    made.inner.v = wp.vec3(1.0, 2.0, 3.0)
    made.inner.n = 2

    @wp.kernel
    def k(out: wp.array[float], stored: wp.array[Outer]):
        c = wp.static(made)
        v = wp.vector(1.0, length=c.inner.n)  # known at compile time
        out[0] = c.x + float(len(v))
        out[1] = c.inner.v[2] + float(wp.static(made).inner.n)
        out[2] = sum_of(c)
        stored[0] = c

    out, stored = wp.zeros(3, dtype=float), wp.zeros(1, dtype=Outer)
    wp.launch(k, dim=1, inputs=[out, stored])
    assert out.numpy().tolist() == [5, 5, 5]
    assert stored.numpy()["inner"]["n"][0] == 2 and stored.numpy()["x"][0] == 3


def test_static_knows_lengths_and_variables_of_loops():
    def k(v: wp.vec4, out: wp.array[wp.float64]):
        x = wp.vec3(1.0, 2.0, 3.0)
        t = (1.0, x)
        out[0] = wp.float64(wp.static(len(x) + len(v) * 10 + len(t) * 100))
        for j in range(5):
            if wp.static(j % 2 == 0):
                continue
            out[1] += wp.float64(j)

    assert written(k, wp.vec4())[:2] == [243, 4]


@pytest.mark.own_launches("names mean something else when the kernel is made again")
def test_static_is_evaluated_once_per_place_when_the_kernel_is_declared():
    count = 0

    def following():
        nonlocal count
        count += 1
        return count

    @wp.kernel
    def k(n: int, out: wp.array[wp.float64]):
        out[0] = wp.float64(wp.static(following()))
        seen = 0
        for j in range(n):
            if j == 2:
                seen = wp.static(following())
            out[1] += wp.float64(seen)

    assert count == 2
    for mode in ("release", "debug"):
        out = wp.zeros(2, dtype=wp.float64)
        wp.launch(wp.kernel(k.func, module_options={"mode": mode}, module="unique"), dim=1, inputs=[3, out])
    wp.launch(k, dim=1, inputs=[3, out])
    assert out.numpy()[0] == 1 and count <= 6  # two for each kernel that was declared


@pytest.mark.own_launches("names mean something else when the kernel is made again")
def test_static_keeps_what_names_meant_at_the_declaration():
    scale = 3

    @wp.func
    def scaled(x: wp.float64):
        return x * wp.static(scale * 1.0)

    def k(out: wp.array[wp.float64]):
        out[0] = wp.float64(wp.static(scale))
        out[1] = scaled(wp.float64(1.0))
        out[2] = wp.float64(wp.static(later))  # noqa: F821

    kernel = wp.kernel(k)
    scale = 4
    globals()["later"] = 5
    out = wp.zeros(3, dtype=wp.float64)
    wp.launch(kernel, dim=1, inputs=[out])
    assert out.numpy().tolist() == [3, 3, 5]


def test_functions_from_static_and_attributes_of_functions_are_called():
    @wp.func
    def once(x: wp.float64):
        return x

    @wp.func
    def tenfold(x: wp.float64):
        return x * wp.float64(10.0)

    functions = [once, tenfold]
    once.fallback = tenfold
    once.weight = 0.5

    def k(out: wp.array[wp.float64]):
        for j in range(2):
            out[j] = wp.static(functions[j])(wp.float64(2.0))
        out[2] = once.fallback(wp.float64(3.0)) * once.weight

    assert written(k)[:3] == [2, 20, 15]


def test_functions_of_python_math_are_the_kernel_s():
    def k(out: wp.array[wp.float64]):
        x = wp.float64(0.5)
        out[0] = math.sqrt(x) + math.fabs(-x) * math.pi
        out[1] = math.atan2(x, wp.float64(2.0))

    np.testing.assert_allclose(written(k)[:2], [0.5**0.5 + 0.5 * math.pi, math.atan2(0.5, 2)], rtol=1e-15)


# ---- literals and conversions ----


def test_a_local_bound_to_a_literal_stays_one():
    def k(n: int, out: wp.array[wp.float64]):
        x = 0.1
        size = 3
        out[0] = wp.vec3d(x, 0.0, 0.0)[0]
        out[1] = wp.float64(len(wp.vector(1.0, length=size)))
        out[2] = x
        pair = (0.1, 2)
        out[3] = wp.vec2d(*pair)[0]
        y = x + 0.2  # arithmetic among literals is that of their own type
        out[4] = wp.float64(y)
        for _k in range(n):
            x = 1
        out[5] = wp.float64(x)
        z = 1.5
        if n > 2:
            z = 2
        out[6] = wp.float64(z)

    found = written(k, 3)
    assert found[:4] == [0.1, 3, 0.1, 0.1] and found[5:7] == [1, 2]
    assert found[4] == float(np.float32(0.1) + np.float32(0.2))


def test_explicit_conversions_of_literals_wrap():
    def k(out: wp.array[wp.int64]):
        out[0] = wp.int64(wp.uint32(-1))
        out[1] = wp.int64(wp.uint8(300))
        out[2] = wp.int64(wp.int8(200))
        out[3] = wp.int64(int(3000000000))
        out[4] = wp.int64(wp.uint64(-1))

    assert written(k, dtype=wp.int64)[:5] == [4294967295, 44, -56, -1294967296, -1]


def test_bools_compare_with_integer_literals_and_each_other():
    def k(flags: wp.array[bool], out: wp.array[wp.int32]):
        for i in range(2):
            b = flags[i]
            if b == True:
                out[i] += 1
            if b == 2:
                out[i] += 2
            if 1 == b:
                out[i] += 4
            if b < 1:
                out[i] += 8
            if b == 0:
                out[i] += 16
            if b != 0:
                out[i] += 32
            if b in (0, 5):
                out[i] += 64
            if b < (i == 1):
                out[i] += 128
            if b >= (i < 5):
                out[i] += 256

    flags = wp.array([True, False], dtype=bool)
    expected = []
    for i, b in enumerate([True, False]):
        tests = [b is True, b == 2, b == 1, b < 1, b == 0, b != 0, b in (0, 5), b < (i == 1), b >= (i < 5)]
        expected.append(sum(2**k for k, holds in enumerate(tests) if holds))
    assert written(k, flags, dtype=wp.int32)[:2] == expected


@wp.struct
class Bytes:
    a: wp.uint8
    flag: bool
    c: wp.uint16
    d: wp.vec2us


@wp.struct
class Words:
    x: wp.uint32
    y: wp.float32


@pytest.mark.host_memory("looks at addresses")
def test_cast_reads_the_bits_of_numbers_and_structs():
    @wp.kernel
    def k(given: wp.array[Bytes], out: wp.array[wp.int64], words: wp.array[Words], back: wp.array[Bytes]):
        out[0] = wp.int64(wp.cast(1.0, wp.uint32))
        out[1] = wp.cast(wp.float64(1.0), wp.int64)
        out[2] = wp.cast(wp.vec2(1.0, 2.0), wp.int64)
        out[3] = wp.cast(given[0], wp.int64)
        words[0] = wp.cast(given[0], Words)
        back[0] = wp.cast(words[0], Bytes)

    raw = np.array([0x87, 1, 0xFE, 0x91, 0x00, 0x10, 0x20, 0xC3], np.uint8)
    given = wp.zeros(1, dtype=Bytes)
    ctypes.memmove(given.ptr, raw.ctypes.data, 8)
    out, words, back = wp.zeros(4, dtype=wp.int64), wp.zeros(1, dtype=Words), wp.zeros(1, dtype=Bytes)
    wp.launch(k, dim=1, inputs=[given, out, words, back])
    assert out.numpy().tolist() == [0x3F800000, 0x3FF0000000000000, 0x400000003F800000, raw.view(np.int64)[0]]
    for array in (words, back):
        assert ctypes.string_at(array.ptr, 8) == raw.tobytes()

    def wrong(out: wp.array[wp.int64]):
        out[0] = wp.cast(1.0, wp.int64)

    with pytest.raises(wp.CompileError, match="a type of numbers with the size of float32"):
        written(wrong, dtype=wp.int64)


# ---- constructors ----


mat32 = wp.types.matrix(shape=(3, 2), dtype=wp.float64)


def test_vectors_matrices_and_rotations_of_types_are_values_in_kernels():
    def k(out: wp.array[wp.float64]):
        out[0] = wp.float64(wp.types.vector(1.0, 2.0, 3.0)[2])
        out[1] = wp.types.vector(wp.float64(2.0), length=5)[4]
        out[2] = wp.float64(wp.types.matrix(3.0, shape=(3, 2))[2, 1])
        out[3] = wp.float64(wp.types.quaternion(1.0, 2.0, 3.0, 4.0)[3])
        out[4] = wp.types.vector(1.0, 2.0, dtype=wp.float64)[1]
        t = wp.types.transformation(wp.vec3d(1.0, 2.0, 3.0), wp.quatd(0.0, 0.0, 0.0, 1.0), dtype=wp.float64)
        out[5] = t.p[1]
        m = mat32(5.0, shape=(3, 2))
        out[6] = m[2, 1]
        out[7] = wp.quaternion(1.0, 2.0, 3.0, 4.0, dtype=wp.float64)[2]

    assert written(k) == [3, 2, 3, 4, 2, 2, 5, 3]


def test_spatial_vectors_of_two_halves_and_transforms_of_one_number():
    @wp.kernel
    def k(v: wp.array[wp.spatial_vectord], t: wp.array[wp.transform]):
        v[0] = wp.spatial_vectord(wp.vec3d(1.0, 2.0, 3.0), wp.vec3d(4.0, 5.0, 6.0))
        t[0] = wp.transform(1.5)
        t[1] = wp.transformation(wp.transform(wp.vec3(1.0, 2.0, 3.0), wp.quat(0.0, 0.0, 0.0, 1.0)))
        t[2] = wp.transform()
        t[3] = wp.transformation(1.5, dtype=float)

    v, t = wp.zeros(1, dtype=wp.spatial_vectord), wp.zeros(4, dtype=wp.transform)
    wp.launch(k, dim=1, inputs=[v, t])
    assert v.numpy().tolist() == [[1, 2, 3, 4, 5, 6]]
    assert t.numpy().tolist() == [[1.5] * 7, [1, 2, 3, 0, 0, 0, 1], [0] * 7, [1.5] * 7]


# ---- functions ----


@wp.struct
class Complex:
    re: wp.float64
    im: wp.float64


@wp.func
def add(a: Complex, b: Complex):
    return Complex(a.re + b.re, a.im + b.im)


@wp.func
def sub(a: Complex, b: Complex):
    return Complex(a.re - b.re, a.im - b.im)


@wp.func
def mul(a: Complex, b: Complex):
    return Complex(a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re)


@wp.func
def neg(a: Complex):
    return Complex(-a.re, -a.im)


@wp.func
def add(v: wp.vec3d, x: wp.float64):  # noqa: F811
    return wp.vec3d(v[0] + x, v[1] + x, v[2] + x)


@pytest.mark.host_memory("looks at addresses")
def test_operators_of_the_program():
    @wp.kernel
    def k(given: wp.array[Complex], out: wp.array[wp.float64]):
        x = given[0]
        y = given[1]
        z = x + y
        z += x
        z = z * y
        w = -(z - x)
        out[0] = w.re
        out[1] = w.im
        out[2] = (wp.vec3d(1.0, 2.0, 3.0) + wp.float64(1.0))[2]
        out[3] = wp.float64(1.0) + wp.float64(2.0)

    given = wp.zeros(2, dtype=Complex)
    ctypes.memmove(given.ptr, np.array([1.0, 2.0, 3.0, -4.0]).ctypes.data, 32)
    out = wp.zeros(4, dtype=wp.float64)
    wp.launch(k, dim=1, inputs=[given, out])
    x, y = 1 + 2j, 3 - 4j
    w = -((x + y + x) * y - x)
    assert out.numpy().tolist() == [w.real, w.imag, 4, 3]


@wp.func
def pair_sum(t: tuple[wp.float64, wp.vec3d]):
    return t[0] + t[1][2]


@wp.func
def all_sum(t: tuple[wp.float64, ...]):
    total = wp.float64(0.0)
    for x in t:
        total += x
    return total


def test_tuples_annotate_parameters():
    def k(out: wp.array[wp.float64]):
        out[0] = pair_sum((1.0, wp.vec3d(1.0, 2.0, 3.0)))
        out[1] = all_sum((1.0, 2.0, 3.5))

    assert written(k)[:2] == [4, 6.5]

    def wrong(out: wp.array[wp.float64]):
        out[0] = pair_sum((1.0, 2.0))

    with pytest.raises(wp.CompileError, match="element 1 of argument 't' of 'pair_sum' is the float literal 2.0"):
        written(wrong)


def test_gradients_of_builtins():
    @wp.kernel
    def k(x: wp.array[wp.float64], out: wp.array[wp.float64], v: wp.array[wp.vec3d]):
        out[0] = wp.grad(wp.sin)(x[0])
        gy, gx = wp.grad(wp.atan2)(x[0], x[1])
        out[1] = gy
        out[2] = gx
        v[0] = wp.grad(wp.length)(wp.vec3d(1.0, 2.0, 2.0))

    x = wp.array([0.5, 2.0], dtype=wp.float64)
    out, v = wp.zeros(3, dtype=wp.float64), wp.zeros(1, dtype=wp.vec3d)
    wp.launch(k, dim=1, inputs=[x, out, v])
    np.testing.assert_allclose(out.numpy(), [math.cos(0.5), 2 / 4.25, -0.5 / 4.25], rtol=1e-14)
    np.testing.assert_allclose(v.numpy(), [[1 / 3, 2 / 3, 2 / 3]], rtol=1e-14)


@wp.func
def kind(x: wp.Int):
    return type(x)(3) * x


@wp.func
def kind(x: wp.Float):  # noqa: F811
    return type(x)(2.0) * x


@wp.func
def first(x: wp.types.vector(length=Any, dtype=wp.Float), m: wp.types.matrix(shape=(Any, Any), dtype=wp.Scalar)):
    return wp.float64(x[0]) + wp.float64(m[0, 0])


@wp.func
def two(x: wp.Float, y: wp.Float):
    return wp.float64(x) + wp.float64(y)


@wp.kernel
def generic(n: wp.Scalar, out: wp.array(dtype=wp.Float)):
    out[0] = kind(out[0])
    out[1] = type(out[0])(kind(wp.int64(2)))
    out[2] = type(out[0])(first(wp.vec2(1.0, 2.0), wp.types.matrix(7, shape=(2, 2))))
    out[3] = type(out[0])(n) + type(out[0])(two(float(1.0), wp.float64(2.0)))


def test_classes_of_types_annotate_parameters():
    out = wp.array([1.0, 2.0, 3.0, 4.0], dtype=wp.float64)
    wp.launch(generic, dim=1, inputs=[wp.int16(4), out])
    assert out.numpy().tolist() == [2, 6, 8, 7]
    with pytest.raises((wp.UsageError, wp.CompileError), match="Float"):
        wp.launch(generic, dim=1, inputs=[wp.int16(4), wp.zeros(4, dtype=int)])


@wp.func
def generic_vector(v: Any):
    m = wp.identity(n=v.length, dtype=v.dtype)
    return (m * v)[1] + v.dtype(type(v).length)


def test_vectors_and_their_types_tell_length_and_dtype():
    def k(b: wp.array[wp.vec4d], out: wp.array[wp.float64]):
        out[0] = generic_vector(wp.vec2d(1.0, 5.0))
        out[1] = b.dtype.dtype(3) + wp.float64(b.dtype.length)

    assert written(k, wp.zeros(2, dtype=wp.vec4d))[:2] == [7, 7]


def test_a_random_state_that_is_no_variable_stays_as_it_is():
    @wp.kernel
    def k(states: wp.array[wp.uint32], out: wp.array[float]):
        states[0] = wp.rand_init(42)
        out[0] = wp.randf(states[0])
        out[1] = wp.randf(states[0])
        out[2] = wp.randf(wp.rand_init(42))
        state = wp.rand_init(42)
        out[3] = wp.randf(state)
        out[4] = wp.randf(state)

    states, out = wp.zeros(1, dtype=wp.uint32), wp.zeros(5, dtype=float)
    wp.launch(k, dim=1, inputs=[states, out])
    found = out.numpy()
    assert found[0] == found[1] == found[2] == found[3] != found[4]
    assert states.numpy()[0] == 1223963391
