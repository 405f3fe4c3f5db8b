"""The seed documents, for the tests that run their samples as they are printed.

The documents are no part of this repository. `make test-documents` names their folder in WEFT_DOCUMENTS, and these
tests read the samples out of its folder `seeds`. Elsewhere they are skipped, and our own counterparts of the samples
cover the same ground.
"""

import re
import textwrap

import pytest
import warp as wp


class Seed:
    """One document, whose lines are counted from 1 as in its citations (`004:209-222`)."""

    def __init__(self, path):
        self.path = path
        self.lines = path.read_text().splitlines()

    def text(self, first, last=None):
        """The lines first..last, both included, without their common indentation."""
        return textwrap.dedent("\n".join(self.lines[first - 1 : last or first]) + "\n")

    def kernel(self, first, last, header):
        """A sample whose lines are the body of a function: under `header`, indented as a body."""
        return header.rstrip() + "\n" + textwrap.indent(self.text(first, last), "    ")


def pytest_collection_modifyitems(items):
    for item in items:
        if "load_seed" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.documents)


@pytest.fixture(scope="session")
def load_seed(documents):
    """A function: the number of a seed (0 to 4) -> the Seed."""

    def load(number):
        (found,) = (documents / "seeds").glob(f"{number:03d}_*.txt")
        return Seed(found)

    return load


@pytest.fixture
def run_sample(tmp_path):
    """A function that runs a sample's text with the names given, and returns the names that it defined.

    The text goes into a file first: kernels are compiled from their source, which Python finds by file and line.
    """

    def run(text, **names):
        path = tmp_path / f"sample_{len(list(tmp_path.iterdir()))}.py"
        path.write_text(text)
        namespace = {"__name__": re.sub(r"\W", "_", path.stem), "__file__": str(path), **names}
        exec(compile(text, str(path), "exec"), namespace)
        return namespace

    return run


@pytest.fixture
def run_cuda_sample(run_sample):
    """The same for samples that name "cuda": as they are printed if there is such a device. Elsewhere that is an
    error, and they run on the CPU."""

    def run(text, **names):
        if wp.is_cuda_available():
            return run_sample(text, **names)
        with pytest.raises(RuntimeError, match="cuda"):
            run_sample(text, **names)
        return run_sample(text.replace('"cuda"', '"cpu"'), **names)

    return run


@pytest.fixture
def on_the_cpu():
    """The CPU is the default device: GPUs lack the feature under test."""
    with wp.ScopedDevice("cpu"):
        yield
