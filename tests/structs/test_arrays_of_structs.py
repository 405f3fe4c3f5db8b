"""Arrays of structs: elements, NumPy's structured arrays, arrays in fields (S-ARR-016)."""

import copy
import gc

import numpy as np
import pytest
import warp as wp
from struct_types import Arguments, Body, Inner

pytestmark = pytest.mark.protected


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
