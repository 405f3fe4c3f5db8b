"""`--other-numbers`: launches with numbers that no test chose, on the emulated device and on the CPU."""

import pytest

PROGRAM = """
import numpy as np
import warp as wp

@wp.kernel
def {name}(x: wp.array[float], n: wp.array[int], y: wp.array[float]):
    i = wp.tid()
{body}

def test_numbers():
    x, n = wp.array([2.0, 2.0], dtype=float{gradient}), wp.array([0, 1], dtype=int)
    y = wp.zeros(2, dtype=float{gradient})
    for _ in range(2):
        wp.launch({name}, 2, inputs=[x, n], outputs=[y])
        assert y.list() == [4.0, 4.0]
"""


def program(name, *body, gradient=False):
    lines = "\n".join(f"    {line}" for line in body)
    return PROGRAM.format(name=name, body=lines, gradient=", requires_grad=True" if gradient else "")


@pytest.fixture
def outcome(run_tests, monkeypatch):
    """A function: runs tests on the emulated device, with options and settings of the environment."""

    def run(text, *options, **settings):
        with monkeypatch.context() as patch:
            for name, value in {"WARP_CUDA_DRIVER": "emulated", **settings}.items():
                patch.setenv(name, str(value))
            return run_tests(text, "--device", "cuda:0", *options)

    return run


@pytest.fixture
def changed(pytester, outcome):
    """A function: the folder of a kernel's texts with one instruction changed; tests pass with it."""

    def change(text, kernel, before, after):
        kept, folder = pytester.path / "kept", pytester.path / "changed"
        kept.mkdir()
        folder.mkdir()
        outcome(text, "--other-numbers", WEFT_KEEP_PTX=kept).assert_outcomes(passed=1)
        found = [file for file in kept.iterdir() if file.read_text().startswith(f"// {kernel}\n")]
        texts = {file.name: file.read_text() for file in found if before in file.read_text()}
        assert texts, f"no '{before}' in {[file.read_text() for file in found]}"
        for name, ptx in texts.items():
            (folder / name).write_text(ptx.replace(before, after))
        outcome(text, WEFT_TAKE_PTX=folder).assert_outcomes(passed=1)
        return folder

    return change


@pytest.mark.parametrize(
    ("kernel", "gradient", "body", "before", "after"),
    [
        ("twice", False, ["y[i] = x[i] * x[i]"], "mul.rn.f32", "add.rn.f32"),
        ("signs", False, ["y[i] = 4.0", "if x[i] < -1.0:", "    y[i] = 3.0"], "1077936128", "1084227584"),
        ("infinite", False, ["y[i] = 4.0", "if wp.isinf(x[i]):", "    y[i] = 3.0"], "1077936128", "1084227584"),
        ("literal", False, ["y[i] = 4.0", "if x[i] == 2.75:", "    y[i] = 3.0"], "1077936128", "1084227584"),
        (
            "lone",
            False,
            ["y[i] = 4.0 + 0.0 * x[i]", "if x.shape[0] == 1:", "    y[i] = 3.0"],
            "0f40400000",
            "0f40A00000",
        ),
        ("counts", False, ["y[i] = 4.0 + float(n[i] // 2)"], "shr.s32", "shr.u32"),
        ("scaled", True, ["y[i] = 2.0 * x[i]"], "0f40000000", "0f40400000"),
    ],
)
def test_what_is_wrong_for_other_numbers_is_seen(outcome, changed, kernel, gradient, body, before, after):
    text = program(kernel, *body, gradient=gradient)
    folder = changed(text, f"adjoint of kernel {kernel}" if gradient else f"kernel {kernel}", before, after)
    answer = outcome(text, "--other-numbers", WEFT_TAKE_PTX=folder)
    answer.assert_outcomes(failed=1)
    answer.stdout.fnmatch_lines([f"*{kernel}: with other numbers (*) the devices differ at *"])


def test_a_second_block_is_seen(outcome, changed):
    text = program("blocks", "y[i] = x[i] + 2.0")
    folder = changed(text, "kernel blocks", "mov.u32 \t%r3, %ctaid.x", "mov.u32 \t%r3, 0")
    outcome(text, "--other-numbers", WEFT_TAKE_PTX=folder).assert_outcomes(failed=1)


def test_threads_that_only_race_in_a_longer_launch_are_seen(outcome, changed):
    text = program("apart", "y[i] = 0.0 * y[i] + x[i] + 2.0").replace("n: wp.array[int], ", "").replace("[x, n]", "[x]")
    folder = changed(text, "kernel apart", "mov.u32 \t%r1, %ntid.x", "mov.u32 \t%r1, 2")
    answer = outcome(text, "--other-numbers", WEFT_TAKE_PTX=folder)
    answer.assert_outcomes(failed=1)
    answer.stdout.fnmatch_lines(["*apart: with other numbers (*longer=261*) the CPU goes on, and *race*"])


@pytest.mark.parametrize(
    "body",
    [
        ["y[i] = x[n[i]] + 2.0"],
        ["k = int(0)", "while k != 2:", "    k += n[0] + 1", "y[i] = x[i] * float(k)"],
        ["y[n[i]] = 4.0 + float(i) * 0.0 * x[i]", "y[n[i]] = float(4)"],
        ["j = wp.atomic_add(n, 0, 0)", "y[i] = x[i] * 2.0 + float(j)"],
        ["y[i] = 4.0", "if x[i] != 2.0:", "    raise ValueError('other')"],
    ],
    ids=["indices", "a loop without end", "races", "atomics", "raise"],
)
def test_numbers_that_mean_nothing_are_passed_over(outcome, body):
    answer = outcome(program("kernel", *body), "--other-numbers")
    answer.assert_outcomes(passed=1)
    answer.stdout.fnmatch_lines(["launches with other numbers: * compared, * whose numbers meant nothing"])
