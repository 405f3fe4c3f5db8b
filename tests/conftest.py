"""The common part of all Python tests: options, meanings of marks, devices, a kernel cache of the run's own."""

import gc
import importlib.machinery
import importlib.util
import json
import os
import subprocess
import sys
import tempfile
import textwrap
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent / "support"))

import numpy_launches
import protected_device


class MissingPackages:
    """On a machine that has pytest and an installed Weft only (`make gpu-check`), files that import one of these are
    skipped, with the reason. tools/checks/check_skips.py allows none of that in `make test`."""

    NAMES = ("hypothesis", "mpmath", "scipy")

    @staticmethod
    def find_spec(name, path=None, target=None):
        if name in MissingPackages.NAMES:
            pytest.skip(f"needs the Python package {name}", allow_module_level=True)


sys.meta_path.append(MissingPackages)  # last: asked if no other finder has found a package


def pytest_addoption(parser):
    parser.addoption("--large", action="store_true", help="run the tests that need gigabytes or minutes")
    parser.addoption("--report", help="write what each test showed to this file, for tools/checks/check_status.py")
    parser.addoption("--other-numbers", action="store_true", help="compare each launch on the device with the CPU's")
    parser.addoption("--device", help="the default device of the run: cpu:protected, cuda:0")


def pytest_configure(config):
    # Random programs are the same in every run, so that only a change can turn a test red; `--large` draws new ones.
    # A busy machine is no reason to fail: nothing is timed.
    if importlib.machinery.PathFinder.find_spec("hypothesis"):
        import hypothesis

        hypothesis.settings.register_profile(
            "weft",
            derandomize=not config.getoption("--large"),
            deadline=None,
            suppress_health_check=[hypothesis.HealthCheck.too_slow],
        )
        hypothesis.settings.load_profile("weft")
    if config.getoption("--report"):
        config.pluginmanager.register(Report(config.getoption("--report")))
    # Set before anything imports warp: a run starts with an empty cache and leaves none behind.
    if "WARP_CACHE_PATH" not in os.environ:
        folder = tempfile.TemporaryDirectory(prefix="weft-tests-")
        config.add_cleanup(folder.cleanup)
        os.environ["WARP_CACHE_PATH"] = folder.name


# Tests that run on some machines only. Those that need a GPU run on the emulated one everywhere (tools/run_tests.py).
NOT_EVERYWHERE = ("large", "needs", "documents", "interop_old")


class Report:
    """The result of each test: its outcome, the reason of a skip, whether it runs on every machine, and the items of
    the contract that it carries."""

    def __init__(self, file):
        self.file, self.tests = Path(file), {}

    def pytest_collection_finish(self, session):
        for item in session.items:
            seeds = [{"ids": mark.args, "waits": mark.kwargs.get("waits")} for mark in item.iter_markers("seed")]
            everywhere = not any(item.get_closest_marker(name) for name in NOT_EVERYWHERE)
            self.tests[item.nodeid] = {"outcome": "not run", "reason": None, "everywhere": everywhere, "seeds": seeds}

    def pytest_collectreport(self, report):
        if report.skipped and (reason := report.longrepr[2].removeprefix("Skipped: ")).startswith("needs the Python"):
            self.tests[report.nodeid] = {"outcome": "skipped", "reason": reason, "everywhere": True, "seeds": []}

    def pytest_runtest_logreport(self, report):
        test = self.tests[report.nodeid]
        if hasattr(report, "wasxfail"):
            test["outcome"] = "xfailed"
        elif report.skipped:
            test["outcome"], test["reason"] = "skipped", report.longrepr[2].removeprefix("Skipped: ")
        elif report.failed or report.when == "call":
            test["outcome"] = report.outcome

    def pytest_sessionfinish(self):
        self.file.write_text(json.dumps(self.tests, indent=1))


def pytest_collection_modifyitems(items):
    for item in items:
        for mark in item.iter_markers("seed"):
            if not set(mark.kwargs) <= {"waits"}:
                raise pytest.UsageError(f"{item.nodeid}: a seed mark takes ids and waits=, not {sorted(mark.kwargs)}")


def pytest_terminal_summary(terminalreporter, config):
    if config.getoption("--other-numbers") and (compared := sys.modules.get("other_numbers")):
        terminalreporter.write_line(compared.summary())


def pytest_runtest_setup(item):
    if item.get_closest_marker("large") and not item.config.getoption("--large"):
        pytest.skip("a large test: run with --large")
    for marker in item.iter_markers("needs"):
        if importlib.util.find_spec(marker.args[0]) is None:
            pytest.skip(f"needs the Python package {marker.args[0]}")
    if item.get_closest_marker("interop_old") and not (item.config.rootpath / ".venv-interop-old").exists():
        pytest.skip("needs an older JAX: make test-interop-old")
    if item.get_closest_marker("documents") and "WEFT_DOCUMENTS" not in os.environ:
        pytest.skip("is about documents that are no part of this repository: make test-documents")
    if item.get_closest_marker("gpu") and not cuda_devices():
        pytest.skip("needs a CUDA device")


@pytest.fixture(scope="session")
def documents():
    """The folder of the documents that WEFT_DOCUMENTS names, for tests that are marked with `documents`."""
    folder = Path(os.environ["WEFT_DOCUMENTS"])
    assert folder.is_dir(), f"WEFT_DOCUMENTS names {folder}, which is no folder"
    return folder


@pytest.fixture(scope="module", autouse=True)
def short_collections():
    """Tests that count what is alive collect garbage hundreds of times. The collector no longer looks at what was there
    before the file, thousands of tests and the modules of other files: 0.2 s and more each time."""
    gc.collect()
    gc.freeze()


@pytest.fixture(scope="session", autouse=True)
def default_device(request):
    """The device of ``--device``, for fixtures that are made once for many tests."""
    name = request.config.getoption("--device")
    if name == protected_device.NAME:
        assert protected_device.LIBRARY.exists(), f"{name} needs {protected_device.LIBRARY.name}: build the tests first"
        protected_device.add()
    if name is not None:
        import warp as wp

        wp.set_device(name)


@pytest.fixture(autouse=True)
def device_of_the_run(request, monkeypatch):
    """Runs the test on the device of ``--device``, and fails it if protected memory was touched from outside."""
    name = request.config.getoption("--device")
    if name is not None:
        import warp as wp

        marker = request.node.get_closest_marker("host_memory")
        if marker and name.startswith(marker.kwargs.get("on", "")) and not wp._weft.is_host_memory(name):
            pytest.skip(f"is about memory of the host: {marker.args[0]}")
        wp.set_device(name)
        if name.startswith("cuda"):
            if request.config.getoption("--other-numbers") and not request.node.get_closest_marker("own_launches"):
                import other_numbers

                other_numbers.Comparison().patch(monkeypatch)
            monkeypatch.setattr(wp, "launch", numpy_launches.launches_with_copies(wp.launch))
    yield
    protected_device.check()


def cuda_devices():
    """The names of the CUDA devices that Weft finds."""
    import warp as wp

    return [f"cuda:{index}" for index in range(wp.get_cuda_device_count())]


@pytest.fixture(params=["cpu", protected_device.NAME, pytest.param("cuda:0", marks=pytest.mark.gpu)])
def device(request):
    """The name of a device; a test that takes it runs once for each kind of device."""
    if request.param == protected_device.NAME:
        protected_device.add()
    return request.param


@pytest.fixture
def run(tmp_path):
    """The output of a program that runs in a process of its own: with other settings of the environment, without a
    default device, or because an error of the device ends its use of CUDA."""

    def run(code, **environment):
        program = tmp_path / "program.py"
        program.write_text("import gc, numpy as np\nimport warp as wp\n" + textwrap.dedent(code))
        done = subprocess.run(
            [sys.executable, program], capture_output=True, text=True, env={**os.environ, **environment}, timeout=120
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    return run


@pytest.fixture
def two_gpus():
    """There are two CUDA devices, or the test is skipped."""
    if len(cuda_devices()) < 2:
        pytest.skip("needs two CUDA devices")


@pytest.fixture
def second(two_gpus):
    """The name of another GPU."""
    return "cuda:1"
