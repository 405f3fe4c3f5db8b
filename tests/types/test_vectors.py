"""Vectors, matrices, quaternions and transforms at Python scope."""

import numpy as np
import pytest
import warp as wp
from hypothesis import given
from hypothesis import strategies as st

components = st.floats(-1e3, 1e3, width=32)


def as64(value):
    return np.array(value, dtype=np.float64)


# ---- construction ----


@pytest.mark.seed("S-VEC-007", "S-VEC-012")
def test_vectors_are_made_of_nothing_one_or_all_components():
    assert list(wp.vec3()) == [0.0, 0.0, 0.0]
    assert list(wp.vec3(1.0, 2.0, 3.0)) == [1.0, 2.0, 3.0]
    assert list(wp.vec3(7)) == [7.0, 7.0, 7.0]
    vec5d = wp.types.vector(length=5, dtype=wp.float64)
    assert list(vec5d()) == [0.0] * 5
    assert list(vec5d(1.0, 2.0, 3.0, 4.0, 5.0)) == [1.0, 2.0, 3.0, 4.0, 5.0]


@pytest.mark.parametrize(
    "source",
    [
        [1, 2, 3],
        (1.0, 2.0, 3.0),
        np.array([1, 2, 3], dtype=np.int16),
        np.array([1.0, 9.0, 2.0, 9.0, 3.0])[::2],
        range(1, 4),
        wp.vec3d(1.0, 2.0, 3.0),
        wp.vec3i(1, 2, 3),
        [np.float32(1), wp.float64(2), np.array(3.0)],
    ],
    ids=["list", "tuple", "numpy", "strided", "range", "vec3d", "vec3i", "mixed"],
)
def test_vectors_are_made_of(source):
    assert wp.vec3(source) == wp.vec3(1.0, 2.0, 3.0)


@pytest.mark.parametrize(
    "source", [[1, 2], [1, 2, 3, 4], "abc", b"abc", {1: 2}, None, np.zeros((3, 1)), wp.vec2(), [1, 2, "x"]]
)
def test_vectors_are_not_made_of(source):
    has_length = not isinstance(source, (str, bytes, dict, type(None))) and len(source) != 3
    with pytest.raises(ValueError if has_length else TypeError, match=r"vec3f\(\)"):
        wp.vec3(source)


def test_integer_vectors_refuse_fractions():
    with pytest.raises(TypeError, match="float 1.5 for component 1"):
        wp.vec3i(1, 1.5, 2)
    assert list(wp.vec2ul(2**64 - 1, 0)) == [2**64 - 1, 0]


@pytest.mark.seed("S-MAT-003")
def test_matrices_take_components_row_by_row():
    m = wp.mat22(1.0, 2.0, 3.0, 4.0)
    assert m[0] == wp.vec2(1.0, 2.0) and m[1, 0] == 3.0
    assert m == wp.mat22([[1, 2], [3, 4]]) == wp.mat22(np.array([[1, 2], [3, 4]])) == wp.mat22([1, 2, 3, 4])
    assert m == wp.mat22(np.array([[1, 3], [2, 4]]).T)
    mat23 = wp.types.matrix((2, 3), wp.int32)
    assert mat23(range(6)) == np.arange(6).reshape(2, 3)
    with pytest.raises(ValueError):
        mat23(np.zeros((3, 2), dtype=np.int32))


@pytest.mark.seed("S-MAT-008")
def test_half_components_are_converted_by_an_explicit_constructor():
    mat32d = wp.types.matrix(shape=(3, 2), dtype=wp.float64)
    m = mat32d(*[wp.float16(x) for x in (1, 2, 3, 4, 5, 6)])
    assert m == [[1, 2], [3, 4], [5, 6]] and np.array(m).dtype == np.float64


def test_quaternions_and_transforms():
    q = wp.quat(wp.vec3(1, 2, 3), 4.0)
    assert q == wp.quat(1, 2, 3, 4) and q.w == 4.0 and q.x == 1.0
    t = wp.transform((1, 2, 3), q)
    assert t.p == wp.vec3(1, 2, 3) and t.q == q and len(t) == 7
    assert t == wp.transform(p=(1, 2, 3), q=q) == wp.transform(1, 2, 3, 1, 2, 3, 4)
    t.p[0] = 10.0
    assert t[0] == 10.0
    assert wp.transform(p=(1, 2, 3)).q == wp.quat(0, 0, 0, 1)
    with pytest.raises(TypeError, match="p and q"):
        wp.transform(r=3)


def test_what_is_made_of_nothing_and_of_one_number():
    for made in (wp.transform, wp.transformd, wp.transformh, wp.types.transformation(wp.float16)):
        assert made() == (0, 0, 0, 0, 0, 0, 1) and made(1.5) == [1.5] * 7
    assert wp.transform(wp.transformd((1, 2, 3))) == (1, 2, 3, 0, 0, 0, 1) == wp.transform(1, 2, 3, 0, 0, 0, 1)
    assert wp.quat() == (0, 0, 0, 0) and wp.quat(2) == (2, 2, 2, 2) and wp.mat22() == ((0, 0), (0, 0))
    zeros = wp.zeros(1, dtype=wp.transform).list()[0]
    assert zeros == [0] * 7 and zeros.p == (0, 0, 0), "in arrays and kernels it is zero"


# ---- components ----


@pytest.mark.seed("S-VEC-011")
def test_components_are_read_and_written_by_index_and_name():
    v = wp.vec4(1, 2, 3, 4)
    assert (v[0], v[-1], v.x, v.y, v.z, v.w) == (1.0, 4.0, 1.0, 2.0, 3.0, 4.0)
    v.x, v[1], v[-1] = 10, 20, 40
    assert list(v) == [10.0, 20.0, 3.0, 40.0]
    v.y += 1
    assert v.y == 21.0 and v.zyx == wp.vec3(3.0, 21.0, 10.0)
    v[1:3] = [5, 6]
    assert v[1:3] == wp.vec2(5, 6) and v[::-1] == wp.vec4(40, 6, 5, 10)
    v[:2] = 0
    assert list(v) == [0.0, 0.0, 6.0, 40.0] and len(v) == 4 and 6.0 in v


def test_a_component_that_is_not_there():
    v = wp.vec2()
    for index in (2, -3):
        with pytest.raises(IndexError, match=str(index)):
            v[index]
    with pytest.raises(KeyError, match="float 1.0"):
        v[1.0]
    assert not hasattr(v, "z") and not hasattr(v, "nonsense") and not hasattr(v, "xz")
    with pytest.raises(AttributeError, match="'z'"):
        v.z = 1.0
    with pytest.raises(TypeError, match="str"):
        v[0] = "1"


def test_a_failed_assignment_changes_nothing():
    v = wp.vec3i(1, 2, 3)
    with pytest.raises(TypeError):
        v[0:2] = [7, 0.5]
    assert list(v) == [1, 2, 3]


def test_matrix_rows_are_views_and_columns_are_copies():
    m = wp.mat33(range(9))
    m[0][1] = 100.0
    assert m[0, 1] == 100.0
    m[1] = (0, 0, 1)
    m[2, 0:2] = 5
    assert m == [[0, 100, 2], [0, 0, 1], [5, 5, 8]]
    column = m[:, 1]
    assert column == wp.vec3(100, 0, 5)
    column[0] = 0.0
    assert m[0, 1] == 100.0
    assert m[0:2, 1:3] == wp.mat22(100, 2, 0, 1) and m[-1, -1] == 8.0
    assert [row[0] for row in m] == [0.0, 0.0, 5.0]
    with pytest.raises(KeyError):
        m[0, 0, 0]


def test_rows_and_columns_by_name_are_copies():
    m = wp.mat22(1, 2, 3, 4)
    row, column = m.get_row(0), m.get_col(-1)
    assert row == (1, 2) and column == (2, 4) and type(row) is wp.vec2
    row[0] = 9.0
    m.set_row(1, (5, 6))
    m.set_col(index=0, value=wp.vec2(7, 8))
    assert m == ((7, 2), (8, 6))
    m.set_col(1, 0.5)
    assert m == ((7, 0.5), (8, 0.5))
    for use in (m.get_row, m.get_col, lambda i: m.set_row(i, (1, 2)), lambda i: m.set_col(i, (1, 2))):
        for index in (2, -3):
            with pytest.raises(IndexError):
                use(index)
        with pytest.raises(TypeError):
            use(0.5)
    for wrong, error in (((1, 2, 3), ValueError), ("ab", TypeError), (None, TypeError)):
        with pytest.raises(error):
            m.set_row(0, wrong)


def test_a_row_outlives_its_matrix():
    row = wp.types.matrix((20, 20), wp.float64)(3.0)[7]
    assert list(row) == [3.0] * 20


# ---- text and memory ----


def test_str_and_repr_show_components_and_type():
    assert str(wp.vec3(1, 2, 3)) == "[1.0, 2.0, 3.0]" and repr(wp.vec3(1, 2, 3)) == "vec3f([1.0, 2.0, 3.0])"
    assert repr(wp.vec2(0.1, 1e10)) == "vec2f([0.10000000149011612, 10000000000.0])"
    assert repr(wp.vec2d(0.1, 1e400)) == "vec2d([0.1, inf])" and repr(wp.float32(0.1)) == "float32(0.1)"
    assert repr(wp.transform((1, 2, 3))) == "transformf([1.0, 2.0, 3.0, 0.0, 0.0, 0.0, 1.0])"
    assert str(wp.vec2i(1, -2)) == "[1, -2]" and repr(wp.mat22(1, 2, 3, 4)) == "mat22f([[1.0, 2.0], [3.0, 4.0]])"
    assert str(wp.mat22(1, 2, 3, 4)) == "[[1.0, 2.0],\n [3.0, 4.0]]"
    for value in (
        wp.vec3d(0.1, -0.0, 1e300),
        wp.mat22(1, 2, 3, 4),
        wp.transform((1, 2, 3), (0, 0, 0, 1)),
        wp.quat(0, 0, 0, 1),
    ):
        assert eval("wp." + repr(value)) == value


@pytest.mark.parametrize("suffix", ["f", "d", "h", "b", "ub", "s", "us", "i", "ui", "l", "ul"])
def test_numpy_sees_the_memory(suffix):
    v = getattr(wp, "vec3" + suffix)(1, 2, 3)
    a = np.asarray(v)
    assert a.shape == (3,) and a.dtype == wp.types.dtype_to_numpy(v.dtype) and list(a) == [1, 2, 3]
    a[1] = 9
    assert v[1] == 9
    v[0] = 7
    assert a[0] == 7


def test_numpy_sees_the_components_in_a_row():
    assert np.array(wp.mat33(range(9))).tolist() == list(range(9))
    assert np.array([wp.mat22(1, 2, 3, 4)]).shape == (1, 4)
    assert np.array([wp.vec3(1, 2, 3), wp.vec3(4, 5, 6)]).shape == (2, 3)
    assert memoryview(wp.mat22d()).nbytes == 32


@pytest.mark.parametrize("dtype", [wp.bfloat16, wp.float8_e4m3fn, wp.float8_e5m2])
def test_small_floats_are_numbers_in_numpy_and_have_no_buffer_with_a_format(dtype):
    v = wp.types.vector(2, dtype)(1.5, 2)
    assert np.array(v).tolist() == [1.5, 2.0] and np.add(v, 1).tolist() == [2.5, 3.0]
    assert np.add(np.float32(1.0), float(dtype(1.5))) == 2.5
    for value in (v, dtype(1.5)):
        with pytest.raises(BufferError, match=f"buffers have no format for {dtype.__name__}"):
            memoryview(value)


@pytest.mark.host_memory("looks at addresses")
def test_values_of_buffers_and_addresses():
    numbers = np.arange(8, dtype=np.float32)
    assert wp.vec3.from_buffer_copy(numbers, 4) == (1, 2, 3) and wp.mat22.from_buffer_copy(numbers) == ((0, 1), (2, 3))
    assert wp.transform.from_buffer_copy(source=numbers, offset=4) == (1, 2, 3, 4, 5, 6, 7)
    shared = wp.quat.from_buffer(numbers)
    shared[0] = 9.0
    numbers[1] = 5.0
    assert numbers[0] == 9.0 and shared == (9, 5, 2, 3)
    del numbers
    assert shared == (9, 5, 2, 3), "the buffer lives as long as the value"
    with pytest.raises(ValueError, match="8 bytes, expected at least 12 from 0"):
        wp.vec3.from_buffer_copy(bytes(8))
    with pytest.raises(ValueError):
        wp.vec3.from_buffer_copy(bytes(12), -4)
    with pytest.raises(TypeError, match="read-only"):
        wp.vec3.from_buffer(bytes(12))
    with pytest.raises(TypeError):
        wp.vec3.from_buffer([1.0, 2.0, 3.0])
    a = wp.array([1.0, 2.0, 3.0, 4.0], dtype=float)
    v = wp.vec3.from_ptr(a.ptr)
    v[0] = 7.0
    assert v == (7, 2, 3) and a.list() == [1, 2, 3, 4] and wp.mat22.from_ptr(a.ptr) == ((1, 2), (3, 4))
    for nothing in (0, None):
        with pytest.raises(RuntimeError, match="the address is null"):
            wp.vec3.from_ptr(nothing)
    with pytest.raises(TypeError):
        wp.vec3.from_ptr("x")


def test_vectors_are_mutable_and_not_hashable():
    with pytest.raises(TypeError):
        hash(wp.vec3())


# ---- operators ----


@pytest.mark.seed("S-VEC-009", "S-VEC-012")
@given(st.lists(components, min_size=3, max_size=3), st.lists(components, min_size=3, max_size=3), components)
def test_vector_arithmetic_is_numpys(a, b, s):
    x, y = np.array(a, np.float32), np.array(b, np.float32)
    s32 = np.float32(s)
    assert np.array_equal(wp.vec3(a) + wp.vec3(b), x + y)
    assert np.array_equal(wp.vec3(a) - wp.vec3(b), x - y)
    assert np.array_equal(-wp.vec3(a), -x)
    assert np.array_equal(wp.vec3(a) * s, x * s32) and np.array_equal(s * wp.vec3(a), x * s32)
    assert type(s32 * wp.vec3(a)) is wp.vec3 and s32 * wp.vec3(a) == wp.vec3(a) * s
    if s:
        with np.errstate(over="ignore"):
            assert np.array_equal(wp.vec3(a) / s, x / s32)


def test_in_place_operators_rebind():
    v = w = wp.vec3(1, 2, 3)
    v += wp.vec3(1, 1, 1)
    v *= 2.0
    assert v == wp.vec3(4, 6, 8) and w == wp.vec3(1, 2, 3)


@pytest.mark.seed("S-MAT-005")
def test_matrix_products():
    rng = np.random.default_rng(0)
    a, b, v = rng.normal(size=(2, 3)), rng.normal(size=(3, 4)), rng.normal(size=3)
    left, right = wp.types.matrix((2, 3), wp.float64)(a), wp.types.matrix((3, 4), wp.float64)(b)
    np.testing.assert_allclose(np.reshape(left * right, (2, 4)), a @ b, rtol=1e-14)
    np.testing.assert_allclose(np.reshape(left @ right, (2, 4)), a @ b, rtol=1e-14)
    np.testing.assert_allclose(left @ wp.vec3d(v), a @ v, rtol=1e-14)
    np.testing.assert_allclose(wp.vec3d(v) * right, v @ b, rtol=1e-14)
    assert type(left * right).shape == (2, 4) and type(left * wp.vec3d(v)) is wp.vec2d
    mat22i = wp.types.matrix((2, 2), wp.int32)
    assert mat22i(1, 2, 3, 4) * 3 == mat22i(3, 6, 9, 12)
    with pytest.raises(TypeError):
        left * left


def test_quaternions_multiply_as_hamilton_says():
    i, j, k, one = wp.quat(1, 0, 0, 0), wp.quat(0, 1, 0, 0), wp.quat(0, 0, 1, 0), wp.quat(0, 0, 0, 1)
    assert i * j == k and j * k == i and k * i == j and i * i == -one and one * j == j


def test_transforms_multiply_as_their_matrices():
    rng = np.random.default_rng(1)

    def matrix(t):
        x, y, z, w = (float(c) for c in t.q)
        m = np.eye(4)
        m[:3, :3] = [
            [1 - 2 * (y * y + z * z), 2 * (x * y - z * w), 2 * (x * z + y * w)],
            [2 * (x * y + z * w), 1 - 2 * (x * x + z * z), 2 * (y * z - x * w)],
            [2 * (x * z - y * w), 2 * (y * z + x * w), 1 - 2 * (x * x + y * y)],
        ]
        m[:3, 3] = t.p
        return m

    def random():
        q = rng.normal(size=4)
        return wp.transformd(rng.normal(size=3), q / np.linalg.norm(q))

    a, b = random(), random()
    np.testing.assert_allclose(matrix(a * b), matrix(a) @ matrix(b), atol=1e-14)


def test_operands_must_have_one_type():
    for make in (
        lambda: wp.vec3() + wp.vec3d(),
        lambda: wp.vec3() + wp.vec2(),
        lambda: wp.vec3i() * 0.5,
        lambda: wp.vec3() + (1, 2, 3),
        lambda: wp.vec3() * wp.float64(1.0),
        lambda: wp.mat22() + wp.vec2(),
    ):
        with pytest.raises(TypeError):
            make()
    with pytest.raises(TypeError, match="cw_mul"):
        wp.vec3() * wp.vec3()


def test_with_a_numpy_array_numpy_decides():
    v, a = wp.vec3(1, 2, 3), np.array([10.0, 20.0, 30.0])
    assert isinstance(v + a, np.ndarray) and np.array_equal(v + a, [11, 22, 33]) and np.array_equal(a * v, [10, 40, 90])
    assert np.array_equal(v < a, [True] * 3) and (wp.mat22(1, 2, 3, 4) + np.ones((2, 2))).tolist() == [[2, 3], [4, 5]]


@given(st.lists(components, min_size=3, max_size=3), st.integers(-(2**20), 2**20))
def test_a_number_beside_a_vector_goes_to_every_component(a, n):
    x, v, s = np.array(a, np.float32), wp.vec3(a), np.float32(n)
    assert np.array_equal(v + n, x + s) and np.array_equal(n + v, s + x) and np.array_equal(v - n, x - s)
    assert np.array_equal(float(n) - v, s - x) and type(v + n) is wp.vec3
    assert wp.vec3i(1, 2, 3) + n == (1 + n, 2 + n, 3 + n) and n - wp.vec3i(1, 2, 3) == (n - 1, n - 2, n - 3)


@given(st.lists(st.integers(-3, 3), min_size=4, max_size=4), st.lists(st.integers(-3, 3), min_size=4, max_size=4))
def test_equality_is_that_of_the_components(a, b):
    same = a == b
    square, flat = [a[:2], a[2:]], [b[:2], b[2:]]
    for made in (wp.vec4, wp.vec4d, wp.vec4i, wp.quat, wp.types.vector(4, wp.bfloat16)):
        for other in (b, tuple(b), np.array(b), np.array(b, np.float32), wp.vec4(b), wp.vec4l(b), wp.quat(b)):
            assert bool(made(a) == other) is same and bool(made(a) != other) is not same, (made, other)
            assert bool(other == made(a)) is same or isinstance(other, np.ndarray)
        assert made(a) != b[:3] and made(a) != [*b, 0] and made(a) != square
    for made in (wp.mat22, wp.mat22d):
        for other in (flat, tuple(map(tuple, flat)), np.array(flat), wp.mat22d(b), [wp.vec2(b[:2]), wp.vec2(b[2:])]):
            assert bool(made(a) == other) is same and bool(made(a) != other) is not same, (made, other)
        assert made(a) != a and made(a) != wp.vec4(a) and (made(a)[1] == b[2:]) is (a[2:] == b[2:])


def test_equality_compares_stored_components():
    assert wp.vec3(1, 2, 3) == wp.vec3(1, 2, 3) and wp.vec3(1, 2, 3) != wp.vec3(1, 2, 4)
    assert wp.vec3() == wp.vec3d() and wp.vec3() != 0 and wp.vec3() is not None and wp.vec3(1, 2, 3) == range(1, 4)
    assert wp.vec3(0.1, 0, 0) != (0.1, 0, 0) and wp.vec3d(0.1, 0, 0) == (0.1, 0, 0), "numbers as they are stored"
    assert wp.vec3(1, 2, 3) != "123" and wp.vec3(1, 2, 3) != (1, "a", 3) and wp.vec3(1, 1, 1) != 1
    assert wp.vec2ul(2**64 - 1, 0) != (-1, 0) and wp.vec2l(-1, 0) == (-1, 0)
    assert (wp.vec3() == np.zeros(3)).all(), "NumPy's bool beside NumPy's arrays"
    nan = float("nan")
    assert wp.vec2(nan, 0) != wp.vec2(nan, 0)
    with pytest.raises(TypeError):
        wp.vec3() < wp.vec3()


def test_a_class_derived_from_a_vector_type_is_that_type():
    class Point(wp.vec3):
        def norm(self):
            return sum(c * c for c in self) ** 0.5

    p = Point(3, 0, 4)
    assert p.norm() == 5.0 and p == wp.vec3(3, 0, 4) and (p + wp.vec3()).x == 3.0
    assert wp.types.type_name(Point) == "vec3f"
