"""Modules whose contents come later: programs that import them run until they use them."""

import importlib
import pathlib
import subprocess
import sys

import pytest
import warp as wp

WAITING = {
    "warp.fem": ("Grid2D", "integrate", "integrand"),
    "warp.optim.linear": ("cg", "LinearOperator"),
    "warp.sparse": ("BsrMatrix", "bsr_zeros", "bsr_mv", "bsr_from_triplets"),
    "warp.render": ("UsdRenderer", "OpenGLRenderer"),
    "warp.geometry": ("IsoSurfaceNets", "tri_tri_adjacency"),
}


def run(code):
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout


@pytest.mark.parametrize("module, name", [(module, name) for module in WAITING for name in WAITING[module]])
def test_a_name_that_waits_can_be_imported_and_says_so_when_used(module, name):
    found = getattr(importlib.import_module(module), name)
    assert found.__name__ == name and found.__module__ == module
    with pytest.raises(
        NotImplementedError, match=rf"{module}\.{name}\(\): .* are not there yet, see docs/names\.md#"
    ) as caught:
        found(1, key=2)
    assert isinstance(caught.value, wp.UsageError)


def test_classes_that_wait_can_be_asked_for_and_derived_from():
    from warp.sparse import BsrMatrix

    class Mine(BsrMatrix):
        pass

    assert not isinstance(3, BsrMatrix)
    with pytest.raises(NotImplementedError):
        Mine()


def test_what_no_module_has_is_an_error():
    with pytest.raises(ImportError, match="no_such_module"):
        importlib.import_module("warp.no_such_module")
    with pytest.raises(ImportError, match="not_there"):
        from warp.sparse import not_there  # noqa: F401


@pytest.mark.parametrize("name", ["dense_gemm", "RegisteredGLBuffer", "capture_save"])
def test_a_name_of_the_package_that_waits_says_so(name):
    found = getattr(wp, name)
    with pytest.raises(
        NotImplementedError, match=rf"wp\.{name}\(\): [a-z A-Z]* are not there yet, see docs/names\.md#"
    ):
        found(1, key=2)
    assert name not in dir(wp)


def test_the_list_of_missing_names_is_where_the_errors_say():
    text = (pathlib.Path(__file__).parents[2] / "docs" / "names.md").read_text()
    assert "# Names of release 1.19 that are not there" in text.splitlines()


def test_private_names_of_the_release_are_found_in_public_places():
    code = """
import warnings
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    import warp as wp
    from warp._src.types import type_size_in_bytes, vec3
    from warp._src.context import ModuleHasher, runtime, user_modules
    from warp._src.utils import array_scan
    from warp._src.thirdparty.appdirs import user_cache_dir
    import warp._src.codegen
assert type_size_in_bytes is wp.types.type_size_in_bytes and vec3 is wp.vec3 and array_scan is wp.utils.array_scan
assert [str(w.message).split(" is private")[0] for w in caught] == ["warp._src.types.type_size_in_bytes"]
assert caught[0].filename == "<string>", caught[0].filename
assert user_cache_dir("a").endswith("a")
import ctypes
q, v = wp.quat_rpy(0.1, 0.2, 0.3), wp.vec3(1.0, 2.0, 3.0)
t, moved, length = wp.transform(v, q), wp.vec3(), ctypes.c_float()
runtime.core.wp_builtin_transform_point_transformf_vec3f(t, v, ctypes.byref(moved))
assert tuple(moved) == tuple(wp.transform_point(t, v))
both = wp.transform()
runtime.core.wp_builtin_mul_transformf_transformf(t, t, ctypes.byref(both))
assert list(both) == list(t * t)
runtime.core.wp_builtin_length_vec3f(v, ctypes.byref(length))
assert length.value == wp.length(v)
assert not hasattr(runtime.core, "wp_builtin_nothing_vec3f")
@wp.kernel
def k(x: wp.array(dtype=float)):
    x[0] = 1.0
module = wp.get_module("__main__")
del user_modules["__main__"]
user_modules["other"] = module
assert wp.get_module("other") is module
hashed = ModuleHasher([], module.options).hash_kernel(k)
assert len(hashed) == 32 and hashed == ModuleHasher([], module.options).hash_kernel(k)
try:
    from warp._src.types import no_such_name
except ImportError:
    print("done")
"""
    assert run(code) == "done\n"


def test_names_of_earlier_releases():
    assert wp.vec(length=5, dtype=wp.float64) is wp.types.vector(length=5, dtype=wp.float64)
    assert wp.mat(shape=(2, 3), dtype=float) is wp.types.matrix(shape=(2, 3), dtype=float)
    assert wp.utils.ScopedTimer is wp.ScopedTimer
    assert issubclass(wp.context.Graph, object) and wp.context.Module is wp.Module


def test_the_version_is_that_of_the_api():
    assert wp.__version__ == wp.config.version == "1.19.0"
    assert wp.__weft_version__ == wp.config.weft_version == wp._weft.build_info()["version"]
    with pytest.raises(AttributeError, match="config.weft_version: a version cannot be set"):
        wp.config.weft_version = "2"


def test_a_struct_may_have_a_field_that_waits():
    @wp.struct
    class Field:
        query: wp.RegisteredGLBuffer
        scale: float

    assert Field.__annotations__["query"] is wp.RegisteredGLBuffer and Field(scale=2.0).scale == 2.0

    @wp.kernel
    def reads(f: Field, out: wp.array[float]):
        out[0] = f.scale

    @wp.kernel
    def asks(f: Field, out: wp.array[float]):
        out[0] = float(f.query.width)

    @wp.kernel
    def takes(t: wp.RegisteredGLBuffer):
        pass

    out = wp.zeros(1)
    wp.launch(reads, dim=1, inputs=[Field(scale=2.0), out])
    assert out.numpy()[0] == 2.0
    with pytest.raises(wp.CompileError, match="RegisteredGLBuffer has no attribute 'width'"):
        wp.launch(asks, dim=1, inputs=[Field(), out])
    with pytest.raises(
        wp.CompileError,
        match=r"a name that waits. wp\.RegisteredGLBuffer\(\): buffers of OpenGL",
    ):
        wp.launch(takes, dim=1, inputs=[0])
