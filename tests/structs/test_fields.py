"""Fields of structs: their types, defaults and conversions, and classes that are refused."""

import collections.abc
import copy
import gc
import pickle
import weakref

import numpy as np
import pytest
import warp as wp
from struct_types import Body, Inner, Nothing, Spellings, through

pytestmark = pytest.mark.protected


# ---- classes ----
@pytest.mark.seed("S-STR-001")
def test_every_attribute_needs_a_type():
    with pytest.raises(wp.UsageError, match="field 'size' of Bad has no type"):

        @wp.struct
        class Bad:
            x: float
            size = 3


@pytest.mark.seed("S-STR-001")
@pytest.mark.parametrize("annotation", [str, wp.zeros, 3, wp.array])
def test_a_field_of_no_kernel_type_is_named(annotation):
    class Bad:
        good: float
        wrong: annotation

    with pytest.raises(wp.UsageError, match="field 'wrong' of Bad"):
        wp.struct(Bad)


@pytest.mark.seed("S-STR-001")
def test_mistakes_in_the_class_are_told():
    with pytest.raises(wp.UsageError, match="'nowhere' of field 'x' of Bad.*NameError"):

        @wp.struct
        class Bad:
            x: "nowhere"  # noqa: F821

    with pytest.raises(wp.UsageError, match="derived from Mapping, which is no struct"):

        @wp.struct
        class Derived(collections.abc.Mapping):
            y: float

    with pytest.raises(wp.UsageError, match="expected a class"):
        wp.struct(3)


# ---- what fields hold ----
class Count(int):
    pass


class Counted:
    pass


@pytest.mark.seed("S-STR-001")
def test_number_fields_keep_what_was_assigned():
    body = Body()
    assert type(body.count) is wp.int32 and type(body.mass) is wp.float32 and type(body.inner.weight) is wp.float64
    for number in (7, True, np.int64(5), Count(3), 2**40):
        body.count = number
        assert body.count is number
    body.mass, body.small = 0.1, 300
    assert body.mass == 0.1 and body.small == 300
    row = wp.array([body], dtype=Body).numpy()[0]
    assert (row["count"], row["mass"], row["small"]) == (0, np.float32(0.1), 44)
    body.mass = wp.float64(0.1)
    assert type(body.mass) is wp.float32 and float(body.mass) == np.float32(0.1)
    zero_dimensional = np.array(3)
    body.count = zero_dimensional
    zero_dimensional[...] = 4
    assert body.count == 3


def test_a_struct_field_takes_the_numbers_of_another_struct():
    body, inner = Body(), Inner(weight=2, axis=(1.0, 2.0, 3.0))
    body.inner = inner
    inner.weight = 3
    assert type(body.inner.weight) is int and body.inner.weight == 2
    body.inner.weight = 4
    assert inner.weight == 3 and body.inner.weight == 4
    assert type(copy.copy(body).inner.weight) is int and copy.copy(body).inner.weight == 4
    body.inner = wp.array([inner], dtype=Inner).list()[0]  # from memory: Python's numbers
    assert type(body.inner.weight) is float and body.inner.weight == 3.0
    body.inner = Inner()
    assert type(body.inner.weight) is wp.float64


def test_none_makes_a_field_what_its_type_starts_with():
    body = Body(count=3, velocity=(1.0, 2.0, 3.0), inner=Inner(weight=2))
    body.count = body.velocity = body.inner = None
    assert type(body.count) is wp.int32 and body.count == 0
    assert body.velocity == wp.vec3() and body.inner.weight == 0.0
    part = Part(material=Material(density=5.0))
    part.material = None
    assert part.material.density == 1000.0


def test_a_field_does_not_take_another_number_of_components():
    body = Body()
    with pytest.raises(ValueError, match=r"Body.velocity: expected vec3f, got tuple of length 2"):
        body.velocity = (1.0, 2.0)
    with pytest.raises(TypeError, match="expected vec3f, got float 1.0"):
        body.velocity = 1.0


def test_numbers_in_structs_are_collected():
    body = Body()
    body.count = Count(3)
    body.count.holder, body.count.seen = body, Counted()
    found = weakref.ref(body.count.seen)
    del body
    gc.collect()
    assert found() is None


@wp.struct
class Around:
    before: float
    nothing: Nothing
    after: wp.float64


@wp.kernel
def pass_nothing(
    nothing: Nothing, around: Around, rows: wp.array[Nothing], holders: wp.array[Around], x: wp.array[float]
):
    i = wp.tid()
    kept = nothing
    for k in range(i):
        if k % 2 == 0:
            kept = through(kept, x[i])
        else:
            kept = rows[i]
    rows[i] = kept
    made = Around(around.before * x[i], kept, around.after)
    if i == 2:
        made = Around(3.0 * x[i])
    holders[i] = made


def test_a_struct_without_fields():
    x = wp.array([1.0, 2.0, 3.0, 4.0], dtype=float, requires_grad=True)
    rows, holders = wp.zeros(4, dtype=Nothing), wp.zeros(4, dtype=Around, requires_grad=True)
    with wp.Tape() as tape:
        wp.launch(pass_nothing, dim=4, inputs=[Nothing(), Around(2.0, None, 5.0), rows, holders, x])
    assert holders.numpy()["before"].tolist() == [2.0, 4.0, 9.0, 8.0]
    assert holders.numpy()["after"].tolist() == [5.0, 5.0, 0.0, 5.0]
    tape.backward(grads={holders: wp.array([Around(1.0)] * 4, dtype=Around)})
    assert x.grad.numpy().tolist() == [2.0, 2.0, 3.0, 2.0]
    assert rows.numpy().tolist() == [(), (), (), ()] and repr(rows.list()[0]) == "Nothing()"
    assert len({row.ctypes.data for row in rows.numpy().reshape(4, 1)}) == 4


@wp.struct
class Material:
    density: float = 1000.0
    tint: wp.vec3 = wp.vec3(0.25, 0.5, 1.0)
    layers: wp.uint64 = 2**64 - 3
    solid: bool = True
    spin: wp.quatd = (0.0, 0.0, 0.0, 1.0)
    turn: wp.mat22 = ((1.0, 2.0), (3.0, 4.0))
    small: wp.float16 = 0.1
    samples: wp.array(dtype=float) = None
    number: int


@wp.struct
class Part:
    mass: float
    material: Material
    limit: wp.float64 = float("inf")


def assert_defaults(found, number=0, density=1000.0):
    assert (found["density"], found["number"], found["layers"]) == (density, number, 2**64 - 3)
    assert found["solid"] and found["small"] == np.float16(0.1)
    np.testing.assert_array_equal(found["tint"], [0.25, 0.5, 1.0])
    np.testing.assert_array_equal(found["spin"], [0.0, 0.0, 0.0, 1.0])
    np.testing.assert_array_equal(found["turn"], [[1.0, 2.0], [3.0, 4.0]])


def test_fields_start_with_their_defaults():
    first, second = Material(), Material(5.0, number=7)
    first.tint.x = 9.0
    assert Material().tint == wp.vec3(0.25, 0.5, 1.0) and second.tint == wp.vec3(0.25, 0.5, 1.0)
    elements = wp.array([Material(), second], dtype=Material).numpy()
    assert_defaults(elements[0])
    assert_defaults(elements[1], number=7, density=5.0)
    assert Material().samples is None and Part().limit == np.inf and Part().mass == 0.0
    assert_defaults(wp.array([Part()], dtype=Part).numpy()[0]["material"])
    assert wp.zeros(2, dtype=Material).numpy()["density"].tolist() == [0.0, 0.0]
    changed = Material(layers=3, solid=False)
    for same in (copy.copy(changed), copy.deepcopy(changed), pickle.loads(pickle.dumps(changed))):
        assert same.layers == 3 and not same.solid and same.density == 1000.0


@wp.func
def light(number: int) -> Material:
    return Material(density=float(number), number=number)


@wp.kernel
def make_parts(materials: wp.array[Material], parts: wp.array[Part]):
    i = wp.tid()
    materials[2 * i] = Material()
    materials[2 * i + 1] = light(i)
    part = Part(2.0)
    parts[i] = part
    if i % 2 == 1:
        parts[i] = type(part)(material=Material(number=i))


def test_kernels_make_structs_with_the_defaults_of_their_fields():
    materials, parts = wp.zeros(10, dtype=Material), wp.zeros(5, dtype=Part)
    wp.launch(make_parts, dim=5, inputs=[materials, parts])
    for i, (found, part) in enumerate(zip(materials.numpy()[1::2], parts.numpy(), strict=True)):
        assert_defaults(materials.numpy()[2 * i])
        assert_defaults(found, number=i, density=float(i))
        assert_defaults(part["material"], number=i if i % 2 else 0)
        assert part["limit"] == np.inf and part["mass"] == (0.0 if i % 2 else 2.0)
    assert light(3).number == 3 and light(3).tint == wp.vec3(0.25, 0.5, 1.0)


def test_structs_that_differ_in_their_defaults_are_two():
    def make(value):
        @wp.struct
        class Setting:
            x: float = value

        @wp.kernel
        def read(out: wp.array[float]):
            out[0] = Setting().x

        return Setting, read

    structs = []
    for value in (1.5, 2.5, 1.5, -0.0):
        struct, read = make(value)
        out = wp.full(1, 7.0, dtype=float)
        wp.launch(read, dim=1, inputs=[out])
        assert out.numpy().tobytes() == np.float32(value).tobytes()
        structs.append(struct)
    with pytest.raises(wp.UsageError):
        wp.array([structs[0]()], dtype=structs[1])


@pytest.mark.parametrize(
    "annotation, default, message",
    [
        (float, "text", "field 'x' of Bad has the default 'text', expected float32"),
        (int, 0.5, "field 'x' of Bad has the default 0.5, expected int32"),
        (wp.vec3, (1.0, 2.0), r"has the default \(1.0, 2.0\), expected vec3f"),
        (wp.array(dtype=float), [1.0], r"has the default \[1.0\]: an array can have None only"),
        (Inner, None, "has the default None: a struct starts with the defaults of its own fields"),
        (wp.int8, 1.5, "1.5"),
    ],
)
def test_defaults_of_other_types_are_refused(annotation, default, message):
    class Bad:
        x: annotation = default

    with pytest.raises((wp.UsageError, OverflowError), match=message):
        wp.struct(Bad)


@pytest.mark.seed("S-ANN-006")
@pytest.mark.seed("S-STR-002")
def test_every_spelling_of_an_annotation_is_a_field():
    types = wp.zeros(1, dtype=Spellings).vars
    assert str(types["a"]) == "array[float32]"
    assert str(types["b"]) == "array2d[vec3f]"
    assert str(types["c"]) == "array2d[int32]"
    assert str(types["d"]) == "array3d[float64]"
    assert types["e"] is wp.float16 and types["f"] is Inner


@pytest.mark.seed("S-ANN-006")
def test_annotations_that_are_strings_see_local_names():
    length = 3
    local = wp.types.vector(length=length, dtype=wp.float64)

    @wp.struct
    class Local:
        v: "local"
        more: "wp.array(dtype=local)"

    s = Local()
    s.v = local(1.0, 2.0, 3.0)
    assert list(s.v) == [1.0, 2.0, 3.0]


def test_names_documentation_and_methods_stay():
    @wp.struct
    class Documented:
        """Holds one number."""

        x: float

        def twice(self):
            return 2.0 * self.x

        @property
        def half(self):
            return 0.5 * self.x

    assert Documented.__doc__ == "Holds one number." and Documented.__name__ == "Documented"
    assert Documented.__module__ == __name__
    s = Documented(x=3.0)
    assert s.twice() == 6.0 and s.half == 1.5
