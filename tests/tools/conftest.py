"""The scripts of tools/ as modules, for their tests. They may import each other, as they do when they run."""

import importlib.util
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="session")
def tool():
    """A function: name of a script in tools/ -> its module."""

    scripts = {path.stem: path for path in sorted((ROOT / "tools").rglob("*.py"))}
    folders = sorted({str(path.parent) for path in scripts.values()})
    sys.path += [folder for folder in folders if folder not in sys.path]

    def load(name):
        if name in sys.modules:  # another of them has imported it
            return sys.modules[name]
        spec = importlib.util.spec_from_file_location(f"weft_tools_{name}", scripts[name])
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        return module

    return load


@pytest.fixture(scope="module")
def check(tool):
    """The module tools/gpu/gpu_check.py."""
    return tool("gpu_check")


@pytest.fixture(scope="module")
def emulated(check):
    """The emulated driver, as gpu_check.py calls it."""
    return check.Driver(check.find_driver("emulated")[0])


@pytest.fixture
def run_tests(pytester):
    """A function: runs the tests in a text as those of Weft are, with these options of pytest."""
    (pytester.path / "pyproject.toml").write_text((ROOT / "pyproject.toml").read_text())
    pytester.makeconftest((ROOT / "tests/conftest.py").read_text())
    (pytester.path / "support").symlink_to(ROOT / "tests/support")

    def run(text, *options):
        pytester.makepyfile(text)
        return pytester.runpytest_subprocess(pytester.path, "-p", "no:cacheprovider", *options)

    return run
