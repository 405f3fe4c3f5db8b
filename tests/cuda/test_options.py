"""Options of kernels that are for CUDA devices: registers, clusters, the way of arguments; and questions about them."""

import ctypes

import numpy as np
import pytest
import warp as wp

pytestmark = pytest.mark.own_launches("counts launches, orders them or makes them fail")


@pytest.fixture
def cuda():
    found = wp.get_cuda_devices()
    if not found:
        pytest.skip("needs a CUDA device")
    return found[0]


def scale(x: wp.array[float], factor: float):
    i = wp.tid()
    x[i] = x[i] * factor + wp.sin(x[i])


def emulated(name, result=ctypes.c_int):
    """A function that only the emulated driver has; None on a GPU."""
    for line in open("/proc/self/maps"):
        if "weft-emulated-cuda" in line:
            function = getattr(ctypes.CDLL(line.split(maxsplit=5)[-1].strip()), name)
            function.restype = result
            return function
    return None


def run(kernel, device, count=1000, **options):
    numbers = np.linspace(0.0, 3.0, count, dtype=np.float32)
    x = wp.array(numbers, device=device)
    wp.launch(kernel, dim=count, inputs=[x, 2.0], device=device, **options)
    np.testing.assert_allclose(x.numpy(), numbers * 2.0 + np.sin(numbers), rtol=1e-6)


def test_the_most_registers_of_a_thread_reach_the_code(cuda):
    free = wp.kernel(scale, module="unique")
    few = wp.kernel(scale, module="unique", cuda_max_registers=24)
    assert ".maxnreg" not in free.listing("assembly", device=cuda)
    assert ".maxnreg 24" in few.listing("assembly", device=cuda)
    assert ".maxnreg 24" in few.listing("assembly", adjoint=True, device=cuda)
    assert few._content_hash() != free._content_hash()
    run(few, cuda)
    assert wp.get_cuda_kernel_properties(few, cuda)["register_count"] <= 24


def test_other_numbers_of_registers_are_refused():
    for options, kind, message in (
        ({"cuda_max_registers": 256}, ValueError, "expected at most 255"),
        ({"cuda_max_registers": 64, "launch_bounds": 256}, ValueError, "both decide about registers"),
        ({"cluster_dim": 17}, ValueError, "expected at most 16"),
        ({"entry_point_abi": "external_constant_params"}, ValueError, "help: enable_backward=False"),
    ):
        with pytest.raises(kind, match=message):
            wp.kernel(scale, **options)


def test_blocks_form_clusters(cuda):
    clusters = emulated("weftEmulatedClusters", ctypes.c_uint)
    kernel = wp.kernel(scale, module="unique", cluster_dim=4)
    if cuda.arch < 90:
        with pytest.raises(ValueError, match="cluster_dim=4, and 'cuda:0' is of architecture .* need 90"):
            run(kernel, cuda)
        assert wp.get_cuda_max_cluster_dim(kernel, cuda) == 1
        return
    run(kernel, cuda)
    run(kernel, cuda, count=3, block_dim=32)
    run(kernel, cuda, count=1025, block_dim=128, max_blocks=3)
    if clusters is not None:
        assert clusters() == 4
    most = wp.get_cuda_max_cluster_dim(kernel, cuda, block_dim=64)
    assert 8 <= most <= 16
    large = wp.kernel(scale, module="unique", cluster_dim=most)
    run(large, cuda, count=100_000)
    if clusters is not None:
        assert clusters() == most
    assert wp.get_cuda_max_cluster_dim(kernel, "cpu") == 1


@pytest.mark.parametrize("cluster_dim", [1, 8])
def test_logs_of_an_adjoint_have_room_in_incomplete_clusters(cuda, cluster_dim):
    """A log for each type of recorded loads, in memory divided by the threads of all blocks."""
    if cluster_dim > 1 and cuda.arch < 90:
        pytest.skip("needs a CUDA device")

    def k(x: wp.array[float], w: wp.array2d[float], v: wp.array2d[wp.float64], out: wp.array[float]):
        i = wp.tid()
        for j in range(10):
            w[i, j % 4] = wp.sin(w[i, (j + 1) % 4]) * x[i]
        for j in range(10):
            v[i, j % 4] = wp.sin(v[i, (j + 1) % 4]) + wp.float64(w[i, j % 4])
        for j in range(10):
            w[i, j % 4] = wp.sin(w[i, (j + 1) % 4]) * float(v[i, j % 4])
        out[i] = w[i, 0] * float(v[i, 1])

    kernel = wp.kernel(k, module="unique", cluster_dim=cluster_dim, module_options={"max_unroll": 1})
    count, random = 9 * 32 - 5, np.random.default_rng(1)
    numbers = [1.0 + 0.3 * random.random(shape) for shape in (count, (count, 4), (count, 4))]
    slopes = []
    for device in ("cpu", cuda):
        x, w, v = (
            wp.array(each, dtype=dtype, device=device, requires_grad=True)
            for each, dtype in zip(numbers, (float, float, wp.float64), strict=True)
        )
        out = wp.zeros(count, dtype=float, device=device, requires_grad=True)
        with wp.Tape() as tape:
            wp.launch(kernel, count, inputs=[x, w, v, out], block_dim=32, device=device)
        tape.backward(grads={out: wp.ones(count, dtype=float, device=device)})
        slopes.append(x.grad.numpy())
    assert np.abs(slopes[0]).max() > 1e-3
    np.testing.assert_allclose(slopes[1], slopes[0], rtol=1e-4, atol=1e-6)


def test_clusters_in_graphs(cuda):
    if cuda.arch < 90:
        pytest.skip("needs a CUDA device")
    kernel = wp.kernel(scale, module="unique", cluster_dim=2)
    x = wp.ones(500, dtype=float, device=cuda)
    with wp.ScopedCapture(cuda) as capture:
        wp.launch(kernel, dim=500, inputs=[x, 2.0], device=cuda)
    wp.capture_launch(capture.graph)
    np.testing.assert_allclose(x.numpy(), 2.0 + np.sin(np.float32(1.0)), rtol=1e-6)


def test_parameters_in_constant_memory_are_an_error_on_gpus():
    kernel = wp.kernel(scale, module="unique", enable_backward=False, entry_point_abi="external_constant_params")
    run(kernel, "cpu")
    run(wp.kernel(scale, module="unique", entry_point_abi="warp"), wp.get_device())
    if wp.is_cuda_available():
        with pytest.raises(ValueError, match="takes? their arguments as parameters|help: entry_point_abi='warp'"):
            run(kernel, wp.get_cuda_devices()[0])


def test_properties_of_kernels(cuda):
    kernel = wp.kernel(scale, module="unique")
    found = wp.get_cuda_kernel_properties(kernel, cuda, block_dim=128)
    assert set(found) == {"register_count", "local_memory_size"}
    assert 0 < found["register_count"] <= 255 and found["local_memory_size"] >= 0

    @wp.kernel
    def generic(x: wp.array[wp.Float]):
        x[0] = x[0]

    for arguments, kind, message in (
        ((3, cuda), TypeError, "expected a kernel, got 3"),
        ((generic, cuda), RuntimeError, "is generic"),
        ((kernel, cuda, 0), ValueError, "block_dim is 0"),
        ((kernel, "cpu"), RuntimeError, "'cpu' is no CUDA device"),
        ((kernel, "cuda:99"), ValueError, "cuda:99"),
    ):
        with pytest.raises(kind, match=message):
            wp.get_cuda_kernel_properties(*arguments)
    assert wp.get_cuda_kernel_properties(wp.overload(generic, [wp.array[float]]), cuda)["register_count"] > 0


def test_what_devices_compile_for(cuda):
    assert cuda.get_cuda_compile_arch() == cuda.arch
    assert cuda.get_cuda_output_format() == cuda.get_cuda_output_format("cubin") == "ptx"
    cpu = wp.get_device("cpu")
    assert cpu.get_cuda_compile_arch() is None and cpu.get_cuda_output_format() is None


def test_profilers_collect_where_they_are_told_to(cuda):
    collects = emulated("weftEmulatedProfiles") or (lambda: None)
    wp.cuda_profiler_start(cuda)
    assert collects() in (1, None)
    wp.cuda_profiler_stop(cuda)
    assert collects() in (0, None)
    with wp.ScopedCudaProfiler(cuda):
        assert collects() in (1, None)
    assert collects() in (0, None)


def test_profilers_of_gpus_have_nothing_to_do_on_the_cpu():
    with wp.ScopedCudaProfiler("cpu") as scope:
        assert scope.device == "cpu"
        wp.cuda_profiler_stop("cpu")
    with pytest.raises(ValueError, match="cuda:99"):
        wp.cuda_profiler_start("cuda:99")


def test_options_without_an_effect_say_so():
    said = []

    class Kept:
        def debug(self, message): ...

        def info(self, message): ...

        def warning(self, message, category=None, stacklevel=1):
            said.append(message)

        def error(self, message): ...

    wp.config._has_warned.clear()
    with wp.ScopedLogger(Kept()):
        wp.kernel(scale, module="unique", grid_stride=False)
        wp.kernel(scale, module="unique", enable_cuda_smem_spilling=True)
        wp.kernel(scale, module="unique", grid_stride=True, enable_cuda_smem_spilling=False)
    assert [text.split(" is kept")[0] for text in said] == [
        "kernel(): grid_stride=False",
        "kernel(): enable_cuda_smem_spilling=True",
    ]
