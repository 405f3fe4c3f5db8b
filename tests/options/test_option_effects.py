"""Effects of options of wp.config, modules and kernels; those without one say so; the compiler's own arithmetic."""

import ctypes
import mmap
import platform

import numpy as np
import pytest
import warp as wp
from kept_warnings import Warnings
from warp import config

A, B = 1.0 + 2.0**-12, -(1.0 + 2.0**-11)  # a * a + b is 2^-24, or 0 if the product is rounded


@wp.func
def product_and_sum(a: float, b: float):
    return a * a + b


@pytest.mark.parametrize("options", [{}, {"fast_math": True}, {"mode": "debug"}, {"lanes": 1}], ids=str)
def test_products_are_rounded_by_themselves_without_fuse_fp(options, device):
    @wp.kernel(module_options={"fuse_fp": False, **options}, module="unique")
    def rounded(
        a: wp.array[float], b: wp.array[float], v: wp.array[wp.vec2], w: wp.array[wp.vec2], x: wp.array2d[float]
    ):
        i = wp.tid()
        x[i, 0] = product_and_sum(a[i], b[i])
        x[i, 1] = b[i] - -(a[i] * a[i])
        x[i, 2] = wp.dot(v[i], w[i])
        x[i, 3] = (wp.matrix_from_rows(v[i], v[i]) * w[i])[1]

    n = 37
    a, b = wp.full(n, A, dtype=float, device=device), wp.full(n, B, dtype=float, device=device)
    v = wp.full(n, (B, A), dtype=wp.vec2, device=device)
    w = wp.full(n, (1.0, A), dtype=wp.vec2, device=device)
    x = wp.ones((n, 4), device=device)
    wp.launch(rounded, n, inputs=[a, b, v, w, x], device=device)
    np.testing.assert_array_equal(x.numpy(), np.float32(A) * np.float32(A) + np.float32(B))


@pytest.mark.parametrize("fuse_fp", [None, True])
def test_products_are_fused_with_sums_otherwise(fuse_fp, device):
    @wp.kernel(module_options={} if fuse_fp is None else {"fuse_fp": fuse_fp}, module="unique")
    def fused(a: wp.array[float], b: wp.array[float], x: wp.array[float]):
        i = wp.tid()
        x[i] = product_and_sum(a[i], b[i])

    a, b, x = (wp.full(37, value, dtype=float, device=device) for value in (A, B, 1.0))
    wp.launch(fused, 37, inputs=[a, b, x], device=device)
    np.testing.assert_array_equal(x.numpy(), 2.0**-24)


def test_fuse_fp_of_a_module_shapes_its_kernels():
    @wp.kernel(module="fused_or_not")
    def k(a: wp.array[float], b: wp.array[float], x: wp.array[float]):
        i = wp.tid()
        x[i] = product_and_sum(a[i], b[i])

    hashes = set()
    for fuse_fp in (False, True):
        wp.set_module_options({"fuse_fp": fuse_fp}, "fused_or_not")
        hashes.add(wp.get_module("fused_or_not").hash_module())
        assert ("llvm.fma" in wp.inspect(k, "llvm")) == fuse_fp
    assert len(hashes) == 2


def loop(x: wp.array[float]):
    for j in range(8):
        x[j] = float(j)


def test_max_unroll_is_the_longest_loop_that_is_unrolled():
    for most, loops in ((4, True), (8, False)):
        kernel = wp.kernel(loop, module_options={"max_unroll": most}, module="unique")
        assert (" for " in wp.inspect(kernel, "sema")) == loops


def test_optimization_level_and_lineinfo_shape_the_code():
    kernels = [wp.kernel(loop, module_options={"optimization_level": n}, module="unique") for n in (0, 3)]
    slow, quick = (wp.inspect(kernel, "optimized_llvm") for kernel in kernels)
    assert "alloca" not in quick and slow.count("\n") != quick.count("\n")
    for lineinfo in (False, True):
        kernel = wp.kernel(loop, module_options={"lineinfo": lineinfo}, module="unique")
        assert ("!DILocation" in kernel.listing("llvm")) == lineinfo


def test_kernels_are_kept_on_disk_only_with_cache_kernels(tmp_path, monkeypatch):
    monkeypatch.setattr(wp.config, "kernel_cache_dir", str(tmp_path))
    for keeps in (False, True):
        monkeypatch.setattr(wp.config, "cache_kernels", keeps)
        wp.kernel(loop, module=f"kept_{keeps}").compile()
        assert any(path.is_file() for path in tmp_path.rglob("*")) == keeps


# ---- options without an effect ----


@pytest.fixture
def heard(monkeypatch):
    """The warnings of Weft from here on, each of which it gives anew."""

    monkeypatch.setattr(config, "_has_warned", set())
    with Warnings() as found:
        yield found


CONFIGURED = [name for name in config._WITHOUT_EFFECT if name in config._DEFAULTS]


@pytest.mark.parametrize("name", CONFIGURED)
def test_an_option_of_config_without_effect_says_so_once(name, heard, monkeypatch):
    monkeypatch.setattr(wp.config, name, getattr(wp.config, name))
    assert heard == []
    for _ in range(2):
        setattr(wp.config, name, "a value of the program's")
    assert heard == [f"wp.config.{name} is kept, and has no effect: {config._WITHOUT_EFFECT[name]}"]
    assert getattr(wp.config, name) == "a value of the program's"


def test_an_option_of_a_module_without_effect_says_so_once(heard):
    module = wp.get_module("with_options")
    wp.set_module_options({"compile_time_trace": False, "enable_backward": True, "fast_math": False}, module)
    assert heard == []
    wp.set_module_options({"compile_time_trace": True}, module)
    wp.kernel(loop, module_options={"compile_time_trace": True}, module="unique")
    assert len(heard) == 1 and "'compile_time_trace' is kept, and has no effect: no trace is written" in heard[0]


def test_each_option_has_an_effect_or_says_that_it_has_none():
    from warp._kernels import modules

    effects = {*config._RUNTIME, "deterministic", "launch_array_access_mode", "load_module_max_workers"}
    effects |= {
        "enable_backward",  # read when kernels are declared
        "matmul_precision",  # cuda/test_products.py
        "track_memory",  # test_memory_tracker.py
        "verify_autograd_array_access",  # gradients/test_verify.py
    }
    assert {*config._OPTIONS} == {*CONFIGURED, *effects}
    assert {*modules._options_now()} <= {*config._WITHOUT_EFFECT, *modules._CODE_OPTIONS, "deterministic"}


# ---- the mode of the thread that compiles ----


def set_mxcsr(bits):
    """Sets the control register of floating-point numbers, by the instruction ldmxcsr."""
    code = mmap.mmap(-1, mmap.PAGESIZE, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
    code.write(bytes([0x89, 0x7C, 0x24, 0xFC, 0x0F, 0xAE, 0x54, 0x24, 0xFC, 0xC3]))
    address = ctypes.addressof(ctypes.c_char.from_buffer(code))
    ctypes.CFUNCTYPE(None, ctypes.c_uint32)(address)(bits)


FLUSHES, DEFAULT = 0x9FC0, 0x1F80


@pytest.mark.skipif(platform.machine() != "x86_64", reason="the mode is set by an instruction of x86")
@pytest.mark.parametrize("mode", ["release", "debug"])
def test_literals_and_folded_numbers_are_exact_while_the_thread_flushes_subnormals(mode, device):
    made = {}
    set_mxcsr(FLUSHES)
    try:
        assert np.float32(1e-30) * np.float32(1e-10) == 0.0, "it does not flush"

        @wp.kernel(module_options={"mode": mode}, module="unique")
        def literals(x: wp.array[float], y: wp.array[wp.float64]):
            i = wp.tid()
            x[i] = 1e-40
            x[i + 1] = 1e-30 * 1e-10
            x[i + 2] = x[i + 3] * 0.5
            y[i] = wp.float64(5e-324)

        x, y = wp.zeros(4, device=device), wp.zeros(1, dtype=wp.float64, device=device)
        made["tiny"] = wp.array(np.array([0, 0, 0, 2.0**-126], np.float32), device=device)
        wp.copy(x, made["tiny"])
        wp.launch(literals, 1, inputs=[x, y], device=device)
    finally:
        set_mxcsr(DEFAULT)
    expected = np.array([1e-40, 1e-40, 2.0**-127, 2.0**-126], np.float32)
    np.testing.assert_array_equal(x.numpy(), expected)
    assert y.numpy()[0] == 5e-324
    x.zero_()
    wp.copy(x, made["tiny"])
    wp.launch(literals, 1, inputs=[x, y], device=device)
    np.testing.assert_array_equal(x.numpy(), expected)
