"""Names that real programs use and no other test is about. docs/names.md has them all."""

import subprocess
import sys

import numpy as np
import pytest
import warp as wp

random = np.random.default_rng(5)

NAMED = {
    "vec2f": (np.float32, (2,)),
    "vec2i": (np.int32, (2,)),
    "vec4f": (np.float32, (4,)),
    "vec4i": (np.int32, (4,)),
    "vec3us": (np.uint16, (3,)),
    "vec3ui": (np.uint32, (3,)),
    "vec3ub": (np.uint8, (3,)),
    "vec2ub": (np.uint8, (2,)),
    "spatial_vectorf": (np.float32, (6,)),
    "mat22": (np.float32, (2, 2)),
    "mat44": (np.float32, (4, 4)),
    "mat44f": (np.float32, (4, 4)),
    "spatial_matrix": (np.float32, (6, 6)),
}


@pytest.mark.parametrize("name", NAMED)
def test_named_types_hold_numbers_on_the_host_and_in_kernels(name):
    dtype = getattr(wp, name)
    scalar, shape = NAMED[name]
    numbers = random.integers(0, 50, shape).astype(scalar)
    value = dtype(*numbers.ravel().tolist())
    np.testing.assert_array_equal(np.array(value), numbers)

    @wp.kernel(module="unique")
    def twice(x: dtype, y: wp.array(dtype=dtype)):
        y[wp.tid()] += x + x

    out = wp.full(3, value)
    wp.launch(twice, 3, [value, out])
    np.testing.assert_array_equal(out.numpy(), np.stack([numbers * 3] * 3))


@pytest.mark.parametrize("dtype, inner", [(float, ()), (wp.int8, ()), (wp.vec3, (3,)), (wp.mat22d, (2, 2))])
def test_ones_has_ones_in_every_component(dtype, inner):
    a = wp.ones((2, 3), dtype=dtype, requires_grad=True)
    np.testing.assert_array_equal(a.numpy(), np.ones((2, 3, *inner)))
    assert a.shape == (2, 3) and not a.grad.numpy().any()


def test_int_and_float_are_pythons_and_convert_in_kernels():
    @wp.kernel
    def convert(x: wp.array[wp.float64], whole: wp.array[int], real: wp.array[wp.float]):
        i = wp.tid()
        whole[i] = wp.int(x[i])
        real[i] = wp.float(x[i])

    values = np.array([1.75, -2.5, 1e10])
    whole, real = wp.zeros(3, dtype=int), wp.zeros(3)
    wp.launch(convert, 3, [wp.array(values), whole, real])
    assert whole.list() == [1, -2, 2**31 - 1]
    np.testing.assert_array_equal(real.numpy(), values.astype(np.float32))
    assert wp.int is int and wp.float is float and wp.zeros(1, dtype=wp.int).dtype is wp.int32


def test_block_dim_is_that_of_the_launch():
    @wp.kernel
    def ask(x: wp.array[int]):
        x[wp.tid()] = wp.block_dim()

    x = wp.zeros(5, dtype=int)
    wp.launch(ask, 5, [x], block_dim=64)
    assert len(set(x.list())) == 1 and x[0] >= 1


def test_the_cache_folder_can_be_chosen(tmp_path):
    code = f"""
import pathlib, warp as wp
wp.config.kernel_cache_dir = pathlib.Path({str(tmp_path)!r})
assert wp.config.quiet and wp.config.enable_backward
@wp.kernel
def k(x: wp.array[float]):
    x[wp.tid()] = 1.0
print(k.compile()["from_cache"])
"""
    file = tmp_path / "program.py"
    file.write_text(code)
    for expected in ("False\n", "True\n"):
        done = subprocess.run([sys.executable, str(file)], capture_output=True, text=True, check=True)
        assert (done.stdout, done.stderr) == (expected, "")
    assert [entry for entry in tmp_path.rglob("*") if entry.is_file() and entry != file]
    with pytest.raises(TypeError, match=r"config.kernel_cache_dir: is 3, expected the path of a folder or None"):
        wp.config.kernel_cache_dir = 3


@pytest.mark.skipif(wp.is_cuda_available(), reason="needs a machine without CUDA")
def test_cuda_devices_that_are_not_there():
    assert wp.get_cuda_device_count() == 0 and wp.get_cuda_devices() == []
    with pytest.raises(wp.UsageError, match="cuda"):
        wp.get_cuda_device()
