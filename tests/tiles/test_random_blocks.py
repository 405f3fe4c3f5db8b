"""Random kernels in blocks of many lanes on the CPU, against NumPy: each statement runs for the lanes that reach it.

Lanes of different arms are not ordered, so only one arm of a branch has the tile that all share."""

import importlib.util
import random

import numpy as np
import pytest
import warp as wp

NAMES = ("a", "b", "c")
HEAD = """import warp as wp


@wp.kernel
def program(out: wp.array2d[int], log: wp.array[int]):
    lane = wp.tid()
    t = wp.tile_zeros(shape=4, dtype=int)
    a = int(lane)
    b = int(3)
    c = int(7 - lane * lane)
"""


class Program:
    """The text of a kernel, and the same as functions of (state, mask) that return the lanes that have not left."""

    def __init__(self, seed, lanes):
        self.random = random.Random(seed)
        self.lane = np.arange(lanes)
        self.loops = 0
        body, self.run = self.block(3, 1, True, NAMES)
        end = "".join(f"    out[{i}, lane] = {name}\n" for i, name in enumerate(NAMES))
        self.text = HEAD + body + end

    def value(self, names):
        """An expression: its text, and a function of the state."""
        kind = self.random.randrange(7)
        if kind < 3:
            name = self.random.choice(names)
            return name, lambda s: s[name]
        if kind == 3:
            number = self.random.randrange(-5, 9)
            return str(number), lambda s: np.full_like(self.lane, number)
        if kind == 4:
            return "lane", lambda s: self.lane
        (x, f), (y, g) = self.value(names), self.value(names)
        if kind == 5:
            return f"({x} + {y})", lambda s: f(s) + g(s)
        return f"(({x} * {y}) % 31)", lambda s: np.fmod(f(s) * g(s), 31)

    def place(self):
        step, first = self.random.randrange(3), self.random.randrange(4)
        return f"t[(lane * {step} + {first}) % 4]", (self.lane * step + first) % 4

    def block(self, depth, indent, has_tile, names):
        made = [self.statement(depth, indent, has_tile, names) for _ in range(self.random.randrange(2, 5))]

        def run(s, mask):
            for _, one in made:
                if mask.any():
                    mask = one(s, mask)
            return mask

        return "".join(text for text, _ in made), run

    def statement(self, depth, indent, has_tile, names):
        space = "    " * indent
        x, f = self.value(names)
        to = self.random.choice(NAMES)
        kind = self.random.randrange(12 if depth else 7)

        def assign(s, mask, values):
            s[to] = np.where(mask, values, s[to])
            return mask

        if kind < 2:
            return f"{space}{to} = ({x}) % 97\n", lambda s, m: assign(s, m, np.fmod(f(s), 97))
        if kind == 2:
            text = f"{space}{to} = wp.tile_sum(wp.tile({x}))[0] % 97\n"
            return text, lambda s, m: assign(s, m, np.fmod(f(s)[m].sum(), 97))
        if kind == 3:
            return f"{space}{to} = wp.tile_max(wp.tile({x}))[0]\n", lambda s, m: assign(s, m, f(s)[m].max())
        place, at = self.place()
        if kind == 4 and has_tile:

            def add(s, mask):
                np.add.at(s["t"], at[mask], f(s)[mask])
                return mask

            return f"{space}{place} += {x}\n", add
        if kind == 5 and has_tile:
            return f"{space}{to} = {place} % 89\n", lambda s, m: assign(s, m, np.fmod(s["t"][at], 89))
        if kind < 7:

            def note(s, mask):
                s["log"] += np.where(mask, f(s), 0)
                return mask

            return f"{space}log[lane] += {x}\n", note
        y, g = self.value(names)
        if kind == 7:
            return f"{space}if {x} < {y}:\n{space}    return\n", lambda s, m: m & ~(f(s) < g(s))
        if kind < 10:
            body, then = self.block(depth - 1, indent + 1, has_tile, names)
            other, otherwise = self.block(depth - 1, indent + 1, False, names)

            def branch(s, mask):
                taken = mask & (f(s) < g(s))
                left = mask & ~taken
                return (then(s, taken) if taken.any() else taken) | (otherwise(s, left) if left.any() else left)

            return f"{space}if {x} < {y}:\n{body}{space}else:\n{other}", branch
        self.loops += 1
        k = f"k{self.loops}"
        body, turn = self.block(depth - 1, indent + 1, has_tile, (*names, k))

        def loop(s, mask):
            turns, left = np.fmod(np.abs(f(s)), 4), np.zeros_like(mask)
            for i in range(4):
                active = mask & (turns > i) & ~left
                if active.any():
                    s[k] = np.full_like(self.lane, i)
                    left |= active & ~turn(s, active)
            return mask & ~left

        if kind == 10:
            return f"{space}for {k} in range(wp.abs({x}) % 4):\n{body}", loop
        text = f"{space}{k} = int(0)\n{space}n{k} = wp.abs({x}) % 4\n{space}while {k} < n{k}:\n{body}"
        return text + f"{space}    {k} += 1\n", loop


def load(text, path):
    path.write_text(text)
    spec = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.program


@pytest.mark.parametrize("seed", range(60))
def test_a_random_kernel_gives_the_numbers_of_numpy(seed, tmp_path, blocks):
    if not wp.get_device().is_cpu:
        pytest.skip("is about the CPU")
    lanes = random.Random(seed).choice([2, 3, 8, 17])
    made = Program(seed, lanes)
    kernel = load(made.text, tmp_path / f"program_{seed}.py")
    out, log = wp.zeros((3, lanes), dtype=int), wp.zeros(lanes, dtype=int)
    wp.launch(kernel, dim=lanes, inputs=[out, log], block_dim=lanes)
    lane = np.arange(lanes)
    state = {"a": lane, "b": np.full(lanes, 3), "c": 7 - lane * lane}
    state |= {"t": np.zeros(4, int), "log": np.zeros(lanes, int)}
    stays = made.run(state, np.ones(lanes, bool))
    expected = [np.where(stays, state[name], 0) for name in NAMES]
    np.testing.assert_array_equal(log.numpy(), state["log"].astype(np.int32), err_msg=made.text)
    np.testing.assert_array_equal(out.numpy(), expected, err_msg=made.text)
