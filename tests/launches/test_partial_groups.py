"""Groups of lanes of which some are off: the last ones of a launch, and those on one side of an `if`.

Every kernel runs with several numbers of lanes over sizes that no number of lanes divides; `x[i]` is neighbours in
memory, `x[(i + 1) % n]` nearly always. Elements that no thread writes must stay as they were.
"""

import numpy as np
import pytest
import warp as wp

WAYS = [{}, {"lanes": 1}, {"lanes": 4}, {"lanes": 8}, {"lanes": 16}]
SIZES = [1, 3, 8, 13, 31, 100]
UNTOUCHED = 77


@wp.struct
class Mixed:
    weight: wp.float64
    place: wp.vec3
    flag: wp.int8


def vectors(rng, n, dtype, components):
    return rng.integers(-50, 50, (n, components)).astype(dtype)


@pytest.mark.parametrize("way", WAYS, ids=str)
@pytest.mark.parametrize(
    ("dtype", "scalar", "components"),
    [
        (wp.vec2, np.float32, 2),
        (wp.vec3, np.float32, 3),
        (wp.vec4d, np.float64, 4),
        (wp.vec3h, np.float16, 3),
        (wp.types.vector(5, wp.int16), np.int16, 5),
        (wp.types.vector(3, wp.int8), np.int8, 3),
    ],
    ids=["vec2", "vec3", "vec4d", "vec3h", "5 int16", "3 int8"],
)
def test_vectors_of_threads_that_are_on(way, dtype, scalar, components):
    @wp.kernel(module_options=way, module="unique")
    def shift(n: int, keys: wp.array(dtype=int), x: wp.array(dtype=dtype), y: wp.array(dtype=dtype)):
        i = wp.tid()
        own = x[i]
        following = x[(i + 1) % n]
        if keys[i] > 0:
            y[i] = y[i] + own
            if keys[i] > 1:
                y[i] = own - following

    rng = np.random.default_rng(components)
    for n in SIZES:
        x, y = (vectors(rng, n + 5, scalar, components) for _ in range(2))
        keys = rng.integers(0, 3, n).astype(np.int32)
        following = np.roll(x[:n], -1, axis=0)
        expected = y.copy()
        key = keys[:, None]
        expected[:n] = np.where(key == 1, y[:n] + x[:n], np.where(key == 2, x[:n] - following, y[:n]))
        result = wp.array(y, dtype=dtype)
        wp.launch(shift, dim=n, inputs=[n, wp.array(keys), wp.array(x, dtype=dtype), result])
        np.testing.assert_array_equal(result.numpy(), expected, err_msg=f"{n} threads, {way}")


@pytest.mark.parametrize("way", WAYS, ids=str)
def test_structs_of_threads_that_are_on(way):
    @wp.kernel(module_options=way, module="unique")
    def change(n: int, keys: wp.array(dtype=int), x: wp.array(dtype=Mixed), y: wp.array(dtype=Mixed)):
        i = wp.tid()
        if keys[i] > 0:
            m = x[(i + 3) % n]
            m.weight = m.weight + x[i].weight
            m.place = m.place * 2.0 + x[i].place
            y[i] = m
        elif keys[i] < 0:
            y[i].flag = wp.int8(5)
            y[i].place[1] = 9.0

    rng = np.random.default_rng(5)
    layout = wp.zeros(1, dtype=Mixed).numpy().dtype
    for n in SIZES:
        x, y = np.zeros(n + 5, layout), np.zeros(n + 5, layout)
        for table in (x, y):
            table["weight"] = rng.integers(-9, 9, n + 5)
            table["place"] = rng.integers(-9, 9, (n + 5, 3))
            table["flag"] = rng.integers(-9, 9, n + 5)
        keys = rng.integers(-1, 2, n).astype(np.int32)
        expected = y.copy()
        for i in range(n):
            if keys[i] > 0:
                expected[i] = x[(i + 3) % n]
                expected["weight"][i] += x["weight"][i]
                expected["place"][i] = expected["place"][i] * 2 + x["place"][i]
            elif keys[i] < 0:
                expected["flag"][i] = 5
                expected["place"][i, 1] = 9
        result = wp.array(y, dtype=Mixed)
        wp.launch(change, dim=n, inputs=[n, wp.array(keys), wp.array(x, dtype=Mixed), result])
        for name in expected.dtype.names:
            np.testing.assert_array_equal(result.numpy()[name], expected[name], err_msg=f"{n} threads, {way}, {name}")


@pytest.mark.parametrize("way", WAYS, ids=str)
def test_rows_that_end_inside_a_group(way):
    """Two dimensions, a clamped border, a strided view, and a loop that makes the body one of many operations."""

    @wp.kernel(module_options=way, module="unique")
    def blur(x: wp.array2d(dtype=wp.vec3), line: wp.array(dtype=float), y: wp.array2d(dtype=wp.vec3)):
        i, j = wp.tid()
        last = x.shape[1] - 1
        total = wp.vec3(0.0, 0.0, 0.0)
        for k in range(3):
            total += x[i, wp.clamp(j + k - 1, 0, last)] * float(k + 1)
        y[i, j] = total + x[i, j] * line[wp.min(j + 1, last)]

    rng = np.random.default_rng(7)
    for rows, columns in ((1, 1), (4, 3), (3, 13), (5, 21)):
        x = rng.integers(-9, 9, (rows, columns, 3)).astype(np.float32)
        line = rng.integers(-9, 9, 2 * columns).astype(np.float32)[::2]
        at = np.arange(columns)
        expected = sum(x[:, np.clip(at + k - 1, 0, columns - 1)] * (k + 1) for k in range(3))
        expected = expected + x * line[np.minimum(at + 1, columns - 1)][:, None]
        whole = wp.full((rows, columns + 2), wp.vec3(float(UNTOUCHED)), dtype=wp.vec3)
        sources = [wp.array(x, dtype=wp.vec3), wp.array(np.repeat(line, 2))[::2]]
        wp.launch(blur, dim=(rows, columns), inputs=[*sources, whole[:, :columns]])
        np.testing.assert_array_equal(whole.numpy()[:, :columns], expected, err_msg=f"{rows} x {columns}, {way}")
        assert (whole.numpy()[:, columns:] == UNTOUCHED).all()


@pytest.mark.parametrize("lanes", [1, 8, 16, 64])
def test_neighbours_that_begin_anew_inside_a_group(lanes):
    @wp.kernel(module="unique", module_options={"lanes": lanes})
    def turn(x: wp.array[wp.vec3], shift: int, y: wp.array[wp.vec3]):
        i = wp.tid()
        y[i] = 2.0 * x[(i + shift) % x.shape[0]]

    x = np.random.default_rng(8).standard_normal((201, 3)).astype(np.float32)
    for shift in (0, 7, 64, 200):
        y = wp.full(201, wp.vec3(float(UNTOUCHED)), dtype=wp.vec3)
        wp.launch(turn, dim=201, inputs=[wp.array(x, dtype=wp.vec3), shift, y])
        np.testing.assert_array_equal(y.numpy(), 2.0 * np.roll(x, -shift, axis=0), err_msg=f"by {shift}")
