"""metadata_wheel.py: packages that look for the distribution warp-lang find Weft, if that was asked for."""

import importlib.metadata
import importlib.util
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
import warp as wp

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def installed(tmp_path_factory):
    """The folder in which pip has installed the wheel."""
    if importlib.util.find_spec("pip") is None:
        pytest.skip("needs the Python package pip")
    folder = tmp_path_factory.mktemp("installed")
    made = subprocess.run(
        [sys.executable, ROOT / "tools/release/metadata_wheel.py", folder / "dist"],
        capture_output=True,
        text=True,
        check=True,
    ).stdout.strip()
    site = folder / "site-packages"
    install = [sys.executable, "-m", "pip", "install", "-q", "--no-index", "--no-deps", "--target", site, made]
    subprocess.run(install, check=True)
    return site


def versions(site):
    return {found.metadata["Name"]: found.version for found in importlib.metadata.distributions(path=[str(site)])}


def test_the_name_is_answered_with_the_release_of_the_api(installed):
    assert versions(installed) == {"warp-lang": wp.__version__, "weft-warp-lang": wp.__version__}


def test_it_brings_no_module_and_is_no_conflict(installed, tmp_path, monkeypatch):
    assert sorted(path.name for path in installed.iterdir()) == [
        f"{name}-{wp.__version__}.dist-info" for name in ("warp_lang", "weft_warp_lang")
    ]
    from warp import _conflict

    assert _conflict.find_conflict([str(installed)]) is None
    next(installed.glob("warp_lang-*/WEFT")).rename(tmp_path / "WEFT")
    try:
        assert _conflict.find_conflict([str(installed)]).endswith(f"warp_lang-{wp.__version__}.dist-info")
    finally:
        (tmp_path / "WEFT").rename(installed / f"warp_lang-{wp.__version__}.dist-info" / "WEFT")


def test_nothing_but_the_extra_asks_for_it():
    lines = [line for line in (ROOT / "pyproject.toml").read_text().splitlines() if "weft-warp-lang" in line]
    assert lines == [f'packages = ["weft-warp-lang=={wp.__version__}"]']


def test_the_wheel_is_the_same_each_time(tool, tmp_path):
    first, second = (tool("metadata_wheel").write(tmp_path / name) for name in ("a", "b"))
    assert first.read_bytes() == second.read_bytes() and zipfile.ZipFile(first).testzip() is None
