"""bfloat16 between arrays and NumPy: with the package ml_dtypes its dtype, without it the bits, as uint16."""

import os
import subprocess
import sys
import textwrap

import numpy as np
import pytest
import warp as wp

NUMBERS = [1.0, 2.5, -3.0, 0.1, 1e30]
BITS = [0x3F80, 0x4020, 0xC040, 0x3DCD, 0x714A]  # the upper halves of the float32, rounded to nearest even

needs_ml_dtypes = pytest.mark.needs("ml_dtypes")


def bits(array):
    return array.view(wp.uint16).list()


def test_numbers_are_rounded_to_the_nearest():
    as_float32 = np.array(NUMBERS, np.float32)
    for data in (NUMBERS, np.array(NUMBERS), as_float32, wp.array(NUMBERS, dtype=float), wp.array(NUMBERS)):
        assert bits(wp.array(data, dtype=wp.bfloat16)) == BITS
    halves = np.array([0x3F808000, 0x3F818000, 0x3F808001], np.uint32).view(np.float32)  # half way: to the even one
    assert bits(wp.array(halves, dtype=wp.bfloat16)) == [0x3F80, 0x3F82, 0x3F81]


@pytest.mark.host_memory("shares the memory of NumPy arrays")
def test_uint16_are_bits():
    data = np.array(BITS, np.uint16)
    assert wp.array(data, dtype=wp.bfloat16).list()[:3] == [1.0, 2.5, -3.0]
    assert bits(wp.array(data[::2], dtype=wp.bfloat16)) == BITS[::2]
    shared = wp.array(data, dtype=wp.bfloat16, copy=False)
    shared.fill_(1.0)
    assert data.tolist() == [0x3F80] * 5
    pairs = wp.array(np.array(BITS[:4], np.uint16).reshape(2, 2), dtype=wp.types.vector(2, wp.bfloat16))
    assert pairs.shape == (2,) and pairs.list()[1][0] == -3.0


def test_assignment_converts_numbers_and_keeps_bits():
    a = wp.zeros(3, dtype=wp.bfloat16)
    a.assign(NUMBERS[:3])
    assert bits(a) == BITS[:3]
    a.assign(np.array(BITS[1:4], np.uint16))
    assert bits(a) == BITS[1:4]
    a[1:] = wp.array([4, 5], dtype=wp.int8)
    assert a.list() == [2.5, 4.0, 5.0]
    b = wp.zeros(3, dtype=float)
    b.assign(a)
    assert b.list() == [2.5, 4.0, 5.0]
    b[0:2] = a[1:]
    assert b.list() == [4.0, 5.0, 5.0]


@pytest.mark.parametrize("source", [wp.int64, wp.uint64])
def test_integers_of_64_bits_are_rounded_once(source):
    """Beside exact arithmetic: a middle of two bfloat16, and what lies beside it by less than a float64 shows."""

    @wp.kernel(module="unique")
    def convert(x: wp.array[source], y: wp.array[wp.bfloat16]):
        i = wp.tid()
        y[i] = wp.bfloat16(x[i])

    numbers, expected = [], []
    for power in range(17, 64 if source is wp.uint64 else 63):
        for k in [*range(128, 255, 7), 254]:
            low, step = k << (power - 7), 1 << (power - 7)
            for beside in (-1, 0, 1):
                number = low + step // 2 + beside
                up = beside > 0 or (beside == 0 and k % 2 == 1)
                for sign in (1, -1) if source is wp.int64 else (1,):
                    numbers.append(sign * number)
                    expected.append(float(sign * (low + step if up else low)))
    x = wp.array(numbers, dtype=source)
    y = wp.zeros(len(numbers), dtype=wp.bfloat16)
    wp.launch(convert, dim=len(numbers), inputs=[x, y])
    assert y.list() == expected
    assert [float(wp.bfloat16(source(n))) for n in numbers[::5]] == expected[::5]


@needs_ml_dtypes
@pytest.mark.host_memory("shares the memory of NumPy arrays")
def test_numpy_has_the_dtype_of_ml_dtypes():
    import ml_dtypes

    a = wp.array(NUMBERS, dtype=wp.bfloat16)
    view = a.numpy()
    assert view.dtype == ml_dtypes.bfloat16
    np.testing.assert_array_equal(view, np.array(NUMBERS).astype(ml_dtypes.bfloat16))
    view[1] = 7.0
    assert a.list()[1] == 7.0
    data = np.array(NUMBERS[:4]).astype(ml_dtypes.bfloat16)
    assert wp.array(data).dtype is wp.bfloat16 and bits(wp.array(data)) == BITS[:4]
    assert wp.array(data[:3], dtype=float).list() == NUMBERS[:3]
    assert wp.array(data[:3], dtype=int).list() == [1, 2, -3]
    shared = wp.array(data[1::2], copy=False)
    shared.zero_()
    assert data.astype(float).tolist() == [1.0, 0.0, -3.0, 0.0]
    assert wp.dtype_from_numpy(ml_dtypes.bfloat16) is wp.bfloat16

    @wp.kernel
    def double(x: wp.array[wp.bfloat16]):
        i = wp.tid()
        x[i] = x[i] + x[i]

    wp.launch(double, dim=4, inputs=[data])
    assert data.astype(float).tolist() == [2.0, 0.0, -6.0, 0.0]


@pytest.mark.host_memory("shows memory of the host", on="cuda")
def test_without_ml_dtypes_numpy_shows_the_bits_and_says_so_once():
    program = """
        import sys
        sys.modules["ml_dtypes"] = None
        import numpy as np
        import warp as wp

        a = wp.array([1.0, 2.5, -3.0], dtype=wp.bfloat16)
        assert a.numpy().dtype == np.uint16 and a.numpy().tolist() == [0x3F80, 0x4020, 0xC040]
        a.numpy()[0] = 0x4000
        b = wp.zeros(3)
        b.assign(a)
        assert b.list() == [2.0, 2.5, -3.0] and wp.array(a, dtype=float).list() == b.list()
        a[1:] = [3.0, 4.0]
        a[0:1] = wp.array([5.0])
        assert a.list() == [5.0, 3.0, 4.0]

        @wp.struct
        class Half:
            x: wp.bfloat16

        halves = wp.array(np.array([(1.5,)], dtype=[("x", "f4")]), dtype=Half)
        assert halves.numpy()["x"].tolist() == [0x3FC0] and halves.list()[0].x == 1.5
        halves.assign(np.array([(0x4000,)], dtype=[("x", "u2")]))
        assert halves.list()[0].x == 2.0
    """
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(program)], capture_output=True, text=True, env=environment
    )
    assert done.returncode == 0, done.stderr
    assert done.stderr.count("NumPy has no bfloat16") == 1 and "ml_dtypes" in done.stderr
