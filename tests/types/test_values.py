"""Typed values against NumPy: every type, operators, conversions, views of parts, classes derived from them."""

import copy
import operator
import pickle

import numpy as np
import pytest
import warp as wp
from hypothesis import given, settings
from hypothesis import strategies as st

INTEGERS = ["int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64"]
FLOATS = ["float16", "float32", "float64"]
ARITHMETIC = [operator.add, operator.sub]
BITWISE = [operator.and_, operator.or_, operator.xor]


def numbers(scalar):
    if scalar in INTEGERS:
        limits = np.iinfo(scalar)
        return st.integers(int(limits.min), int(limits.max))
    return st.floats(width=np.dtype(scalar).itemsize * 8, allow_nan=False)


@st.composite
def pairs(draw, scalars=tuple(INTEGERS + FLOATS)):
    """(type, NumPy array, NumPy array, a number) of one scalar type and shape."""
    scalar = draw(st.sampled_from(scalars))
    shape = draw(st.one_of(st.tuples(st.integers(1, 7)), st.tuples(st.integers(1, 4), st.integers(1, 4))))
    dtype = getattr(wp, scalar)
    made = wp.types.vector(shape[0], dtype) if len(shape) == 1 else wp.types.matrix(shape, dtype)
    count = int(np.prod(shape))
    arrays = [
        np.array(draw(st.lists(numbers(scalar), min_size=count, max_size=count)), dtype=scalar).reshape(shape)
        for _ in range(2)
    ]
    return made, *arrays, np.dtype(scalar).type(draw(numbers(scalar)))


def same(value, expected):
    return np.array_equal(np.reshape(value, expected.shape), expected, equal_nan=expected.dtype.kind == "f")


@settings(deadline=None, max_examples=200)
@given(pairs())
def test_any_type_computes_as_numpy_does_in_its_dtype(case):
    made, x, y, s = case
    a, b = made(x), made(y)
    scalar = made.dtype(s)
    with np.errstate(all="ignore"):
        for op in ARITHMETIC:
            assert same(op(a, b), op(x, y)) and type(op(a, b)) is made
        assert same(a * scalar, x * s) and same(scalar * a, s * x)
        assert same(-a, -x) and same(+a, x)
        if x.dtype.kind == "f":
            assert same(a / scalar, x / s) and same(scalar / a, s / x)
        elif s != 0:
            quotient = np.vectorize(lambda p: wrapped(abs(int(p)) // abs(int(s)), p, s), otypes=[x.dtype])(x)
            assert same(a / scalar, quotient)
    assert (a == b) == bool(np.array_equal(x, y)) and a == made(x) and not a != made(x)


def wrapped(magnitude, p, s):
    quotient = -magnitude if (int(p) < 0) != (int(s) < 0) else magnitude
    return np.array(quotient).astype(s.dtype)


@settings(deadline=None, max_examples=60)
@given(pairs(scalars=INTEGERS), st.integers(0, 7))
def test_integers_have_the_operators_of_bits(case, shift):
    made, x, y, _ = case
    a, b = made(x), made(y)
    for op in BITWISE:
        assert same(op(a, b), op(x, y))
    assert same(~a, ~x)
    by = np.full_like(x, shift)
    assert same(a << made(by), x << by) and same(a >> made(by), x >> by)


def test_floats_have_no_operators_of_bits():
    for use in (lambda: wp.vec3() & wp.vec3(), lambda: ~wp.vec3(), lambda: wp.float32(1) << 1, lambda: -wp.transform()):
        with pytest.raises(TypeError):
            use()


@settings(deadline=None, max_examples=60)
@given(pairs(scalars=FLOATS), st.data())
def test_conversion_between_scalar_types_is_numpys(case, data):
    made, x, _, _ = case
    other = data.draw(st.sampled_from(FLOATS))
    target = getattr(wp, other)
    shape = made.shape
    to = wp.types.vector(shape[0], target) if len(shape) == 1 else wp.types.matrix(shape, target)
    with np.errstate(all="ignore"):
        assert same(to(made(x)), x.astype(other))


def test_a_vector_of_floats_becomes_one_of_integers_by_its_constructor():
    assert wp.vec3i(wp.vec3(1.9, -1.9, 1e20)) == wp.vec3i(1, -1, 2**31 - 1)
    assert wp.vec3ub(wp.vec3i(1, 255, 256)) == wp.vec3ub(1, 255, 0)
    with pytest.raises(TypeError):
        wp.vec3i(1.9, 0, 0)


def test_products_have_the_bits_of_kernels():
    @wp.kernel
    def products(
        m: wp.mat33,
        n: wp.mat33,
        v: wp.vec3,
        q: wp.quat,
        r: wp.quat,
        t: wp.transform,
        u: wp.transform,
        mv: wp.array[wp.vec3],
        vm: wp.array[wp.vec3],
        mm: wp.array[wp.mat33],
        qq: wp.array[wp.quat],
        tt: wp.array[wp.transform],
    ):
        mv[0] = m * v
        vm[0] = v * m
        mm[0] = m * n
        qq[0] = q * r
        tt[0] = t * u

    rng = np.random.default_rng(1)
    m, n, v = wp.mat33(rng.normal(size=(3, 3))), wp.mat33(rng.normal(size=(3, 3))), wp.vec3(rng.normal(size=3))
    q, r = (wp.normalize(wp.quat(rng.normal(size=4))) for _ in range(2))
    t, u = wp.transform(v, q), wp.transform((3, 2, 1), r)
    outputs = [wp.empty(1, dtype=type(x)) for x in (v, v, m, q, t)]
    wp.launch(products, dim=1, inputs=[m, n, v, q, r, t, u, *outputs])
    for out, value in zip(outputs, (m @ v, v @ m, m @ n, q * r, t * u)):
        assert np.array_equal(out.numpy()[0].ravel(), np.asarray(value).ravel())
    assert m * v == m @ v and type(m @ m) is wp.mat33
    wide = wp.types.matrix((2, 5), wp.float64)(range(10))
    tall = wp.types.matrix((5, 3), wp.float64)(range(15))
    product = np.arange(10.0).reshape(2, 5) @ np.arange(15.0).reshape(5, 3)
    assert wide @ tall == product and (wide @ np.arange(15.0).reshape(5, 3)).tolist() == product.tolist()
    with pytest.raises(TypeError):
        tall @ wide @ wp.types.vector(4, wp.float64)()


def test_powers_of_typed_floats():
    assert wp.float64(3.0) ** 2.0 == 9.0 and type(wp.float64(3.0) ** 2.0) is wp.float64
    assert 2.0 ** wp.float32(3.0) == 8.0 and type(2.0 ** wp.float32(3.0)) is wp.float32
    with pytest.raises(TypeError):
        pow(wp.float32(2.0), 2, 3)
    with pytest.raises(TypeError):
        wp.vec3() ** 2


def test_parts_of_a_transform_are_assigned():
    t = wp.transform((1, 2, 3), wp.quat_identity())
    t.p = wp.vec3(4, 5, 6)
    t.q = (1, 0, 0, 0)
    t.p += wp.vec3(1, 1, 1)
    t.p.x = 9.0
    assert t == wp.transform((9, 6, 7), (1, 0, 0, 0))
    with pytest.raises(TypeError, match=r"transformf.q: expected a quatf, got tuple of length 3"):
        t.q = (1, 0, 0)
    with pytest.raises(TypeError):
        del t.p
    assert t == wp.transform((9, 6, 7), (1, 0, 0, 0))
    assert wp.transform((1, 2, 3)) == wp.transform((1, 2, 3), wp.quat_identity())
    assert wp.transform(t) == t and wp.transformd(t).p == wp.vec3d(9, 6, 7)


@pytest.mark.seed("S-VEC-004")
def test_a_spatial_vector_is_made_of_two_halves():
    assert wp.spatial_vector(wp.vec3(1, 2, 3), wp.vec3(4, 5, 6)) == wp.spatial_vector(1, 2, 3, 4, 5, 6)
    assert wp.spatial_vectord((1, 2, 3), (4, 5, 6)) == wp.spatial_vectord(range(1, 7))
    assert wp.spatial_top(wp.spatial_vector((1, 2, 3), (4, 5, 6))) == wp.vec3(1, 2, 3)
    with pytest.raises(ValueError, match="two vectors of 3"):
        wp.spatial_vector(wp.vec3(), wp.vec2())


def test_truth_follows_pythons_rules_for_numbers_and_sequences():
    assert not wp.float32(0.0) and wp.int8(-1) and not wp.bool(False)
    assert wp.vec3() and wp.mat22()  # not empty, with any components


def test_scalars_are_keys_and_aggregates_are_not():
    assert {wp.int32(3): "a"}[3] == "a" and hash(wp.float64(0.5)) == hash(0.5)
    for value in (wp.vec3(), wp.mat22(), wp.quat(), wp.transform()):
        with pytest.raises(TypeError, match="unhashable"):
            hash(value)
        assert {tuple(np.asarray(value).ravel()): 1}


def test_a_scalar_equals_no_vector():
    for scalar, vector in ((wp.float64(2.0), wp.vec3d(2.0)), (wp.int8(1), wp.types.vector(1, wp.int8)(1))):
        assert not scalar == vector and not vector == scalar
        assert scalar != vector and vector != scalar


def test_classes_derived_from_a_type():
    class Force(wp.vec3):
        unit = "N"

        def __init__(self, x, y):
            super().__init__(x, y, 0.0)

    f = Force(1, 2)
    assert f == wp.vec3(1, 2, 0) and isinstance(f, wp.vec3) and f.unit == "N" and f.y == 2.0
    f.note = "attributes are free"
    assert type(f + f) is wp.vec3 and wp.length(Force(3, 4)) == 5.0


@pytest.mark.parametrize("made", [wp.vec3, wp.mat22d, wp.quat, wp.transform, wp.float64, wp.types.vector(40, wp.int8)])
def test_attributes_of_the_users_own(made):
    value = made()
    value.note = ["of mine"]
    for again in (copy.copy(value), pickle.loads(pickle.dumps(value))):
        assert again.note == ["of mine"] and again == value and type(again) is made
    assert copy.copy(value).note is value.note and copy.deepcopy(value).note is not value.note
    assert not hasattr(made(), "note") and value.__dict__ == {"note": ["of mine"]}
    with pytest.raises(AttributeError):
        made().missing


@pytest.mark.parametrize("scalar", INTEGERS + FLOATS + ["bfloat16", "float8_e4m3fn", "float8_e5m2", "bool"])
def test_copies_and_pickles_of_every_scalar_type(scalar):
    dtype = getattr(wp, scalar)
    values = [dtype(1), wp.types.vector(5, dtype)(1), wp.types.matrix((2, 3), dtype)(1)]
    for value in values:
        for again in (copy.copy(value), copy.deepcopy(value), pickle.loads(pickle.dumps(value))):
            assert type(again) is type(value) and again == value and again is not value


@wp.struct
class Particle:
    position: wp.vec3
    mass: float


def test_copies_of_structs():
    p = Particle()
    p.position, p.mass = wp.vec3(1, 2, 3), 4.0
    again = pickle.loads(pickle.dumps(p))
    assert type(again) is Particle and again.position == p.position and again.mass == 4.0
    other = copy.deepcopy(p)
    other.position.x = 9.0
    assert p.position == wp.vec3(1, 2, 3) and other.position == wp.vec3(9, 2, 3) and other.mass == 4.0


@pytest.mark.parametrize(
    "use, error, message",
    [
        (lambda: wp.vec3(1, 2), ValueError, "vec3f.*got 2 arguments"),
        (lambda: wp.mat22(1, 2, 3), ValueError, "mat22f.*got 3 arguments"),
        (lambda: wp.mat22((1, 2, 3), (3, 4, 5)), TypeError, "mat22f"),
        (lambda: wp.transform(1, 2, 3), ValueError, "transformf"),
        (lambda: wp.vec3()[None], KeyError, "an index is an int or a slice, got None"),
        (lambda: wp.vec3()["x"], KeyError, "got str"),
        (lambda: wp.vec3()[0, 1], KeyError, "takes one index, got 2"),
        (lambda: wp.vec3().__setitem__(None, 1.0), KeyError, "got None"),
        (lambda: wp.vec3().__setitem__(slice(0, 2), (1,)), ValueError, "the part is a vec2f"),
        (lambda: wp.vec3().__setitem__(0, (1,)), TypeError, "a component is float32"),
        (lambda: wp.vec3(1, 2, "3"), TypeError, "str for component 2"),
        (lambda: wp.vec3(x=1), TypeError, "no keyword"),
        (lambda: wp.vec3(1, 2, 3)[3], IndexError, "index 3 is outside 0 to 2"),
        (lambda: wp.mat22()[0, 2], IndexError, "index 2"),
        (lambda: wp.mat22()[0, 0, 0], KeyError, "one or two indices"),
        (lambda: wp.vec3()[2**80], IndexError, "fit|outside"),
        (lambda: wp.vec2i(0.5, 0), TypeError, "component 0"),
        (lambda: wp.vec3() + wp.vec2(), TypeError, "unsupported operand"),
        (lambda: wp.mat22() + 1.0, TypeError, "unsupported operand"),
        (lambda: wp.vec3i() + 1.5, TypeError, "unsupported operand"),
        (lambda: wp.vec3() * wp.vec3(), TypeError, "wp.dot"),
        (lambda: wp.vec3() < wp.vec3(), TypeError, "not supported"),
        (lambda: wp.float64(2.0) < wp.vec3d(), TypeError, "instances of 'float64' and 'vec3d'"),
        (lambda: wp.vec3d() >= wp.float64(2.0), TypeError, "instances of 'vec3d' and 'float64'"),
        (lambda: wp.vec3i(1, 2, 3) / wp.int32(0), ZeroDivisionError, "division by zero"),
        (lambda: wp.int32(1.5) + 2.5, TypeError, "unsupported operand"),
        (lambda: type(wp.vec3()).__mro__[1](), TypeError, "common base"),
        (lambda: wp.quat(1, 2, 3), ValueError, "quatf"),
        (lambda: abs(wp.vec3()), TypeError, "wp.abs"),
    ],
)
def test_what_is_refused_and_how(use, error, message):
    with pytest.raises(error, match=message):
        use()


def test_values_and_their_types_leak_no_references():
    import gc
    import sys

    v = wp.vec3(1, 2, 3)
    made = type(v)
    gc.collect()  # objects of earlier tests
    before = sys.getrefcount(made)
    for _ in range(100):
        w = v + v
        w[0] = w.x + w[1]
        repr(w), tuple(w), w.zyx, w == v, wp.dot(v, w)
        with pytest.raises(ValueError):
            wp.vec3(1, 2)
    del w
    gc.collect()
    assert abs(sys.getrefcount(made) - before) < 3


@pytest.mark.parametrize("value", [wp.vec3(1, 2, 3), wp.mat22d(1, 2, 3, 4), wp.quat(1, 2, 3, 4), wp.transform()])
def test_byref_points_to_the_value(value):
    import ctypes

    size = wp.types.type_size_in_bytes(type(value))
    copied = (ctypes.c_uint8 * size)()
    ctypes.memmove(copied, ctypes.byref(value), size)
    assert bytes(copied) == np.asarray(value).tobytes() and size == np.asarray(value).nbytes
    numbers = np.arange(value._length_, dtype=np.asarray(value).dtype)
    ctypes.memmove(ctypes.byref(value), numbers.ctypes.data, size)
    assert np.asarray(value).ravel().tolist() == numbers.tolist()


def test_byref_of_other_objects_is_that_of_ctypes():
    import ctypes

    number = ctypes.c_int(3)
    assert ctypes.byref(number)._obj is number
    with pytest.raises(TypeError, match="byref"):
        ctypes.byref(3)
    with pytest.raises(TypeError, match="byref"):
        ctypes.byref(wp.int16(7))  # a number: a write to it would be lost
