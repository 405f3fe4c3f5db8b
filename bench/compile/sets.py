"""Compile time of a large kernel that keeps sets in vectors of 48 numbers: functions that call functions, loops in
loops with counts of each thread's own, chains of `if`, components chosen at run time."""

import numpy as np
import scenario

CALLS = 6
MOST = 48
THREADS = 16

HEAD = """import warp as wp

numbers = wp.types.vector(length=48, dtype=float)
names = wp.types.vector(length=48, dtype=int)


@wp.func
def place_of(name: int, count: int, known: names):
    found = int(-1)
    for k in range(count):
        if known[k] == name:
            found = k
            break
    return found


@wp.func
def added(name: int, weight: float, count: int, known: names, weights: numbers):
    at = place_of(name, count, known)
    if at >= 0:
        weights[at] = weights[at] + weight
    elif count < 48:
        known[count] = name
        weights[count] = weight
        count += 1
    return count, known, weights


@wp.func
def corner(first: int, kind: int, parent: wp.array(dtype=int), count: int, known: names, weights: numbers):
    if kind == 0:
        count, known, weights = added(first, 1.0, count, known, weights)
    elif kind == 1:
        for k in range(2):
            count, known, weights = added(first + k, 0.5, count, known, weights)
    elif kind == 2:
        for a in range(2):
            for b in range(2):
                w = (0.25 + 0.5 * float(a)) * (0.75 - 0.5 * float(b))
                count, known, weights = added(first + 3 * a + b, w, count, known, weights)
    else:
        at = int(first)
        while at >= 0:
            count, known, weights = added(at, 0.125, count, known, weights)
            at = parent[at]
    return count, known, weights


@wp.kernel
def sets(parent: wp.array(dtype=int), first: wp.array2d(dtype=int), kind: wp.array2d(dtype=int),
         out: wp.array(dtype=float)):
    i = wp.tid()
    known = names(-1)
    weights = numbers(0.0)
    count = int(0)
"""

CALL = """
    if first[i, {index}] >= 0:
        count, known, weights = corner(first[i, {index}], kind[i, {index}], parent, count, known, weights)
    else:
        weights[count % 48] = weights[count % 48] * {index}.5 + {number}.0
"""

END = """
    total = float(0.0)
    for k in range(count):
        if known[k] % 2 == 0:
            total += weights[k] * float(known[k])
        else:
            total -= weights[k]
    out[i] = total
"""


def source(number):
    calls = (CALL.replace("{index}", str(index)).replace("{number}", str(number)) for index in range(CALLS))
    return HEAD + "".join(calls) + END


def inputs():
    random = np.random.default_rng(8)
    parent = np.array([k // 2 - 1 if k > 1 else -1 for k in range(40)], dtype=np.int32)
    first = random.integers(-4, 30, (THREADS, CALLS), dtype=np.int32)
    return parent, first, random.integers(0, 4, (THREADS, CALLS), dtype=np.int32)


def launch_warp(wp, loaded):
    parent, first, kind = inputs()
    out = wp.zeros(THREADS, dtype=float, device="cpu")
    arrays = [wp.array(values, dtype=int, device="cpu") for values in (parent, first, kind)]
    wp.launch(loaded.sets, dim=THREADS, inputs=[*arrays, out], device="cpu")
    found, number = out.numpy(), int(loaded.__name__[-1])

    def check():
        np.testing.assert_allclose(found, [by_python(number, thread) for thread in range(THREADS)], rtol=1e-4)

    return check


def by_python(number, thread):
    """The result of one thread."""
    parent, first, kind = (values.tolist() for values in inputs())
    known, weights = [], np.zeros(MOST)

    def add(name, weight):
        if name in known:
            weights[known.index(name)] += weight
        elif len(known) < MOST:
            weights[len(known)] = weight
            known.append(name)

    for index, (at, shape) in enumerate(zip(first[thread], kind[thread], strict=True)):
        if at < 0:
            weights[len(known) % MOST] = weights[len(known) % MOST] * (index + 0.5) + number
        elif shape == 0:
            add(at, 1.0)
        elif shape == 1:
            for k in range(2):
                add(at + k, 0.5)
        elif shape == 2:
            for a in range(2):
                for b in range(2):
                    add(at + 3 * a + b, (0.25 + 0.5 * a) * (0.75 - 0.5 * b))
        else:
            while at >= 0:
                add(at, 0.125)
                at = parent[at]
    return sum(w * n if n % 2 == 0 else -w for n, w in zip(known, weights, strict=False))


if __name__ == "__main__":
    scenario.LATER = 2
    scenario.measure_compile(
        "compile sets", __doc__, {"weft": source, "peer": source}, {"weft": launch_warp, "peer": launch_warp}
    )
