"""@wp.struct: classes, instances, structs in kernels, arrays of structs (S-STR, S-ARR-016, S-ANN-006, S-IDX-008)."""

import collections.abc
import copy
import gc
import os
import pickle
import subprocess
import sys
import textwrap
import weakref

import numpy as np
import pytest
import warp as wp

pytestmark = pytest.mark.protected


@wp.struct
class Inner:
    weight: wp.float64
    axis: wp.vec3


@wp.struct
class Body:
    flag: bool
    count: int
    mass: float
    velocity: wp.vec3
    frame: wp.mat22d
    inner: Inner
    small: wp.int8


@wp.struct
class Arguments:
    param1: int
    param2: float
    param3: wp.array(dtype=wp.vec3)


@wp.struct
class Spellings:
    a: wp.array[float]
    b: wp.array(dtype=wp.vec3, ndim=2)
    c: wp.array2d[int]
    d: "wp.array3d(dtype=wp.float64)"
    e: np.float16
    f: "Inner"
    g: wp.array(dtype=Inner)


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
class Nothing:
    pass


@wp.struct
class Around:
    before: float
    nothing: Nothing
    after: wp.float64


@wp.func
def through(nothing: Nothing, x: float) -> Nothing:
    if x > 1.0:
        return Nothing()
    return nothing


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
        """What it is."""

        x: float

        def twice(self):
            return 2.0 * self.x

        @property
        def half(self):
            return 0.5 * self.x

    assert Documented.__doc__ == "What it is." and Documented.__name__ == "Documented"
    assert Documented.__module__ == __name__
    s = Documented(x=3.0)
    assert s.twice() == 6.0 and s.half == 1.5


# ---- instances ----


@pytest.mark.seed("S-STR-003")
def test_instances_start_as_zeros():
    s = Body()
    assert (s.flag, s.count, s.mass, s.small) == (False, 0, 0.0, 0)
    assert list(s.velocity) == [0.0] * 3 and list(s.inner.axis) == [0.0] * 3 and s.inner.weight == 0.0
    assert Arguments().param3 is None


@pytest.mark.seed("S-STR-003")
def test_attributes_are_converted_and_checked():
    s = Body()
    s.count, s.mass, s.velocity, s.flag = 7, 2, (1.0, 2.0, 3.0), True
    s.frame = [[1.0, 2.0], [3.0, 4.0]]
    assert (s.count, s.mass, s.flag) == (7, 2.0, True) and list(s.velocity) == [1.0, 2.0, 3.0]
    assert s.frame[1, 0] == 3.0
    with pytest.raises(TypeError, match=r"Body\.count.*expected int32, got float 2.5"):
        s.count = 2.5
    s.small = 1000
    assert wp.array([s], dtype=Body).numpy()["small"].tolist() == [1000 - 1024], "as in C"
    with pytest.raises(TypeError, match=r"Body\.velocity.*expected vec3f, got str"):
        s.velocity = "fast"
    with pytest.raises(TypeError, match=r"Body\.inner.*expected Inner, got .*Body"):
        s.inner = Body()
    with pytest.raises(AttributeError, match="no field 'masss'.*mass"):
        s.masss = 1.0
    with pytest.raises(AttributeError):
        s.masss
    assert s.count == 7


def test_parts_are_views_that_write_through():
    s = Body()
    s.velocity.y = 2.0
    s.inner.axis[1] = 3.0
    inner = s.inner
    inner.weight = 4.0
    assert s.velocity[1] == 2.0 and s.inner.axis.y == 3.0 and s.inner.weight == 4.0
    del s
    gc.collect()
    assert inner.axis[1] == 3.0


def test_a_struct_in_a_struct_is_copied():
    inner = Inner(weight=1.0)
    s = Body(inner=inner)
    inner.weight = 2.0
    assert s.inner.weight == 1.0
    s.inner = s.inner
    assert s.inner.weight == 1.0


def test_constructor_takes_fields_by_position_and_name():
    s = Arguments(1, param2=2.5)
    assert (s.param1, s.param2) == (1, 2.5)
    with pytest.raises(TypeError, match="no field 'param9'; expected param1"):
        Arguments(param9=1)
    with pytest.raises(TypeError, match="'param1' is given twice"):
        Arguments(1, param1=1)
    with pytest.raises(TypeError, match="4 arguments for 3 fields"):
        Arguments(1, 2, None, 4)


def test_repr_and_copies_of_a_struct():
    s = Arguments(param1=1, param2=2.5, param3=wp.zeros(4, dtype=wp.vec3))
    assert repr(s) == "Arguments(param1=1, param2=2.5, param3=<array[vec3f] of shape (4,)>)"
    t = copy.copy(s)
    t.param1 = 9
    assert s.param1 == 1 and t.param3 is s.param3


@pytest.mark.seed("S-STR-002")
@pytest.mark.seed("S-STR-003")
def test_array_fields_keep_their_array():
    s = Arguments()
    a = wp.zeros(10, dtype=wp.vec3)
    s.param3 = a
    assert s.param3 is a
    numbers = np.ones((4, 3), dtype=np.float32)
    s.param3 = numbers
    numbers[2] = 5.0
    assert s.param3.numpy()[2].tolist() == [5.0] * 3
    s.param3 = None
    assert s.param3 is None
    with pytest.raises(TypeError, match=r"Arguments\.param3.*expected array\[vec3f\], got array\[float32\]"):
        s.param3 = wp.zeros(10)
    with pytest.raises(TypeError, match=r"Arguments\.param3.*got int 3"):
        s.param3 = 3


# ---- kernels ----


@pytest.mark.seed("S-STR-003")
@pytest.mark.seed("S-STR-004")
@pytest.mark.seed("S-IDX-008")
@pytest.mark.parametrize("lanes", [1, 0])
def test_kernels_read_fields_and_index_array_fields(lanes):
    @wp.kernel(module_options={"lanes": lanes} if lanes else None)
    def compute(args: Arguments, body: Body, out: wp.array[float]):
        tid = wp.tid()
        v = args.param3[tid]
        if body.flag and tid % 3 != 0:
            out[tid] = float(args.param1) + args.param2 * v.y + args.param3[tid][2]
        else:
            out[tid] = float(body.inner.weight) + body.inner.axis[1] + float(body.small) + float(body.frame[1, 0])

    v = np.random.default_rng(0).standard_normal((37, 3)).astype(np.float32)
    args = Arguments(10, 2.5, wp.array(v, dtype=wp.vec3))
    body = Body(flag=True, small=-3, frame=[[1.0, 2.0], [30.0, 4.0]], inner=Inner(0.5, (1.0, 100.0, 2.0)))
    out = wp.zeros(37)
    wp.launch(compute, dim=37, inputs=[args, body, out])
    i = np.arange(37)
    expected = np.where(i % 3 != 0, 10 + 2.5 * v[:, 1] + v[:, 2], 127.5)
    np.testing.assert_allclose(out.numpy(), expected, rtol=1e-6)


@pytest.mark.seed("S-IDX-008")
def test_kernels_write_arrays_in_structs():
    @wp.kernel
    def write(s: Spellings, n: int):
        i = wp.tid()
        s.a[i] = 2.0 * s.a[i] + float(n)
        s.b[i, 1].y = 4.0
        s.c[i][0] += i
        wp.atomic_add(s.d, 0, 0, 0, wp.float64(1.0))
        s.g[i].axis = wp.vec3(1.0, 2.0, 3.0) * float(i)

    s = Spellings()
    s.a, s.b, s.c = wp.ones(37), wp.zeros((37, 2), dtype=wp.vec3), wp.ones((37, 2), dtype=int)
    s.d, s.g = wp.zeros((1, 1, 1), dtype=wp.float64), wp.zeros(37, dtype=Inner)
    wp.launch(write, dim=37, inputs=[s, 3])
    i = np.arange(37)
    assert (s.a.numpy() == 5.0).all() and (s.b.numpy()[:, 1, 1] == 4.0).all() and s.b.numpy().sum() == 37 * 4
    np.testing.assert_array_equal(s.c.numpy()[:, 0], 1 + i)
    assert s.d.numpy().item() == 37.0
    np.testing.assert_array_equal(s.g.numpy()["axis"], i[:, None] * np.array([1.0, 2.0, 3.0]))


def test_structs_are_passed_by_value():
    @wp.kernel
    def change(s: Inner, out: wp.array(dtype=wp.float64)):
        i = wp.tid()
        s.weight = s.weight + wp.float64(i)
        s.axis.x = 1.0
        out[i] = s.weight + wp.float64(s.axis.x)

    s, out = Inner(weight=2.0), wp.zeros(37, dtype=wp.float64)
    wp.launch(change, dim=37, inputs=[s, out])
    np.testing.assert_array_equal(out.numpy(), np.arange(37) + 3.0)
    assert s.weight == 2.0 and s.axis.x == 0.0


@pytest.mark.parametrize("lanes", [1, 0])
def test_structs_are_made_and_changed_in_kernels_and_functions(lanes):
    @wp.func
    def grown(s: Inner, by: float) -> Inner:
        s.axis = s.axis * by
        return s

    @wp.func
    def made(i: int):
        s = Inner()
        if i % 2 == 0:
            s.weight = wp.float64(i)
            s.axis[2] = 2.0
        return s

    @wp.kernel(module_options={"lanes": lanes} if lanes else None)
    def compute(out: wp.array(dtype=Inner)):
        i = wp.tid()
        s = made(i)
        k = int(0)
        while k < i % 5:
            s.axis.z += 1.0
            s = grown(s, 2.0)
            k += 1
        out[i] = s
        if i % 3 == 0:
            out[i] = Inner(weight=wp.float64(-1.0), axis=wp.vec3(1.0))

    out = wp.zeros(37, dtype=Inner)
    wp.launch(compute, dim=37, inputs=[out])
    result = out.numpy()
    for i in range(37):
        weight, z = (float(i), 2.0) if i % 2 == 0 else (0.0, 0.0)
        axis = [0.0, 0.0, z]
        for _ in range(i % 5):
            axis[2] = (axis[2] + 1.0) * 2.0
        if i % 3 == 0:
            weight, axis = -1.0, [1.0] * 3
        assert result[i]["weight"] == weight and result[i]["axis"].tolist() == axis


@pytest.mark.seed("S-ARR-016")
@pytest.mark.parametrize("lanes", [1, 0])
@pytest.mark.host_memory("writes through NumPy")
def test_fields_of_array_elements_are_read_and_written_in_place(lanes):
    @wp.kernel(module_options={"lanes": lanes} if lanes else None)
    def step(a: wp.array(dtype=Body), order: wp.array[int]):
        i = order[wp.tid()]
        a[i].count = a[i].count + i
        a[i].velocity[0] = a[i].velocity[1] + 1.0
        a[i].inner.axis.z = a[i].mass
        if a[i].flag:
            a[i].inner.weight += wp.float64(0.5)
            a[i].small = wp.int8(3)
        a[i].frame[1, 0] = wp.float64(i)

    rng = np.random.default_rng(1)
    n = 37
    a = wp.zeros(n, dtype=Body)
    before = a.numpy()
    before["mass"], before["velocity"], before["flag"] = (
        rng.standard_normal(n),
        rng.standard_normal((n, 3)),
        np.arange(n) % 2,
    )
    before["count"] = 5
    expected = before.copy()
    wp.launch(step, dim=n, inputs=[a, wp.array(rng.permutation(n), dtype=int)])
    i = np.arange(n)
    expected["count"] += i.astype(np.int32)
    expected["velocity"][:, 0] = expected["velocity"][:, 1] + np.float32(1.0)
    expected["inner"]["axis"][:, 2] = expected["mass"]
    expected["inner"]["weight"][expected["flag"]] += 0.5
    expected["small"][expected["flag"]] = 3
    expected["frame"][:, 1, 0] = i
    for name in ("count", "velocity", "flag", "mass", "frame", "small"):
        np.testing.assert_array_equal(a.numpy()[name], expected[name])
    for name in ("weight", "axis"):
        np.testing.assert_array_equal(a.numpy()["inner"][name], expected["inner"][name])


def test_arrays_in_elements_differ_from_thread_to_thread():
    @wp.kernel
    def total(a: wp.array(dtype=Arguments), out: wp.array[float]):
        i = wp.tid()
        s = float(0.0)
        for k in range(a[i].param3.shape[0]):
            s += a[i].param3[k].x
        out[i] = s
        if a[i].param1 > 2:
            a[i].param3[0] = wp.vec3(-1.0)

    rows = [np.random.default_rng(i).standard_normal((1 + i % 4, 3)).astype(np.float32) for i in range(37)]
    a = wp.array([Arguments(i % 4, 0.0, wp.array(row, dtype=wp.vec3)) for i, row in enumerate(rows)], dtype=Arguments)
    gc.collect()
    out = wp.zeros(37)
    wp.launch(total, dim=37, inputs=[a, out])
    np.testing.assert_allclose(out.numpy(), [row[:, 0].sum() for row in rows], rtol=1e-5, atol=1e-6)
    assert a[3].param3.numpy()[0].tolist() == [-1.0] * 3
    assert a[2].param3.numpy()[0].tolist() == rows[2][0].tolist()


def test_an_instance_outside_the_kernel_gives_constants():
    settings = Inner(weight=2.5, axis=(1.0, 2.0, 3.0))

    @wp.kernel
    def compute(out: wp.array(dtype=wp.float64)):
        out[0] = settings.weight + wp.float64(settings.axis.y)

    out = wp.zeros(1, dtype=wp.float64)
    wp.launch(compute, dim=1, inputs=[out])
    assert out.numpy()[0] == 4.5


def test_wrong_arguments_and_fields_are_told():
    @wp.kernel
    def compute(s: Inner):
        s.weight = wp.float64(1.0)

    with pytest.raises(TypeError, match="argument 1 's' of kernel 'compute' is .*Body, expected Inner"):
        wp.launch(compute, dim=1, inputs=[Body()])

    @wp.kernel
    def unknown(s: Inner):
        s.wight = wp.float64(1.0)

    with pytest.raises(wp.CompileError, match="weight"):
        wp.launch(unknown, dim=1, inputs=[Inner()])

    @wp.kernel
    def mixed(s: Inner):
        s.weight = s.axis.x

    with pytest.raises(wp.CompileError, match="float64"):
        wp.launch(mixed, dim=1, inputs=[Inner()])


def test_a_recorded_launch_keeps_the_arrays():
    @wp.kernel
    def add(s: Arguments, out: wp.array[float]):
        out[0] = out[0] + s.param3[0].x

    s, out = Arguments(param3=wp.ones(1, dtype=wp.vec3)), wp.zeros(1)
    command = wp.launch(add, dim=1, inputs=[s, out], record_cmd=True)
    s.param3 = None
    gc.collect()
    hold = [wp.zeros(1, dtype=wp.vec3) for _ in range(8)]
    command.launch()
    assert out.numpy()[0] == 1.0 and len(hold) == 8
    command.set_param_by_name("s", Arguments(param3=wp.full(1, wp.vec3(5.0), dtype=wp.vec3)))
    command.launch()
    assert out.numpy()[0] == 6.0


def test_two_structs_of_one_name_are_two_types():
    def make(kind):
        @wp.struct
        class Same:
            x: kind

        @wp.kernel
        def double(s: Same, out: wp.array(dtype=kind)):
            out[0] = s.x + s.x

        return Same, double

    for kind, value in ((float, 1.5), (int, 2), (wp.float64, 2.5)):
        same, double = make(kind)
        out = wp.zeros(1, dtype=kind)
        wp.launch(double, dim=1, inputs=[same(x=value), out])
        assert out.numpy()[0] == 2 * value


def test_kernels_with_structs_come_from_the_disk_cache(tmp_path):
    program = tmp_path / "program.py"
    program.write_text(
        textwrap.dedent(
            """
            from __future__ import annotations
            import warp as wp

            @wp.struct
            class Pair:
                a: int
                values: wp.array(dtype=float)

            @wp.kernel
            def write(p: Pair):
                p.values[wp.tid()] = float(p.a)

            p = Pair()
            p.a, p.values = 3, wp.zeros(5)
            wp.launch(write, dim=5, inputs=[p])
            assert p.values.list() == [3.0] * 5
            print(write.compile()["from_cache"])
            """
        )
    )
    environment = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join(p for p in sys.path if p),
        "WARP_CACHE_PATH": str(tmp_path / "cache"),
    }
    runs = [
        subprocess.run([sys.executable, str(program)], env=environment, capture_output=True, text=True)
        for _ in range(2)
    ]
    assert [run.stdout.strip() for run in runs] == ["False", "True"], runs[0].stderr + runs[1].stderr


@wp.struct
class Optional:
    number: int
    values: wp.array(dtype=float)
    table: wp.array2d(dtype=wp.vec3)


@wp.kernel
def look(one: Optional, many: wp.array[Optional], out: wp.array2d[int]):
    i = wp.tid()
    out[i, 0] = one.values.shape[0] + one.table.shape[0] + one.table.shape[1]
    if one.values:
        out[i, 1] = 1
    s = many[i]
    out[i, 2] = s.values.shape[0]
    if s.values:
        out[i, 3] = int(s.values[0]) + s.number


@pytest.mark.seed("S-STR-008")
def test_an_array_field_that_was_never_set_is_a_null_array():
    empty, full = Optional(), Optional(number=3, values=wp.array([5.0, 6.0], dtype=float))
    assert empty.values is None and empty.table is None
    many = wp.array([Optional(number=1), full, empty], dtype=Optional)
    many[2] = Optional()
    out = wp.full((3, 4), -1, dtype=int)
    wp.launch(look, dim=3, inputs=[empty, many, out])
    assert out.numpy().tolist() == [[0, -1, 0, -1], [0, -1, 2, 8], [0, -1, 0, -1]]
    wp.launch(look, dim=3, inputs=[full, wp.zeros(3, dtype=Optional), out])
    assert out.numpy().tolist() == [[2, 1, 0, -1], [2, 1, 0, 8], [2, 1, 0, -1]]
    wp.copy(many, wp.clone(many))
    assert [s.number for s in many] == [1, 3, 0] and many[1].number == 3


@wp.kernel
def work_through(many: wp.array(dtype=Arguments), out: wp.array[float]):
    i = wp.tid()
    s = many[i]
    total = s.param2 + float(many[i].param1)
    for k in range(s.param3.shape[0]):
        total += s.param3[k][1]
        many[i].param3[k] = 2.0 * many[i].param3[k]
    s.param3[0][2] = -1.0  # the memory is that of the element's array
    s.param1 = 1000  # a copy: the element stays
    many[i].param2 = total
    out[i] = total


@pytest.mark.seed("S-STR-009")
@pytest.mark.parametrize("n", [1, 37])
def test_arrays_of_structs_are_parameters_whose_array_fields_are_read_and_written(n):
    lengths = [1 + i % 3 for i in range(n)]
    fields = [np.random.default_rng(i).integers(0, 9, (length, 3)).astype(float) for i, length in enumerate(lengths)]
    arrays = [wp.array(field, dtype=wp.vec3) for field in fields]
    many = wp.array([Arguments(i, 0.5, a) for i, a in enumerate(arrays)], dtype=Arguments)
    out = wp.zeros(n)
    wp.launch(work_through, dim=n, inputs=[many, out])
    expected = [0.5 + i + field[:, 1].sum() for i, field in enumerate(fields)]
    np.testing.assert_allclose(out.numpy(), expected)
    assert [s.param1 for s in many] == list(range(n))
    np.testing.assert_allclose([s.param2 for s in many], expected)
    for array, field in zip(arrays, fields, strict=True):
        field *= 2.0
        field[0, 2] = -1.0
        np.testing.assert_array_equal(array.numpy(), field)


# ---- arrays of structs ----


@pytest.mark.seed("S-STR-005")
@pytest.mark.seed("S-ARR-016")
def test_zeros_of_structs():
    a = wp.zeros(shape=10, dtype=Body)
    assert a.shape == (10,) and a.dtype is Body
    assert not a.numpy().view(np.uint8).any()
    assert repr(a[3]) == repr(wp.array([Body()], dtype=Body)[0])


@pytest.mark.seed("S-STR-006")
@pytest.mark.seed("S-ARR-016")
def test_array_from_instances():
    a = wp.array([Body(count=1), Body(count=2), Body(count=3)], dtype=Body)
    assert a.shape == (3,) and [s.count for s in a] == [1, 2, 3]
    assert wp.array([Inner(weight=1.0)]).dtype is Inner
    assert wp.array([[Inner()], [Inner(weight=2.0)]], dtype=Inner).shape == (2, 1)
    with pytest.raises(TypeError, match="an element is .*Inner, expected Body"):
        wp.array([Body(), Inner()], dtype=Body)


@pytest.mark.seed("S-ARR-016")
def test_elements_are_copied_filled_and_listed():
    a = wp.zeros(4, dtype=Inner)
    a[1] = Inner(weight=1.0)
    a[1].weight = 9.0  # of a copy
    assert [s.weight for s in a.list()] == [0.0, 1.0, 0.0, 0.0]
    b = wp.clone(a)
    a.fill_(Inner(weight=3.0, axis=(1.0, 2.0, 3.0)))
    assert a[3].weight == 3.0 and list(a[0].axis) == [1.0, 2.0, 3.0] and b[1].weight == 1.0
    a[1:3] = Inner(weight=7.0)
    assert [s.weight for s in a] == [3.0, 7.0, 7.0, 3.0]
    wp.copy(a, b)
    assert [s.weight for s in a] == [0.0, 1.0, 0.0, 0.0]
    a.zero_()
    assert not any(s.weight for s in a)
    assert "Inner(weight=1.0" in repr(b)
    with pytest.raises(TypeError, match="cannot store"):
        a[0] = Body()


@pytest.mark.seed("S-ARR-016")
@pytest.mark.host_memory("writes through NumPy")
def test_structured_numpy_arrays():
    a = wp.array([Body(count=i, velocity=(i, 0.0, 1.0), inner=Inner(weight=i)) for i in range(4)], dtype=Body)
    view = a.numpy()
    assert view.dtype.names == ("flag", "count", "mass", "velocity", "frame", "inner", "small")
    assert (
        view["count"].tolist() == [0, 1, 2, 3] and view["velocity"].shape == (4, 3) and view["frame"].shape == (4, 2, 2)
    )
    assert view["inner"]["weight"].tolist() == [0.0, 1.0, 2.0, 3.0]
    view["mass"][2] = 5.0  # shares the memory
    assert a[2].mass == 5.0
    again = wp.array(view, dtype=Body)
    assert repr(again.list()) == repr(a.list())
    shared = wp.array(view, dtype=Body, copy=False)
    view["mass"][1] = 6.0
    assert shared[1].mass == 6.0 and again[1].mass == 0.0
    packed = np.zeros(2, dtype=[("axis", "<f8", 3), ("weight", "<i4")])  # other order, other numbers
    packed["axis"], packed["weight"] = 1.5, [1, 2]
    converted = wp.array(packed, dtype=Inner)
    assert [s.weight for s in converted] == [1.0, 2.0] and list(converted[0].axis) == [1.5] * 3
    with pytest.raises(TypeError, match="weight"):
        wp.array(np.zeros(2, dtype=[("axis", "<f4", 3)]), dtype=Inner)
    b = wp.zeros(2, dtype=Inner)
    b.assign(packed)
    assert b[1].weight == 2.0


def test_structured_views_of_slices_and_matrices_of_structs():
    a = wp.array([[Inner(weight=3 * i + j) for j in range(3)] for i in range(2)], dtype=Inner)
    assert a.numpy()["weight"].tolist() == [[0.0, 1.0, 2.0], [3.0, 4.0, 5.0]]
    assert a[1, ::2].numpy()["weight"].tolist() == [3.0, 5.0]
    assert wp.zeros(0, dtype=Inner).numpy().shape == (0,)


def test_array_fields_are_records_in_numpy():
    points = wp.zeros(2, dtype=wp.vec3, requires_grad=True)
    a = wp.array([Arguments(param1=4, param3=points), Arguments()], dtype=Arguments)
    view = a.numpy()
    assert view["param1"].tolist() == [4, 0]
    record = view["param3"]
    assert record["data"].tolist() == [points.ptr, 0] and record["grad"].tolist() == [points.grad.ptr, 0]
    assert record["shape"].tolist() == [[2, 0, 0, 0], [0, 0, 0, 0]] and record["strides"][0, 0] == 12
    with pytest.raises(TypeError, match="'param3' of Arguments is an array"):
        wp.array(view, dtype=Arguments)


def test_arrays_of_structs_keep_the_arrays_in_their_fields():
    def rows(a):
        gc.collect()
        _ = [wp.zeros(3, dtype=wp.vec3) for _ in range(50)]  # would take freed memory
        return [s.param3.numpy()[0, 0] for s in a]

    def row(x):
        return wp.full(3, wp.vec3(x), dtype=wp.vec3)

    a = wp.array([Arguments(param3=row(float(i))) for i in range(20)], dtype=Arguments)
    assert rows(a) == list(range(20))
    b = wp.clone(a)
    a[3] = Arguments(param3=row(33.0))
    part = a[2:5]
    del a
    assert rows(part) == [2.0, 33.0, 4.0] and rows(b) == list(range(20))
    element = b[7]
    del b
    gc.collect()
    assert element.param3.numpy()[0, 0] == 7.0
    c = wp.zeros(2, dtype=Arguments)
    c.fill_(Arguments(param3=row(8.0)))
    assert rows(c) == [8.0, 8.0] and wp.zeros(1, dtype=Arguments)[0].param3 is None


@pytest.mark.host_memory("wraps memory of the host", on="cuda")
def test_arrays_of_overwritten_elements_are_let_go():
    a = wp.zeros(1, dtype=Arguments)
    alive = []
    for i in range(2000):
        freed = []
        memory = np.full((1, 3), i, dtype=np.float32)
        a[0] = Arguments(
            param3=wp.array(
                ptr=memory.ctypes.data, shape=1, dtype=wp.vec3, deleter=lambda p, n, m=memory: alive.remove(p)
            )
        )
        alive.append(memory.ctypes.data)
        del memory, freed
    assert len(alive) < 1000
    assert a[0].param3.numpy()[0, 0] == 1999


def test_gradients_of_array_fields_are_passed_on():
    @wp.kernel
    def store(s: Arguments):
        i = wp.tid()
        s.param3.grad[i] = s.param3[i] * 2.0

    s = Arguments(param3=wp.ones(5, dtype=wp.vec3))
    s.param3.requires_grad = True  # after it was assigned
    wp.launch(store, dim=5, inputs=[s])
    assert (s.param3.grad.numpy() == 2.0).all()
    a = wp.array([s], dtype=Arguments)
    del s
    gc.collect()
    assert (a[0].param3.grad.numpy() == 2.0).all()


def test_an_array_may_be_an_argument_and_a_field_at_once():
    @wp.kernel
    def through_both(s: Arguments, x: wp.array(dtype=wp.vec3), out: wp.array[float]):
        i = wp.tid()
        before = x[i]
        s.param3[i] = wp.vec3(2.0)
        after = x[i]
        x[i] = wp.vec3(3.0)
        out[i] = 100.0 * before.x + 10.0 * after.x + s.param3[i].x

    x, out = wp.ones(37, dtype=wp.vec3), wp.zeros(37)
    wp.launch(through_both, dim=37, inputs=[Arguments(param3=x), x, out])
    assert (out.numpy() == 123.0).all()


def test_none_in_an_array_field_is_an_empty_array():
    @wp.kernel
    def count(s: Arguments, out: wp.array[int]):
        out[0] = s.param3.shape[0]

    out = wp.full(1, 7)
    wp.launch(count, dim=1, inputs=[Arguments(), out])
    assert out.numpy()[0] == 0


def test_structs_of_strided_arrays():
    @wp.kernel
    def double(s: Arguments):
        i = wp.tid()
        s.param3[i] = 2.0 * s.param3[i]

    numbers = np.random.default_rng(3).standard_normal((37, 2, 3)).astype(np.float32)
    whole = wp.array(numbers, dtype=wp.vec3)
    wp.launch(double, dim=37, inputs=[Arguments(param3=whole[:, 1])])
    numbers[:, 1] *= 2
    np.testing.assert_array_equal(whole.numpy(), numbers)


def test_launches_count_writes_of_arrays_in_structs_as_effects():
    @wp.kernel
    def compute(s: Arguments, t: Arguments, out: wp.array(dtype=wp.vec3)):
        i = wp.tid()
        s.param3[i] = t.param3[i]
        out[i] = t.param3[i]

    source = wp.ones(37, dtype=wp.vec3)
    to, out = Arguments(param3=wp.zeros(37, dtype=wp.vec3)), wp.zeros(37, dtype=wp.vec3)
    wp.launch(compute, dim=37, inputs=[to, Arguments(param3=source), out])
    assert (to.param3.numpy() == 1.0).all() and (out.numpy() == 1.0).all()


def test_a_struct_in_a_cycle_is_collected():
    import weakref

    s = Arguments(param3=wp.zeros(1, dtype=wp.vec3))
    s.param3.owner = s
    gone = weakref.ref(s.param3)
    del s
    gc.collect()
    assert gone() is None


def test_misuse_of_the_base_class_is_an_error():
    unmade = Inner.__new__(Inner)
    for use in (
        lambda: unmade.weight,
        lambda: repr(unmade),
        lambda: wp.array([unmade], dtype=Inner),
        lambda: copy.copy(unmade),
    ):
        with pytest.raises((TypeError, RuntimeError)):
            use()
    with pytest.raises(TypeError):
        type(unmade).__mro__[1]()
    with pytest.raises(TypeError):
        Inner.weight.fget(3)
    with pytest.raises(AttributeError):
        del Inner().weight


def test_debug_checks_name_array_fields():
    @wp.struct
    class Outer:
        arguments: Arguments
        others: wp.array(dtype=Arguments)

    @wp.func
    def first(s: Outer, i: int):
        return s.arguments.param3[i].x

    @wp.kernel(module_options={"mode": "debug"})
    def compute(s: Outer, out: wp.array[float]):
        i = wp.tid()
        out[i] = first(s, i) + s.others[i].param3[2 * i].x

    short, right = wp.ones(3, dtype=wp.vec3), wp.ones(9, dtype=wp.vec3)
    out = wp.zeros(4)
    s = Outer(Arguments(param3=short), wp.array([Arguments(param3=right)] * 4, dtype=Arguments))
    with pytest.raises(IndexError, match=r"'s\.arguments\.param3', which has size 3.*thread \(3,\)"):
        wp.launch(compute, dim=4, inputs=[s, out])
    s = Outer(Arguments(param3=right), wp.array([Arguments(param3=short)] * 4, dtype=Arguments))
    with pytest.raises(IndexError, match=r"'s\.others\[\.\.\.\]\.param3', which has size 3.*thread \(2,\)"):
        wp.launch(compute, dim=4, inputs=[s, out])
    s = Outer(Arguments(param3=right), wp.array([Arguments(param3=right)] * 4, dtype=Arguments))
    wp.launch(compute, dim=4, inputs=[s, out])
    assert (out.numpy() == 2.0).all()
