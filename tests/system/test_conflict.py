"""The other distribution that is imported as `warp` is noticed (python/warp/_conflict.py)."""

import importlib.util
from pathlib import Path

import pytest

pytestmark = pytest.mark.cpu_only("is about a process without a GPU: its default device, what it logs and answers")

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def conflict(monkeypatch, tmp_path):
    """The module as if it were installed in tmp_path/site-packages/warp."""
    folder = tmp_path / "site-packages/warp"
    folder.mkdir(parents=True)
    file = folder / "_conflict.py"
    file.write_text((ROOT / "python/warp/_conflict.py").read_text())
    spec = importlib.util.spec_from_file_location("conflict_under_test", file)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    monkeypatch.setattr(module.sys, "path", ["", str(tmp_path / "no-such/site-packages")])
    return module


def test_an_environment_without_the_other_distribution_is_fine(conflict):
    conflict.check()


def test_the_other_distribution_beside_the_package_is_refused(conflict, tmp_path):
    (tmp_path / "site-packages/warp_lang-1.9.0.dist-info").mkdir()
    with pytest.raises(ImportError, match=r"warp-lang 1\.9\.0 is installed in the same environment.*pip uninstall"):
        conflict.check()


def test_the_other_distribution_in_the_environment_of_a_development_build_is_refused(conflict, monkeypatch, tmp_path):
    other = tmp_path / "venv/site-packages"
    (other / "warp_lang-1.9.0.dist-info").mkdir(parents=True)
    monkeypatch.setattr(conflict.sys, "path", [str(other)])
    with pytest.raises(ImportError, match="separate virtual environments"):
        conflict.check()


def test_our_own_distribution_is_no_conflict(conflict, tmp_path):
    (tmp_path / "site-packages/weft_lang-0.1.0.dist-info").mkdir()
    conflict.check()
