"""Kernels with many parameters, long conditions and many loops: right, and put together without lists of everything."""

import importlib.util
import re

import numpy as np
import pytest
import warp as wp


@pytest.fixture
def define(tmp_path):
    """A function that makes the kernel `k` of its text."""

    def make(parameters: str, body: str):
        lines = "\n    ".join(body.strip().splitlines())
        path = tmp_path / "large.py"
        path.write_text(f"import warp as wp\n\n\n@wp.kernel\ndef k({parameters}):\n    {lines}\n")
        specification = importlib.util.spec_from_file_location("large", path)
        module = importlib.util.module_from_spec(specification)
        specification.loader.exec_module(module)
        return module.k

    return make


def test_many_arrays_are_known_to_be_apart_by_few_scopes_each(define):
    count = 100
    parameters = ", ".join(f"a{i}: wp.array(dtype=float)" for i in range(count))
    kernel = define(parameters, "i = wp.tid()\n" + "\n".join(f"a{i}[i] = a{i}[i] * 2.0 + {i}.0" for i in range(count)))
    metadata = [line for line in kernel.listing("llvm").splitlines() if re.match(r"!\d+ = ", line)]
    assert max(line.count("!") for line in metadata) <= 12
    arrays = [wp.full(19, float(i)) for i in range(count)]
    wp.launch(kernel, dim=19, inputs=arrays)
    for i, array in enumerate(arrays):
        assert (array.numpy() == 3 * i).all()


@pytest.mark.parametrize("word, ends_at", [("or", True), ("and", False)])
def test_a_long_chain_stops_where_python_stops(define, word, ends_at):
    count = 37
    terms = f" {word} ".join(f"x[s + {j}] {'==' if ends_at else '!='} 1.0" for j in range(count))
    kernel = define(
        "x: wp.array(dtype=float), start: wp.array(dtype=int), y: wp.array(dtype=bool)",
        f"s = start[wp.tid()]\ny[wp.tid()] = {terms}",
    )
    # Each row ends behind its first 1: a read beyond it is a fault in debug mode.
    for first in (0, 1, 7, 8, 9, 18, 19, 35, 36):
        row = np.zeros(first + 1, dtype=np.float32)
        row[first] = 1.0
        y = wp.zeros(1, dtype=bool)
        kernel_result = []
        for mode in ("release", "debug"):
            wp.config.mode = mode
            try:
                wp.launch(kernel, dim=1, inputs=[wp.array(row), wp.zeros(1, dtype=int), y])
            finally:
                wp.config.mode = "release"
            kernel_result.append(bool(y.numpy()[0]))
        assert kernel_result == [ends_at, ends_at]


def test_a_long_chain_of_plain_comparisons_agrees_with_numpy(define):
    terms = " or ".join(f"v == {j}" for j in range(0, 200, 3))
    kernel = define("x: wp.array(dtype=int), y: wp.array(dtype=bool)", f"v = x[wp.tid()]\ny[wp.tid()] = {terms}")
    x = np.arange(-20, 230, dtype=np.int32)
    y = wp.zeros(x.size, dtype=bool)
    wp.launch(kernel, dim=x.size, inputs=[x, y])
    np.testing.assert_array_equal(y.numpy(), (x >= 0) & (x < 200) & (x % 3 == 0))


def test_a_kernel_of_more_loops_than_all_passes_are_run_for_is_right(define):
    count = 70
    loops = "\n".join(f"for j{n} in range(m):\n    s += a[i] * float(j{n} + {n})" for n in range(count))
    kernel = define(
        "a: wp.array(dtype=wp.float64), m: int",
        "i = wp.tid()\ns = wp.float64(0.0)\n" + loops.replace("float(", "wp.float64(") + "\na[i] = s",
    )
    a = wp.array(np.linspace(0.0, 1.0, 21))
    wp.launch(kernel, dim=21, inputs=[a, 5])
    factor = sum(j + n for n in range(count) for j in range(5))
    np.testing.assert_allclose(a.numpy(), np.linspace(0.0, 1.0, 21) * factor)


@pytest.mark.parametrize("size", [1, 7, 8, 9, 64, 100])
def test_a_body_written_once_under_masks_treats_every_thread(define, size):
    # Nearly all of it depends on a condition that differs between threads.
    steps = "\n    ".join(f"s = s * 0.5 + wp.vec3(x[i], {n}.0, s[0])" for n in range(40))
    kernel = define(
        "x: wp.array(dtype=float), y: wp.array(dtype=wp.vec3)",
        f"i = wp.tid()\ns = wp.vec3(0.0, 0.0, 0.0)\nif x[i] > 0.0:\n    {steps}\ny[i] = s",
    )
    x = np.where(np.arange(size) % 3 == 0, -1.0, np.arange(size)).astype(np.float32)
    y = wp.zeros(size + 5, dtype=wp.vec3)
    wp.launch(kernel, dim=size, inputs=[x, y])
    expected = np.zeros((size + 5, 3))
    for n in range(40):
        active = np.flatnonzero(x > 0.0)
        expected[active] = expected[active] * 0.5 + np.stack(
            [x[active], np.full(active.size, float(n)), expected[active, 0]], 1
        )
    np.testing.assert_allclose(y.numpy(), expected, rtol=1e-5)
