"""wp.config and the options of decorators: impossible values are refused when they are set."""

import os
import subprocess
import sys

import numpy as np
import pytest
import warp as wp


def refused(name, value, builtin, *parts):
    before = getattr(wp.config, name, None)
    with pytest.raises(builtin) as caught:
        setattr(wp.config, name, value)
    assert isinstance(caught.value, wp.UsageError)
    for part in (f"config.{name}: ", *parts):
        assert part in str(caught.value)
    assert getattr(wp.config, name, None) == before


@pytest.mark.parametrize(
    "name",
    "fast_math lineinfo cache_kernels print_launches verbose quiet verify_fp".split(),
)
def test_flags_are_true_or_false(name):
    for value in ("yes", None, 2, 0.5, []):
        refused(name, value, TypeError, repr(value), "expected True or False")
    before = getattr(wp.config, name)
    for value in (True, 1, False, 0, before):
        setattr(wp.config, name, value)


def test_values_out_of_range():
    refused("mode", "foo", ValueError, "'foo'", '"release", "debug" or "check"')
    refused("mode", None, ValueError, "None")
    refused("optimization_level", 4, ValueError, "from 0 to 3")
    refused("max_unroll", -1, ValueError, "-1")
    refused("max_unroll", "many", ValueError, "'many'")
    refused("cpu_threads", 0, ValueError, "from 1 to")
    refused("kernel_cache_dir", 3, TypeError, "expected the path of a folder or None")
    refused("log_level", "debug", ValueError, "expected an int: wp.LOG_DEBUG")
    refused("deterministic", "always", ValueError, "expected a member of wp.DeterministicMode")


def test_names_that_are_no_options_are_kept(monkeypatch, capfd):
    monkeypatch.setattr(wp.config, "my_flag", [1], raising=False)
    assert wp.config.my_flag == [1]
    assert tuple(capfd.readouterr()) == ("", "")
    monkeypatch.setattr(wp.config, "fastmath", True, raising=False)
    message = "wp.config.fastmath is no option of Weft; did you mean fast_math? It is kept as it is."
    assert tuple(capfd.readouterr()) == ("", f"Warp UserWarning: {message}\n")
    wp.config.other_flag = 1
    del wp.config.other_flag
    assert not hasattr(wp.config, "other_flag")


def test_what_cannot_be_set_or_deleted():
    refused("version", "2.0", AttributeError, "cannot be set")
    with pytest.raises(AttributeError, match="not deleted"):
        del wp.config.mode


def test_options_of_other_machines_are_taken_as_they_are(monkeypatch):
    for name, value in {"verify_cuda": None, "cuda_path": 3, "cpu_compiler_flags": "-O2", "llvm_cuda": 1}.items():
        monkeypatch.setattr(wp.config, name, value)
        assert getattr(wp.config, name) == value


def test_the_cache_folder_can_be_chosen(tmp_path):
    code = """
import sys, pathlib, warp as wp
default = wp._weft.build_info()["cache_folder"]
wp.config.kernel_cache_dir = pathlib.Path(sys.argv[1]) / "kernels"
exec(compile("import warp as wp\\n@wp.kernel\\ndef k(x: wp.array[float]):\\n    x[0] = 1.0\\n", sys.argv[2], "exec"))
k.compile()
print(len(list((pathlib.Path(sys.argv[1]) / "kernels").rglob("*"))) > 0)
wp.config.kernel_cache_dir = None
print(wp._weft.build_info()["cache_folder"] == default)
"""
    source = tmp_path / "k.py"
    source.write_text("import warp as wp\n@wp.kernel\ndef k(x: wp.array[float]):\n    x[0] = 1.0\n")
    result = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path), str(source)], capture_output=True, text=True, env=os.environ
    )
    assert result.stdout == "True\nTrue\n", result.stderr


@wp.func
def some_function(x: float):
    return x


@wp.kernel
def some_kernel(x: wp.array[float]):
    x[0] = 1.0


@pytest.mark.parametrize(
    ("make", "builtin", "part"),
    [
        (lambda: wp.kernel(3), TypeError, "found 3 of type int"),
        (lambda: wp.func("f"), TypeError, "found 'f' of type str"),
        (lambda: wp.kernel(some_kernel), TypeError, "the kernel 'some_kernel'"),
        (lambda: wp.kernel(some_function), TypeError, "the function 'some_function' of @wp.func"),
        (lambda: wp.func(some_kernel), TypeError, "the kernel 'some_kernel'"),
        (lambda: wp.kernel(staticmethod(len)), TypeError, "write @staticmethod above @wp.kernel"),
        (lambda: wp.kernel(lambda: 0, module_options={"mode": 3}), ValueError, "mode is 3"),
        (lambda: wp.kernel(lambda: 0, module_options={"fast_math": "yes"}), TypeError, "fast_math is 'yes'"),
        (lambda: wp.kernel(lambda: 0, module_options={"lanes": 3}), ValueError, "a power of two"),
        (lambda: wp.kernel(lambda: 0, module_options={"max_unroll": 1.5}), ValueError, "an int from 0"),
        (lambda: wp.kernel(lambda: 0, module_options={"optimisation_level": 1}), ValueError, "optimization_level"),
        (lambda: wp.kernel(lambda: 0, module_options=3), TypeError, "expected a dict"),
        (lambda: wp.constant([1]), TypeError, "of type list"),
        (lambda: wp.struct(3), TypeError, "expected a class, found 3"),
        (lambda: wp.launch(some_kernel, 1, {"x": 1}), TypeError, "inputs is dict"),
        (lambda: wp.launch(some_kernel, "3", [wp.zeros(1)]), TypeError, "dim is str"),
    ],
)
def test_calls_refuse_what_they_cannot_take(make, builtin, part):
    with pytest.raises(builtin, match=part.replace("(", "\\(")) as caught:
        make()
    assert isinstance(caught.value, wp.UsageError)


def test_deterministic_sums_do_not_change_from_run_to_run(monkeypatch):
    @wp.kernel
    def add(x: wp.array[float], total: wp.array[float]):
        wp.atomic_add(total, 0, x[wp.tid()])

    monkeypatch.setattr(wp.config, "cpu_threads", 4)
    monkeypatch.setattr(wp.config, "deterministic", wp.DeterministicMode.RUN_TO_RUN)
    assert wp._weft.build_info()["threads"] == 4, "for the launches that may use them"
    x = wp.array(np.random.default_rng(3).random(300_000) - 0.5, dtype=float)
    sums = set()
    for _ in range(10):
        total = wp.zeros(1)
        wp.launch(add, dim=len(x), inputs=[x, total])
        sums.add(total.numpy()[0])
    assert len(sums) == 1
    assert issubclass(wp.WarpDeterminismError, wp.UsageError)
