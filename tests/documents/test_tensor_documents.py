"""The seeds' samples with PyTorch and Paddle, as they are printed."""

import re

import numpy as np
import paddle
import pytest
import torch
import warp as wp

pytestmark = pytest.mark.cpu_only("other frameworks are built for the CPU here; their GPUs come later")

HEADER = "import warp as wp\nimport numpy as np\nimport torch\nimport paddle\n"
SAXPY = """
@wp.kernel
def saxpy(x: wp.array(dtype=float), y: wp.array(dtype=float), a: float):
    i = wp.tid()
    y[i] = a * x[i] + y[i]
"""


def indented(text):
    """The page whose lines have lost their indentation (002)."""
    lines, inside = [], False
    for line in text.splitlines():
        if re.match(r"(import|[a-z_]+ = |with |for |#|@)", line) and not line.startswith("tid"):
            inside = False
        lines.append("    " + line if inside else line)
        inside = inside or line.endswith(":")
    return "\n".join(lines) + "\n"


@pytest.mark.seed("P-08", "P-09", "P-35")
@pytest.mark.parametrize(("seed", "first", "last"), [(0, 28, 36), (1, 98, 104), (1, 894, 900), (2, 73, 77)])
def test_p08_p09_and_p35_there_and_back(load_seed, run_sample, seed, first, last):
    names = run_sample(HEADER + load_seed(seed).text(first, last))
    assert names["t"].tolist() == names["w"].list() == [1.0, 2.0, 3.0]
    names["w"].fill_(4.0)
    assert names["t"].tolist() == [4.0, 4.0, 4.0] and names["t"].data_ptr() == names["w"].ptr


DESCENTS = [(0, 47, 80), (0, 88, 116), (1, 130, 162), (1, 172, 199), (1, 923, 959), (1, 967, 996), (2, 82, 103)]


@pytest.mark.seed("P-10", "P-11", "P-12", "P-13", "P-36", "P-37", "P-38")
@pytest.mark.parametrize(("seed", "first", "last"), DESCENTS)
def test_p10_to_p13_and_p36_to_p38_descents(load_seed, run_sample, capsys, seed, first, last):
    text = load_seed(seed).text(first, last)
    if seed == 2:
        text = indented(text)
        text = re.sub(r"^    (l\.zero_|wp\.launch|print)", r"    \1", text, flags=re.M)
    run_sample(text)
    lines = [line.split("\tloss: ") for line in capsys.readouterr().out.splitlines()]
    assert [int(number) for number, _ in lines] == list(range(500))
    losses = [float(loss) for _, loss in lines]
    assert 90 < losses[0] < 260 and losses[50] < 1 and losses[100] < 0.01 and losses[200] < 1e-6 and losses[499] < 1e-18


@pytest.mark.seed("P-14")
@pytest.mark.parametrize("steps", [200, pytest.param(10000, marks=pytest.mark.large)])
def test_p14_a_function_of_autograd(load_seed, run_sample, capsys, steps):
    names = run_sample(load_seed(1).text(212, 288).replace("range(10000)", f"range({steps})"))
    check_descent(names["xy"], steps, capsys.readouterr().out)


@pytest.mark.seed("P-15")
@pytest.mark.parametrize("steps", [200, pytest.param(10000, marks=pytest.mark.large)])
def test_p15_a_custom_operator_compiled(load_seed, run_sample, capsys, steps):
    torch.compiler.reset()
    names = run_sample(load_seed(1).text(304, 403).replace("range(10000)", f"range({steps})"))
    check_descent(names["xy"], steps, capsys.readouterr().out)


def check_descent(xy, steps, printed):
    start = np.random.default_rng(42).normal(size=(1500, 2))
    expected = torch.tensor(start, dtype=torch.float32, requires_grad=True)
    opt = torch.optim.Adam([expected], lr=5e-2)
    for _ in range(min(steps, 200)):
        opt.zero_grad()
        ((1 - expected[:, 0]) ** 2 + 100 * (expected[:, 1] - expected[:, 0] ** 2) ** 2).sum().backward()
        opt.step()
    if steps == 200:
        assert torch.allclose(xy, expected, atol=0.01)
    else:
        np.testing.assert_allclose([float(word) for word in printed.strip(" []\n").split()], [1.0, 1.0], atol=0.02)


@pytest.mark.seed("P-16", "P-17", "P-18", "P-19")
@pytest.mark.seed("P-39", "P-40", "P-41", "P-42")
@pytest.mark.parametrize(
    ("first", "last", "times"),
    [
        (415, 421, 10),
        (427, 434, 10),
        (444, 453, 1),
        (459, 463, 10),
        (1009, 1015, 10),
        (1021, 1028, 10),
        (1037, 1046, 1),
        (1055, 1059, 10),
    ],
)
def test_p16_to_p19_and_p39_to_p42_saxpy(load_seed, run_sample, first, last, times):
    names = run_sample(HEADER + SAXPY + load_seed(1).text(first, last), n=20, device="cpu")
    y = names.get("y_t", names.get("y")).numpy()
    np.testing.assert_array_equal(y, times * np.arange(len(y)) + 1.0)


@pytest.mark.seed("P-06")
def test_p06_tensors_of_a_device_drawn_by_chance(load_seed, run_sample):
    text = load_seed(1).text(43, 54).replace("random.choice([False, True])", "True")
    names = run_sample(HEADER + SAXPY + text, n=16)
    assert names["y"].tolist() == [i + 1.0 for i in range(16)]
    assert isinstance(names["y"], torch.Tensor) and paddle.Tensor is not torch.Tensor and wp.get_device("cpu")
