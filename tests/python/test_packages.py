"""Modules whose contents come later: programs that import them run until they use them."""

import importlib

import pytest
import warp as wp

WAITING = {
    "warp.sparse": ("BsrMatrix", "bsr_zeros", "bsr_mv", "bsr_from_triplets"),
    "warp.render": ("UsdRenderer", "OpenGLRenderer"),
    "warp.geometry": ("IsoSurfaceNets", "tri_tri_adjacency"),
}


@pytest.mark.parametrize("module, name", [(module, name) for module in WAITING for name in WAITING[module]])
def test_a_name_that_waits_can_be_imported_and_says_so_when_used(module, name):
    found = getattr(importlib.import_module(module), name)
    assert found.__name__ == name and found.__module__ == module
    with pytest.raises(NotImplementedError, match=rf"{module}\.{name}\(\): .* are not there yet") as caught:
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
    with pytest.raises(ImportError, match="fem"):
        importlib.import_module("warp.fem")
    with pytest.raises(ImportError, match="not_there"):
        from warp.sparse import not_there  # noqa: F401
