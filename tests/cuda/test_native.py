"""@wp.func_native on CUDA devices: CUDA's names, shared memory and barriers, and the faults that the device finds."""

import os
import re
import subprocess
import sys

import numpy as np
import pytest
import warp as wp
from native_functions import needs_clang

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.own_launches("other block sizes are other results of code with barriers"),
    needs_clang,
]
DEVICE = "cuda:0"
emulated_only = pytest.mark.skipif(
    "not __import__('warp').is_cuda_available() or not __import__('warp').get_device('cuda:0').is_emulated",
    reason="a GPU does not stop such a kernel",
)


def array(values, dtype):
    return wp.array(values, dtype=dtype, device=DEVICE)


def zeros(shape, dtype):
    return wp.zeros(shape, dtype=dtype, device=DEVICE)


@wp.func_native("""
    __shared__ int sum[128];
    const int i = threadIdx.x;
    sum[i] = values[tid];
    __syncthreads();
    for (int stride = 64; stride > 0; stride >>= 1) {
        if (i < stride) sum[i] += sum[i + stride];
        __syncthreads();
    }
    if (i == 0) out[tid / 128] = sum[0];
""")
def sum_of_block(values: wp.array[int], out: wp.array[int], tid: int): ...


@wp.kernel
def sums_of_blocks(values: wp.array[int], out: wp.array[int]):
    sum_of_block(values, out, wp.tid())


@pytest.mark.parametrize("max_blocks", [0, 3, 1])
def test_a_block_shares_memory(max_blocks):
    """Also if each block has several rounds of elements: they use the same shared memory."""
    values = np.arange(128 * 11, dtype=np.int32) * 7919 % 1000
    out = zeros(11, int)
    inputs = [array(values, int), out]
    wp.launch(sums_of_blocks, dim=values.size, inputs=inputs, block_dim=128, max_blocks=max_blocks, device=DEVICE)
    np.testing.assert_array_equal(out.numpy(), values.reshape(11, 128).sum(axis=1))


@pytest.mark.parametrize("count, max_blocks", [(100, 0), (1000, 2), (1000, 1)])
def test_barriers_do_not_wait_for_threads_without_an_element(count, max_blocks):
    @wp.func_native("""
        __shared__ float ours[64];
        ours[threadIdx.x] = x;
        __syncthreads();
        const int other = threadIdx.x ^ 1;
        return tid - threadIdx.x + other < count ? ours[other] : -1.0f;
    """)
    def of_neighbour(x: float, tid: int, count: int) -> float: ...

    @wp.kernel
    def run(x: wp.array[float], y: wp.array[float]):
        i = wp.tid()
        y[i] = of_neighbour(x[i], i, x.shape[0])

    x = np.arange(count, dtype=np.float32) + 0.5
    y = zeros(count, float)
    wp.launch(run, dim=count, inputs=[array(x, float), y], block_dim=64, max_blocks=max_blocks, device=DEVICE)
    other = np.arange(count) ^ 1
    np.testing.assert_array_equal(y.numpy(), np.where(other < count, other + 0.5, -1))


def test_the_indices_of_a_thread():
    @wp.func_native("""
        uint3 thread = threadIdx;
        dim3 block = blockDim;
        out[tid * 4] = thread.x + threadIdx.y + threadIdx.z;
        out[tid * 4 + 1] = blockIdx.x;
        out[tid * 4 + 2] = block.x * blockDim.y * blockDim.z;
        out[tid * 4 + 3] = gridDim.x * gridDim.y + warpSize;
    """)
    def note(out: wp.array[int], tid: int): ...

    @wp.kernel
    def run(out: wp.array[int]):
        i, j = wp.tid()
        note(out, i * 50 + j)

    out = zeros(4 * 200, int)
    wp.launch(run, dim=(4, 50), inputs=[out], block_dim=64, device=DEVICE)
    i = np.arange(200)
    expected = np.stack([i % 64, i // 64, np.full(200, 64), np.full(200, 4 + 32)], axis=1)
    np.testing.assert_array_equal(out.numpy().reshape(200, 4), expected)


NUMBERS = {wp.int32: "int", wp.uint32: "unsigned", wp.int64: "long long", wp.float32: "float", wp.float64: "double"}


@pytest.mark.parametrize("dtype", NUMBERS)
def test_shuffles(dtype):
    @wp.func_native("""
        const auto mine = x[tid];
        out[tid * 6] = __shfl_sync(0xffffffff, mine, 5);
        out[tid * 6 + 1] = __shfl_up_sync(~0u, mine, 3);
        out[tid * 6 + 2] = __shfl_down_sync(~0u, mine, 2, 8);
        out[tid * 6 + 3] = __shfl_xor_sync(~0u, mine, 16);
        auto total = mine;
        for (int step = 16; step > 0; step /= 2) total += __shfl_down_sync(~0u, total, step);
        out[tid * 6 + 4] = __shfl_sync(~0u, total, 0);
        vec3 three(mine, 2, 3);
        out[tid * 6 + 5] = __shfl_sync(~0u, three, tid % 7)[0];
    """)
    def move(x: wp.array[dtype], out: wp.array[dtype], tid: int): ...

    @wp.kernel(module="unique")
    def run(x: wp.array[dtype], out: wp.array[dtype]):
        move(x, out, wp.tid())

    x = (np.arange(64) * 37 % 101).astype(zeros(1, dtype).numpy().dtype)
    out = zeros(64 * 6, dtype)
    wp.launch(run, dim=64, inputs=[array(x, dtype), out], block_dim=64, device=DEVICE)
    i, first = np.arange(64), np.arange(64) // 32 * 32
    lane = i - first
    expected = [
        x[first + 5],
        x[np.where(lane >= 3, i - 3, i)],
        x[np.where(i % 8 + 2 < 8, i + 2, i)],
        x[i ^ 16],
        x.reshape(2, 32).sum(axis=1).repeat(32),
        x[first + i % 7],
    ]
    np.testing.assert_array_equal(out.numpy().reshape(64, 6), np.stack(expected, axis=1))


def test_votes_and_bits():
    @wp.func_native("""
        const unsigned all = __activemask();
        unsigned* to = out.data + tid * 9;
        to[0] = __ballot_sync(all, x > 40);
        to[1] = __any_sync(all, x == 7);
        to[2] = __all_sync(all, x >= 0);
        to[3] = all;
        to[4] = __popc(x);
        to[5] = __clz(x);
        to[6] = __ffs(x);
        to[7] = __brev(x);
        to[8] = __popcll((unsigned long long)x << 33) + 100 * __clzll(x) + 10000 * __ffsll((long long)x << 40);
        __syncwarp();
    """)
    def vote(x: int, out: wp.array[wp.uint32], tid: int): ...

    @wp.kernel
    def run(x: wp.array[int], out: wp.array[wp.uint32]):
        i = wp.tid()
        vote(x[i], out, i)

    x = np.arange(64, dtype=np.int32) * 37 % 81
    out = zeros(64 * 9, wp.uint32)
    wp.launch(run, dim=64, inputs=[array(x, int), out], block_dim=32, device=DEVICE)
    warps = x.reshape(2, 32)
    ballots = [sum(int(v > 40) << k for k, v in enumerate(warp)) for warp in warps]
    ffs = np.array([(int(v) & -int(v)).bit_length() for v in x])
    expected = [
        np.repeat(ballots, 32),
        np.repeat([int(7 in warp) for warp in warps], 32),
        np.ones(64),
        np.full(64, 0xFFFFFFFF),
        [int(v).bit_count() for v in x],
        [32 - int(v).bit_length() for v in x],
        ffs,
        [int(f"{int(v):032b}"[::-1], 2) for v in x],
        [
            int(v).bit_count() + 100 * (64 - int(v).bit_length()) + 10000 * (int(f) + 40 if f and f <= 24 else 0)
            for v, f in zip(x, ffs)
        ],
    ]
    np.testing.assert_array_equal(out.numpy().reshape(64, 9), np.stack(expected, axis=1).astype(np.int64))


def test_barriers_that_reduce_and_fences():
    @wp.func_native("""
        out[tid * 3] = __syncthreads_count(tid % 3 == 0);
        out[tid * 3 + 1] = __syncthreads_and(tid < 1000);
        out[tid * 3 + 2] = __syncthreads_or(tid == 70);
        __threadfence();
        __threadfence_block();
        __threadfence_system();
        out[tid * 3] += __ldg(&out[tid * 3]);
    """)
    def reduce(out: wp.array[int], tid: int): ...

    @wp.kernel
    def run(out: wp.array[int]):
        reduce(out, wp.tid())

    out = zeros(128 * 3, int)
    wp.launch(run, dim=128, inputs=[out], block_dim=64, device=DEVICE)
    block = np.arange(128) // 64
    expected = np.stack([np.where(block == 0, 44, 42), np.ones(128), block], axis=1)
    np.testing.assert_array_equal(out.numpy().reshape(128, 3), expected)


def test_the_branch_of_the_device():
    @wp.func_native("""
    #if defined(__CUDA_ARCH__)
        return __CUDA_ARCH__;
    #else
        return 1;
    #endif
    """)
    def which() -> int: ...

    @wp.kernel
    def run(out: wp.array[int]):
        out[0] = which()

    for device in ("cpu", DEVICE):
        out = wp.zeros(1, dtype=int, device=device)
        wp.launch(run, dim=1, inputs=[out], device=device)
        expected = 1 if device == "cpu" else 10 * wp.get_device(device).arch
        assert out.numpy()[0] == expected


def test_the_code_is_inlined():
    @wp.func_native("return sinf(x) + y[tid];")
    def mixed(x: float, y: wp.array[float], tid: int) -> float: ...

    @wp.kernel
    def run(x: wp.array[float], y: wp.array[float]):
        i = wp.tid()
        y[i] = mixed(x[i], y, i)

    text = run.listing("assembly", device=DEVICE)
    assert "weft_native" not in text and "call" not in text.replace(".callprototype", "")
    assert text.count(".entry") == 1
    x = np.linspace(-3, 3, 50, dtype=np.float32)
    y = array(np.ones(50), float)
    wp.launch(run, dim=50, inputs=[array(x, float), y], device=DEVICE)
    np.testing.assert_allclose(y.numpy(), np.sin(x) + 1, rtol=1e-6)


def test_printf(capfd):
    @wp.func_native(r'if (i == 1) printf("%d of %s: %.2f\n", i, "these", x);')
    def show(i: int, x: float): ...

    @wp.kernel
    def run():
        show(wp.tid(), 2.5)

    wp.launch(run, dim=3, inputs=[], device=DEVICE)
    wp.synchronize_device(DEVICE)
    assert capfd.readouterr().out == "1 of these: 2.50\n"


def test_names_that_devices_lack():
    @wp.func_native("return int(getpid());")
    def pid() -> int: ...

    @wp.func_native("#include <unistd.h>\nreturn int(getpid());")
    def pid_with_header() -> int: ...

    @wp.func_native("extern __shared__ float all[];\nreturn int(all[0]);")
    def dynamic() -> int: ...

    def launch(function):
        @wp.kernel(module="unique")
        def run(out: wp.array[int]):
            out[0] = function()

        wp.launch(run, dim=1, inputs=[zeros(1, int)], device=DEVICE)

    with pytest.raises(wp.CompileError, match="use of undeclared identifier 'getpid'"):
        launch(pid)
    with pytest.raises(wp.CompileError, match="uses 'getpid', which CUDA devices do not have") as caught:
        launch(pid_with_header)
    assert "out[0] = function()" in str(caught.value) and "__CUDA_ARCH__" in str(caught.value)
    with pytest.raises(wp.CompileError, match="(?s)has shared memory of unknown size: .*declare its size"):
        launch(dynamic)


def test_a_deterministic_launch_is_refused():
    """It would run on one thread, without the other threads of its block."""
    inputs = [array(np.arange(128), int), zeros(1, int)]
    with pytest.raises(wp.UsageError, match="(?s)calls a @wp.func_native.*help: pass deterministic=False"):
        wp.launch(sums_of_blocks, dim=128, inputs=inputs, block_dim=128, device=DEVICE, deterministic=True)
    assert inputs[1].numpy()[0] == 0
    wp.launch(sums_of_blocks, dim=128, inputs=inputs, block_dim=128, device=DEVICE, deterministic=False)
    assert inputs[1].numpy()[0] == 127 * 64


def test_gradients_through_shared_memory():
    """The adjoint of a sum over a block, which a warp computes, is the same for all of its threads."""

    @wp.func_native(
        """
        for (int step = 16; step > 0; step /= 2) x += __shfl_down_sync(~0u, x, step);
        return __shfl_sync(~0u, x, 0);
        """,
        adj_snippet="""
        __shared__ float sums[64];
        sums[threadIdx.x] = adj_ret;
        __syncthreads();
        for (int k = 0; k < 32; ++k) adj_x += sums[threadIdx.x / 32 * 32 + k];
        __syncthreads();
        """,
    )
    def sum_of_warp(x: float) -> float: ...

    @wp.kernel
    def run(x: wp.array[float], y: wp.array[float]):
        i = wp.tid()
        y[i] = sum_of_warp(x[i] * x[i]) * float(i)

    numbers = np.random.default_rng(6).integers(-5, 6, 128).astype(np.float32)
    x = wp.array(numbers, dtype=float, requires_grad=True, device=DEVICE)
    y = wp.zeros(128, dtype=float, requires_grad=True, device=DEVICE)
    tape = wp.Tape()
    with tape:
        wp.launch(run, dim=128, inputs=[x], outputs=[y], block_dim=64, device=DEVICE)
    tape.backward(grads={y: wp.ones(128, dtype=float, device=DEVICE)})
    squares = (numbers**2).reshape(4, 32).sum(axis=1).repeat(32)
    np.testing.assert_array_equal(y.numpy(), squares * np.arange(128))
    sums = np.arange(128).reshape(4, 32).sum(axis=1).repeat(32)
    np.testing.assert_array_equal(x.grad.numpy(), 2 * numbers * sums)
    seed = wp.ones(128, dtype=float, device=DEVICE)
    for is_command in (False, True):
        found = zeros(128, float)
        command = wp.launch(
            run,
            dim=128,
            inputs=[x],
            outputs=[y],
            adj_inputs=[found],
            adj_outputs=[seed],
            block_dim=64,
            device=DEVICE,
            adjoint=True,
            record_cmd=is_command,
        )
        if is_command:
            command.launch()
        np.testing.assert_array_equal(found.numpy(), 2 * numbers * sums)


def test_commands_keep_the_shape_of_their_blocks():
    values = np.arange(128 * 5, dtype=np.int32)
    out = zeros(5, int)
    command = wp.launch(
        sums_of_blocks, dim=values.size, inputs=[array(values, int), out], block_dim=128, device=DEVICE, record_cmd=True
    )
    command.launch()
    np.testing.assert_array_equal(out.numpy(), values.reshape(5, 128).sum(axis=1))


def test_without_a_clang_the_kernel_is_refused(monkeypatch, tmp_path):
    monkeypatch.setattr(wp.config, "cache_kernels", False)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("WEFT_CLANG", raising=False)

    @wp.func_native("return x + 1;")
    def next_of(x: int) -> int: ...

    @wp.kernel
    def run(out: wp.array[int]):
        out[0] = next_of(1)

    with pytest.raises(wp.CompileError, match=r"'next_of' is written in C\+\+, which needs a clang.*"):
        wp.launch(run, dim=1, inputs=[zeros(1, int)], device=DEVICE)


def test_the_cache_tells_processors_and_snippets_apart(monkeypatch, tmp_path):
    """A process with a cache of its own: the second one compiles nothing, and another GPU gets its own code."""
    program = tmp_path / "program.py"
    program.write_text("""
import sys
import warp as wp

@wp.func_native(f"return {sys.argv[1]} + __CUDA_ARCH__;")
def number() -> int: ...

@wp.kernel
def run(out: wp.array[int]):
    out[0] = number()

out = wp.zeros(1, dtype=int, device="cuda:0")
wp.launch(run, dim=1, inputs=[out], device="cuda:0")
print(out.numpy()[0])
""")
    if not wp.get_device(DEVICE).is_emulated:
        pytest.skip("needs two kinds of GPUs")
    environment = {**os.environ, "WARP_CACHE_PATH": str(tmp_path / "cache")}

    def found(number, arch, path):
        settings = {**environment, "WEFT_EMULATED_ARCH": str(arch), "PATH": path}
        result = subprocess.run([sys.executable, program, str(number)], capture_output=True, text=True, env=settings)
        return result.stdout or result.stderr

    there, nowhere = os.environ["PATH"], str(tmp_path)
    assert found(1, 75, there) == "751\n" and found(1, 75, nowhere) == "751\n"
    for number, arch in ((2, 75), (1, 90)):
        assert "needs a clang on this machine" in found(number, arch, nowhere)
        assert found(number, arch, there) == f"{10 * arch + number}\n"
        assert found(number, arch, nowhere) == f"{10 * arch + number}\n"


FAULTS = """
import numpy as np
import warp as wp


@wp.func_native('''{snippet}''')
def f(x: wp.array[int], tid: int): ...


@wp.kernel
def run(x: wp.array[int]):
    f(x, wp.tid())


x = wp.zeros(64, dtype=int, device="cuda:0")
wp.launch(run, dim=64, inputs=[x], block_dim=64, device="cuda:0")
x.numpy()
"""


@emulated_only
@pytest.mark.parametrize(
    "snippet, message",
    [
        ("__shared__ int s[64]; s[tid] = tid; x[tid] = s[63 - tid];", "race"),
        ("if (tid < 7) { __syncthreads(); x[tid] = 1; } else { x[tid] = 2; __syncthreads(); x[tid] = 3; }", "barrier"),
        ("__shared__ int s[64]; if (tid < 40) s[tid] = 1; __syncthreads(); x[tid] = s[tid];", "never written"),
        ("x.data[tid + 1] = 1;", "out of bounds"),
        ("if (tid % 2) x[tid] = __shfl_sync(~0u, tid, 1); __syncthreads();", "shfl"),
    ],
)
def test_faults_are_found(tmp_path, snippet, message):
    path = tmp_path / "program.py"
    path.write_text(FAULTS.format(snippet=snippet))
    result = subprocess.run([sys.executable, path], capture_output=True, text=True, env=dict(os.environ))
    assert result.returncode != 0
    assert re.search(message, result.stderr), result.stderr
    assert "weft_0_run" in result.stderr


def test_files_for_cpp_programs_hold_the_code(tmp_path, monkeypatch):
    (tmp_path / "file_of_native.py").write_text("""
import warp as wp

@wp.func_native('''
    __shared__ int s[64];
    s[threadIdx.x] = x;
    __syncthreads();
    return s[63 - threadIdx.x] + __CUDA_ARCH__;
''')
def swapped(x: int) -> int: ...

@wp.kernel
def run(out: wp.array[int]):
    i = wp.tid()
    out[i] = swapped(i)
""")
    monkeypatch.syspath_prepend(tmp_path)
    import file_of_native

    wp.compile_aot_module(file_of_native, tmp_path / "file.weft", arch=86)
    text = (tmp_path / "file.weft").read_bytes()
    assert b".target sm_86" in text and b".shared" in text and re.search(rb"bar(rier)?\.sync", text)
    assert b"860" in text and b"weft_native" not in text


@wp.kernel
def by_block(x: wp.array[float], y: wp.array[float]):
    i = wp.tid()
    y[i] = x[i] * float(wp.block_dim())


@pytest.mark.parametrize("how", ["tape", "launch"])
def test_gradients_of_kernels_that_ask_for_their_blocks(how):
    x = wp.full(100, 2.0, dtype=float, device=DEVICE, requires_grad=True)
    y = wp.zeros(100, dtype=float, device=DEVICE, requires_grad=True)
    if how == "tape":
        with wp.Tape() as tape:
            wp.launch(by_block, 100, inputs=[x], outputs=[y], device=DEVICE, block_dim=64)
        tape.backward(grads={y: wp.ones_like(y)})
    else:
        ones = wp.ones_like(y)
        arguments = {"inputs": [x], "outputs": [y], "adj_inputs": [x.grad], "adj_outputs": [ones]}
        wp.launch(by_block, 100, device=DEVICE, block_dim=64, adjoint=True, **arguments)
    assert x.grad.numpy().tolist() == [64.0] * 100
