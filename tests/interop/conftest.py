"""Shared by the tests of interop: the frameworks, each as the functions that tests need of it."""

from __future__ import annotations

import importlib.util
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Callable

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).resolve().parent))

FRAMEWORKS = ("numpy", "torch", "paddle", "jax")


@dataclass(frozen=True)
class Framework:
    name: str
    array: Callable[[np.ndarray], Any]
    """An array of the framework with a copy of these numbers."""
    numbers: Callable[[Any], np.ndarray]
    """The numbers that it holds now."""
    is_writable: bool = True


def framework(name: str) -> Framework:
    if name == "numpy":
        return Framework(name, np.array, np.array)
    if name == "torch":
        import torch

        return Framework(name, lambda values: torch.from_numpy(values.copy()), lambda x: x.detach().numpy().copy())
    if name == "paddle":
        import paddle

        return Framework(name, lambda values: paddle.to_tensor(values, place="cpu"), lambda x: x.numpy().copy())
    import jax

    return Framework(name, jax.numpy.array, lambda x: np.array(x), is_writable=False)


@pytest.fixture(params=FRAMEWORKS)
def library(request) -> Framework:
    """Each framework in turn."""
    return framework(request.param)


@pytest.fixture(params=[name for name in FRAMEWORKS if name != "jax"])
def writable_library(request) -> Framework:
    """Each framework whose arrays may be written."""
    return framework(request.param)


@pytest.fixture
def inductor() -> None:
    """For tests that need the default compiler of ``torch.compile``. It passes its folders to the linker unquoted."""
    torch = importlib.util.find_spec("torch")
    if torch is not None and " " in str(torch.origin):
        pytest.skip("the compiler of PyTorch links nothing in a folder with a space in its name")
