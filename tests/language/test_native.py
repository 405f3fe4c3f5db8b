"""@wp.func_native: functions whose body is C++, compiled by a clang of the machine if it has one."""

import inspect
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import warp as wp
from native_functions import needs_clang, square

LANES = [{}, {"lanes": 1}, {"mode": "debug"}]


INTEGERS = [wp.int8, wp.uint8, wp.int16, wp.uint16, wp.int32, wp.uint32, wp.int64, wp.uint64]


FLOATS = [wp.float8_e4m3fn, wp.float8_e5m2, wp.float16, wp.bfloat16, wp.float32, wp.float64]


@needs_clang
@pytest.mark.parametrize("options", LANES)
def test_kernels_call_the_snippet_for_each_thread(options):
    @wp.kernel(module_options=options, module="unique")
    def squares(x: wp.array[float], y: wp.array[float]):
        i = wp.tid()
        if i % 3 != 1:
            y[i] = square(x[i], 1.0)

    x = np.arange(37, dtype=np.float32)
    y = wp.zeros(37, dtype=float)
    wp.launch(squares, dim=37, inputs=[wp.array(x), y])
    np.testing.assert_array_equal(y.numpy(), np.where(np.arange(37) % 3 != 1, x * x + 1, 0))


def test_what_a_function_keeps():
    @wp.func_native("return x;", adj_snippet="adj_x += adj_ret;", replay_snippet="return x + 0;")
    def same(x: float) -> float:
        """The same."""

    assert isinstance(same, wp.Function) and same.__doc__ == "The same."
    assert same.native_snippet == "return x;"
    assert same.adj_native_snippet == "adj_x += adj_ret;" and same.replay_snippet == "return x + 0;"
    assert square.adj_native_snippet is None and square.replay_snippet is None
    assert wp.func(lambda: 1).native_snippet is None
    assert list(inspect.signature(wp.func_native).parameters) == ["snippet", "adj_snippet", "replay_snippet"]


def make_scalar_kernel(dtype):
    @wp.func_native("return flag ? x : y;")
    def pick(x: dtype, y: dtype, flag: bool) -> dtype: ...

    @wp.func_native("return !flag;")
    def negated(flag: bool) -> bool: ...

    @wp.kernel(module="unique")
    def scalars(x: wp.array[dtype], y: wp.array[dtype], out: wp.array[dtype]):
        i = wp.tid()
        out[i] = pick(x[i], y[i], negated(i % 3 == 0))

    return scalars


@needs_clang
@pytest.mark.parametrize("dtype", [wp.bool, *INTEGERS, *FLOATS])
def test_every_scalar_type_goes_in_and_out(dtype):
    numbers = np.arange(41) * 3 % 127
    x, y = wp.array(numbers, dtype=dtype), wp.array(numbers[::-1].copy(), dtype=dtype)
    out = wp.zeros(41, dtype=dtype)
    wp.launch(make_scalar_kernel(dtype), dim=41, inputs=[x, y, out])
    x, y, out = (a.numpy() for a in (x, y, out))
    assert np.where(np.arange(41) % 3 != 0, x, y).tobytes() == out.tobytes()


@wp.struct
class Inner:
    small: wp.int8
    v: wp.vec2d


@wp.struct
class Body:
    ok: bool
    x: wp.vec3
    inner: Inner
    samples: wp.array[float]


@wp.func_native("""
    Body r = b;
    r.ok = !b.ok;
    r.x = b.x * 2.0f + vec3(1, 2, 3) - cross(b.x, vec3(0, 0, 1));
    r.inner.small += 1;
    r.inner.v[1] = t.p[0] + t.q[3] + q.w + m[1][2] + dot(b.inner.v, b.inner.v) + length(b.x);
    if (b.samples) r.samples[i] = float(b.samples.shape[0]);
    return r;
""")
def change(b: Body, t: wp.transform, q: wp.quat, m: wp.mat33, i: int) -> Body: ...


@needs_clang
@pytest.mark.parametrize("options", LANES)
def test_vectors_matrices_and_structs_have_the_layout_of_kernels(options):
    @wp.kernel(module_options=options, module="unique")
    def bodies(b: wp.array[Body], m: wp.mat33):
        i = wp.tid()
        t = wp.transform(wp.vec3(float(i), 0.0, 0.0), wp.quat_identity())
        b[i] = change(b[i], t, wp.quat(0.0, 0.0, 0.0, 2.0), m, i)

    samples = wp.zeros(19, dtype=float)
    made = []
    for i in range(19):
        inner = Inner(small=i, v=wp.vec2d(0.5 * i, 1.0))
        made.append(Body(ok=i % 2 == 0, x=wp.vec3(i, 4.0, 3.0), inner=inner, samples=samples if i % 5 else None))
    array = wp.array(made, dtype=Body)
    wp.launch(bodies, dim=19, inputs=[array, wp.mat33(*range(9))])
    found = array.numpy()
    i = np.arange(19)
    assert np.array_equal(found["ok"], i % 2 != 0)
    np.testing.assert_array_equal(found["x"], np.stack([2 * i + 1 - 4, 10 + i, 9 + 0 * i], axis=1))
    assert np.array_equal(found["inner"]["small"], i + 1)
    expected = i + 1.0 + 2.0 + 5.0 + (0.25 * i * i + 1) + np.sqrt((i * i + 25).astype(np.float32))
    np.testing.assert_allclose(found["inner"]["v"][:, 1], expected, rtol=1e-6)
    np.testing.assert_array_equal(samples.numpy(), np.where(i % 5 != 0, 19, 0))


@needs_clang
@pytest.mark.parametrize("dtype", [wp.float16, wp.float32, wp.float64])
def test_functions_of_values_equal_those_of_kernels(device, dtype):
    vector, quaternion, pose = wp.types.vector(3, dtype), wp.types.quaternion(dtype), wp.types.transformation(dtype)

    @wp.func_native("""
        out[0] = wp::sub(wp::add(v, w), wp::mul(wp::quat_to_matrix(q), v));
        out[1] = wp::mul(wp::mul(wp::quat_to_matrix(wp::quat_inverse(q)), wp::quat_to_matrix(q)), w);
        out[2] = wp::mul(wp::normalize(v), wp::dot(v, w)) + wp::transform_get_translation(t);
        out[3][0] = wp::length_sq(w) + wp::transform_get_rotation(t).w;
        out[3][1] = out[3][0] / (v[0] - v[0]);
        out[3][2] = wp::isfinite(out[3][0]) + 2 * wp::isinf(out[3][1]) + 4 * wp::isfinite(out[3][1]);
        WP_PRAGMA_UNROLL
        for (int i = WP_TILE_THREAD_IDX; i < 3; i += WP_TILE_BLOCK_DIM) out[4][i] = wp::normalize(v - v)[i] + i;
        WP_TILE_SYNC();
    """)
    def snippet(v: vector, w: vector, q: quaternion, t: pose, out: wp.array[vector]): ...

    @wp.kernel(module="unique")
    def compare(v: vector, w: vector, q: quaternion, t: pose, out: wp.array[vector], own: wp.array[vector]):
        snippet(v, w, q, t, out)
        own[0] = v + w - wp.quat_to_matrix(q) * v
        own[1] = (wp.quat_to_matrix(wp.quat_inverse(q)) * wp.quat_to_matrix(q)) * w
        own[2] = wp.normalize(v) * wp.dot(v, w) + wp.transform_get_translation(t)
        own[3] = vector(wp.length_sq(w) + wp.transform_get_rotation(t)[3], dtype(wp.inf), dtype(3.0))
        own[4] = vector(dtype(0.0), dtype(1.0), dtype(2.0))

    out, own = (wp.zeros(5, dtype=vector, device=device) for _ in range(2))
    v, w, q = vector(1.0, -2.0, 0.5), vector(0.25, 3.0, -1.5), quaternion(0.5, -0.25, 0.125, 0.75)
    wp.launch(compare, dim=1, inputs=[v, w, q, pose(w, q), out, own], device=device, block_dim=1)
    tolerance = {wp.float16: 8e-3, wp.float32: 1e-6, wp.float64: 1e-15}[dtype]
    np.testing.assert_allclose(out.numpy().astype(float), own.numpy().astype(float), rtol=tolerance, atol=tolerance)


@wp.func_native("""
    for (int64 k = 0; k < a.shape[1]; ++k) {
        out[i][k] = a(i, k) * 10 + a[i][k];
        out[i][k] += a.strides[1] + *b.data;
    }
""")
def rows(a: wp.array2d[int], b: wp.array[int], out: wp.array2d[int], i: int): ...


@wp.kernel
def all_rows(a: wp.array2d[int], b: wp.array[int], out: wp.array2d[int]):
    rows(a, b, out, wp.tid())


@needs_clang
def test_arrays_are_views_with_shape_strides_and_address():
    numbers = np.arange(48, dtype=np.int32).reshape(8, 6)
    array = wp.array(numbers)
    for view, part in ((array, numbers), (array[::2, 1::2], numbers[::2, 1::2]), (array.transpose(), numbers.T)):
        out = wp.zeros(part.shape, dtype=int)
        wp.launch(all_rows, dim=part.shape[0], inputs=[view, wp.array([7], dtype=int), out])
        np.testing.assert_array_equal(out.numpy(), part * 11 + view.strides[1] + 7)


@wp.func_native("""
    whole[0] = uint64(a.data);
    element[i] = uint64(&a(i, 1));
    part[i] = uint64(&a(i, 1)[2]);
""")
def note_addresses(
    a: wp.array2d[wp.vec3], i: int, whole: wp.array[wp.uint64], element: wp.array[wp.uint64], part: wp.array[wp.uint64]
): ...


@wp.kernel
def addresses(
    a: wp.array2d[wp.vec3], whole: wp.array[wp.uint64], element: wp.array[wp.uint64], part: wp.array[wp.uint64]
):
    note_addresses(a, wp.tid(), whole, element, part)


@needs_clang
def test_addresses_of_elements_are_those_of_the_host():
    array = wp.zeros((9, 4), dtype=wp.vec3)
    for view in (array, array[1::3], array[::-1, ::2], array.transpose()):
        rows = view.shape[0]
        whole, element, part = (wp.zeros(n, dtype=wp.uint64) for n in (1, rows, rows))
        wp.launch(addresses, dim=rows, inputs=[view, whole, element, part])
        expected = view.ptr + np.arange(rows) * view.strides[0] + view.strides[1]
        assert whole.numpy()[0] == view.ptr
        np.testing.assert_array_equal(element.numpy(), expected)
        np.testing.assert_array_equal(part.numpy(), expected + 8)


@wp.func_native("""
    array_t<float, 2> plane = a[i];
    atomic_add(&total[0], 1);
    atomic_add(&sum[0], plane[1][2]);
""")
def count(a: wp.array3d[float], total: wp.array[int], sum: wp.array[float], i: int): ...


@needs_clang
def test_threads_add_at_the_same_time():
    @wp.kernel
    def counted(a: wp.array3d[float], total: wp.array[int], sum: wp.array[float]):
        count(a, total, sum, wp.tid())

    n = 20000
    total, sum = wp.zeros(1, dtype=int), wp.zeros(1, dtype=float)
    wp.launch(counted, dim=n, inputs=[wp.full((n, 2, 3), 0.5, dtype=float), total, sum])
    assert total.numpy()[0] == n and sum.numpy()[0] == n / 2


@needs_clang
def test_16_bit_floats_convert_as_numpy_and_kernels_do():
    @wp.func_native("return x;")
    def to_half(x: float) -> wp.float16: ...

    @wp.func_native("return x;")
    def to_float(x: wp.float16) -> float: ...

    @wp.func_native("return x;")
    def to_brain(x: float) -> wp.bfloat16: ...

    @wp.func_native("return x;")
    def from_brain(x: wp.bfloat16) -> float: ...

    @wp.kernel
    def convert(
        x: wp.array[float],
        h: wp.array[wp.float16],
        half: wp.array[wp.float16],
        brain: wp.array[wp.bfloat16],
        ours: wp.array[wp.bfloat16],
        wide: wp.array[float],
        back: wp.array[float],
    ):
        i = wp.tid()
        half[i] = to_half(x[i])
        brain[i] = to_brain(x[i])
        ours[i] = wp.bfloat16(x[i])
        wide[i] = to_float(h[i])
        back[i] = from_brain(brain[i])

    halves = np.arange(65536, dtype=np.uint16).view(np.float16)
    # Every half, the values between two, and any bits.
    between = halves.view(np.uint16).astype(np.uint32) << 13
    random = np.random.default_rng(2)
    x = np.concatenate([halves.astype(np.float32), (between + 0x38000FFF).view(np.float32)])
    x = np.concatenate([x, random.integers(0, 2**32, 65536, dtype=np.uint32).view(np.float32)])
    x = np.concatenate([x, random.normal(0, 1e-6, 65536).astype(np.float32)])
    h = np.resize(halves, x.size)
    outputs = [wp.zeros(x.size, dtype=t) for t in (wp.float16, wp.bfloat16, wp.bfloat16, float, float)]
    wp.launch(convert, dim=x.size, inputs=[wp.array(x), wp.array(h), *outputs])
    half, wide, back = (outputs[k].numpy() for k in (0, 3, 4))
    brain, ours = (outputs[k].view(wp.uint16).numpy() for k in (1, 2))
    with np.errstate(over="ignore"):
        np.testing.assert_array_equal(half, x.astype(np.float16))
    np.testing.assert_array_equal(wide, h.astype(np.float32))
    assert np.all((brain == ours) | np.isnan(x))
    np.testing.assert_array_equal(back.view(np.uint32), brain.astype(np.uint32) << 16)


@needs_clang
@pytest.mark.parametrize("dtype", [wp.float8_e4m3fn, wp.float8_e5m2, wp.float16, wp.bfloat16])
def test_small_floats_convert_as_kernels_do(dtype):
    @wp.func_native("return x;")
    def narrowed(x: float) -> dtype: ...

    @wp.func_native("return x;")
    def widened(x: dtype) -> float: ...

    @wp.kernel(module="unique")
    def convert(
        x: wp.array[float], small: wp.array[dtype], ours: wp.array[dtype], wide: wp.array[float], back: wp.array[float]
    ):
        i = wp.tid()
        small[i] = narrowed(x[i])
        ours[i] = dtype(x[i])
        wide[i] = widened(ours[i])
        back[i] = float(ours[i])

    random = np.random.default_rng(3)
    near_one = (random.normal(0, 1, 40000) * 2.0 ** random.integers(-30, 20, 40000)).astype(np.float32)
    bits = random.integers(0, 2**32, 20000, dtype=np.uint32)
    x = np.concatenate([near_one, bits.view(np.float32), (bits & 0xFFF00000).view(np.float32)])
    small, ours = wp.zeros(x.size, dtype=dtype), wp.zeros(x.size, dtype=dtype)
    wide, back = wp.zeros(x.size, dtype=float), wp.zeros(x.size, dtype=float)
    wp.launch(convert, dim=x.size, inputs=[wp.array(x), small, ours, wide, back])
    as_bits = wp.uint8 if wp.types.type_size_in_bytes(dtype) == 1 else wp.uint16
    assert np.all((small.view(as_bits).numpy() == ours.view(as_bits).numpy()) | np.isnan(x))
    np.testing.assert_array_equal(np.isnan(wide.numpy()), np.isnan(back.numpy()))
    np.testing.assert_array_equal(wide.numpy(), back.numpy())
    np.testing.assert_array_equal(np.isnan(small.astype(float).numpy()), np.isnan(ours.astype(float).numpy()))


@needs_clang
def test_mathematics_includes_and_static_variables():
    @wp.func_native("""
        #include <algorithm>
        #include <vector>
        static int calls = 0;
        atomicAdd(&calls, 1);
        std::vector<float> v = {x, 2.0f, sqrt(x), pow(x, 2.0f), float(calls > 0)};
        std::sort(v.begin(), v.end());
        return v.back() + min(x, 1.0f) + abs(-x) + clamp(x, 0.0f, 0.5f) + floor(x);
    """)
    def mixed(x: float) -> float: ...

    @wp.kernel
    def run(x: wp.array[float], out: wp.array[float]):
        i = wp.tid()
        out[i] = mixed(x[i])

    x = np.linspace(2, 5, 9, dtype=np.float32)
    out = wp.zeros(9, dtype=float)
    wp.launch(run, dim=9, inputs=[wp.array(x), out])
    np.testing.assert_allclose(out.numpy(), x * x + 1 + x + 0.5 + np.floor(x), rtol=1e-6)


@needs_clang
@pytest.mark.parametrize("header", ["", "#include <cmath>\n#include <cfloat>"])
def test_names_of_c(header):
    @wp.func_native(
        header
        + """
        float v = sqrtf(x) + fabsf(-x) + powf(x, 2.0f) + fmaxf(x, 1.0f) + fminf(x, 1.0f) + floorf(x);
        if (FLT_MAX < INFINITY && NAN != NAN) v += float(M_PI);
        return v + *wp::address(a, i, 1) + *address(b, i);
        """
    )
    def mixed(x: float, a: wp.array2d[float], b: wp.array[float], i: int) -> float: ...

    @wp.kernel(module="unique")
    def run(x: wp.array[float], a: wp.array2d[float], out: wp.array[float]):
        i = wp.tid()
        out[i] = mixed(x[i], a, x, i)

    x = np.linspace(0.5, 5, 9, dtype=np.float32)
    a = np.arange(18, dtype=np.float32).reshape(9, 2)
    out = wp.zeros(9, dtype=float)
    wp.launch(run, dim=9, inputs=[wp.array(x), wp.array(a), out])
    expected = np.sqrt(x) + x + x * x + np.maximum(x, 1) + np.minimum(x, 1) + np.floor(x) + np.pi + a[:, 1] + x
    np.testing.assert_allclose(out.numpy(), expected, rtol=1e-6)


# As the header and NumPy name them.
OF_ONE = {
    **{name: name for name in ("cbrt", "ceil", "cos", "cosh", "exp", "exp2", "fabs", "floor", "log10", "log2", "log")},
    **{name: name for name in ("rint", "sin", "sinh", "sqrt", "tan", "tanh", "trunc")},
    "acos": "arccos",
    "asin": "arcsin",
    "atan": "arctan",
}
OF_TWO = {"atan2": "arctan2", "fmax": "fmax", "fmin": "fmin", "fmod": "fmod", "hypot": "hypot", "pow": "power"}


@needs_clang
@pytest.mark.own_launches("writes to places that its numbers or its code name")
@pytest.mark.parametrize("suffix, dtype", [("f", wp.float32), ("", wp.float32), ("", wp.float64)])
def test_mathematical_functions_are_those_of_numpy(suffix, dtype):
    calls = [f"out[i][{k}] = {name}{suffix}(x);" for k, name in enumerate(OF_ONE)]
    calls += [f"out[i][{k}] = {name}{suffix}(x, y);" for k, name in enumerate(OF_TWO, len(OF_ONE))]
    calls += [f"out[i][{len(calls)}] = fma{suffix}(x, y, y); out[i][{len(calls) + 1}] = rsqrt{suffix}(x);"]

    @wp.func_native("\n".join(calls))
    def all_of_them(x: dtype, y: dtype, out: wp.array2d[dtype], i: int): ...

    @wp.kernel(module="unique")
    def run(x: wp.array[dtype], y: wp.array[dtype], out: wp.array2d[dtype]):
        i = wp.tid()
        all_of_them(x[i], y[i], out, i)

    rng = np.random.default_rng(5)
    scalar = np.float32 if dtype is wp.float32 else np.float64
    x, y = rng.uniform(0.01, 1, (2, 200)).astype(scalar)
    out = wp.zeros((200, len(calls) + 1), dtype=dtype)
    wp.launch(run, dim=200, inputs=[wp.array(x, dtype=dtype), wp.array(y, dtype=dtype), out])
    wide, other = x.astype(np.longdouble), y.astype(np.longdouble)
    expected = [getattr(np, name)(wide) for name in OF_ONE.values()]
    expected += [getattr(np, name)(wide, other) for name in OF_TWO.values()]
    expected += [wide * other + other, 1 / np.sqrt(wide)]
    np.testing.assert_allclose(out.numpy(), np.stack(expected, axis=1).astype(scalar), rtol=4 * np.finfo(scalar).eps)


@needs_clang
@pytest.mark.own_launches("writes to places that its numbers or its code name")
def test_atomics_by_the_names_of_cuda():
    @wp.func_native("""
        const int i = tid % 4;
        atomicAdd(&f[0], 0.5f);
        atomicAdd(d, 0.25);
        atomicSub(&n[0], 3);
        atomicMin(&n[1], tid);
        atomicMax(&n[2], tid);
        atomicAnd(&n[3], ~(1 << tid % 31));
        atomicOr(&n[4], 1 << tid % 31);
        atomicXor(&n[5], tid);
        atomicMin(&u[0], 3000000000u + tid);
        atomicMax(&u[1], 3000000000u + tid);
        atomicInc(&u[2], 9);
        atomicDec(&u[3], 9);
        atomicAdd((unsigned long long*)&wide[0], (unsigned long long)tid << 33);
        if (atomicExch(&n[6], 1) == 0) atomicAdd(&n[7], 1);
        if (atomicCAS(&n[8], 0, tid + 1) == 0) atomicAdd(&n[9], 1);
        atomic_min(&f[1], -float(tid));
        atomic_max(&f[2], float(tid));
        h[tid] = atomic_exch(&f[3], 7.0f);
    """)
    def all_of_them(
        f: wp.array[float],
        d: wp.array[wp.float64],
        n: wp.array[int],
        u: wp.array[wp.uint32],
        wide: wp.array[wp.int64],
        h: wp.array[float],
        tid: int,
    ): ...

    @wp.kernel
    def run(
        f: wp.array[float],
        d: wp.array[wp.float64],
        n: wp.array[int],
        u: wp.array[wp.uint32],
        wide: wp.array[wp.int64],
        h: wp.array[float],
    ):
        all_of_them(f, d, n, u, wide, h, wp.tid())

    count = 303
    tid = np.arange(count)
    f, d = wp.zeros(4, dtype=float), wp.zeros(1, dtype=wp.float64)
    n = wp.array([0, 1000, -1, -1, 0, 0, 0, 0, 0, 0], dtype=int)
    u = wp.array([4000000000, 0, 0, 0], dtype=wp.uint32)
    wide, h = wp.zeros(1, dtype=wp.int64), wp.zeros(count, dtype=float)
    wp.launch(run, dim=count, inputs=[f, d, n, u, wide, h])
    assert f.numpy().tolist() == [count * 0.5, -(count - 1), count - 1, 7] and d.numpy()[0] == count * 0.25
    first = int(n.numpy()[8])
    assert 1 <= first <= count
    expected = [-3 * count, 0, count - 1, np.int32(-(2**31)), 2**31 - 1, np.bitwise_xor.reduce(tid), 1, 1, first, 1]
    np.testing.assert_array_equal(n.numpy(), expected)
    np.testing.assert_array_equal(u.numpy(), [3000000000, 3000000000 + count - 1, count % 10, (-count) % 10])
    assert wide.numpy()[0] == tid.sum() << 33
    assert sorted(h.numpy()) == [0] + [7] * (count - 1)


@needs_clang
@pytest.mark.own_launches("writes to places that its numbers or its code name")
def test_bits_by_the_names_of_cuda():
    @wp.func_native("""
        out[0] = __popc(x) + 100 * __clz(x) + 10000 * __ffs(x);
        out[1] = __popcll(y) + 100 * __clzll(y) + 10000 * __ffsll(y);
        out[2] = __brev(x) == 0x80000000u && __brevll(y) == 0;
        out[3] = __float_as_int(1.5f) + int(__uint_as_float(0x3f800000u));
    """)
    def all_of_them(x: int, y: wp.int64, out: wp.array[int]): ...

    @wp.kernel
    def run(x: int, y: wp.int64, out: wp.array[int]):
        all_of_them(x, y, out)

    for x, y, expected in (
        (1, 0, [1 + 3100 + 10000, 6400, 1]),
        (-2, -4, [31 + 20000, 62 + 30000, 0]),
    ):
        out = wp.zeros(4, dtype=int)
        wp.launch(run, dim=1, inputs=[x, y, out])
        assert out.numpy().tolist() == [*expected, 0x3FC00000 + 1]


@needs_clang
@pytest.mark.parametrize("options", [{"lanes": 1}, {"lanes": 8}])
def test_parameters_that_are_passed_by_reference(options):
    @wp.struct
    class Body:
        mass: float
        velocity: wp.vec3
        hits: wp.int8

    @wp.func_native("int old = count; ++count; body.velocity[1] += by; body.hits += 2; by = -by; return old;")
    def hit(count: wp.ref[int], body: wp.ref[Body], by: float) -> int: ...

    @wp.func_native("v = cross(v, w);")
    def turn(v: wp.ref[wp.vec3], w: wp.vec3): ...

    @wp.kernel(module="unique", module_options=options)
    def run(counts: wp.array[int], bodies: wp.array[Body], out: wp.array[int], v: wp.array2d[wp.vec3]):
        i = wp.tid()
        count = int(10)
        for k in range(i % 3):
            out[i] += hit(count, bodies[i], float(k) + 0.5)
        body = Body(mass=2.0)
        if i % 2 == 0:
            hit(counts[i], body, 3.0)
        turn(body.velocity, wp.vec3(0.0, 0.0, 1.0))
        turn(v[i, 1], wp.vec3(1.0, 0.0, 0.0))
        counts[i] += 100 * count + int(body.velocity[0]) + 1000 * int(body.hits)

    n = 11
    counts, out = wp.zeros(n, dtype=int), wp.zeros(n, dtype=int)
    bodies, v = wp.zeros(n, dtype=Body), wp.full((n, 2), wp.vec3(0.0, 2.0, 0.0), dtype=wp.vec3)
    wp.launch(run, dim=n, inputs=[counts, bodies, out, v])
    i = np.arange(n)
    even = i % 2 == 0
    np.testing.assert_array_equal(counts.numpy(), 100 * (10 + i % 3) + np.where(even, 1 + 3 + 2000, 0))
    np.testing.assert_array_equal(out.numpy(), np.array([0, 10, 21])[i % 3])
    found = bodies.numpy()
    np.testing.assert_array_equal(found["velocity"][:, 1], np.array([0, 0.5, 2.0])[i % 3])
    np.testing.assert_array_equal(found["hits"], 2 * (i % 3))
    np.testing.assert_array_equal(v.numpy()[:, 1], np.tile([0, 0, -2], (n, 1)))
    np.testing.assert_array_equal(v.numpy()[:, 0], np.tile([0, 2, 0], (n, 1)))


@needs_clang
def test_generic_parameters_and_overloads():
    @wp.func_native("return 2 * int(sizeof(a)) + int(a);")
    def size_of(a: Any) -> int: ...

    @wp.func_native("return 1;")
    def which(a: float) -> int: ...

    @wp.func_native("return 2;")
    def which(a: int) -> int: ...  # noqa: F811

    @wp.kernel
    def run(out: wp.array[int]):
        out[0] = size_of(wp.float64(3.0))
        out[1] = size_of(wp.int8(3))
        out[2] = which(1.5)
        out[3] = which(out[0])

    out = wp.zeros(4, dtype=int)
    wp.launch(run, dim=1, inputs=[out])
    assert out.numpy().tolist() == [19, 5, 1, 2]


@needs_clang
def test_closures_with_other_snippets_are_other_functions():
    def make(factor):
        @wp.func_native(f"return {factor} * x;")
        def times(x: int) -> int: ...

        @wp.kernel
        def run(out: wp.array[int]):
            out[0] = times(7)

        return run

    out = wp.zeros(1, dtype=int)
    for factor in (2, 3, 2):
        wp.launch(make(factor), dim=1, inputs=[out])
        assert out.numpy()[0] == 7 * factor


@needs_clang
def test_two_structs_of_one_name():
    def struct_with(dtype):
        @wp.struct
        class Pair:
            a: dtype

        return Pair

    A, B = struct_with(wp.int8), struct_with(wp.float64)

    @wp.func_native("return int(x.a) + int(y.a);")
    def total(x: A, y: B) -> int: ...

    @wp.kernel
    def run(out: wp.array[int]):
        x = A()
        y = B()
        x.a = wp.int8(3)
        y.a = wp.float64(4.0)
        out[0] = total(x, y)

    out = wp.zeros(1, dtype=int)
    wp.launch(run, dim=1, inputs=[out])
    assert out.numpy()[0] == 7


def test_calls_from_python_run_the_python_body():
    with pytest.raises(wp.UsageError, match=r"square\(\): is written in C\+\+, which kernels can call"):
        square(1.0, 2.0)

    @wp.func_native("return x + 1;")
    def next_one(x: int) -> int:
        return x + 1

    assert next_one(3) == 4


def test_the_header_names_every_type():
    text = (Path(__file__).resolve().parents[2] / "include/weft/native.h").read_text()
    for dtype in [*INTEGERS, *FLOATS]:
        assert f" {dtype.__name__}" in text
