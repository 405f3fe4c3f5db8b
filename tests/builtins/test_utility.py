"""Builtins that the sweep cannot call with one value per row: choices, expectations, searches, casts, statics."""

import os
import signal
import subprocess
import sys

import numpy as np
import pytest
import warp as wp
from sweep import FLOATS, INTEGERS, Type, load

KINDS = [Type("scalar", s) for s in [*INTEGERS, *FLOATS, "bool"]] + [
    Type("vector", "int16", (3,)),
    Type("vector", "float32", (5,)),
    Type("matrix", "float64", (2, 3)),
    Type("quaternion", "float32", (4,)),
    Type("transform", "float64", (7,)),
]


def sample(kind, rng, rows):
    values = rng.integers(0, 2 if kind.scalar == "bool" else 100, (rows, *kind.shape))
    return values.astype(kind.numpy)


def test_where_and_select(tmp_path):
    rng, n = np.random.default_rng(1), 37
    header, body, arguments, expected = [], [], [], []
    output_header, outputs = [], []
    flags = {"bool": rng.integers(0, 2, n).astype(bool)}
    flags |= {s: (rng.integers(0, 2, n) * rng.integers(1, 100, n)).astype(s) for s in INTEGERS}
    for scalar, values in flags.items():
        header.append(f"c_{scalar}: wp.array(dtype=wp.{scalar})")
        arguments.append(wp.array(values, dtype=getattr(wp, scalar)))
    header += ["given: wp.array(dtype=float)", "none: wp.array(dtype=float)"]
    arguments += [wp.zeros(1, dtype=float), None]
    for t, kind in enumerate(KINDS):
        a, b = sample(kind, rng, n), sample(kind, rng, n)
        header += [f"a{t}: wp.array(dtype={kind.source})", f"b{t}: wp.array(dtype={kind.source})"]
        arguments += [wp.array(a, dtype=kind.dtype), wp.array(b, dtype=kind.dtype)]
        conditions = list(flags) if t < 2 else ["bool", INTEGERS[t % len(INTEGERS)]]
        cases = [(f"c_{s}[i]", flags[s].astype(bool)) for s in conditions]
        if kind.kind == "scalar":
            cases += [("given", np.full(n, True)), ("none", np.full(n, False))]
        for condition, truth in cases:
            truth = truth.reshape(n, *[1] * len(kind.shape))
            for name, value in (("where", np.where(truth, a, b)), ("select", np.where(truth, b, a))):
                out = f"o{len(outputs)}"
                output_header.append(f"{out}: wp.array(dtype={kind.source})")
                body.append(f"    {out}[i] = wp.{name}({condition}, a{t}[i], b{t}[i])")
                outputs.append(wp.zeros(n, dtype=kind.dtype))
                expected.append((name, condition, kind, value))
    source = "import warp as wp\n\n\n@wp.kernel\ndef k(" + ", ".join(header + output_header) + "):\n    i = wp.tid()\n"
    module = load(source + "\n".join(body) + "\n", tmp_path, "choices")
    wp.launch(module.k, dim=n, inputs=arguments + outputs)
    for out, (name, condition, kind, value) in zip(outputs, expected):
        assert np.array_equal(out.numpy(), value), (name, condition, kind)


@pytest.mark.parametrize("scalar", INTEGERS + FLOATS)
def test_lower_bound_is_that_of_numpy_within_the_range(scalar, tmp_path):
    kind = Type("scalar", scalar)
    module = load(
        f"""import warp as wp

@wp.kernel
def k(
    a: wp.array(dtype=wp.{scalar}),
    v: wp.array(dtype=wp.{scalar}),
    found: wp.array(dtype=int),
    part: wp.array(dtype=int),
):
    i = wp.tid()
    found[i] = wp.lower_bound(a, v[i])
    part[i] = wp.lower_bound(a, 3, 20, v[i])
""",
        tmp_path,
        f"search_{scalar}",
    )
    rng = np.random.default_rng(2)
    array = np.sort(rng.integers(0, 40, 50)).astype(kind.numpy)
    values = np.arange(0, 42).astype(kind.numpy)
    for length in (50, 20):
        found, part = wp.zeros(len(values), dtype=int), wp.zeros(len(values), dtype=int)
        wp.launch(module.k, dim=len(values), inputs=[array[:length].copy(), values, found, part])
        assert np.array_equal(found.numpy(), np.minimum(np.searchsorted(array[:length], values), length - 1))
        assert np.array_equal(part.numpy(), np.minimum(3 + np.searchsorted(array[3:20], values), 19))


def test_lower_bound_of_nothing_is_zero():
    @wp.kernel
    def k(a: wp.array(dtype=float), found: wp.array(dtype=int)):
        found[0] = wp.lower_bound(a, 1.0)

    found = wp.full(1, 7, dtype=int)
    wp.launch(k, dim=1, inputs=[wp.zeros(0, dtype=float), found])
    assert found.numpy()[0] == 0


def test_cast_keeps_the_bits(tmp_path):
    pairs = [
        (a, b)
        for group in (
            ["int8", "uint8"],
            ["int16", "uint16", "float16"],
            ["int32", "uint32", "float32"],
            ["int64", "uint64", "float64"],
        )
        for a in group
        for b in group
    ]
    header = [f"a{i}: wp.array(dtype=wp.{a}), o{i}: wp.array(dtype=wp.{b})" for i, (a, b) in enumerate(pairs)]
    body = [f"    o{i}[i] = wp.cast(a{i}[i], wp.{b})" for i, (_, b) in enumerate(pairs)]
    source = "import warp as wp\n\n\n@wp.kernel\ndef k(" + ", ".join(header) + "):\n    i = wp.tid()\n"
    module = load(source + "\n".join(body) + "\n", tmp_path, "casts")
    rng, n = np.random.default_rng(5), 37
    values = [rng.integers(0, 256, (n, np.dtype(a).itemsize), dtype=np.uint8).view(a).ravel() for a, _ in pairs]
    arguments = []
    for (a, b), v in zip(pairs, values):
        arguments += [wp.array(v, dtype=getattr(wp, a)), wp.zeros(n, dtype=getattr(wp, b))]
    wp.launch(module.k, dim=n, inputs=arguments)
    for (a, b), v, out in zip(pairs, values, arguments[1::2]):
        bits = f"u{v.itemsize}"
        same = out.numpy().view(bits) == v.view(bits)
        if "float" in a and "float" in b:
            same |= np.isnan(v)
        assert same.all(), (a, b)


def test_cast_of_vectors():
    vec3i = wp.types.vector(3, wp.int32)

    @wp.kernel
    def k(a: wp.array(dtype=wp.vec3), o: wp.array(dtype=vec3i)):
        o[0] = wp.cast(a[0], vec3i)

    a = np.array([[1.0, -2.5, np.pi]], dtype=np.float32)
    out = wp.zeros(1, dtype=vec3i)
    wp.launch(k, dim=1, inputs=[a, out])
    assert np.array_equal(out.numpy(), a.view(np.int32))


@pytest.mark.parametrize("scalar", INTEGERS)
def test_integer_powers(scalar, tmp_path):
    exponents = [0, 1, 2, 3, 7, 10]
    lines = [
        f"    o[{row}, i] = x[i] ** {e}\n    o[{row + 1}, i] = wp.pow(x[i], {e})"
        for row, e in zip(range(0, 12, 2), exponents)
    ]
    parameters = f"x: wp.array(dtype=wp.{scalar}), o: wp.array2d(dtype=wp.{scalar})"
    source = f"import warp as wp\n\n\n@wp.kernel\ndef k({parameters}):\n    i = wp.tid()\n"
    module = load(source + "\n".join(lines) + "\n", tmp_path, f"powers_{scalar}")
    x = np.random.default_rng(1).integers(np.iinfo(scalar).min, np.iinfo(scalar).max, 37, dtype=scalar)
    x[:4] = [0, 1, 2, 3]
    out = wp.zeros((12, 37), dtype=getattr(wp, scalar))
    wp.launch(module.k, dim=37, inputs=[x, out])
    for row, e in zip(range(0, 12, 2), exponents):
        expected = (
            np.array([pow(int(v), e) % (1 << 8 * x.itemsize) for v in x], dtype=np.uint64)
            .astype(f"u{x.itemsize}")
            .view(scalar)
        )
        assert np.array_equal(out.numpy()[row], expected), e
        assert np.array_equal(out.numpy()[row + 1], expected), e


def test_static_arguments(tmp_path):
    calls = {
        "wp.identity(3, wp.float64)": (Type("matrix", "float64", (3, 3)), np.eye(3)),
        "wp.identity(n=2)": (Type("matrix", "float32", (2, 2)), np.eye(2)),
        "wp.identity(n=5, dtype=wp.int16)": (Type("matrix", "int16", (5, 5)), np.eye(5)),
        "wp.quat_identity()": (Type("quaternion", "float32", (4,)), [0, 0, 0, 1]),
        "wp.quat_identity(dtype=wp.float64)": (Type("quaternion", "float64", (4,)), [0, 0, 0, 1]),
        "wp.transform_identity()": (Type("transform", "float32", (7,)), [0, 0, 0, 0, 0, 0, 1]),
        "wp.transform_identity(dtype=wp.float16)": (Type("transform", "float16", (7,)), [0, 0, 0, 0, 0, 0, 1]),
        "wp.quaternion()": (Type("quaternion", "float32", (4,)), [0, 0, 0, 0]),
        "wp.quaternion(dtype=wp.float64)": (Type("quaternion", "float64", (4,)), [0, 0, 0, 0]),
        "wp.quaternion(wp.quat(1.0, 2.0, 3.0, 4.0), dtype=wp.float64)": (
            Type("quaternion", "float64", (4,)),
            [1, 2, 3, 4],
        ),
    }
    header = [f"o{i}: wp.array(dtype={kind.source})" for i, (kind, _) in enumerate(calls.values())]
    body = [f"    o{i}[0] = {call}" for i, call in enumerate(calls)]
    module = load(
        "import warp as wp\n\n\n@wp.kernel\ndef k(" + ", ".join(header) + "):\n" + "\n".join(body) + "\n",
        tmp_path,
        "statics",
    )
    outputs = [wp.zeros(1, dtype=kind.dtype) for kind, _ in calls.values()]
    wp.launch(module.k, dim=1, inputs=outputs)
    for out, (call, (_, expected)) in zip(outputs, calls.items()):
        assert np.array_equal(out.numpy()[0], expected), call


def test_not_of_an_array_tells_whether_it_is_none():
    @wp.kernel
    def k(a: wp.array(dtype=float), b: wp.array(dtype=wp.vec3), o: wp.array(dtype=bool)):
        o[0] = not a
        o[1] = not b

    out = wp.zeros(2, dtype=bool)
    wp.launch(k, dim=1, inputs=[None, wp.zeros(1, dtype=wp.vec3), out])
    assert out.numpy().tolist() == [True, False]


def test_expectations_print_what_differs(capfd):
    @wp.kernel
    def k(x: wp.array(dtype=float)):
        wp.expect_eq(x[0], 1.0)
        wp.expect_eq(x[0], 2.0)
        wp.expect_neq(x[0], 2.0)
        wp.expect_neq(wp.vec2(x[0], x[1]), wp.vec2(1.0, 2.0))
        wp.expect_near(x[0], 1.1, 0.2)
        wp.expect_near(x[0], 1.1, 0.05)
        wp.expect_near(wp.vec3(x[0], x[1], 0.0), wp.vec3(1.0, 2.0, 0.0))
        wp.expect_near(x[2], x[2])
        wp.expect_near(wp.quat(x[0], 0.0, 0.0, 0.0), wp.quat(1.0, 0.0, 0.5, 0.0), 0.25)
        wp.expect_eq(wp.uint64(18446744073709551615), wp.uint64(0))
        wp.expect_eq(wp.int8(-3), wp.int8(4))
        wp.expect_near(wp.mat22(x[0], 0.0, 0.0, x[0]), wp.mat22(1.0, 0.0, 0.0, 3.0))
        wp.expect_eq(x[0] > 0.5, True)

    wp.launch(k, dim=1, inputs=[np.array([1, 2, np.nan], dtype=np.float32)])
    wp.synchronize()
    lines = capfd.readouterr().out.splitlines()
    assert lines == [
        "Error: expect_eq() failed: (1) and (2)",
        "Error: expect_neq() failed: (1, 2) and (1, 2)",
        "Error: expect_near() failed: (1) and (1.1)",
        "Error: expect_near() failed: (nan) and (nan)",
        "Error: expect_near() failed: (1, 0, 0, 0) and (1, 0, 0.5, 0)",
        "Error: expect_eq() failed: (18446744073709551615) and (0)",
        "Error: expect_eq() failed: (-3) and (4)",
        "Error: expect_near() failed: (1, 0, 0, 1) and (1, 0, 0, 3)",
    ]


@wp.kernel
def stops_at_seven(x: wp.array(dtype=int)):
    i = wp.tid()
    if i == 7:
        wp.breakpoint()
    x[i] = i


@pytest.mark.host_memory("debuggers of the host", on="cuda")
def test_breakpoint_without_a_debugger_does_nothing():
    x = wp.zeros(100, dtype=int)
    wp.launch(stops_at_seven, dim=100, inputs=[x])
    assert np.array_equal(x.numpy(), np.arange(100))


TRACED = """import ctypes
import warp as wp


@wp.kernel
def k(x: wp.array(dtype=int)):
    wp.breakpoint()
    x[0] = 1


x = wp.zeros(1, dtype=int)
assert ctypes.CDLL(None).ptrace(0, 0, 0, 0) == 0
wp.launch(k, dim=1, inputs=[x])
"""


@pytest.mark.host_memory("debuggers of the host", on="cuda")
def test_breakpoint_stops_in_a_debugger(tmp_path):
    """A process that lets itself be traced (ptrace) stops with the signal that a debugger waits for."""
    program = tmp_path / "traced.py"
    program.write_text(TRACED)
    child = subprocess.Popen([sys.executable, program], env={**os.environ, "WARP_CPU_THREADS": "1"})
    try:
        _, status = os.waitpid(child.pid, os.WUNTRACED)
        assert os.WIFSTOPPED(status) and os.WSTOPSIG(status) == signal.SIGTRAP
    finally:
        child.kill()
        child.wait()


@wp.kernel
def copies(a: wp.array[wp.vec3], x: wp.array[float], out: wp.array[wp.vec3], twice: wp.array[float]):
    i = wp.tid()
    before = wp.copy(a[i])
    a[i] = 2.0 * before
    changed = wp.copy(before)
    changed[1] = 9.0
    out[2 * i] = before
    out[2 * i + 1] = changed
    twice[i] = wp.copy(x[i]) + x[i]


def test_a_copy_in_a_kernel_is_the_value_and_has_its_gradient():
    a = wp.array([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]], dtype=wp.vec3)
    x = wp.array([1.0, -3.0], requires_grad=True, dtype=float)
    out, twice = wp.zeros(4, dtype=wp.vec3), wp.zeros(2, dtype=float, requires_grad=True)
    with wp.Tape() as tape:
        wp.launch(copies, 2, [a, x], [out, twice])
    assert out.numpy().tolist() == [[1, 2, 3], [1, 9, 3], [4, 5, 6], [4, 9, 6]]
    assert a.numpy().tolist() == [[2, 4, 6], [8, 10, 12]] and twice.numpy().tolist() == [2, -6]
    tape.backward(grads={twice: wp.array([1.0, 10.0], dtype=float)})
    assert x.grad.numpy().tolist() == [2, 20]


def test_an_array_is_no_value_to_copy():
    @wp.kernel
    def wrong(a: wp.array[float]):
        b = wp.copy(a)
        b[0] = 1.0

    with pytest.raises(wp.CompileError, match=r"copy.*argument 'a' is .*array.*expected a value"):
        wp.launch(wrong, 1, [wp.zeros(1, dtype=float)])
