"""Common to all libraries: none is imported by Weft, none has to be there, all can be there at once."""

from __future__ import annotations

import subprocess
import sys
import textwrap

import numpy as np
import protected_device
import pytest
import warp as wp

from tests.interop.conftest import framework

pytestmark = pytest.mark.cpu_only("other frameworks are built for the CPU here; their GPUs come later")

PACKAGES = {"torch": "torch", "jax": "jax", "paddle": "paddlepaddle"}


def run(program: str) -> str:
    """The output of a program in a process of its own."""
    result = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(program)], capture_output=True, text=True, timeout=300
    )
    assert result.returncode == 0, result.stdout + result.stderr
    return result.stdout


# ---- none is imported, none is needed ----


@pytest.mark.seed("S-INI-001", "D-07", "S-DST-002")
def test_imports_of_weft_import_no_library():
    assert (
        run("""
        import sys
        import warp, warp.torch, warp.jax, warp.paddle, warp.dlpack, warp.jax_experimental, warp.context
        import warp as wp
        wp.launch  # the names are there
        libraries = {"torch", "jax", "jaxlib", "paddle", "numba", "cupy", "mpi4py"}
        print(sorted(libraries & set(sys.modules)))
    """)
        == "[]\n"
    )


@pytest.mark.parametrize("library", PACKAGES)
def test_a_library_that_is_not_installed_is_named_with_its_package(library):
    """Each function that is named after it, but for those that only give the name of a device."""
    names = [name for name in dir(wp) if name.endswith((f"_from_{library}", f"_to_{library}"))]
    names += [f"from_{library}", f"to_{library}"]
    assert len(names) >= 6
    output = run(f"""
        import sys

        class Missing:
            def find_spec(self, name, path=None, target=None):
                if name.partition(".")[0] == {library!r}:
                    raise ModuleNotFoundError("No module named {library}", name={library!r})

        sys.meta_path.insert(0, Missing())
        import numpy
        import warp as wp
        import warp.{library}

        class Stream:
            pass

        given = {{"device": "cpu", "dtype_to": wp.float32, "dtype_from": numpy.float32, "stream": Stream(),
                 "from": numpy.zeros(3), "to": wp.zeros(3)}}
        for name in {names}:
            kind = name.partition("_")[0]
            argument = given[kind] if kind in given else given[name.removesuffix("_{library}")]
            try:
                getattr(wp, name)(argument)
                print(name, "works")
            except Exception as error:
                print(name, type(error).__name__, error)
    """)
    missing = f"ModuleNotFoundError {library} is not installed in this Python. help: pip install {PACKAGES[library]}"
    found = dict(line.split(" ", 1) for line in output.splitlines())
    assert set(found) == set(names)
    # Without the library: names of devices, and devices of JAX, which name their kind.
    without = {f"device_to_{library}", f"stream_to_{library}", "device_from_jax"} - {"device_to_jax"}
    assert {name: text for name, text in found.items() if name not in without} == {
        name: missing for name in names if name not in without
    }


@pytest.mark.seed("S-PAD-009", "D-06")
@pytest.mark.parametrize("start", ["", "wp.context.init()"])
def test_a_start_up_call_is_not_needed_and_does_no_harm(start):
    assert (
        run(f"""
        import paddle
        import warp as wp
        {start}
        t = wp.to_paddle(wp.array([1.0, 2.0], dtype=float, device="cpu"))
        print(t.tolist(), wp.from_paddle(t).list())
    """)
        == "[1.0, 2.0] [1.0, 2.0]\n"
    )


# ---- all at once ----


@pytest.mark.usefixtures("inductor")
@pytest.mark.parametrize("order", ["weft first", "weft last"])
def test_four_compilers_and_their_threads_in_one_process(order, tmp_path):
    """PyTorch, JAX, Paddle, Numba and Weft bring LLVM or OpenMP of their own. The times are shown (pytest -s)."""
    frameworks = "import jax, numba, paddle, torch"
    imports = [frameworks, "import warp as wp"]
    if order == "weft first":
        imports.reverse()
    program = tmp_path / "together.py"
    program.write_text(
        "\n".join(imports)
        + textwrap.dedent("""
        import time
        import numpy as np
        import warp as wp

        COUNT = 1 << 20
        values = np.random.default_rng(0).normal(size=COUNT).astype(np.float32)

        @wp.kernel
        def waves(x: wp.array[float], y: wp.array[float]):
            i = wp.tid()
            y[i] = wp.sin(x[i]) * 2.0 + wp.exp(-x[i] * x[i])

        @numba.njit(parallel=True)
        def by_numba(x):
            y = np.empty_like(x)
            for i in numba.prange(x.shape[0]):
                y[i] = np.sin(x[i]) * 2.0 + np.exp(-x[i] * x[i])
            return y

        @jax.jit
        def by_jax(x):
            return jax.numpy.sin(x) * 2.0 + jax.numpy.exp(-x * x)

        def by_torch(x):
            return torch.sin(x) * 2.0 + torch.exp(-x * x)

        compiled = torch.compile(by_torch)
        expected = np.sin(values.astype(float)) * 2.0 + np.exp(-values.astype(float) ** 2)
        x, y = wp.array(values), wp.zeros(COUNT)

        def by_weft():
            wp.launch(waves, dim=COUNT, inputs=[x, y])
            return y.numpy()

        def seconds(work):
            least = float("inf")
            for _ in range(5):
                begin = time.perf_counter()
                work()
                least = min(least, time.perf_counter() - begin)
            return least

        def check(found):
            np.testing.assert_allclose(np.asarray(found), expected, rtol=1e-4, atol=1e-4)

        check(by_weft())
        before = seconds(by_weft)
        t, p = torch.from_numpy(values.copy()), paddle.to_tensor(values, place="cpu")
        for _ in range(3):
            check(by_weft())
            check(by_numba(values))
            check(by_jax(values))
            check(compiled(t))
            check(paddle.sin(p) * 2.0 + paddle.exp(-p * p))
            out = torch.zeros(COUNT)
            wp.launch(waves, dim=COUNT, inputs=[t, out])
            check(out)

        # Weft's work between that of the others: gradients across torch, kernels in jitted functions.
        leaf = torch.from_numpy(values[:1000].copy()).requires_grad_()
        a, total = wp.from_torch(leaf), wp.zeros(1000, requires_grad=True)
        with wp.Tape() as tape:
            wp.launch(waves, dim=1000, inputs=[a, total])
        tape.backward(grads={total: wp.ones(1000)})
        other = leaf.detach().clone().requires_grad_()
        by_torch(other).sum().backward()
        np.testing.assert_allclose(leaf.grad, other.grad, rtol=1e-4, atol=1e-4)
        check(jax.jit(wp.jax_kernel(waves))(values)[0])
        after = seconds(by_weft)
        print(f"waves of {COUNT}: {before * 1e3:.2f} ms before the others worked, {after * 1e3:.2f} ms after")
        """)
    )
    result = subprocess.run([sys.executable, str(program)], capture_output=True, text=True, timeout=500)
    assert result.returncode == 0, result.stdout + result.stderr
    assert result.stdout.startswith("waves of ")
    print(f"{order}: {result.stdout}", end="")


# ---- arrays ----


@wp.kernel
def add_one(x: wp.array[float]):
    i = wp.tid()
    x[i] = x[i] + 1.0


@pytest.mark.seed("S-LCH-007")
def test_an_array_of_the_host_on_another_device_is_an_error(writable_library):
    protected_device.add()
    x = writable_library.array(np.zeros(3, np.float32))
    with pytest.raises(RuntimeError, match=rf"argument 1 'x' of kernel 'add_one'.*{protected_device.NAME}"):
        wp.launch(add_one, dim=3, inputs=[x], device=protected_device.NAME)
    with pytest.raises(ValueError, match="cuda:0"):
        wp.launch(add_one, dim=3, inputs=[x], device="cuda:0")
    assert writable_library.numbers(x).tolist() == [0, 0, 0]


@pytest.mark.seed("S-TYP-004")
def test_bool_is_the_bool_of_every_library():
    for name in PACKAGES:
        library = framework(name)
        theirs = library.array(np.array([True, False, True]))
        array = getattr(wp, f"from_{name}")(theirs)
        assert array.dtype is wp.bool and array.list() == [True, False, True]
        back = getattr(wp, f"to_{name}")(wp.array([False, True], dtype=wp.bool))
        assert back.dtype == theirs.dtype and library.numbers(back).tolist() == [False, True]
        dtype = getattr(wp, f"dtype_to_{name}")(wp.bool)
        assert getattr(wp, f"dtype_from_{name}")(dtype) is wp.bool and dtype == theirs.dtype


def test_empty_arrays_go_both_ways(library):
    for shape in ((0,), (0, 3), (4, 0)):
        theirs = library.array(np.zeros(shape, np.float32))
        array = wp.array(theirs, dtype=float, ndim=len(shape), copy=False)
        assert array.shape == shape and array.size == 0
        if library.name == "numpy":
            back = array.numpy()
        else:
            back = getattr(wp, f"to_{library.name}")(wp.zeros(shape))
            assert getattr(wp, f"from_{library.name}")(theirs).shape == shape
        assert tuple(back.shape) == shape
    vectors = wp.array(library.array(np.zeros((0, 3), np.float32)), dtype=wp.vec3, copy=False)
    assert vectors.shape == (0,)


def test_read_only_arrays_are_read_only_everywhere():
    frozen = np.arange(3, dtype=np.float32)
    frozen.flags.writeable = False
    for array in (wp.from_dlpack(frozen), wp.array(frozen, copy=False), wp.from_jax(framework("jax").array(frozen))):
        assert not array.numpy().flags.writeable and memoryview(array).readonly
        for write in (
            lambda: array.fill_(1.0),
            lambda: array.zero_(),
            lambda: array.assign([1.0, 1.0, 1.0]),
            lambda: array.__setitem__(0, 1.0),
            lambda: wp.copy(array, wp.ones(3)),
            lambda: wp.launch(add_one, dim=3, inputs=[array]),
            lambda: wp.to_torch(array),
            lambda: wp.to_paddle(array),
            lambda: wp.to_dlpack(array),
        ):
            with pytest.raises(ValueError, match="read-only"):
                write()
        assert wp.clone(array).fill_(2.0).list() == [2, 2, 2] and array.list() == [0, 1, 2]


# ---- who gives the thread pool ----


@pytest.mark.parametrize("first", ["paddle", "torch", "numba"])
def test_launches_run_on_a_thread_pool_of_their_own(first, tmp_path):
    """Of libraries of one name a process has one, and Paddle comes with a libtbb.so.12."""
    program = tmp_path / "program.py"  # kernels are read from files
    program.write_text(
        textwrap.dedent(f"""
        import {first}
        import ctypes
        from pathlib import Path
        import numpy as np
        import warp as wp

        @wp.kernel
        def fill(x: wp.array[float]):
            x[wp.tid()] = 1.0

        x = wp.zeros(1_000_000)
        wp.launch(fill, dim=x.size, inputs=[x])
        assert x.numpy().sum() == x.size

        class Found(ctypes.Structure):
            _fields_ = [("file", ctypes.c_char_p), ("base", ctypes.c_void_p), ("name", ctypes.c_char_p),
                        ("address", ctypes.c_void_p)]

        # As the loader looks for what the module needs: first in what all see, then in what came with the module.
        everywhere, module = ctypes.CDLL(None), ctypes.CDLL(wp._weft.__file__)
        assert not hasattr(everywhere, "TBB_runtime_version")
        found = Found()
        function = ctypes.cast(module.TBB_runtime_version, ctypes.c_void_p)
        assert everywhere.dladdr(function, ctypes.byref(found))
        print(Path(found.file.decode()).name)
        lines = [line for line in Path("/proc/self/maps").read_text().splitlines() if "tbb" in line]
        print(len({{line.split()[-1] for line in lines if "paddle" in line}}))
    """)
    )
    output = run(f"import runpy; runpy.run_path({str(program)!r})")
    own, of_paddle = output.splitlines()
    assert "tbb" in own and not own.startswith("libtbb.so")
    assert int(of_paddle) == (first == "paddle")
