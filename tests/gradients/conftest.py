"""Lets the tests here import what stands beside them, and the reader of the builtin table in tests/builtins."""

import concurrent.futures
import multiprocessing
import sys
from pathlib import Path

import pytest
from warp import _weft

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent / "builtins")]


@pytest.fixture(autouse=True)
def check_known_zeros():
    """Every test here also checks that gradients which are not cleared again are zero."""
    _weft.check_known_zeros(True)
    yield
    _weft.check_known_zeros(False)


@pytest.fixture(scope="session")
def jax_process():
    """Calls a function in a process of its own: JAX has threads, and other tests fork."""
    with concurrent.futures.ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as pool:
        yield lambda function, *arguments: pool.submit(function, *arguments).result()
