"""inspect.signature works for what programs call, so that editors and help() can show it."""

import inspect
import subprocess
import sys

import pytest
import warp as wp

pytestmark = pytest.mark.cpu_only("runs no kernel: names, syntax trees, errors of the compiler")

# Python's own, of which it tells no signature before 3.13 or so.
OF_PYTHON = (int, float)


def callables():
    for name in dir(wp):
        value = getattr(wp, name)
        if not name.startswith("_") and callable(value) and value not in OF_PYTHON and value is not wp.Any:
            yield name, value


def test_every_public_callable_has_a_signature():
    found = dict(callables())
    assert len(found) > 500
    for name, value in found.items():
        assert isinstance(inspect.signature(value), inspect.Signature), name


CLASSES = [
    wp.array,
    wp.Mesh,
    wp.Bvh,
    wp.HashGrid,
    wp.Kernel,
    wp.Device,
    wp.Event,
    wp.Stream,
    wp.Graph,
    wp.Volume,
    wp.Tape,
]


@pytest.mark.parametrize("kind", CLASSES, ids=lambda kind: kind.__name__)
def test_every_public_method_has_a_signature(kind):
    for name, value in inspect.getmembers(kind, callable):
        if not name.startswith("_"):
            assert isinstance(inspect.signature(value), inspect.Signature), name


def test_signatures_of_functions_name_parameters_and_defaults():
    assert list(inspect.signature(wp.zeros).parameters)[:3] == ["shape", "dtype", "device"]
    assert list(inspect.signature(wp.zeros_like).parameters)[0] == "src"
    assert list(inspect.signature(wp.launch).parameters)[:3] == ["kernel", "dim", "inputs"]
    assert str(inspect.signature(wp.get_device)) == "(ident=None)"
    mesh = inspect.signature(wp.Mesh).parameters
    assert list(mesh)[:2] == ["points", "indices"] and mesh["support_winding_number"].default is False
    assert "stage" in inspect.signature(wp.Kernel.listing).parameters


def test_signatures_of_builtins_are_those_of_the_table():
    assert str(inspect.signature(wp.smoothstep)) == "(a: 'F', b: 'F', x: 'F') -> 'F'"
    assert list(inspect.signature(wp.length).parameters) == ["a"]
    several = inspect.signature(wp.curlnoise).parameters
    assert list(several)[0] == "state" and several["lacunarity"].default == 2.0
    assert inspect.signature(wp.vec3) == inspect.signature(wp.types.vector(5, float))


def test_functions_with_a_signature_take_their_arguments_as_before():
    assert wp.get_device(ident="cpu") is wp.get_device("cpu") and wp.is_device_available("cpu")
    with pytest.raises(TypeError):
        wp.get_device(device="cpu")
    with pytest.raises(wp.UsageError, match="nowhere"):
        wp.get_device("nowhere")
    points = wp.array([(0, 0, 0), (1, 0, 0), (0, 1, 0)], dtype=wp.vec3, device="cpu")
    mesh = wp.Mesh(points, wp.array([0, 1, 2], dtype=int, device="cpu"))
    assert mesh.refit() is None and wp.Mesh.refit(mesh) is None
    with pytest.raises(TypeError):
        wp.Mesh.refit()


def test_a_class_of_users_keeps_the_signature_of_its_own_constructor():
    class Heights(wp.array):
        def __init__(self, rows, columns=3):
            super().__init__([[0.0] * columns] * rows, dtype=float)

    class Other(wp.Mesh):
        def __init__(self, path):
            pass

    assert str(inspect.signature(Heights)) == "(rows, columns=3)" and str(inspect.signature(Other)) == "(path)"


def test_help_shows_the_signature():
    text = "import warp as wp; help(wp.zeros); help(wp.get_device)"
    done = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, check=True)
    assert "zeros(shape=None, dtype=None, device=None" in done.stdout and "get_device(ident" in done.stdout


def test_the_representation_of_an_array_says_what_it_is():
    assert repr(wp.array([1, 2], dtype=int, device="cpu")) == (
        "warp.array([1, 2], dtype=int32, shape=(2,), device='cpu')"
    )
    lines = repr(wp.zeros((2, 2), dtype=wp.vec3, device="cpu")).splitlines()
    assert lines[0].startswith("warp.array([[[0., 0., 0.],")
    assert lines[-1].endswith("dtype=vec3f, shape=(2, 2), device='cpu')")
    assert lines[1].index("[") == lines[0].index("[[0.") + 1
    assert str(wp.array([1, 2], dtype=int)) == "[1 2]"
    halves = repr(wp.zeros(2, dtype=wp.bfloat16, device="cpu"))
    assert halves.startswith("warp.array([") and "dtype=bfloat16, shape=(2,)" in halves
    indexed = repr(wp.array([1.0, 2.0, 3.0], dtype=float, device="cpu")[wp.array([0, 2], dtype=int, device="cpu")])
    assert indexed == "warp.indexedarray([1., 3.], dtype=float32, shape=(2,), device='cpu')"
