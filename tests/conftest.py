"""What all Python tests share: the options, the marks' meaning, the devices, a kernel cache of the test run's own."""

import importlib.util
import os
import tempfile

import hypothesis
import pytest


def pytest_addoption(parser):
    parser.addoption("--large", action="store_true", help="run the tests that need gigabytes or minutes")


def pytest_configure(config):
    # Random programs are the same in every run, so that only a change can turn a test red; `--large` draws new ones.
    hypothesis.settings.register_profile("weft", derandomize=not config.getoption("--large"))
    hypothesis.settings.load_profile("weft")
    # Set before anything imports warp: a run starts with an empty cache and leaves none behind.
    if "WARP_CACHE_PATH" not in os.environ:
        folder = tempfile.TemporaryDirectory(prefix="weft-tests-")
        config.add_cleanup(folder.cleanup)
        os.environ["WARP_CACHE_PATH"] = folder.name


def pytest_runtest_setup(item):
    if item.get_closest_marker("large") and not item.config.getoption("--large"):
        pytest.skip("a large test: run with --large")
    for marker in item.iter_markers("needs"):
        if importlib.util.find_spec(marker.args[0]) is None:
            pytest.skip(f"needs the Python package {marker.args[0]}")
    if item.get_closest_marker("gpu") and not cuda_devices():
        pytest.skip("needs a CUDA device")


def cuda_devices():
    """The names of the CUDA devices that Weft finds."""
    import warp as wp

    return [f"cuda:{index}" for index in range(wp.get_cuda_device_count())]


@pytest.fixture(params=["cpu", pytest.param("cuda:0", marks=pytest.mark.gpu)])
def device(request):
    """The name of a device; a test that takes it runs once for each kind of device."""
    return request.param
