"""Capsules of JAX, both ways; the lines of the documents of 2024."""

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
