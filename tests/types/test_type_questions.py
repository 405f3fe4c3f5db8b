"""wp.types: questions about types and values, types as text, NumPy's and ctypes' names for them."""

import ctypes
from typing import Any, Literal, get_args

import numpy as np
import pytest
import warp as wp

SCALARS = ["int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64", "float16", "float32", "float64"]


@wp.struct
class Body:
    mass: float


INDEXED = wp.indexedarray(wp.zeros(3), [wp.array([0], dtype=int)])
# The answers of release 1.19 for a type, and for its instance.
KINDS = [
    (float, 2.5, "float scalar value"),
    (int, 3, "int scalar value"),
    (bool, True, "value"),
    (wp.bool, wp.bool(True), "value"),
    (wp.float16, wp.float16(1), "float scalar value"),
    (wp.bfloat16, wp.bfloat16(1), "float scalar value"),
    (wp.float8_e5m2, wp.float8_e5m2(1), "float scalar value"),
    (wp.uint64, wp.uint64(1), "int scalar value"),
    (wp.vec3, wp.vec3(), "vector composite value"),
    (wp.mat22, wp.mat22(), "matrix composite value"),
    (wp.quat, wp.quat(), "quaternion composite value"),
    (wp.transform, wp.transform(), "transformation composite value"),
    (Body, Body(), "struct"),
    (wp.array, wp.zeros(2), "array"),
    (wp.array, wp.array(dtype=float), "array"),
    (wp.array, wp.array2d[float], "array"),
    (wp.indexedarray, INDEXED, "array"),
    (str, "a", ""),
    (type(None), None, ""),
    (list, [1, 2], ""),
    (np.ndarray, np.ones(2), ""),
]
QUESTIONS = "int float scalar vector matrix quaternion transformation composite value struct array tile".split()


@pytest.mark.parametrize(("kind", "value", "answers"), KINDS)
def test_a_type_is_no_value_and_the_reverse(kind, value, answers):
    for question in QUESTIONS:
        of_types = getattr(wp.types, f"type_is_{question}")
        of_values = getattr(wp.types, f"is_{question}")
        assert of_types(kind) is of_values(value) is (question in answers.split()), question
        assert of_types(value) is False and of_values(kind) is False, question


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        (wp.vec3, "vec3f"),
        (wp.types.vector(7, float), "vector(length=7, dtype=float32)"),
        (wp.types.matrix((2, 7), float), "matrix(shape=(2, 7), dtype=float32)"),
        (wp.mat33h, "mat33h"),
        (wp.types.quaternion(wp.float16), "quath"),
        (wp.transformd, "transformd"),
        (wp.spatial_vector, "vector(length=6, dtype=float32)"),
        (float, "float"),
        (int, "int"),
        (bool, "bool"),
        (wp.bfloat16, "bfloat16"),
        (wp.array(dtype=float), "array(ndim=1, dtype=float32)"),
        (wp.array2d(dtype=wp.vec3), "array(ndim=2, dtype=vec3f)"),
        (wp.array(dtype=Any), "array(ndim=1, dtype=Any)"),
        (wp.zeros((2, 3)), "array(shape=(2, 3), dtype=float32)"),
        (str, "builtins.str"),
        (Any, "Any"),
        (None, "None"),
        (3, "3"),
    ],
)
def test_types_as_text(kind, text):
    assert wp.types.type_repr(kind) == text


def test_equal_types():
    equal = wp.types.types_equal
    assert equal(float, wp.float32) and equal(int, wp.int32) and equal(bool, wp.bool) and not equal(float, wp.float64)
    assert equal(wp.vec3, wp.types.vector(3, float)) and not equal(wp.vec3, wp.vec3d) and not equal(wp.quat, wp.vec4)
    assert equal(wp.array(dtype=float), wp.array[wp.float32]) and not equal(wp.array(dtype=float), wp.array(dtype=int))
    assert equal((float, wp.vec3), [wp.float32, wp.vec3f]) and not equal((float,), (float, float))
    assert equal(Body, Body) and not equal(Body, float) and equal(None, None) and not equal(wp.array(dtype=float), None)


def test_types_of_numpy():
    for name in SCALARS:
        dtype = getattr(wp, name)
        assert np.dtype(dtype).name == name and np.zeros(2, dtype=dtype).dtype == name
        assert wp.dtype_to_numpy(dtype) is getattr(np, name) and wp.dtype_to_numpy(dtype).__name__ == name
        assert wp.dtype_from_numpy(getattr(np, name)) is wp.dtype_from_numpy(np.dtype(name)) is dtype
        assert np.ones(2).astype(dtype).dtype == name and np.dtype([("x", dtype)])["x"] == name
    assert np.dtype(wp.bool) == bool and wp.dtype_from_numpy(np.bool_) is wp.bool
    assert np.result_type(wp.float32, np.float64) == np.float64 and np.dtype(wp.vec3) == np.dtype((np.float32, 3))
    assert wp.types.type_is_array(wp.fixedarray)
    assert wp.dtype_to_numpy(wp.bfloat16) is np.uint16 and wp.dtype_to_numpy(wp.vec3d) is np.float64
    for wrong in (str, None, Body, "float32"):
        with pytest.raises(TypeError):
            wp.dtype_to_numpy(wrong)
    for wrong in (np.complex64, float, str, None, "f4", np.dtype(">f4"), np.dtype("V3")):
        with pytest.raises(TypeError, match="no Weft type"):
            wp.dtype_from_numpy(wrong)


def test_types_of_ctypes():
    for dtype, found in ((float, ctypes.c_float), (wp.int8, ctypes.c_int8), (wp.float16, ctypes.c_uint16)):
        assert wp.types.type_ctype(dtype) is found
    assert wp.types.type_ctype(wp.bool) is ctypes.c_bool and ctypes.sizeof(wp.types.type_ctype(wp.mat22d)) == 32
    with pytest.raises(RuntimeError):
        wp.types.type_ctype(str)


def test_facts_that_types_carry():
    m = wp.types.matrix((2, 3), float)
    assert (m._length_, m._shape_, m._wp_scalar_type_) == (6, (2, 3), wp.float32)
    assert (wp.quat._length_, wp.quat._shape_, wp.transformd._shape_) == (4, (4,), (7,))
    assert wp.handle(-1) == 2**64 - 1 and wp.zeros(1, dtype=wp.handle).dtype is wp.uint64


def test_annotations_are_inspected_like_arrays():
    kind = wp.array(dtype=float, ndim=2)
    assert (kind.shape, kind.ndim, kind.dtype, kind.vars) == ((0, 0), 2, wp.float32, {})
    assert (kind.strides, kind.size, kind.ptr, kind.device, kind.capacity) == ((0, 0), 0, None, None, 0)
    assert not kind.is_contiguous and kind.grad is None and not kind.requires_grad and len(kind) == 0
    kind.shape = (2, 3)
    assert kind.shape == (2, 3) and kind == wp.array2d[float]
    changed = wp.zeros(2)
    changed.shape = (1, 2)
    assert changed.numpy().tolist() == [[0.0, 0.0]]
    with pytest.raises(wp.UsageError, match="the memory of the array has 8 bytes"):
        changed.shape = (1, 3)


def test_annotations_in_brackets():
    assert wp.array[float, Literal[2]] == wp.array[float, 2] == wp.array2d[wp.float32] != wp.array[float]
    assert hash(wp.array[float]) == hash(wp.array[wp.float32]) and {wp.array[float]: 1}[wp.array(dtype=float)] == 1
    assert repr(wp.array[float]) == "wp.array[wp.float32]" and repr(wp.array2d[wp.vec3]) == "wp.array2d[wp.vec3f]"
    assert eval(repr(wp.array3d[wp.vec3d])) == wp.array3d[wp.vec3d] and repr(wp.array[Any]).endswith("Any]")
    element, nothing = get_args(wp.array[float] | None)
    assert element == wp.array[float] and nothing is type(None)
    assert get_args(None | wp.array2d[int])[1].ndim == 2
    assert wp.indexedarray[float, Literal[2]] is wp.indexedarray(dtype=float, ndim=2)


def test_indexed_arrays_by_their_dimensions():
    a = wp.array(np.arange(6.0).reshape(2, 3), dtype=float)
    for rows in ([wp.array([1], dtype=int), None], wp.array([1], dtype=int)):
        chosen = wp.indexedarray2d(a, rows)
        assert isinstance(chosen, wp.indexedarray) and not isinstance(chosen, wp.array)
        assert chosen.numpy().tolist() == [[3, 4, 5]] and chosen.is_contiguous is False
        assert chosen.to(a.device) is chosen
    line = wp.indexedarray1d(a[0], wp.array([2, 0], dtype=int))
    assert line.list() == [2, 0] and line.contiguous().is_contiguous
    assert wp.indexedarray3d(dtype=float) is wp.indexedarray(dtype=float, ndim=3)
    for make in (wp.indexedarray1d, wp.indexedarray4d):
        with pytest.raises(ValueError, match="dimensions"):
            make(a, [wp.array([1], dtype=int)])


def test_memory_at_an_address_by_the_old_name():
    b = wp.array([1.0, 2.0, 3.0, 4.0], dtype=float)
    with pytest.warns(DeprecationWarning, match="ptr="):
        a = wp.from_ptr(b.ptr, 4, float)
    a[0] = 9.0
    kind = wp.MemoryKind.HOST if b.device.is_cpu else wp.MemoryKind.CUDA_MEMPOOL
    assert b.list() == [9, 2, 3, 4] and b.memory_kind is kind
    with pytest.warns(DeprecationWarning):
        assert wp.from_ptr(b.ptr, 4, shape=(2, 2)).shape == (2, 2)
    with pytest.warns(DeprecationWarning), pytest.raises(RuntimeError, match="null"):
        wp.from_ptr(0, 4, float)


def test_transforms_are_expanded():
    assert wp.transform_expand((1, 2, 3)) == (1, 2, 3, 0, 0, 0, 1) == wp.transform_expand(wp.transformd((1, 2, 3)))
    assert wp.transform_expand([1, 2, 3, 4]) == (1, 2, 3, 4, 0, 0, 1) and wp.transform_expand(range(7)) == range(7)
    for wrong in ((1, 2), range(8)):
        with pytest.raises(ValueError, match="three to seven"):
            wp.transform_expand(wrong)


@pytest.mark.parametrize("legacy", [False, True])
def test_scalar_results_of_builtins(legacy):
    wp.config.legacy_scalar_return_types = legacy
    try:
        results = wp.dot(wp.vec3d(1, 2, 3), wp.vec3d(1, 2, 3)), wp.sin(wp.float64(0.0)), wp.abs(wp.int8(-3))
        assert results == (14.0, 0.0, 3)
        expected = (float, float, int) if legacy else (wp.float64, wp.float64, wp.int8)
        assert tuple(map(type, results)) == expected and type(wp.vec3d()[0]) is float
        assert type(wp.normalize(wp.vec3d(0, 3, 4))) is wp.vec3d and wp.float64(2.0) ** wp.float64(3.0) == 8.0
    finally:
        wp.config.legacy_scalar_return_types = False


class Endless:
    """A sequence by its methods, without a length and without an end."""

    def __getitem__(self, index):
        return 1.0


class Liar(Endless):
    def __len__(self):
        return 3


@pytest.mark.parametrize("given", [ctypes.pointer(ctypes.c_float(1.0)), Endless(), Liar(), iter([1.0, 2.0, 3.0])])
@pytest.mark.parametrize(
    "use",
    [
        wp.vec3,
        wp.mat22,
        wp.quat,
        lambda x: wp.transform(p=x),
        lambda x: wp.vec3().__setitem__(slice(0, 2), x),
        lambda x: wp.full(1, x, dtype=wp.vec3),
        lambda x: wp.zeros(3, dtype=wp.vec3).fill_(x),
        lambda x: wp.zeros(1, dtype=wp.vec3).__setitem__(0, x),
        lambda x: wp.zeros(x),
        lambda x: wp.zeros(3).reshape(x),
        lambda x: wp.zeros(3).transpose(x),
        lambda x: wp.array(ptr=64, shape=x, dtype=float),
        lambda x: wp.launch(wp.kernel(idle, module="unique"), x, []),
        lambda x: wp.launch(wp.kernel(idle, module="unique"), 1, x),
    ],
)
def test_what_has_no_length_is_no_sequence(use, given):
    with pytest.raises(wp.UsageError):
        use(given)
    assert (wp.vec3() == given) is False


def idle():
    pass


@wp.struct
class Part:
    weight: float
    place: wp.vec2


@wp.struct(module="unique")
class Whole:
    n: int
    part: Part
    turn: wp.mat22
    flag: wp.bool


def test_what_structs_tell_about_themselves():
    assert Whole.key == "Whole" and isinstance(Whole(), Whole.cls) and list(Whole.vars) == ["n", "part", "turn", "flag"]
    assert (Whole.vars["n"].label, Whole.vars["n"].type, Whole.vars["part"].type) == ("n", wp.int32, Part)
    dtype = np.dtype(Whole.numpy_dtype())
    assert dtype.names == ("n", "part", "turn", "flag") and dtype == wp.zeros(1, dtype=Whole).numpy().dtype
    rows = np.zeros(2, dtype=dtype)
    rows["n"], rows["part"]["weight"] = [3, 4], [0.5, 1.5]
    back = wp.array(rows, dtype=Whole)
    assert [s.n for s in back.list()] == [3, 4] and back.list()[1].part.weight == 1.5
    s, t = Whole(), Whole()
    t.n, t.part.place, t.turn = 5, (1.0, 2.0), ((1.0, 2.0), (3.0, 4.0))
    s.assign(t)
    assert s.n == 5 and s.part.place == (1, 2) and s.turn == ((1, 2), (3, 4))
    assert s.numpy_value()[0] == 5 and s.numpy_value()[2:] == ([[1.0, 2.0], [3.0, 4.0]], False)
    moved = s.to("cpu")
    moved.n = 6
    assert s.n == 5 and type(moved) is Whole


@wp.struct
class Named:
    key: int
    assign: float


def test_fields_of_these_names_are_fields():
    s = Named()
    s.key, s.assign = 3, 2.0
    assert (s.key, s.assign) == (3, 2.0) and list(Named.vars) == ["key", "assign"]


@pytest.mark.parametrize("module", [wp.utils, wp.autograd, wp.types, wp.context])
def test_public_modules_show_what_they_promise(module):
    public = {name for name in dir(module) if not name.startswith("_")}
    promised = set(module.__all__) | (set(dir(wp)) if module is wp.types else set())
    assert public <= promised and set(module.__all__) <= public
    assert not hasattr(module, "usage_error")
    assert "usage_error" not in dir(wp) and "decorators" not in dir(wp) and "twins" not in dir(wp)


@pytest.mark.parametrize(
    ("dtype", "answer"),
    [
        (wp.int8, ctypes.c_byte),
        (wp.uint16, ctypes.c_ushort),
        (wp.int32, ctypes.c_int),
        (wp.int64, ctypes.c_long),
        (wp.uint64, ctypes.c_ulong),
        (wp.bool, ctypes.c_bool),
        (wp.float16, ctypes.c_ushort),
        (wp.bfloat16, ctypes.c_ushort),
        (wp.float8_e4m3fn, ctypes.c_ubyte),
        (wp.float8_e5m2, ctypes.c_ubyte),
        (wp.float32, ctypes.c_float),
        (wp.float64, ctypes.c_double),
        (wp.vec3, ctypes.c_float),
        (wp.mat22h, ctypes.c_ushort),
        (wp.transformd, ctypes.c_double),
    ],
)
def test_types_name_the_ctypes_type_of_a_component(dtype, answer):
    assert dtype._type_ is answer


def test_static_expressions_ask_for_the_size_of_a_type():
    def sizes(dtype):
        @wp.kernel
        def k(out: wp.array[int]):
            out[0] = wp.static(ctypes.sizeof(dtype._type_))

        out = wp.zeros(1, dtype=int)
        wp.launch(k, dim=1, inputs=[out])
        return out.numpy()[0]

    assert [sizes(dtype) for dtype in (wp.int8, wp.float16, wp.vec3, wp.float64)] == [1, 2, 4, 8]
