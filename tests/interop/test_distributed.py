"""Programs of two processes: MPI, torch.distributed and JAX, each beside the same work in one process."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import warp as wp
from warp.examples.distributed import gradients, halo

pytestmark = [
    pytest.mark.distributed,
    pytest.mark.cpu_only("other frameworks are built for the CPU here; their GPUs come later"),
]

TIMEOUT = 240  # seconds, for machines on which other work runs


def run(*command: object, **environment: str) -> str:
    """The output of the command; its own processes end with it."""
    result = subprocess.run(
        [str(part) for part in command],
        capture_output=True,
        text=True,
        timeout=TIMEOUT,
        env={**os.environ, **environment},
    )
    assert result.returncode == 0, result.stdout + result.stderr
    return result.stdout


def mpirun(processes: int, *command: object, **environment: str) -> str:
    """Open MPI as a test may use it: by any user, on a machine with too few cores, in a container."""
    options = ["--allow-run-as-root", "--oversubscribe", "--mca", "btl_vader_single_copy_mechanism", "none"]
    return run("mpirun", *options, "-np", processes, sys.executable, *command, **environment)


def number(output: str, before: str) -> float:
    return float(re.search(rf"{before}:? (\S+)", output)[1])


# ---- MPI ----


def heat_by_numpy(rows: int, columns: int, steps: int, rate: float) -> np.ndarray:
    u = halo.start(rows, columns).astype(np.float64)
    for _ in range(steps):
        around = u[:-2, 1:-1] + u[2:, 1:-1] + u[1:-1, :-2] + u[1:-1, 2:]
        u[1:-1, 1:-1] += rate * (around - 4.0 * u[1:-1, 1:-1])
    return u[1:-1]


@pytest.mark.parametrize("processes", [2, 3])
def test_a_stencil_exchanges_its_edges(processes, tmp_path):
    program = tmp_path / "heat.py"
    program.write_text(
        "import sys, numpy\n"
        "from mpi4py import MPI\n"
        "from warp.examples.distributed import halo\n"
        "found = halo.run(MPI.COMM_WORLD, 41, 30, 60, 0.2)\n"
        "if found is not None:\n"
        "    print(MPI.COMM_WORLD.Get_size(), 'processes')\n"
        "    numpy.save(sys.argv[1], found)\n"
    )
    file = tmp_path / "heat.npy"
    assert mpirun(processes, program, file) == f"{processes} processes\n"
    np.testing.assert_allclose(np.load(file), heat_by_numpy(41, 30, 60, 0.2), atol=1e-5)


def test_the_stencil_of_two_processes_is_that_of_one():
    output = mpirun(2, "-m", "warp.examples.distributed.halo", "--rows", 60, "--columns", 40, "--steps", 30)
    assert "2 processes, 30 steps" in output and number(output, "largest difference from one process") == 0.0


def test_messages_are_read_and_written_in_place(tmp_path):
    """Rows of vectors, of other numbers, and views, without a copy; memory that has gaps or is read-only is refused."""
    program = tmp_path / "messages.py"
    program.write_text("""
import numpy as np
import warp as wp
from mpi4py import MPI

world = MPI.COMM_WORLD
rank, other = world.Get_rank(), 1 - world.Get_rank()
for dtype in (wp.vec3, wp.float64, wp.int16, wp.mat22d):
    mine = wp.full((4, 5), 2 + rank, dtype=wp.int32).numpy()
    sent = wp.full((4, 5), dtype(2 + rank), dtype=dtype)
    got = wp.zeros((4, 5), dtype=dtype)
    address = got.ptr
    requests = [world.Recv_init(got[1:3], other), world.Send_init(sent[1:3], other)]
    for _ in range(2):
        MPI.Prequest.Startall(requests)
        MPI.Prequest.Waitall(requests)
    assert got.ptr == address
    assert (got.numpy()[1:3] == 3 - rank).all() and (got.numpy()[[0, 3]] == 0).all()
total = wp.full(3, 1.0 + rank, dtype=float)
world.Allreduce(MPI.IN_PLACE, total)
assert total.list() == [3.0, 3.0, 3.0]
for wrong in (wp.zeros((4, 5))[:, 1], wp.zeros(6)[::-1], wp.zeros((4, 5))[::2]):
    try:
        world.Send_init(wrong, other)
    except (BufferError, ValueError) as error:
        assert "contiguous" in str(error) or "negative" in str(error), error
    else:
        raise AssertionError("memory with gaps was taken")
frozen = np.zeros(3, dtype=np.float32)
frozen.flags.writeable = False
try:
    world.Recv_init(wp.from_dlpack(frozen), other)
except (BufferError, ValueError) as error:
    assert "read-only" in str(error) or "writable" in str(error), error
else:
    raise AssertionError("read-only memory was taken")
print("done")
""")
    assert mpirun(2, program).count("done") == 2


def test_a_plate_that_is_too_small_is_an_error():
    from mpi4py import MPI

    with pytest.raises(ValueError, match="a plate of 3 rows is too small for 1 processes"):
        halo.Band(MPI.COMM_SELF, np.zeros((3, 4), dtype=np.float32))


# ---- torch.distributed ----


def test_gradients_of_two_processes_are_summed():
    module = ["torch.distributed.run", "--standalone", "--nproc-per-node", 2]
    output = run(sys.executable, "-m", *module, "-m", "warp.examples.distributed.gradients", OMP_NUM_THREADS="1")
    assert "2 processes" in output
    assert number(output, "largest difference from one process") < 1e-5
    assert number(output, "largest difference from the exact line") < 1e-4


def test_the_gradient_that_is_summed_is_that_of_the_formula():
    x, y = gradients.points(500)
    own = gradients.Fit(x, y, 500)
    wp.copy(own.line, wp.array([0.5, 0.25], dtype=float))
    own.tape.zero()
    own.tape.backward(own.loss)
    off = 0.5 * x.astype(float) + 0.25 - y
    np.testing.assert_allclose(own.gradient.numpy(), [2 * (off * x).mean(), 2 * off.mean()], rtol=1e-4)
    assert own.gradient.data_ptr() == own.line.grad.ptr


# ---- JAX ----


@pytest.mark.seed("P-24", "P-25", "P-26", "P-27")
@pytest.mark.seed("S-DST-001", "S-DST-003", "S-DST-004", "S-DST-005", "S-DST-006")
@pytest.mark.parametrize("processes", [2, 3])
def test_products_of_parts_are_the_product(processes):
    """The programs of the documents, for today's JAX: `jax.shard_map` with `check_vma`."""
    output = mpirun(processes, "-m", "warp.examples.distributed.products", "--size", 61, JAX_PLATFORMS="cpu")
    assert f"{processes} processes, {processes} devices, {61 // processes * processes} rows" in output
    assert "doubled: True" in output
    assert number(output, "largest difference from NumPy") < 1e-4
    assert number(output, "largest difference from JAX") < 1e-4


@pytest.mark.seed("P-24", "S-DST-002")
def test_jax_is_not_started_before_it_is_told_of_the_other_processes(tmp_path):
    program = tmp_path / "first.py"
    program.write_text("""
import jax
import warp as wp
import warp.jax_experimental
from warp.jax_experimental import jax_kernel

@wp.kernel
def double(x: wp.array[float], y: wp.array[float]):
    y[wp.tid()] = 2.0 * x[wp.tid()]

function = jax_kernel(double)
jax.distributed.initialize()  # refuses to work after anything else of JAX
assert jax.process_count() == 2
print(function(jax.numpy.arange(3.0))[0].tolist())
""")
    assert mpirun(2, program, JAX_PLATFORMS="cpu").count("[0.0, 2.0, 4.0]") == 2


# ---- the page ----


def test_the_page_names_the_programs():
    page = (Path(__file__).parents[2] / "docs/guide/distributed.md").read_text()
    for name in ("halo", "gradients", "products"):
        assert f"warp.examples.distributed.{name}" in page
