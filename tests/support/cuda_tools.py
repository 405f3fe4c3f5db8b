"""The programs of NVIDIA that tests use: those that `make setup` has installed with Python's packages come first."""

import shutil
import sysconfig
from pathlib import Path

import pytest

PACKAGE = Path(sysconfig.get_paths()["purelib"], "nvidia", "cuda_nvcc", "bin")


def of_a_toolkit(program):
    """The path of a program on $PATH or in the usual place of a CUDA toolkit, or None."""
    return shutil.which(program) or shutil.which(program, path="/usr/local/cuda/bin")


PTXAS = shutil.which("ptxas", path=str(PACKAGE)) or of_a_toolkit("ptxas")
needs_ptxas = pytest.mark.skipif(PTXAS is None, reason="needs ptxas, of the CUDA toolkit")
