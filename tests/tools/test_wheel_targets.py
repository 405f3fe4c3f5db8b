"""The parts of a wheel are built for it, and small enough."""

import re
import shutil
import subprocess
import zlib
from pathlib import Path

import pytest
from warp import _weft

ROOT = Path(__file__).resolve().parents[2]


def test_all_that_goes_into_the_wheel_is_built_for_it():
    tomllib = pytest.importorskip("tomllib", reason="Python 3.10 reads no TOML")
    cmake = (ROOT / "cmake/extension.cmake").read_text()
    installed = set(re.search(r"install\(TARGETS ([\w ]+) LIBRARY .* COMPONENT python\)", cmake).group(1).split())
    needed = re.search(r"add_dependencies\(python_package ([\w ]+)\)", cmake).group(1).split()
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["scikit-build"]
    assert settings["install"]["components"] == ["python"]
    assert "python_package" in settings["build"]["targets"] and "_weft" in installed
    assert installed <= {*settings["build"]["targets"], *needed}


def test_the_emulated_device_takes_at_most_a_megabyte(tmp_path):
    """As tools/release/wheel.sh puts it into the wheel: without symbols, and compressed."""
    library = tmp_path / "weft-emulated-cuda.so"
    shutil.copyfile(Path(_weft.__file__).with_name(library.name), library)
    subprocess.run(["strip", "--strip-unneeded", library], check=True)
    assert len(zlib.compress(library.read_bytes(), 9)) <= 1 << 20
