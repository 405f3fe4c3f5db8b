"""JAX: arrays in place, devices and dtypes."""

from __future__ import annotations

import gc
import resource
import subprocess
import sys

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import warp as wp
from warp._interop import jax_arrays

pytestmark = pytest.mark.cpu_only("other frameworks are built for the CPU here; their GPUs come later")

SCALARS = "bool int8 int16 int32 int64 uint8 uint16 uint32 uint64 float16 float32 float64 bfloat16".split()


@pytest.mark.seed("S-JAX-001", "P-21")
def test_arrays_share_memory_both_ways():
    jax_array = jnp.arange(6, dtype=jnp.float32)
    warp_array = wp.from_jax(jax_array)
    assert warp_array.ptr == jax_array.unsafe_buffer_pointer()
    assert warp_array.list() == [0, 1, 2, 3, 4, 5] and warp_array.dtype is wp.float32
    back = wp.to_jax(warp_array)
    assert isinstance(back, jax.Array) and back.unsafe_buffer_pointer() == warp_array.ptr
    np.testing.assert_array_equal(back, jax_array)
    born_here = wp.full((2, 3), 4.0)
    assert wp.to_jax(born_here).unsafe_buffer_pointer() == born_here.ptr
    for name in ("warp_array", "wp_array"):
        np.testing.assert_array_equal(wp.to_jax(**{name: born_here}), np.full((2, 3), 4.0))


@pytest.mark.seed("S-JAX-004")
def test_dlpack_directly_does_the_same():
    jax_array, warp_array = jnp.arange(4.0), wp.full(4, 2.0)
    read = wp.from_dlpack(jax_array)
    assert read.ptr == jax_array.unsafe_buffer_pointer() and read.list() == [0, 1, 2, 3]
    taken = jax.dlpack.from_dlpack(warp_array)
    assert taken.unsafe_buffer_pointer() == warp_array.ptr and taken.tolist() == [2, 2, 2, 2]


@pytest.mark.seed("S-JAX-002", "D-07")
def test_the_module_has_the_names_and_works_without_jax():
    import warp.jax

    for name in warp.jax.__all__:
        assert getattr(warp.jax, name) is getattr(wp, name)
    program = """
import sys
sys.modules["jax"] = None
import warp as wp
import warp.jax
assert "jaxlib" not in sys.modules
for call in (lambda: warp.jax.from_jax(1), lambda: wp.to_jax(wp.zeros(1)), lambda: warp.jax.dtype_to_jax(wp.int8)):
    try:
        call()
    except ModuleNotFoundError as error:
        assert "pip install jax" in str(error), error
    else:
        raise AssertionError("it ran")
"""
    subprocess.run([sys.executable, "-c", program], check=True)


def test_memory_lives_as_long_as_either_side():
    array = wp.from_jax(jnp.arange(1000, dtype=jnp.int32) + 1)
    gc.collect()
    assert array.numpy().sum() == 500500
    kept = wp.to_jax(wp.full(1000, 2.0))
    gc.collect()
    wp.full(1000, 3.0)
    assert float(kept.sum()) == 2000.0


@pytest.mark.parametrize("dtype, shape", [(wp.vec3, (4, 3)), (wp.mat22, (5, 2, 2)), (wp.quat, (2, 4))])
def test_vectors_and_matrices_take_trailing_dimensions(dtype, shape):
    values = np.random.default_rng(1).standard_normal(shape).astype(np.float32)
    array = wp.from_jax(jnp.asarray(values), dtype=dtype)
    assert array.dtype is dtype and array.shape == shape[:1]
    np.testing.assert_array_equal(array.numpy(), values)
    assert wp.to_jax(array).shape == shape
    with pytest.raises(RuntimeError, match=r"jax_array.*vec2f.*\(4, 3\)"):
        wp.from_jax(jnp.zeros((4, 3)), dtype=wp.vec2)


@pytest.mark.parametrize("name", SCALARS)
@pytest.mark.seed("S-JAX-003")
def test_every_scalar_type_goes_both_ways(name):
    with jax.enable_x64(True):
        scalar = getattr(wp, name)
        jax_dtype = wp.dtype_to_jax(scalar)
        assert jax_dtype is getattr(jnp, name)
        for form in (jax_dtype, jax_dtype.dtype, jax_dtype.dtype.type):
            assert wp.dtype_from_jax(form) is scalar
        array = wp.zeros(3, dtype=scalar)
        there = wp.to_jax(array)
        assert there.dtype == jax_dtype and there.unsafe_buffer_pointer() == array.ptr
        back = wp.from_jax(there)
        assert back.dtype is scalar and back.ptr == array.ptr


@pytest.mark.seed("S-JAX-003")
def test_unknown_dtypes_are_type_errors():
    for unknown in (jnp.complex64, jnp.int4, "float32", float, None, 3):
        with pytest.raises(TypeError, match=r"dtype_from_jax\(\): there is no Weft type"):
            wp.dtype_from_jax(unknown)
    for unknown in (wp.vec3, "float32", jnp.float32, None):
        with pytest.raises(TypeError, match=r"dtype_to_jax\(\).*expected a scalar type"):
            wp.dtype_to_jax(unknown)
    with pytest.raises(TypeError, match="complex64"):
        wp.from_jax(jnp.zeros(3, jnp.complex64))


@pytest.mark.seed("S-JAX-003")
def test_devices_convert_to_jax_and_back():
    device = jax.devices("cpu")[0]
    for name in ("cpu", wp.get_device("cpu"), None):
        assert wp.device_to_jax(name) == device
    assert wp.device_from_jax(device) == wp.get_device("cpu")
    with pytest.raises(TypeError, match="expected a jax.Device"):
        wp.device_from_jax("cpu")

    class OtherDevice:
        platform = "tpu"

    with pytest.raises(RuntimeError, match="no device for .*OtherDevice"):
        wp.device_from_jax(OtherDevice())
    with pytest.raises(RuntimeError, match="cuda:0"):
        wp.device_to_jax("cuda:0")


def test_arrays_of_jax_are_read_only():
    jax_array = jnp.zeros(3)
    array = wp.from_jax(jax_array)
    with pytest.raises(ValueError, match="read-only"):
        array.fill_(1.0)

    @wp.kernel
    def write(x: wp.array[float]):
        x[wp.tid()] = 1.0

    with pytest.raises(ValueError, match="x.*read-only"):
        wp.launch(write, dim=3, inputs=[array])
    assert jax_array.tolist() == [0, 0, 0]


def test_memory_that_jax_cannot_use_in_place_is_an_error():
    whole = wp.zeros((8, 16))
    with pytest.raises(RuntimeError, match="4 bytes behind a multiple of 64"):
        wp.to_jax(wp.zeros(8)[1:])
    for view in (whole[:, 0], whole[:, :8]):
        with pytest.raises(RuntimeError, match=r"to_jax\(\).*no gaps.*wp.clone"):
            wp.to_jax(view)
        assert wp.to_jax(wp.clone(view)).shape == view.shape
    with pytest.raises(RuntimeError, match="float64.*jax_enable_x64"):
        wp.to_jax(wp.zeros(3, dtype=wp.vec3d))
    with pytest.raises(TypeError, match="warp_array.*ndarray"):
        wp.to_jax(np.zeros(3))
    turned = wp.array(np.arange(6, dtype=np.float32).reshape(2, 3)).transpose()
    there = wp.to_jax(turned)
    assert there.unsafe_buffer_pointer() == turned.ptr
    np.testing.assert_array_equal(there, turned.numpy())


def test_what_holds_no_numbers_is_an_error():
    with pytest.raises(TypeError, match="jax_array is numpy.ndarray, expected an array of JAX"):
        wp.from_jax(np.zeros(3))

    @jax.jit
    def traced(x):
        wp.from_jax(x)

    with pytest.raises(TypeError, match="traced.*jax_kernel"):
        traced(jnp.zeros(3))
    deleted = jnp.zeros(3) + 1
    deleted.delete()
    with pytest.raises((TypeError, RuntimeError), match="deleted"):
        wp.from_jax(deleted)


def test_empty_arrays():
    assert wp.from_jax(jnp.zeros((0, 3)), dtype=wp.vec3).shape == (0,)
    assert wp.to_jax(wp.zeros((0, 4))).shape == (0, 4)
    assert wp.from_jax(jnp.float32(3.0)).list() == [3.0]


def test_donated_memory_of_an_array_stays_the_arrays(monkeypatch):
    array = wp.full(1024, 1.0)
    double = jax.jit(lambda x: 2 * x, donate_argnums=0)
    assert float(double(wp.to_jax(array)).sum()) == 2048
    assert array.numpy().sum() == 1024


def test_the_public_function_of_jax_does_the_same(monkeypatch):
    monkeypatch.setattr(jax_arrays._Maker, "_instance", jax_arrays._Maker(None))
    array = wp.full((2, 3), 4.0)
    assert wp.to_jax(array).unsafe_buffer_pointer() == array.ptr
    with pytest.raises(RuntimeError, match="no gaps"):
        wp.to_jax(wp.zeros((8, 16))[:, 0])


def test_conversions_leave_no_memory_behind():
    array, jax_array = wp.zeros(10), jnp.zeros(10)

    def convert():
        for _ in range(20000):
            wp.to_jax(array)
            wp.from_jax(jax_array)
        gc.collect()
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss

    convert()
    before = convert()
    assert convert() - before < 1024  # KiB; 20,000 arrays of 100 bytes would be 2,000
