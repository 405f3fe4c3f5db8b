"""Programs as the documents of 2024 print them, with a JAX of that age: `make test-interop-old` installs it beside."""

from __future__ import annotations

import os
import re
import subprocess
import textwrap
from pathlib import Path

import numpy as np
import pytest
import warp as wp

ROOT = Path(__file__).resolve().parents[2]
pytestmark = [
    pytest.mark.interop_old,
    pytest.mark.cpu_only("other frameworks are built for the CPU here; their GPUs come later"),
]


@pytest.fixture
def run(tmp_path):
    """A function: the output of a program, alone or under mpirun."""

    def run(text: str, processes: int = 0) -> str:
        program = tmp_path / "program.py"
        program.write_text(text)
        return output_of(program, processes)

    return run


def output_of(program: Path, processes: int) -> str:
    command = [str(ROOT / ".venv-interop-old/bin/python"), str(program)]
    if processes:
        options = ["--allow-run-as-root", "--oversubscribe", "--mca", "btl_vader_single_copy_mechanism", "none"]
        command = ["mpirun", *options, "-np", str(processes), *command]
    path = str(Path(wp.__file__).parents[1])
    environment = {**os.environ, "PYTHONPATH": path, "JAX_PLATFORMS": "cpu"}
    result = subprocess.run(command, capture_output=True, text=True, timeout=240, env=environment)
    assert result.returncode == 0, result.stdout + result.stderr
    return result.stdout


@pytest.mark.seed("P-24", "P-25", "S-DST-001", "S-DST-003", "S-DST-006")
@pytest.mark.parametrize("processes", [2, 3])
def test_a_kernel_in_shard_map(load_seed, run, processes):
    lines = run(load_seed(1).text(615, 699), processes).splitlines()
    values = np.arange(5.0 * processes)
    assert lines == [
        f"Running on {processes} GPU(s)",
        "Test distributed multiplication using JAX + Warp",
        f"Input array: {values}",
        f"Warp Output: {2 * values}",
    ]


@pytest.mark.seed("P-27", "S-DST-004", "S-DST-005", "S-JAX-014")
@pytest.mark.parametrize("processes", [1, 2])
def test_a_matrix_product_by_rows(load_seed, run, processes):
    output = run(load_seed(1).text(726, 823), processes)
    a = np.arange(32.0 * processes).reshape(8 * processes, 4)
    b = np.arange(24.0).reshape(4, 6)
    of_kernel = re.search(r"Warp Output:\n(.*?)\nJAX Output:", output, re.DOTALL)[1]
    np.testing.assert_array_equal(np.array(re.sub(r"[\[\]]", " ", of_kernel).split(), float).reshape(-1, 6), a @ b)
    assert output.endswith(
        f"Expected shape: {(8 * processes, 6)}\nWarp output shape: {(8 * processes, 6)}\n"
        f"JAX output shape: {(8 * processes, 6)}\nAllclose: True\n"
    )


CAPSULES = """
import ctypes
import warnings

import jax
import numpy as np
import warp as wp

warnings.simplefilter("ignore", DeprecationWarning)
jax_array = jax.numpy.arange(6, dtype=jax.numpy.float32)

warp_array1 = wp.from_dlpack(jax.dlpack.to_dlpack(jax_array))

assert warp_array1.ptr == jax_array.unsafe_buffer_pointer() and warp_array1.dtype is wp.float32
np.testing.assert_array_equal(warp_array1.numpy(), np.arange(6))
capsule = jax.dlpack.to_dlpack(jax_array)
wp.from_dlpack(capsule)
name = ctypes.pythonapi.PyCapsule_GetName
name.restype, name.argtypes = ctypes.c_char_p, [ctypes.py_object]
assert name(capsule) == b"used_dltensor"

warp_array = wp.array([1.0, 2.0, 3.0], dtype=float)

jax_array = jax.dlpack.from_dlpack(wp.to_dlpack(warp_array))

assert jax_array.unsafe_buffer_pointer() == warp_array.ptr
address = warp_array.ptr
del warp_array
assert jax_array.tolist() == [1.0, 2.0, 3.0] and jax_array.unsafe_buffer_pointer() == address
print("shared")
"""


@pytest.mark.seed("P-33", "P-34", "S-DLP-005", "D-13")
def test_capsules_go_both_ways(run):
    assert run(CAPSULES) == "shared\n"


def test_derivatives_of_both_modes(run):
    program = """
        import jax, jax.numpy as jnp, numpy as np
        import warp as wp

        @wp.kernel
        def wave(x: wp.array[float], y: wp.array[float], z: wp.array[float]):
            i = wp.tid()
            z[i] = wp.sin(x[i]) * y[i] + x[i] * x[i]

        function, (x, y) = wp.jax_kernel(wave), jnp.linspace(0.5, 2.0, 6).reshape(2, 3)
        ours, theirs = lambda x, y: jnp.sum(function(x, y)[0]), lambda x, y: jnp.sum(jnp.sin(x) * y + x * x)
        for derivative in (
            lambda f: jax.jvp(f, (x, y), (y, x)),
            lambda f: jax.jit(jax.hessian(f, (0, 1)))(x, y),
            lambda f: jax.jacrev(jax.grad(f, (0, 1)), (0, 1))(x, y),
            lambda f: jax.vmap(jax.grad(f), (0, None))(jnp.stack([x, y]), y),
        ):
            found, expected = (jax.tree.leaves(derivative(f)) for f in (ours, theirs))
            for one, other in zip(found, expected, strict=True):
                np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-5)
        print(jax.__version__)
    """
    assert run(textwrap.dedent(program)) == "0.6.2\n"
