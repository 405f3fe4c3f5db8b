"""Lets the tests import brute_force.py, which stands beside them."""

import sys
from pathlib import Path

import pytest
import warp as wp

sys.path.insert(0, str(Path(__file__).resolve().parent))


@pytest.fixture
def usual_options():
    """Gives options of the log and of the order of threads their values again."""
    yield
    wp.config.log_level = wp.LOG_INFO
    wp.config.serial = False
    wp.config.deterministic = wp.DeterministicMode.NOT_GUARANTEED
    wp.config.verify_fp = False


@pytest.fixture
def ordered(capfd, usual_options):
    """How many kernels have been compiled since the last call for threads in the order of a grid."""
    wp.config.log_level = wp.LOG_DEBUG
    return lambda: capfd.readouterr().out.count("threads in the order of a hash grid")
