"""Every way out of an array, for every kind of view: the table of docs/interop.md, cell by cell.

A cell says `shares`, `copies` or `raises`. That none ends the process shows here too: PyTorch does when it is given a
negative stride.
"""

from __future__ import annotations

import importlib.util
import io
import re
import subprocess
import sys
from pathlib import Path
from typing import Any, Callable

import numpy as np
import pytest
import warp as wp

pytestmark = pytest.mark.cpu_only("other frameworks are built for the CPU here; their GPUs come later")

PAGE = Path(__file__).resolve().parents[2] / "docs/interop.md"
NUMBERS = np.arange(24, dtype=np.float32)


@wp.struct
class Particle:
    mass: float
    position: wp.vec3


def with_strides(shape: tuple, strides: tuple) -> wp.array:
    whole = wp.array(NUMBERS, device="cpu")
    view = wp.array(ptr=whole.ptr, dtype=float, shape=shape, strides=strides, device="cpu")
    view.memory = whole
    return view


def read_only(numbers: np.ndarray) -> wp.array:
    numbers.flags.writeable = False
    return wp.array(numbers, copy=False, device="cpu")


def of_64_bytes(numbers: np.ndarray) -> np.ndarray:
    """A copy that begins at a multiple of 64 bytes, as JAX wants it."""
    room = np.empty(numbers.nbytes + 64, np.uint8)
    start = -room.ctypes.data % 64
    result = room[start : start + numbers.nbytes].view(numbers.dtype).reshape(numbers.shape)
    result[...] = numbers
    return result


def floats(dtype: Any = wp.float32) -> wp.array:
    return wp.array(NUMBERS, device="cpu").astype(dtype)


def table() -> wp.array:
    return wp.array(NUMBERS.reshape(4, 6), device="cpu")


# The columns of the table.
VIEWS: dict[str, list[Callable[[], wp.array]]] = {
    "packed": [
        floats,
        table,
        lambda: wp.array(NUMBERS.reshape(8, 3), dtype=wp.vec3, device="cpu"),
        lambda: wp.array(NUMBERS.reshape(1, 2, 1, 3, 2, 2), dtype=wp.mat22, device="cpu"),
        lambda: wp.array([True, False, True], dtype=wp.bool, device="cpu"),
        lambda: floats()[0:1],
        *(
            lambda dtype=dtype: floats(dtype)
            for dtype in (wp.int8, wp.uint8, wp.int16, wp.int32, wp.int64, wp.float16, wp.float64)
        ),
    ],
    "transposed": [lambda: table().T, lambda: wp.array(NUMBERS.reshape(2, 3, 4), device="cpu").transpose((0, 2, 1))],
    "steps": [
        lambda: floats()[::2],
        lambda: table()[:, :2],
        lambda: wp.array(NUMBERS.reshape(8, 3), dtype=wp.vec3, device="cpu")[::3],
    ],
    "backwards": [
        lambda: floats()[::-1],
        lambda: floats()[20:3:-3],
        lambda: table()[::-1],
        lambda: table()[:, ::-1],
        lambda: table()[::-1, ::-1].T,
        lambda: wp.array(NUMBERS.reshape(8, 3), dtype=wp.vec3, device="cpu")[::-1],
        lambda: wp.array([True, False], dtype=wp.bool, device="cpu")[::-1],
        *(lambda dtype=dtype: floats(dtype)[::-1] for dtype in (wp.int8, wp.uint16, wp.int64, wp.float16)),
        lambda: wp.array(NUMBERS[::-1], copy=False, device="cpu"),
    ],
    "overlapping": [lambda: with_strides((3, 4), (0, 4)), lambda: with_strides((3, 4), (4, 4))],
    "empty": [
        lambda: wp.zeros(0, device="cpu"),
        lambda: wp.zeros((0, 3), device="cpu"),
        lambda: floats()[5:5],
        lambda: table()[3:3, ::-1],
    ],
    "read-only": [lambda: read_only(of_64_bytes(NUMBERS)), lambda: read_only(of_64_bytes(NUMBERS.reshape(4, 6)))],
    "structs": [
        lambda: wp.array([Particle(mass=1.0), Particle(mass=2.0)], dtype=Particle, device="cpu"),
        lambda: wp.array([Particle(mass=1.0), Particle(mass=2.0)], dtype=Particle, device="cpu")[::-1],
    ],
    "small floats": [
        *(lambda dtype=dtype: floats(dtype) for dtype in (wp.bfloat16, wp.float8_e4m3fn, wp.float8_e5m2)),
        lambda: wp.array(NUMBERS.reshape(8, 3), dtype=wp.types.vector(3, wp.bfloat16), device="cpu"),
    ],
    "offset": [lambda: floats()[1:], lambda: table()[1:]],
}


class WithInterface:
    def __init__(self, a: wp.array):
        self.__array_interface__ = a.__array_interface__
        self.array = a


def torch() -> Any:
    return pytest.importorskip("torch")


def jax() -> Any:
    return pytest.importorskip("jax")


@pytest.fixture(autouse=True)
def numbers_of_64_bits_in_jax():
    """As the programs in this file need them, and no longer than these run."""
    if importlib.util.find_spec("jax") is None:
        yield
        return
    with jax().enable_x64(True):
        yield


def paddle() -> Any:
    return pytest.importorskip("paddle")


# The rows.
EXPORTS: dict[str, Callable[[wp.array], Any]] = {
    "a.numpy()": lambda a: a.numpy(),
    "np.asarray(a)": np.asarray,
    "np.array(a)": np.array,
    "memoryview(a)": lambda a: np.asarray(memoryview(a)),
    "a.__array_interface__": lambda a: np.asarray(WithInterface(a)),
    "np.from_dlpack(a)": np.from_dlpack,
    "wp.to_torch(a)": lambda a: torch() and wp.to_torch(a),
    "torch.from_dlpack(a)": lambda a: torch().from_dlpack(a),
    "torch.as_tensor(a)": lambda a: torch().as_tensor(a),
    "torch.tensor(a)": lambda a: torch().tensor(a),
    "wp.to_dlpack(a)": lambda a: torch().utils.dlpack.from_dlpack(wp.to_dlpack(a)),
    "wp.to_jax(a)": lambda a: jax() and wp.to_jax(a),
    "jax.dlpack.from_dlpack(a)": lambda a: jax().dlpack.from_dlpack(a),
    "jax.numpy.asarray(a)": lambda a: jax().numpy.asarray(a),
    "jax.numpy.array(a)": lambda a: jax().numpy.array(a),
    "wp.to_paddle(a)": lambda a: paddle() and wp.to_paddle(a),
    "paddle.from_dlpack(a)": lambda a: paddle().utils.dlpack.from_dlpack(a),
    "paddle.to_tensor(a)": lambda a: paddle().to_tensor(a),
}


def cells() -> dict[str, dict[str, str]]:
    """The first word of each cell, by row and column."""
    section = PAGE.read_text().partition("\n### Exports of each view\n")[2].partition("\n## ")[0]
    lines = [[cell.strip() for cell in line.strip("|").split("|")] for line in section.splitlines() if line[:1] == "|"]
    columns, rows = lines[0][1:], lines[2:]
    found: dict[str, dict[str, str]] = {}
    for row in rows:
        words = [cell.split()[0].rstrip(",") for cell in row[1:]]
        for name in re.findall(r"`([^`]+)`", row[0]):
            found[name] = dict(zip(columns, words, strict=True))
    return found


def numbers_of(result: Any) -> np.ndarray:
    if type(result).__module__.partition(".")[0] in ("torch", "paddle"):
        small = any(name in str(result.dtype) for name in ("float8", "bfloat16"))
        return (
            (result.to(torch().float32) if "torch" in str(type(result)) else result.astype("float32")).numpy()
            if (small)
            else result.numpy()
        )
    return np.asarray(result)


def address_of(result: Any) -> int:
    if hasattr(result, "data_ptr"):
        return result.data_ptr()
    return result.unsafe_buffer_pointer() if hasattr(result, "unsafe_buffer_pointer") else result.ctypes.data


def expected_numbers(a: wp.array) -> np.ndarray:
    """By elements, which no exchange of memory has a part in."""
    if a.dtype is Particle:
        return np.array([one.mass for one in a.list()])
    inner = getattr(a.dtype, "_shape_", ())
    return np.array([np.array(one) for one in a.list()], np.float64).reshape(a.shape + tuple(inner))


def test_the_table_names_all_ways_and_all_kinds_of_views():
    found = cells()
    assert found.keys() == EXPORTS.keys()
    assert all(row.keys() == VIEWS.keys() for row in found.values())


@pytest.mark.parametrize("export", EXPORTS)
@pytest.mark.parametrize("kind", VIEWS)
def test_views_share_copy_or_raise_as_the_table_says(kind, export):
    outcome = cells()[export][kind]
    for make in VIEWS[kind]:
        a = make()
        if outcome == "raises":
            with pytest.raises((RuntimeError, TypeError, ValueError, BufferError, AttributeError)) as caught:
                EXPORTS[export](a)
            assert str(caught.value)
            continue
        result = EXPORTS[export](a)
        found = numbers_of(result)
        if found.dtype.names:
            found = found["mass"]
        expected = expected_numbers(a)
        assert found.shape == expected.shape and (found.astype(np.float64) == expected).all(), a
        if a.size:
            assert (address_of(result) == a.ptr) == (outcome == "shares"), (export, a.shape, a.strides, a.dtype)


def test_read_only_memory_is_read_only_in_numpy():
    a = read_only(NUMBERS.copy())
    for export in ("a.numpy()", "np.asarray(a)", "memoryview(a)", "a.__array_interface__", "np.from_dlpack(a)"):
        assert not EXPORTS[export](a).flags.writeable, export


@pytest.mark.parametrize("export", ["wp.to_torch(a)", "torch.as_tensor(a)", "wp.to_paddle(a)", "np.from_dlpack(a)"])
def test_a_refused_negative_stride_is_named_with_the_way_that_works(export):
    with pytest.raises(RuntimeError if export.startswith("wp.") else BufferError) as caught:
        EXPORTS[export](table()[:, ::-1])
    assert "the array of shape (4, 6) has a stride of -4 bytes along dimension 1" in str(caught.value)
    assert "help: array.contiguous() copies" in str(caught.value)
    result = EXPORTS[export](table()[:, ::-1].contiguous())
    assert (numbers_of(result) == NUMBERS.reshape(4, 6)[:, ::-1]).all()


def test_dlpack_copies_a_reversed_array_where_it_is_asked_to():
    assert np.from_dlpack(floats()[::-1], copy=True).tolist() == NUMBERS[::-1].tolist()


def test_a_negative_stride_that_is_never_taken_is_no_obstacle():
    one = wp.array(NUMBERS[5:4:-1], copy=False, device="cpu")
    assert one.shape == (1,) and one.strides == (-4,)
    assert torch().as_tensor(one).tolist() == wp.to_torch(one).tolist() == [5.0]


# ---- floats that NumPy has not ----


@pytest.mark.parametrize("dtype", [wp.bfloat16, wp.float8_e4m3fn, wp.float8_e5m2])
def test_small_floats_are_numbers_for_numpy(dtype):
    a = wp.array([1.0, 2.0, -3.0], dtype=dtype, device="cpu")
    assert np.add(a, 1).astype(float).tolist() == [2.0, 3.0, -2.0]
    assert np.asarray(a).dtype.name == dtype.__name__ == np.array([a, a]).dtype.name
    assert np.array([a, a]).astype(float).tolist() == [[1.0, 2.0, -3.0]] * 2


@pytest.mark.parametrize("dtype", [wp.bfloat16, wp.float8_e4m3fn, wp.float8_e5m2])
def test_small_floats_have_no_format_of_a_buffer(dtype):
    a = wp.array([1.0, 2.0], dtype=dtype, device="cpu")
    with pytest.raises(BufferError) as caught:
        memoryview(a)
    assert f"the elements are {dtype.__name__}, for which buffers and array interfaces have no format" in str(
        caught.value
    )
    assert not hasattr(a, "__array_interface__")
    with pytest.raises(AttributeError, match=f"the elements are {dtype.__name__}"):
        _ = a.__array_interface__
    assert io.BytesIO().write(a) == 2 * a.numpy().itemsize, "without a format it is bytes"


def test_without_ml_dtypes_small_floats_are_refused_and_not_taken_for_integers():
    program = """
import sys
sys.modules["ml_dtypes"] = None
import numpy as np, warp as wp
a = wp.array([1.0], dtype=wp.bfloat16, device="cpu")
try:
    print(np.add(a, 1))
except TypeError as error:
    print(error)
print(a.numpy().tolist(), a.astype(wp.float32).numpy().tolist())
"""
    result = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=300)
    assert "NumPy has no bfloat16. help: pip install ml_dtypes" in result.stdout, result.stdout + result.stderr
    assert "[16256] [1.0]" in result.stdout, "numpy() shows the bits, with a warning"
