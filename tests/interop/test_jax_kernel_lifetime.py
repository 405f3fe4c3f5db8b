"""Kernels in traced and cached programs of JAX: they live on, in threads and in other processes."""

import subprocess
import sys
import textwrap
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import warp as wp
import warp.jax_experimental
from jax_kernels import triple_kernel
from jax_programs import wave
from run_in_threads import run_in_threads

pytestmark = pytest.mark.cpu_only("other frameworks are built for the CPU here; their GPUs come later")


def run(program: str, folder) -> str:
    """The output of a program in a process of its own."""
    path = folder / "main.py"
    path.write_text(textwrap.dedent(program))
    done = subprocess.run([sys.executable, str(path)], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


# ---- what was traced lives on ----
def test_a_new_kernel_of_the_same_name_leaves_what_was_traced():
    def define(factor):
        @wp.kernel
        def apply(x: wp.array[float], y: wp.array[float]):
            y[wp.tid()] = factor * x[wp.tid()]

        return wp.jax_kernel(apply)

    x, double = jnp.arange(3.0), define(2.0)
    jitted, gradient = jax.jit(double), jax.jit(jax.grad(lambda x: jnp.sum(double(x)[0])))
    assert jitted(x)[0].tolist() == [0, 2, 4] and gradient(x).tolist() == [2, 2, 2]
    assert define(7.0)(x)[0].tolist() == [0, 7, 14]
    assert jitted(x)[0].tolist() == [0, 2, 4] and gradient(x).tolist() == [2, 2, 2]


@wp.func
def step(x: float):
    return x * 2.0


@wp.kernel
def apply_step(x: wp.array[float], y: wp.array[float]):
    y[wp.tid()] = step(x[wp.tid()])


def test_a_redefined_function_gives_no_mixture_of_old_values_and_new_gradients():
    global step
    function, x = wp.jax_kernel(apply_step), jnp.arange(3.0)
    jitted, gradient = jax.jit(function), jax.jit(jax.grad(lambda x: jnp.sum(function(x)[0])))
    moved = jax.jit(lambda x: jax.jvp(lambda x: function(x)[0], (x,), (x,))[1])
    assert jitted(x)[0].tolist() == moved(x).tolist() == [0, 2, 4] and gradient(x).tolist() == [2, 2, 2]

    @wp.func
    def step(x: float):
        return x * 7.0

    assert jitted(x)[0].tolist() == [0, 2, 4]
    for derivative in (gradient, moved):
        with pytest.raises(Exception, match="'apply_step'.* has been redefined since JAX traced it"):
            derivative(x).block_until_ready()
    assert function(x)[0].tolist() == [0, 7, 14]
    assert jax.grad(lambda x: jnp.sum(function(x)[0]))(x).tolist() == [7, 7, 7]


def test_a_jitted_kernel_runs_in_many_threads():
    function = jax.jit(wp.jax_kernel(wave))
    gradient = jax.jit(jax.grad(lambda x, y: jnp.sum(wp.jax_kernel(wave)(x, y)[0])))
    moved = jax.jit(lambda x, y: jax.jvp(lambda x: wp.jax_kernel(wave)(x, y)[0], (x,), (jnp.ones_like(x),))[1])
    wrong = []

    def work(seed):
        rng = np.random.default_rng(seed)
        for size in (3, 1000, 40000):
            x, y = (jnp.asarray(rng.standard_normal(size).astype(np.float32)) for _ in range(2))
            for _ in range(20):
                (z,), g, tangent = function(x, y), gradient(x, y), moved(x, y)
                if not np.allclose(tangent, np.cos(x) * y + 2 * x, atol=1e-5):
                    wrong.append(("tangent", size))
                if not np.allclose(z, np.sin(x) * y + x * x, atol=1e-5):
                    wrong.append(("value", size))
                if not np.allclose(g, np.cos(x) * y + 2 * x, atol=1e-5):
                    wrong.append(("gradient", size))

    run_in_threads(work, range(6))
    assert not wrong


CACHED = """
    import jax, sys
    import jax.numpy as jnp
    jax.config.update("jax_compilation_cache_dir", {folder!r})
    jax.config.update("jax_persistent_cache_min_compile_time_secs", 0)
    jax.config.update("jax_persistent_cache_min_entry_size_bytes", -1)
    sys.path.insert(0, {folder!r})
    from program import triple
    f = jax.jit(lambda x: triple(x)[0] + 1)
    print(f(jnp.arange(3.0)).tolist(), jax.jit(jax.grad(lambda x: jnp.sum(triple(x)[0])))(jnp.arange(3.0)).tolist())
    print(jax.jit(lambda x: jax.jvp(lambda x: triple(x)[0], (x,), (x,))[1])(jnp.arange(3.0)).tolist())
    print(jax.jit(jax.hessian(lambda x: jnp.sum(triple(x)[0] ** 2)))(jnp.ones(1)).tolist())
    """


def test_programs_out_of_the_cache_of_jax_find_their_kernel(tmp_path):
    (tmp_path / "program.py").write_text(
        textwrap.dedent("""
        import warp as wp

        @wp.kernel
        def kernel(x: wp.array[float], y: wp.array[float]):
            y[wp.tid()] = 3.0 * x[wp.tid()]

        triple = wp.jax_kernel(kernel)
        """)
    )
    program = CACHED.format(folder=str(tmp_path))
    first = run(program, tmp_path)
    entries = sorted(path.name for path in tmp_path.glob("jit*"))
    assert entries and first == "[1.0, 4.0, 7.0] [3.0, 3.0, 3.0]\n[0.0, 3.0, 6.0]\n[[18.0]]\n"
    assert run(program, tmp_path) == first
    assert [path.name for path in sorted(tmp_path.glob("jit*-cache"))] == [e for e in entries if e.endswith("-cache")]


def test_a_compiled_program_without_its_kernel_is_an_error(tmp_path):
    program = """
        import pickle, jax, jax.numpy as jnp
        from jax.experimental.serialize_executable import deserialize_and_load, serialize
        import warp as wp
        x = jnp.arange(3.0)
        path = {path!r}
        from pathlib import Path
        if not Path(path).exists():
            @wp.kernel
            def kernel(x: wp.array[float], y: wp.array[float]):
                y[wp.tid()] = 3.0 * x[wp.tid()]
            compiled = jax.jit(wp.jax_kernel(kernel)).lower(x).compile()
            Path(path).write_bytes(pickle.dumps(serialize(compiled)))
        else:
            from warp._interop.jax_kernels import ensure_handlers
            ensure_handlers()
            compiled = deserialize_and_load(*pickle.loads(Path(path).read_bytes()))
            try:
                compiled(x)[0].block_until_ready()
            except jax.errors.JaxRuntimeError as error:
                print(error)
        """.format(path=str(tmp_path / "compiled"))
    (tmp_path / "program.py").write_text(textwrap.dedent(program))
    for expected in ("", "kernel is not known in this process"):
        done = subprocess.run([sys.executable, str(tmp_path / "program.py")], capture_output=True, text=True)
        assert done.returncode == 0 and expected in done.stdout, done.stdout + done.stderr


@pytest.mark.seed("S-DST-002", "P-24")
def test_nothing_of_ours_starts_a_backend(tmp_path):
    program = """
        import warp as wp
        import warp.jax, warp.jax_experimental, warp.jax_experimental.custom_call, warp.jax_experimental.ffi
        import sys
        assert "jax" not in sys.modules and "jaxlib" not in sys.modules
        from warp.jax_experimental import jax_kernel

        @wp.kernel
        def kernel(x: wp.array[float], y: wp.array[float]):
            y[wp.tid()] = x[wp.tid()]

        jax_kernel(kernel, launch_dims=3), wp.jax_kernel(kernel, num_outputs=1, launch_dims=3)
        import jax
        from jax._src import xla_bridge
        assert not xla_bridge.backends_are_initialized()
        jax.distributed.initialize("localhost:12399", num_processes=1, process_id=0)
        import jax.numpy as jnp
        assert jax.jit(jax_kernel(kernel))(jnp.ones(2))[0].tolist() == [1, 1]
    """
    run(program, tmp_path)


def flags_of_memory(address: int) -> list[str]:
    """The facts that the kernel of Linux gives about the pages at an address."""
    is_there = False
    for line in Path("/proc/self/smaps").read_text().splitlines():
        name, _, rest = line.partition(" ")
        if not name.endswith(":"):
            begin, _, end = name.partition("-")
            is_there = int(begin, 16) <= address < int(end, 16)
        elif is_there and name == "VmFlags:":
            return rest.split()
    raise ValueError(f"no memory at {address:#x}")


def copied(x: wp.array[float], y: wp.array[float]):
    wp.copy(y, x)


@pytest.mark.skipif(not Path("/sys/kernel/mm/transparent_hugepage").exists(), reason="Linux without huge pages")
@pytest.mark.parametrize("kind", ["kernel", "gradient", "function"])
def test_large_results_are_written_to_huge_pages(kind):
    function = wp.jax_callable(copied) if kind == "function" else wp.jax_kernel(triple_kernel)
    run = jax.jit(jax.grad(lambda x: function(x)[0].sum()) if kind == "gradient" else lambda x: function(x)[0])
    x = jnp.ones(12 << 20)
    y = run(x)
    assert float(y[-1]) == (1.0 if kind == "function" else 3.0)
    middle = y.unsafe_buffer_pointer() + y.nbytes // 2
    assert "hg" in flags_of_memory(middle)
    assert "hg" not in flags_of_memory(x.unsafe_buffer_pointer() + x.nbytes // 2)  # of JAX's own making


def test_calls_leave_no_memory_behind():
    function = jax.jit(wp.jax_kernel(wave))
    gradient = jax.jit(jax.grad(lambda x, y: jnp.sum(wp.jax_kernel(wave)(x, y)[0])))
    x = jnp.ones(1000)

    def calls():
        for _ in range(2000):
            function(x, x), gradient(x, x)
        with open("/proc/self/statm") as file:
            return int(file.read().split()[1]) * 4

    calls()
    before = min(calls() for _ in range(2))
    assert calls() - before < 4096  # KiB; 2000 arrays of 4 KiB would be 8000


def test_a_kernel_that_does_not_compile_is_an_error_of_its_calls():
    @wp.kernel
    def broken(x: wp.array[float], y: wp.array[float]):
        y[wp.tid()] = x[wp.tid()] * not_defined  # noqa: F821

    made = wp.jax_kernel(broken)  # other kernels of a module stay usable
    with pytest.raises(wp.CompileError, match="name 'not_defined' is not defined"):
        made(jnp.ones(3))
    with pytest.raises(ValueError, match="in_out_argnames has 'z'"):
        wp.jax_kernel(broken, in_out_argnames=["z"])
    with pytest.raises(ValueError, match="num_outputs is 3"):
        wp.jax_kernel(broken, num_outputs=3)
