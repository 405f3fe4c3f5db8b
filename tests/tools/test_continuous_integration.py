"""Continuous integration runs the commands of a newcomer, in folders of any name."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def clone(tmp_path):
    """A folder with a space in its name that has .ci/run, tools/steps.sh, and a `make` that notes its calls."""
    folder = tmp_path / "a folder/clone"
    for name in (".ci/run", "tools/steps.sh"):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, folder / name)
    make = tmp_path / "bin/make"
    make.parent.mkdir()
    make.write_text('#!/bin/sh\necho "make $* [${WEFT_DOCUMENTS-unset}]"\n[ "$1" != "$FAILS" ]\n')
    make.chmod(0o755)
    return folder


def run(clone, **settings):
    path = f"{clone.parents[1] / 'bin'}:{os.environ['PATH']}"
    environment = {**os.environ, "PATH": path, "FAILS": "", **settings}
    done = subprocess.run([clone / ".ci/run"], env=environment, capture_output=True, text=True)
    return done.returncode, [line for line in done.stdout.splitlines() if line.startswith("make")]


def test_make_test_finds_no_documents_beside_the_clone(clone):
    (clone.parent / "shared/seeds").mkdir(parents=True)
    assert run(clone) == (0, ["make test [unset]", "make test-documents WEFT_DOCUMENTS=../shared [unset]"])
    named = str(clone.parent / "shared")
    assert run(clone, WEFT_DOCUMENTS=named)[1][0] == "make test [unset]"


def test_without_documents_their_tests_are_left_out(clone):
    assert run(clone) == (0, ["make test [unset]"])


def test_the_documents_are_read_although_another_test_failed(clone):
    (clone.parent / "shared/seeds").mkdir(parents=True)
    code, calls = run(clone, FAILS="test")
    assert code == 1 and len(calls) == 2
    code, calls = run(clone, FAILS="test-documents")
    assert code == 1 and len(calls) == 2


def test_documents_are_read_only_from_the_folder_that_the_environment_names():
    own = Path(__file__).resolve()
    files = [path for path in ROOT.glob("tests/**/*.py") if path != own]
    assert len(files) > 200
    assert not [path for path in files if "shared/" in path.read_text()]
