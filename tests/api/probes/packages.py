"""API-1.19, section 12: modules that programs import."""

import importlib

from probing import differs, still_open


def _importable(name):
    return importlib.import_module(name).__name__


def optimizers():
    return _importable("warp.optim")


@still_open("section 12")
def linear_solvers():
    return _importable("warp.optim.linear")


@still_open("section 12")
def sparse():
    return _importable("warp.sparse")


@still_open("section 12")
def render():
    return _importable("warp.render")


@differs("'warp.context'")
def context():
    return _importable("warp.context")


def autograd():
    return _importable("warp.autograd")
