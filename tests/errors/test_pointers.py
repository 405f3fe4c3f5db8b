"""A function of NumPy, math, random or Python in a kernel: the error points to what a kernel has in its place."""

import importlib.util
import math
import re

import numpy as np
import pytest
import warp as wp

ARRAYS = """zeros ones empty full zeros_like ones_like array asarray arange linspace concatenate stack vstack hstack
    sum mean average any all isclose allclose einsum tensordot kron meshgrid histogram bincount std var nan_to_num
    count_nonzero searchsorted sort argsort unique cumsum diff eye clip where round copy reshape ravel"""
LINALG = "norm inv det solve svd eigh eig qr"
RANDOM = "rand randn randint random uniform normal choice seed default_rng shuffle permutation poisson"
PYTHON = "sorted map filter input open str repr isinstance divmod getattr list tuple dict set complex"
NAMES = [
    *(f"math.{name}" for name in dir(math) if callable(getattr(math, name)) and not name.startswith("_")),
    *(f"np.{name}" for name in dir(np) if isinstance(getattr(np, name), np.ufunc)),
    *(f"np.{name}" for name in ARRAYS.split()),
    *(f"np.linalg.{name}" for name in LINALG.split()),
    *(f"np.random.{name}" for name in RANDOM.split()),
    *(f"random.{name}" for name in "random uniform randint randrange gauss choice seed shuffle".split()),
    *PYTHON.split(),
]
# Kernels have these under the same name, and what is wrong is the number of arguments.
OWN = re.compile(r"no overload of wp\.|takes one argument|takes two|argument 'y' is missing")


@pytest.fixture(scope="module")
def messages(tmp_path_factory):
    """By name, the error of a kernel that calls it with one float; None if the call is right."""
    text = "import math, random\nimport numpy as np\nimport warp as wp\n"
    for number, name in enumerate(NAMES):
        text += f"@wp.kernel\ndef k{number}(o: wp.array(dtype=float)):\n    x = o[0]\n    y = {name}(x)\n"
    path = tmp_path_factory.mktemp("pointers") / "pointers_of_kernels.py"
    path.write_text(text)
    spec = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    found = {}
    for number, name in enumerate(NAMES):
        try:
            wp.launch(getattr(module, f"k{number}"), dim=0, inputs=[wp.zeros(1)])
            getattr(module, f"k{number}")._content_hash()
            found[name] = None
        except wp.CompileError as error:
            found[name] = str(error)
    return found


def test_each_function_has_a_pointer(messages):
    lost = []
    for name, message in messages.items():
        if message is None or OWN.search(message):
            continue
        help_lines = [line for line in message.splitlines() if line.startswith("help: ")]
        if not help_lines or "pass arrays and values" in help_lines[0]:
            lost.append((name, message))
    assert not lost, lost


def test_what_they_point_to_is_there(messages):
    pointed = set()
    for message in messages.values():
        pointed |= set(re.findall(r"\bwp\.([A-Za-z_]\w*)", "".join((message or "").split("help: ")[1:])))
    missing = [name for name in sorted(pointed) if not hasattr(wp, name)]
    assert len(pointed) > 30 and not missing


@pytest.mark.parametrize(
    "name, pointer",
    [
        ("np.zeros", "in kernels: wp.zeros(shape=4, dtype=float), a small array of this thread"),
        ("np.random.rand", "in kernels: wp.randf(state), with state = wp.rand_init(seed, i)"),
        ("np.linalg.norm", "the built-in function is wp.length"),
        ("np.arctan2", "the built-in function is wp.atan2"),
        ("math.hypot", "in kernels: wp.length(wp.vec2(x, y))"),
        ("np.matmul", "in kernels: a @ b"),
        ("math.gamma", "kernels have nothing of that name: write it as a @wp.func, or run it before the launch"),
    ],
)
def test_pointers_of_common_functions(messages, name, pointer):
    assert f"help: {pointer}" in messages[name], messages[name]
