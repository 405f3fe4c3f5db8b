"""wp.config.serial: the threads of a launch run one after the other, in the order of the grid."""

import os
import subprocess
import sys

import numpy as np
import pytest
import warp as wp


@wp.kernel
def chain(a: wp.array[float]):
    i = wp.tid()
    if i > 0:
        a[i] = 0.5 * a[i - 1] + a[i]


@wp.kernel
def tickets(next: wp.array[int], order: wp.array3d[int]):
    i, j, k = wp.tid()
    order[i, j, k] = next[0]
    next[0] = next[0] + 1


@pytest.fixture
def serial():
    wp.config.serial = True
    yield
    wp.config.serial = False


@pytest.mark.parametrize("n", [1, 7, 64, 100_000])
def test_each_thread_sees_what_the_one_before_it_wrote(serial, n):
    numbers = np.random.default_rng(n).random(n).astype(np.float32)
    a = wp.array(numbers, dtype=float)
    wp.launch(chain, dim=n, inputs=[a])
    for i in range(1, n):
        numbers[i] = np.float32(0.5) * numbers[i - 1] + numbers[i]
    np.testing.assert_allclose(a.numpy(), numbers, rtol=1e-6)


@pytest.mark.seed("S-LCH-008")
@pytest.mark.parametrize("shape", [(1, 1, 1), (3, 5, 7), (40, 50, 60), (2, 1, 9)], ids=str)
def test_the_last_axis_counts_fastest(serial, shape):
    next, order = wp.zeros(1, dtype=int), wp.zeros(shape, dtype=int)
    wp.launch(tickets, dim=shape, inputs=[next, order])
    np.testing.assert_array_equal(order.numpy(), np.arange(np.prod(shape)).reshape(shape))


@pytest.mark.host_memory("threads of a GPU come in no order", on="cuda")
def test_debug_mode_runs_in_order_and_reports_the_first_thread():
    @wp.kernel(module_options={"mode": "debug"})
    def checked(next: wp.array[int]):
        i = wp.tid()
        assert next[0] == i
        next[0] = i + 1
        assert i < 60_000

    next = wp.zeros(1, dtype=int)
    with pytest.raises(AssertionError, match=r"thread \(60000,\)"):
        wp.launch(checked, dim=60_001, inputs=[next])


def test_gradients_are_the_same(serial):
    @wp.kernel
    def gather(a: wp.array[float], out: wp.array[float]):
        i = wp.tid()
        out[i] = a[(i * 7) % 5] * float(i)

    def gradient():
        a, out = wp.ones(5, requires_grad=True), wp.zeros(1000, requires_grad=True)
        with wp.Tape() as tape:
            wp.launch(gather, dim=1000, inputs=[a, out])
        tape.backward(grads={out: wp.ones(1000)})
        return a.grad.numpy()

    found = gradient()
    wp.config.serial = False
    np.testing.assert_array_equal(found, gradient())


@pytest.mark.host_memory("threads of a GPU come in no order", on="cuda")
def test_the_environment_sets_it(tmp_path):
    program = tmp_path / "program.py"
    program.write_text(
        "import warp as wp\n"
        "@wp.kernel\n"
        "def count(next: wp.array[int]):\n"
        "    i = wp.tid()\n"
        "    if next[0] == i:\n"
        "        next[0] = i + 1\n"
        "a = wp.zeros(1, dtype=int)\n"
        "wp.launch(count, dim=1000, inputs=[a])\n"
        "print(wp.config.serial, a.numpy()[0])\n"
    )
    for value, expected in (("1", "True 1000"), ("0", "False")):
        environment = {**os.environ, "WARP_SERIAL": value}
        output = subprocess.run([sys.executable, program], env=environment, capture_output=True, text=True, check=True)
        assert output.stdout.startswith(expected)
