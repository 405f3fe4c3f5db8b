"""@wp.struct: classes, instances, structs in kernels, arrays of structs (S-STR, S-ARR-016, S-ANN-006, S-IDX-008)."""

import copy
import gc
import os
import subprocess
import sys
import textwrap

import numpy as np
import pytest
import warp as wp
from struct_types import Arguments, Body, Inner, Spellings

pytestmark = pytest.mark.protected


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
