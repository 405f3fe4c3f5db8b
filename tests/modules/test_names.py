"""Names that real programs use and no other test is about. docs/names.md has them all."""

import os
import subprocess
import sys

import numpy as np
import pytest
import warp as wp

random = np.random.default_rng(5)

NAMED = {
    "vec2": (np.float32, (2,)),
    "vec3": (np.float32, (3,)),
    "vec3f": (np.float32, (3,)),
    "vec3i": (np.int32, (3,)),
    "vec4": (np.float32, (4,)),
    "mat33": (np.float32, (3, 3)),
    "mat33f": (np.float32, (3, 3)),
    "spatial_vector": (np.float32, (6,)),
    "quat": (np.float32, (4,)),
    "quatf": (np.float32, (4,)),
    "transform": (np.float32, (7,)),
    "transformf": (np.float32, (7,)),
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
    np.testing.assert_array_equal(np.reshape(value, shape), numbers)

    @wp.kernel(module="unique")
    def twice(x: dtype, y: wp.array(dtype=dtype)):
        y[wp.tid()] += x + x

    out = wp.full(3, value)
    wp.launch(twice, 3, [value, out])
    np.testing.assert_array_equal(out.numpy(), np.stack([numbers * 3] * 3))
    assert dtype is getattr(wp, name + "f", dtype)


SCALARS = "int8 uint8 int16 uint16 int32 uint32 int64 uint64 float16 float32 float64".split()


@pytest.mark.parametrize("name", SCALARS)
def test_named_numbers_round_and_wrap_to_their_width_on_the_host_and_in_kernels(name):
    dtype, numpy = getattr(wp, name), np.dtype(name).type

    @wp.kernel(module="unique")
    def compute(x: wp.array(dtype=dtype), y: dtype, out: wp.array(dtype=dtype)):
        i = wp.tid()
        out[i] = dtype(0.7) + x[i] * y + dtype(x[i])

    limits = [0, 1, np.iinfo(numpy).max, np.iinfo(numpy).min] if numpy(0.5) == 0 else [0.1, -3.7, np.finfo(numpy).max]
    x = np.array(limits, dtype=numpy)
    out = wp.zeros(len(x), dtype=dtype)
    wp.launch(compute, len(x), [wp.array(x), numpy(3), out])
    with np.errstate(over="ignore"):
        expected = numpy(0.7) + x * numpy(3) + x
        np.testing.assert_allclose(out.numpy(), expected, rtol=2 * np.finfo(numpy).eps if numpy(0.5) else 0)
    assert [dtype(value).value for value in limits] == x.tolist()
    assert out.dtype is dtype and out.numpy().dtype == numpy


def test_bool_is_true_or_false_on_the_host_and_in_kernels():
    @wp.kernel
    def decide(x: wp.array[float], yes: wp.bool, out: wp.array[wp.bool]):
        i = wp.tid()
        out[i] = yes and (x[i] > 0.5 or not wp.bool(x[i]))

    out = wp.zeros(3, dtype=wp.bool)
    for yes in (True, False):
        wp.launch(decide, 3, [wp.array([0.0, 0.25, 1.0], dtype=float), yes, out])
        assert out.list() == [yes, False, yes] and out.numpy().dtype == np.bool_


@pytest.mark.host_memory("asks for the address that was free", on="cuda")
def test_zeros_are_zero_in_memory_that_was_used_before():
    for n in (3, 1000, 300_000):
        for dtype in (wp.int8, float, wp.mat33d):
            used = wp.full(n, 7, dtype=dtype)
            address = used.ptr
            del used
            again = [wp.zeros(n, dtype=dtype) for _ in range(3)]
            assert not any(a.numpy().any() for a in again)
            assert n > 1000 or address in [a.ptr for a in again]


def test_arrays_like_another_have_contents_of_their_own():
    source = wp.array([[1.0, 2.0], [3.0, 4.0]], dtype=wp.float64)
    clone, zeros, ones, empty = (f(source) for f in (wp.clone, wp.zeros_like, wp.ones_like, wp.empty_like))
    empty.fill_(9.0)
    source.fill_(5.0)
    assert clone.list() == [1.0, 2.0, 3.0, 4.0] and zeros.list() == [0.0] * 4 and ones.list() == [1.0] * 4
    assert empty.list() == [9.0] * 4 and {a.dtype for a in (clone, zeros, ones, empty)} == {wp.float64}


def test_from_numpy_has_the_numbers_of_the_array():
    numbers = random.standard_normal((4, 3))
    np.testing.assert_array_equal(wp.from_numpy(numbers).numpy(), numbers)
    np.testing.assert_array_equal(wp.from_numpy(numbers, dtype=wp.vec3).numpy(), numbers.astype(np.float32))
    view = wp.from_numpy(numbers[::2], dtype=wp.float64)
    np.testing.assert_array_equal(view.numpy(), numbers[::2])


def test_constants_are_numbers_of_kernels():
    COUNT, AXIS = wp.constant(3), wp.constant(wp.vec3(0.0, 1.0, 0.0))

    @wp.kernel
    def use(out: wp.array[float]):
        for k in range(COUNT):
            out[k] = AXIS[k] * wp.half_pi + wp.pi
        out[3] = wp.inf - wp.inf
        out[4] = wp.nan
        out[5] = -wp.inf

    out = wp.zeros(6, dtype=float)
    wp.launch(use, 1, [out])
    expected = [np.pi, 1.5 * np.pi, np.pi, np.nan, np.nan, -np.inf]
    np.testing.assert_allclose(out.numpy(), expected, rtol=1e-6)


def test_a_kernel_has_a_key_a_function_and_a_module():
    @wp.kernel
    def plain(x: wp.array[float]):
        "Documented."
        x[0] = 1.0

    assert isinstance(plain, wp.Kernel) and not isinstance(plain.func, wp.Kernel)
    key = "test_a_kernel_has_a_key_a_function_and_a_module__locals__plain"
    assert (plain.key, plain.__name__, plain.__doc__) == (key, "plain", "Documented.")
    assert plain.module is wp.get_module(__name__) and not plain.is_generic
    plain.func(x := [0.0])
    assert x == [1.0]


def test_enable_backward_holds_for_the_kernels_declared_afterwards():
    assert wp.config.enable_backward is True and wp.get_module_options()["enable_backward"] is True
    wp.config.enable_backward = False
    try:

        @wp.kernel
        def forward(x: wp.array[float]):
            x[0] = 1.0

        @wp.kernel(enable_backward=True)
        def both(x: wp.array[float]):
            x[0] = 1.0

        assert not forward.enable_backward and both.enable_backward
        assert wp.get_module_options()["enable_backward"] is False
    finally:
        wp.config.enable_backward = True
    assert not forward.enable_backward


def test_mode_says_whether_kernels_check_their_indices():
    @wp.kernel
    def write(x: wp.array[float], i: int):
        if i < 2:
            x[i + 2] = 1.0

    x = wp.zeros(4)
    wp.launch(write, 1, [x[:2], 0])  # not checked: the memory behind the slice
    wp.config.mode = "debug"
    try:
        with pytest.raises(IndexError, match="x"):
            wp.launch(write, 1, [x[:2], 1])
    finally:
        wp.config.mode = "release"
    assert x.list() == [0.0, 0.0, 1.0, 0.0]


def test_the_kernel_cache_is_emptied(tmp_path):
    code = """
import sys, warp as wp
@wp.kernel
def k(x: wp.array[float]):
    x[wp.tid()] = 1.0
print(k.compile()["from_cache"])
if sys.argv[1:]:
    wp.clear_kernel_cache()
    x = wp.zeros(2)
    wp.launch(k, 2, [x])
    assert x.list() == [1.0, 1.0]
"""
    file = tmp_path / "program.py"
    file.write_text(code)
    environment = {**os.environ, "WARP_CACHE_PATH": str(tmp_path / "cache")}
    found = []
    for arguments in ([], ["clear"], []):
        command = [sys.executable, str(file), *arguments]
        found.append(subprocess.run(command, capture_output=True, text=True, check=True, env=environment).stdout)
    assert found == ["False\n", "True\n", "False\n"]


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


@pytest.mark.host_memory("is about blocks of the CPU", on="cuda")
def test_blocks_of_the_cpu_have_one_thread():
    @wp.kernel
    def ask(x: wp.array[int]):
        x[wp.tid()] = wp.block_dim()

    x = wp.zeros(5, dtype=int)
    wp.launch(ask, 5, [x], block_dim=64)
    assert x.list() == [1] * 5


def test_the_cache_folder_can_be_chosen(tmp_path):
    code = f"""
import pathlib, warp as wp
wp.config.kernel_cache_dir = pathlib.Path({str(tmp_path)!r})
assert not wp.config.quiet and wp.config.enable_backward
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


def test_the_earlier_name_of_not_implemented_yet_error_warns():
    import warp.errors

    with pytest.warns(DeprecationWarning, match="an earlier name of warp.errors.NotImplementedYetError"):
        assert warp.errors.NotThereError is warp.errors.NotImplementedYetError
    with pytest.raises(AttributeError, match="'warp.errors' has no attribute 'NoSuchError'"):
        _ = warp.errors.NoSuchError
    with pytest.raises(warp.errors.NotImplementedYetError, match="wp.capture_load"):
        wp.capture_load("graph")
