"""wp.inspect: the stages of the compiler beside the user's lines."""

import re
import sys

import pytest
import warp as wp


@wp.func
def blend(a: float, b: float):
    return a * 0.25 + b * 0.75  # the function's line


@wp.kernel
def smooth(x: wp.array(dtype=float), y: wp.array(dtype=float)):
    i = wp.tid()
    y[i] = blend(x[i], y[i])  # the kernel's line


@pytest.mark.parametrize(
    "stage, what",
    [
        ("sema", "call @blend"),
        ("ir", "fma|mul"),
        ("llvm", "define void"),
        ("optimized_llvm", "load <"),
        ("assembly", "ret"),
    ],
)
def test_each_stage_stands_below_the_lines_it_was_made_of(stage, what):
    text = wp.inspect(smooth, stage)
    assert re.search(what, text)
    numbers = [int(line) for line in re.findall(r"(\d+)\| .*# the (?:function|kernel)'s line", text)]
    source = open(__file__).read().splitlines()
    assert numbers and all("'s line" in source[number - 1] for number in numbers)
    assert any("# the kernel's line" in line for line in text.splitlines())
    assert text.count(__file__) < 8, "a path stands where the file changes, not at each line"
    assert "!dbg" not in text and ".loc" not in text


@pytest.mark.parametrize("stage", ["ir", "llvm", "optimized_llvm", "assembly"])
def test_derivatives_are_shown_as_the_kernel_is(stage):
    plain = smooth.listing(stage)
    adjoint, tangents = wp.inspect(smooth, stage, adjoint=True), wp.inspect(smooth, stage, tangents=True)
    assert "# the kernel's line" in adjoint and "# the kernel's line" in tangents
    both = smooth.listing(stage, adjoint=True, tangents=True)
    assert len({plain, smooth.listing(stage, adjoint=True), smooth.listing(stage, tangents=True), both}) == 4
    if stage == "ir":  # one parameter for each array and its tangent
        headers = [
            next(line for line in text.splitlines() if "kernel @" in line) for text in (plain, adjoint, tangents, both)
        ]
        assert [line.count("array<") for line in headers] == [2, 2, 4, 4]


def test_a_derivative_that_there_is_not_is_an_error_at_its_line():
    @wp.kernel
    def copied(x: wp.array(dtype=float), y: wp.array(dtype=float)):
        i = wp.tid()
        y[i] = x[i]
        x[i] = y[i] * wp.atomic_max(y, 0, x[i]) * wp.atomic_min(y, 0, x[i])  # no order, no derivative

    assert "atomic" in wp.inspect(copied)
    with pytest.raises(wp.CompileError, match="# no order, no derivative"):
        wp.inspect(copied, adjoint=True)


@pytest.mark.parametrize("stage", ["ir", "llvm", "assembly"])
def test_functions_of_other_files_keep_their_lines(tmp_path, monkeypatch, stage):
    text = "import warp as wp\n\n\n@wp.func\ndef cube(a: float):\n    return a * a * a\n"
    (tmp_path / "elsewhere.py").write_text(text)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "elsewhere", raising=False)
    import elsewhere

    @wp.kernel
    def raised(x: wp.array(dtype=float)):
        i = wp.tid()
        x[i] = elsewhere.cube(x[i])

    text = wp.inspect(raised, stage)
    assert "6|     return a * a * a" in text and str(tmp_path / "elsewhere.py") in text


def test_what_cannot_be_inspected_is_named():
    with pytest.raises(wp.UsageError, match="no stage 'machine'.*assembly"):
        wp.inspect(smooth, "machine")
    with pytest.raises(wp.UsageError, match="'ptx' is code for CUDA devices"):
        wp.inspect(smooth, "ptx")
    with pytest.raises(wp.UsageError, match="expected a kernel.*got function"):
        wp.inspect(test_functions_of_other_files_keep_their_lines)
    with pytest.raises(wp.UsageError, match="got UserFunction"):
        wp.inspect(blend)
