"""Matrices and vectors of hundreds of components: their operations are loops, and never stand in registers."""

import numpy as np
import pytest
import warp as wp

THREADS = 5
ROWS, COLS = 15, 18
mat = wp.types.matrix(shape=(ROWS, COLS), dtype=wp.float64)
turned = wp.types.matrix(shape=(COLS, ROWS), dtype=wp.float64)
square = wp.types.matrix(shape=(ROWS, ROWS), dtype=wp.float64)
wide = wp.types.vector(length=COLS, dtype=wp.float64)
tall = wp.types.vector(length=ROWS, dtype=wp.float64)
vec300 = wp.types.vector(length=300, dtype=wp.float64)
mat20 = wp.types.matrix(shape=(20, 20), dtype=wp.float64)
F = wp.float64


@wp.struct
class Held:
    scale: wp.float64
    m: mat
    v: vec300


@wp.func
def products(m: mat, v: wide, w: tall):
    column = m * v
    row = w * m
    gram = m * wp.transpose(m)
    return column + gram * w, row + wp.transpose(m) * w


def products_of(m, v, w):
    return m @ v + m @ m.T @ w, w @ m + m.T @ w


@wp.func
def outer(m: mat, v: wide, w: tall):
    o = wp.outer(w, v)
    o = o + m
    return o * v, w * o


def outer_of(m, v, w):
    o = np.outer(w, v) + m
    return o @ v, w @ o


@wp.func
def by_components(m: mat, v: wide, w: tall):
    a = m + m * F(2.0) - (-m) / F(3.0)
    a = wp.cw_mul(a, m)
    a = wp.cw_div(a, m + mat(F(7.0)))
    b = F(2.0) * a
    return b * v, w * a


def by_components_of(m, v, w):
    a = m * 3 + m / 3
    a = a * m / (m + 7)
    return 2 * a @ v, w @ a


@wp.func
def numbers(m: mat, v: wide, w: tall):
    a = wp.ddot(m, m)
    square = m * wp.transpose(m)
    t = wp.trace(square)
    d = wp.get_diag(square)
    return d * a, v * (t + wp.dot(v, v) + wp.length(v))


def numbers_of(m, v, w):
    square = m @ m.T
    return np.diag(square) * np.sum(m * m), v * (np.trace(square) + v @ v + np.linalg.norm(v))


@wp.func
def parts(m: mat, v: wide, w: tall):
    a = m
    a[3] = a[4] * F(2.0) + v
    a[5, 6] = w[2] * w[3]
    for k in range(ROWS):
        a[k, k] = a[k, k] * w[k]
        a[ROWS - 1 - k, 2] += m[k, 1]
    b = m
    if v[0] > F(0.0):
        b = a
    return a * v + b[7, 8] * w, w * b


def parts_of(m, v, w):
    a = m.copy()
    a[3] = a[4] * 2 + v
    a[5, 6] = w[2] * w[3]
    for k in range(ROWS):
        a[k, k] = a[k, k] * w[k]
        a[ROWS - 1 - k, 2] += m[k, 1]
    b = a if v[0] > 0 else m
    return a @ v + b[7, 8] * w, w @ b


@wp.func
def carried(m: mat, v: wide, w: tall):
    a = m
    b = mat(F(0.5))
    for _k in range(3):
        c = a
        a = wp.outer(m * v, v) * F(0.1) + b
        b = c
    return a * v, w * b


def carried_of(m, v, w):
    a, b = m, np.full_like(m, 0.5)
    for _ in range(3):
        a, b = np.outer(m @ v, v) * 0.1 + b, a
    return a @ v, w @ b


CASES = {
    name: (globals()[name], globals()[name + "_of"])
    for name in ["products", "outer", "by_components", "numbers", "parts", "carried"]
}


def kernel_of(function, **options):
    @wp.kernel(module="unique", module_options=options)
    def k(m: wp.array(dtype=mat), v: wp.array(dtype=wide), w: wp.array(dtype=tall), a: wp.array(dtype=tall),
          b: wp.array(dtype=wide)):  # fmt: skip
        i = wp.tid()
        x, y = function(m[i], v[i], w[i])
        a[i] = x
        b[i] = y

    return k


def inputs_of(seed, requires_grad=False):
    rng = np.random.default_rng(seed)
    values = [
        rng.uniform(-1, 1, (THREADS, ROWS, COLS)),
        rng.uniform(-1, 1, (THREADS, COLS)),
        rng.uniform(-1, 1, (THREADS, ROWS)),
    ]
    arrays = [wp.array(x, dtype=t, requires_grad=requires_grad) for x, t in zip(values, [mat, wide, tall], strict=True)]
    results = [wp.zeros(THREADS, dtype=t, requires_grad=requires_grad) for t in [tall, wide]]
    return values, arrays, results


@pytest.mark.parametrize("options", [{"lanes": 1}, {"lanes": 8}, {"mode": "debug"}], ids=str)
@pytest.mark.parametrize("name", CASES)
def test_operations_give_what_numpy_gives(name, options):
    function, reference = CASES[name]
    values, arrays, results = inputs_of(1)
    wp.launch(kernel_of(function, **options), THREADS, inputs=arrays + results)
    for i in range(THREADS):
        for result, expected in zip(results, reference(*(x[i] for x in values)), strict=True):
            np.testing.assert_allclose(result.numpy()[i], expected, rtol=1e-12, atol=1e-12)


def slope(reference, values, direction, seeds):
    """d/dt of the seeded sum of the results at values + t * direction."""

    def total(t):
        return sum(
            np.sum(seed * result)
            for seed, result in zip(
                seeds, reference(*(x + t * d for x, d in zip(values, direction, strict=True))), strict=True
            )
        )

    h = 1e-4
    return (8 * (total(h) - total(-h)) - (total(2 * h) - total(-2 * h))) / (12 * h)


@pytest.mark.parametrize("name", CASES)
def test_gradients_are_those_of_differences(name):
    function, reference = CASES[name]
    values, arrays, results = inputs_of(2, requires_grad=True)
    rng = np.random.default_rng(3)
    seeds = [rng.uniform(-1, 1, (THREADS, n)) for n in (ROWS, COLS)]
    tape = wp.Tape()
    with tape:
        wp.launch(kernel_of(function), THREADS, inputs=arrays + results)
    tape.backward(grads={r: wp.array(s, dtype=r.dtype) for r, s in zip(results, seeds, strict=True)})
    for i in range(THREADS):
        for _ in range(3):
            direction = [rng.uniform(-1, 1, x[i].shape) for x in values]
            found = sum(np.sum(d * a.grad.numpy()[i]) for d, a in zip(direction, arrays, strict=True))
            expected = slope(reference, [x[i] for x in values], direction, [s[i] for s in seeds])
            assert found == pytest.approx(expected, rel=1e-7, abs=1e-7)


@pytest.mark.parametrize("name", CASES)
def test_forward_mode_gives_the_same_derivative(name):
    function, reference = CASES[name]
    values, arrays, results = inputs_of(4)
    rng = np.random.default_rng(5)
    directions = [rng.uniform(-1, 1, x.shape) for x in values]
    given = [wp.array(d, dtype=a.dtype) for d, a in zip(directions, arrays, strict=True)]
    tangents = [wp.zeros_like(r) for r in results]
    wp.jvp(kernel_of(function), THREADS, inputs=arrays, outputs=results, input_tangents=given, output_tangents=tangents)
    found = [t.numpy() for t in tangents]
    for i in range(THREADS):
        seeds = [rng.uniform(-1, 1, n) for n in (ROWS, COLS)]
        expected = slope(reference, [x[i] for x in values], [d[i] for d in directions], seeds)
        got = sum(np.sum(s * f[i]) for s, f in zip(seeds, found, strict=True))
        assert got == pytest.approx(expected, rel=1e-7, abs=1e-7)


@wp.kernel
def choices(v: wp.array(dtype=vec300), m: wp.array(dtype=mat20), out: wp.array2d[F], signs: wp.array(dtype=vec300)):
    i = wp.tid()
    out[i, 0] = wp.min(v[i])
    out[i, 1] = wp.max(v[i])
    out[i, 2] = F(wp.argmin(v[i]))
    out[i, 3] = F(wp.argmax(v[i]))
    if wp.isfinite(v[i]) and wp.isfinite(m[i]):
        out[i, 4] = F(1.0)
    if wp.isnan(v[i]) or wp.isinf(m[i]):
        out[i, 5] = F(1.0)
    out[i, 6] = wp.norm_l1(v[i])
    signs[i] = wp.sign(v[i])


def test_one_number_is_made_of_many_components():
    rng = np.random.default_rng(7)
    v, m = rng.integers(-90, 90, (4, 300)).astype(float), rng.uniform(-1, 1, (4, 20, 20))
    m[1, 3, 4], v[2, 299], m[3, 19, 19] = np.inf, np.nan, np.nan
    out, signs = wp.zeros((4, 7), dtype=F), wp.zeros(4, dtype=vec300)
    wp.launch(choices, 4, inputs=[wp.array(v, dtype=vec300), wp.array(m, dtype=mat20), out, signs])
    out = out.numpy()
    for i in (0, 1, 3):
        assert out[i, 0] == v[i].min() and out[i, 1] == v[i].max()
        assert out[i, 2] == np.argmin(v[i]) and out[i, 3] == np.argmax(v[i])
        assert out[i, 6] == np.abs(v[i]).sum()
        np.testing.assert_array_equal(signs.numpy()[i], np.where(v[i] < 0, -1, 1))
    np.testing.assert_array_equal(out[:, 4], [1, 0, 0, 0])
    np.testing.assert_array_equal(out[:, 5], [0, 1, 1, 0])


def test_the_gradient_of_a_maximum_goes_to_the_first_one():
    @wp.kernel
    def spread(v: wp.array(dtype=vec300), out: wp.array(dtype=F)):
        i = wp.tid()
        out[i] = wp.max(v[i]) - F(2.0) * wp.min(v[i]) + wp.length(wp.abs(v[i]))

    values = np.random.default_rng(8).integers(-20, 20, (3, 300)).astype(float)
    v = wp.array(values, dtype=vec300, requires_grad=True)
    out = wp.zeros(3, dtype=F, requires_grad=True)
    tape = wp.Tape()
    with tape:
        wp.launch(spread, 3, inputs=[v, out])
    tape.backward(grads={out: wp.ones(3, dtype=F)})
    for i in range(3):
        expected = values[i] / np.linalg.norm(values[i])
        expected[np.argmax(values[i])] += 1
        expected[np.argmin(values[i])] -= 2
        np.testing.assert_allclose(v.grad.numpy()[i], expected, atol=1e-14)


@pytest.mark.parametrize("mode", ["release", "debug"])
def test_structs_in_arrays_have_large_fields(mode):
    @wp.kernel(module="unique", module_options={"mode": mode})
    def structs_of(
        held: wp.array(dtype=Held), v: wp.array(dtype=wide), made: wp.array(dtype=Held), out: wp.array(dtype=tall)
    ):
        i = wp.tid()
        h = held[i]
        out[i] = h.m * v[i] * h.scale
        h.m = h.m * F(2.0) + wp.outer(h.m * v[i], v[i])
        h.v[i] = h.v[i + 1] * h.scale
        h.scale += F(1.0)
        made[i] = h

    rng = np.random.default_rng(9)
    held = np.zeros(THREADS, dtype=Held.numpy_dtype())
    held["scale"] = rng.uniform(-1, 1, THREADS)
    held["m"] = rng.uniform(-1, 1, (THREADS, ROWS, COLS))
    held["v"] = rng.uniform(-1, 1, (THREADS, 300))
    v = rng.uniform(-1, 1, (THREADS, COLS))
    given = wp.array(held, dtype=Held, requires_grad=True)
    x = wp.array(v, dtype=wide, requires_grad=True)
    made, out = wp.zeros(THREADS, dtype=Held), wp.zeros(THREADS, dtype=tall, requires_grad=True)
    tape = wp.Tape()
    with tape:
        wp.launch(structs_of, THREADS, inputs=[given, x, made, out])
    found = made.numpy()
    for i in range(THREADS):
        m, scale = held["m"][i], held["scale"][i]
        np.testing.assert_allclose(out.numpy()[i], m @ v[i] * scale, rtol=1e-12)
        np.testing.assert_allclose(found["m"][i], m * 2 + np.outer(m @ v[i], v[i]), rtol=1e-12)
        moved = held["v"][i].copy()
        moved[i] = moved[i + 1] * scale
        np.testing.assert_array_equal(found["v"][i], moved)
        assert found["scale"][i] == scale + 1
    tape.backward(grads={out: wp.ones(THREADS, dtype=tall)})
    for i in range(THREADS):
        m, scale = held["m"][i], held["scale"][i]
        np.testing.assert_allclose(x.grad.numpy()[i], m.sum(axis=0) * scale, rtol=1e-12)
        np.testing.assert_allclose(given.grad.numpy()["m"][i], np.tile(v[i] * scale, (ROWS, 1)), rtol=1e-12)
        np.testing.assert_allclose(given.grad.numpy()["scale"][i], (m @ v[i]).sum(), rtol=1e-12)


def test_matrices_are_equal_where_all_entries_are():
    @wp.kernel
    def compared(m: wp.array(dtype=mat20), same: wp.array[wp.bool], other: wp.array[wp.bool]):
        i = wp.tid()
        same[i] = m[i] == m[0]
        other[i] = m[i] != m[0]

    m = np.tile(np.random.default_rng(10).uniform(-1, 1, (20, 20)), (4, 1, 1))
    m[1, 0, 0], m[2, 19, 19], m[3, 7, 11] = 0.0, 0.0, np.nan
    same, other = wp.zeros(4, dtype=wp.bool), wp.zeros(4, dtype=wp.bool)
    wp.launch(compared, 4, inputs=[wp.array(m, dtype=mat20), same, other])
    assert same.numpy().tolist() == [True, False, False, False]
    assert other.numpy().tolist() == [False, True, True, True]


@wp.struct
class Diagonals:
    m: mat20
    first: F


def test_diagonals_and_identities_are_those_of_numpy():
    vec20 = wp.types.vector(length=20, dtype=F)

    @wp.kernel
    def diagonals(v: wp.array(dtype=vec20), m: wp.array(dtype=mat20), out: wp.array(dtype=Diagonals)):
        i = wp.tid()
        made = Diagonals()
        made.m = wp.diag(v[i]) * m[i] + wp.identity(n=20, dtype=F) - wp.outer(v[i], v[i])
        made.first = m[i][0, 0]
        out[i] = made

    rng = np.random.default_rng(11)
    v, m = rng.uniform(-1, 1, (3, 20)), rng.uniform(-1, 1, (3, 20, 20))
    x, y = wp.array(v, dtype=vec20, requires_grad=True), wp.array(m, dtype=mat20, requires_grad=True)
    out = wp.zeros(3, dtype=Diagonals, requires_grad=True)
    tape = wp.Tape()
    with tape:
        wp.launch(diagonals, 3, inputs=[x, y, out])
    found, seeds = out.numpy(), np.zeros(3, dtype=Diagonals.numpy_dtype())
    seeds["m"] = rng.uniform(-1, 1, (3, 20, 20))
    for i in range(3):
        np.testing.assert_allclose(
            found["m"][i], np.diag(v[i]) @ m[i] + np.eye(20) - np.outer(v[i], v[i]), rtol=1e-14, atol=1e-14
        )
        assert found["first"][i] == m[i, 0, 0]
    tape.backward(grads={out: wp.array(seeds, dtype=Diagonals)})
    for i in range(3):
        seed = seeds["m"][i]
        expected = np.diag(seed @ m[i].T) - (seed + seed.T) @ v[i]
        np.testing.assert_allclose(x.grad.numpy()[i], expected, rtol=1e-12, atol=1e-12)
        np.testing.assert_allclose(y.grad.numpy()[i], np.diag(v[i]) @ seed, rtol=1e-12, atol=1e-12)


def test_the_gradient_of_an_extreme_goes_to_the_thread_that_offered_it():
    @wp.kernel
    def extremes(m: wp.array(dtype=mat20), least: wp.array(dtype=mat20), most: wp.array(dtype=mat20)):
        i = wp.tid()
        wp.atomic_min(least, 0, m[i] * F(2.0))
        wp.atomic_max(most, 0, m[i] * F(3.0))

    rng = np.random.default_rng(12)
    values, seeds = rng.uniform(-1, 1, (5, 20, 20)), rng.uniform(-1, 1, (2, 20, 20))
    m = wp.array(values, dtype=mat20, requires_grad=True)
    least, most = (wp.array(np.full((1, 20, 20), s), dtype=mat20, requires_grad=True) for s in (0.0, 0.5))
    tape = wp.Tape()
    with tape:
        wp.launch(extremes, 5, inputs=[m, least, most])
    np.testing.assert_array_equal(least.numpy()[0], np.minimum(0.0, 2 * values.min(axis=0)))
    np.testing.assert_array_equal(most.numpy()[0], np.maximum(0.5, 3 * values.max(axis=0)))
    tape.backward(grads={a: wp.array(s[None], dtype=mat20) for a, s in zip((least, most), seeds, strict=True)})
    expected = 2 * seeds[0] * (values == values.min(axis=0)) * (values < 0)
    expected += 3 * seeds[1] * (values == values.max(axis=0)) * (3 * values > 0.5)
    np.testing.assert_allclose(m.grad.numpy(), expected, rtol=1e-14)


def numbers_in(text):
    return [float(word) for word in text.replace("(", " ").replace(")", " ").replace(",", " ").split()]


@pytest.mark.parametrize("options", [{"lanes": 1}, {"lanes": 8}, {"mode": "debug"}], ids=str)
def test_printed_matrices_show_all_entries_of_one_thread_after_the_other(options, capsys):
    @wp.kernel(module="unique", module_options=options)
    def shows(m: wp.array(dtype=mat20), v: wp.array(dtype=vec300)):
        i = wp.tid()
        if i != 1:
            print(i, m[i] * F(2.0), "and", wp.vec2(1.5, 2.5), f"{v[i]:.1f}")

    m = np.round(np.random.default_rng(13).uniform(-1, 1, (3, 20, 20)), 3)
    v = np.round(np.random.default_rng(14).uniform(-9, 9, (3, 300)), 1)
    wp.launch(shows, 3, inputs=[wp.array(m, dtype=mat20), wp.array(v, dtype=vec300)])
    wp.synchronize()
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 2
    for line, i in zip(lines, (0, 2), strict=True):
        before, after = line.split(" and ")
        np.testing.assert_allclose(numbers_in(before), [i, *2 * m[i].ravel()], rtol=1e-5)
        np.testing.assert_allclose(numbers_in(after), [1.5, 2.5, *v[i]], rtol=1e-12)


def test_expectations_compare_all_entries_and_print_both_matrices(capsys):
    @wp.kernel
    def expects(a: wp.array(dtype=mat20), b: wp.array(dtype=mat20)):
        i = wp.tid()
        wp.expect_eq(a[i], b[i])
        wp.expect_neq(a[i], b[i])
        wp.expect_near(a[i], b[i], F(0.25))

    a = np.round(np.random.default_rng(15).uniform(-1, 1, (3, 20, 20)), 3)
    b = a.copy()
    b[1, 19, 19] += 0.125
    b[2, 7, 8] += 0.5
    wp.launch(expects, 3, inputs=[wp.array(a, dtype=mat20), wp.array(b, dtype=mat20)])
    wp.synchronize()
    lines = capsys.readouterr().out.splitlines()
    failed = sorted((line.split()[1], i) for line in lines for i in range(3)
                    if np.allclose(numbers_in(line.split("failed:")[1].replace("and", " ")),
                                   [*a[i].ravel(), *b[i].ravel()], rtol=1e-5, atol=0))  # fmt: skip
    assert failed == [("expect_eq()", 1), ("expect_eq()", 2), ("expect_near()", 2), ("expect_neq()", 0)]
    assert len(lines) == 4


def test_a_matrix_with_an_entry_that_is_not_finite_is_noticed(monkeypatch):
    monkeypatch.setattr(wp.config, "verify_fp", True)

    @wp.kernel(module="unique")
    def divided(m: wp.array(dtype=mat20), out: wp.array(dtype=Diagonals), sums: wp.array(dtype=mat20)):
        i = wp.tid()
        made = Diagonals()
        made.m = mat20(F(1.0)) - m[i]
        out[i] = made
        wp.atomic_add(sums, 0, wp.cw_div(mat20(F(1.0)), m[i]))

    m = np.random.default_rng(16).uniform(1, 2, (2, 20, 20))
    arrays = [wp.array(m, dtype=mat20), wp.zeros(2, dtype=Diagonals), wp.zeros(1, dtype=mat20)]
    wp.launch(divided, 2, inputs=arrays)
    wp.synchronize()
    np.testing.assert_allclose(arrays[2].numpy()[0], (1 / m).sum(axis=0))
    m[1, 19, 19] = 0.0
    with pytest.raises(RuntimeError, match=r"kernel 'divided' has made 'sums'.* inf"):
        wp.launch(divided, 2, inputs=[wp.array(m, dtype=mat20), *arrays[1:]])
        wp.synchronize()


@pytest.mark.parametrize("length", [30, 40, 150])
def test_gradients_go_through_rows_and_columns_of_large_matrices(length):
    vector = wp.types.vector(length=length, dtype=F)
    columns, rows = (wp.types.matrix(shape=shape, dtype=F) for shape in ((length, 2), (2, length)))

    @wp.kernel(module="unique")
    def put_together(
        a: wp.array(dtype=vector), b: wp.array(dtype=vector), c: wp.array(dtype=columns), r: wp.array(dtype=rows)
    ):
        i = wp.tid()
        c[i] = wp.matrix_from_cols(a[i], b[i])
        r[i] = wp.matrix_from_rows(b[i], a[i])

    rng = np.random.default_rng(9)
    a, b = (wp.array(rng.uniform(size=(3, length)), dtype=vector, requires_grad=True) for _ in range(2))
    c, r = (wp.zeros(3, dtype=kind, requires_grad=True) for kind in (columns, rows))
    with wp.Tape() as tape:
        wp.launch(put_together, 3, inputs=[a, b, c, r])
    np.testing.assert_array_equal(c.numpy(), np.stack([a.numpy(), b.numpy()], axis=2))
    np.testing.assert_array_equal(r.numpy(), np.stack([b.numpy(), a.numpy()], axis=1))
    by_c, by_r = rng.uniform(size=(3, length, 2)), rng.uniform(size=(3, 2, length))
    tape.backward(grads={c: wp.array(by_c, dtype=columns), r: wp.array(by_r, dtype=rows)})
    np.testing.assert_array_equal(a.grad.numpy(), by_c[:, :, 0] + by_r[:, 1])
    np.testing.assert_array_equal(b.grad.numpy(), by_c[:, :, 1] + by_r[:, 0])
