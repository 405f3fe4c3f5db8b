"""API-1.19, section 12: modules that programs import."""

import importlib

from probing import differs


def _importable(name):
    return importlib.import_module(name).__name__


def optimizers():
    return _importable("warp.optim")


def linear_solvers():
    return _importable("warp.optim.linear")


def sparse():
    return _importable("warp.sparse")


def render():
    return _importable("warp.render")


@differs("'warp.context'")
def context():
    return _importable("warp.context")


def autograd():
    return _importable("warp.autograd")


def geometry():
    return _importable("warp.geometry")


def utils():
    return _importable("warp.utils")


def finite_elements():
    return _importable("warp.fem")


def class_of_sparse_matrices():
    import warp.sparse

    return isinstance(warp.sparse.BsrMatrix, type), isinstance(3, warp.sparse.BsrMatrix)


def renderer_classes():
    import warp.render

    return warp.render.UsdRenderer.__name__, warp.render.OpenGLRenderer.__name__


def name_that_no_package_has():
    from warp.sparse import not_there  # noqa: F401
