"""tools/release/release.sh: every Python's wheel, and what is in dist/ at the end."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def clone(tmp_path):
    """A folder with release.sh, in which a wheel is made at once, and Pythons that answer with their version."""
    folder = tmp_path / "a folder/clone"
    (folder / "tools/release").mkdir(parents=True)
    (folder / "dist").mkdir()
    shutil.copy(ROOT / "tools/release/release.sh", folder / "tools/release")
    scripts = {
        "tools/release/wheel.sh": (
            'v=$("$PYTHON" -c version); [ "$v" != "$FAILS" ] && echo wheel > "dist/weft_lang-$v.whl"'
        ),
        ".venv/bin/python": "echo metadata > dist/weft_warp_lang.whl",
    }
    for version in ("3.11", "3.12"):
        scripts[f"bin/python{version}"] = f"echo {version}"
    for name, text in scripts.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"#!/bin/sh\n{text}\n")
        path.chmod(0o755)
    return folder


def release(clone, **settings):
    environment = {**os.environ, "PATH": f"{clone / 'bin'}:/usr/bin:/bin", "PYENV_ROOT": "/nowhere", "FAILS": "-"}
    return subprocess.run(
        [clone / "tools/release/release.sh"], env={**environment, **settings}, capture_output=True, text=True
    )


def test_every_python_that_is_here_gets_a_wheel_and_the_others_are_named(clone):
    done = release(clone)
    assert done.returncode == 0, done.stderr
    listed = [line.split()[1] for line in done.stdout.splitlines() if line.endswith(" MiB")]
    assert listed == ["weft_lang-3.11.whl", "weft_lang-3.12.whl", "weft_warp_lang.whl"]
    (missing,) = [line for line in done.stdout.splitlines() if line.startswith("not on this machine")]
    assert missing.split(";")[0].split()[5:] == ["3.10", "3.13", "3.14", "3.14t"]


def test_a_free_threaded_python_is_one_of_its_own(clone):
    python = clone / "bin/python3.14t"
    python.write_text("#!/bin/sh\necho 3.14t\n")
    python.chmod(0o755)
    done = release(clone)
    assert done.returncode == 0 and (clone / "dist/weft_lang-3.14t.whl").exists()
    assert not (clone / "dist/weft_lang-3.14.whl").exists() and "Python 3.10 3.13 3.14;" in done.stdout


def test_a_wheel_that_fails_is_named_after_the_others_were_made(clone):
    done = release(clone, FAILS="3.11")
    assert done.returncode == 1 and "no wheel for" in done.stderr and "python3.11" in done.stderr
    assert (clone / "dist/weft_lang-3.12.whl").exists()


def test_other_pythons_can_be_named(clone):
    (clone / "dist").rmdir()
    (clone / "dist").mkdir()
    only = "bin/python3.12"
    done = release(clone, PYTHONS=only)
    assert done.returncode == 0 and not (clone / "dist/weft_lang-3.11.whl").exists()
    assert (clone / "dist/weft_lang-3.12.whl").exists() and "not on this machine" not in done.stdout
