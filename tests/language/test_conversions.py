"""Conversions and literals in kernels: which are implicit, and which have to be written (S-CNV)."""

import numpy as np
import pytest
import warp as wp

# fmt: on


# ---- conversions ----
@pytest.mark.seed("S-CNV-001")
@pytest.mark.seed("S-CNV-002")
@pytest.mark.seed("S-CNV-003")
def test_no_implicit_conversion():
    @wp.kernel
    def explicit(x: wp.array[float]):
        x[0] = float(0.0) + int(4)

    @wp.kernel
    def between_floats(x: wp.array[float], y: wp.float64):
        x[0] = x[0] + y

    @wp.kernel
    def stored(x: wp.array[float], n: int):
        x[0] = n

    for kernel, extra in ((explicit, []), (between_floats, [1.0]), (stored, [1])):
        with pytest.raises(wp.CompileError) as error:
            wp.launch(kernel, dim=1, inputs=[wp.zeros(1), *extra])
        assert "float32" in str(error.value)


@wp.func
def takes_float(x: float):
    return x


@wp.func
def takes_double(x: wp.float64):
    return x


@pytest.mark.seed("S-CNV-001")
@pytest.mark.parametrize(
    "statement, found, expected",
    [
        ("x[0] = x[0] + d", "float32 and float64", None),
        ("x[0] = x[0] * n", "float32 and int32", None),
        ("n = n + m", "int32 and int64", None),
        ("h = h - x[0]", "float16 and float32", None),
        ("x[0] = d", "float64", "float32"),
        ("x[0] = n", "int32", "float32"),
        ("x[0] = b", "bool", "float32"),
        ("v[0][1] = d", "float64", "float32"),
        ("x[0] = takes_float(n)", "int32", "float32"),
        ("x[0] = takes_float(d)", "float64", "float32"),
        ("d = takes_double(x[0])", "float32", "float64"),
        ("v[0] = wp.vec3(x[0], d, x[0])", "float64", "float32"),
        ("v[0] = wp.vec3(x[0], n, x[0])", "int32", "float32"),
        ("v[0] = wp.vec3d(d, d, d)", "vec3d", "vec3f"),
        ("v[0] = v[0] * d", "vec3f and float64", None),
        ("v[0] = v[0] + wp.vec3d(d, d, d)", "vec3f and vec3d", None),
        ("x[0] = wp.dot(v[0], wp.vec3d(d, d, d))", "vec3d", "vec3f"),
        ("x[0] = wp.max(x[0], d)", "float64", "float32"),
        ("wp.atomic_add(x, 0, d)", "float64", "float32"),
    ],
)
def test_nothing_converts_by_itself(statement, found, expected, tmp_path):
    text = "import warp as wp\n@wp.kernel\ndef k(x: wp.array[float], v: wp.array[wp.vec3], d: wp.float64, n: int,\n"
    text += f"      m: wp.int64, u: wp.uint32, h: wp.float16, b: bool):\n    {statement}\n"
    path = tmp_path / "converts.py"
    path.write_text(text)
    names = {"__name__": "converts", "takes_float": takes_float, "takes_double": takes_double}
    exec(compile(text, str(path), "exec"), names)
    with pytest.raises(wp.CompileError) as error:
        names["k"].compile()
    message = str(error.value)
    assert found in message and (expected or "") in message, message


@pytest.mark.seed("S-CNV-001")
def test_every_conversion_can_be_written():
    @wp.kernel
    def k(x: wp.array[float], v: wp.array[wp.vec3], d: wp.float64, n: int, u: wp.uint32, b: bool):
        x[0] = x[0] + float(d)
        if x[0] < float(n) and int(u) > n:
            x[0] = takes_float(float(n)) + float(takes_double(wp.float64(x[0]))) + float(b)
        v[0] = wp.vec3(float(d), float(n), x[0]) * float(d)

    x, v = wp.ones(1), wp.zeros(1, dtype=wp.vec3)
    wp.launch(k, dim=1, inputs=[x, v, 0.5, 4, 7, True])
    assert x.numpy()[0] == 4.0 + 1.5 + 1.0 and v.numpy()[0].tolist() == [0.25, 2.0, 3.25]


@pytest.mark.seed("S-CNV-003")
def test_casts_make_it_right():
    @wp.kernel
    def k(x: wp.array[float], y: wp.float64, n: int):
        x[0] = float(y) + float(n) + float(int(2.9)) + float(wp.uint8(n + 296))

    x = wp.zeros(1)
    wp.launch(k, dim=1, inputs=[x, 0.5, 4])
    assert x.numpy()[0] == 0.5 + 4 + 2 + 44


@pytest.mark.seed("S-TYP-005")
@pytest.mark.seed("S-TYP-006")
def test_literals_take_the_default_type_and_adapt_to_their_partner():
    @wp.kernel
    def k(
        d: wp.array[wp.float64], h: wp.array[wp.float16], b: wp.array[wp.uint8], f: wp.array[float], n: wp.array[int]
    ):
        d[0] = d[0] * 0.1 + 1
        h[0] = h[0] + 1.0
        b[0] = b[0] + 200
        x = 1.0e6
        y = 0
        f[0] = x
        n[0] = y

    d, h, b, f, n = (
        wp.ones(1, dtype=wp.float64),
        wp.ones(1, dtype=wp.float16),
        wp.ones(1, dtype=wp.uint8),
        wp.ones(1),
        wp.ones(1, dtype=int),
    )
    wp.launch(k, dim=1, inputs=[d, h, b, f, n])
    assert (d.numpy()[0], h.numpy()[0], b.numpy()[0], f.numpy()[0], n.numpy()[0]) == (1.1, 2.0, 201, 1e6, 0)


def test_integer_literals_out_of_range_are_an_error():
    @wp.kernel
    def k(x: wp.array[int]):
        x[0] = 3000000000

    @wp.kernel
    def narrow(x: wp.array[wp.uint8]):
        x[0] = x[0] + 300

    with pytest.raises(wp.CompileError, match="3000000000"):
        wp.launch(k, dim=1, inputs=[wp.zeros(1, dtype=int)])
    with pytest.raises(wp.CompileError, match="300"):
        wp.launch(narrow, dim=1, inputs=[wp.zeros(1, dtype=wp.uint8)])


INTS = ["int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64"]


FLOATS = ["float16", "float32", "float64"]


@pytest.mark.seed("S-TYP-001")
@pytest.mark.seed("S-TYP-002")
@pytest.mark.parametrize("name", INTS + FLOATS)
def test_arithmetic_in_every_scalar_type(name):
    dtype = getattr(wp, name)
    numpy_type = np.dtype(name)

    @wp.kernel
    def k(a: wp.array(dtype=dtype), b: wp.array(dtype=dtype), out: wp.array2d(dtype=dtype)):
        i = wp.tid()
        out[0, i] = a[i] + b[i]
        out[1, i] = a[i] * b[i]
        out[2, i] = a[i] - dtype(1)
        out[3, i] = wp.max(a[i], b[i])

    rng = np.random.default_rng(1)
    a = rng.integers(0, 100, 33).astype(numpy_type)
    b = rng.integers(1, 100, 33).astype(numpy_type)
    out = wp.zeros((4, 33), dtype=dtype)
    wp.launch(k, dim=33, inputs=[a, b, out])
    with np.errstate(over="ignore"):
        expected = np.stack([a + b, a * b, a - numpy_type.type(1), np.maximum(a, b)])
    np.testing.assert_array_equal(out.numpy(), expected)


@pytest.mark.parametrize("source", INTS + FLOATS + ["bool"])
@pytest.mark.parametrize("target", INTS + FLOATS + ["bool"])
@pytest.mark.seed("S-TYP-005")
def test_conversion_between_all_scalar_types(source, target):
    from_type, to_type = getattr(wp, source), getattr(wp, target)

    @wp.kernel
    def k(a: wp.array(dtype=from_type), b: wp.array(dtype=to_type)):
        i = wp.tid()
        b[i] = to_type(a[i])

    values = np.array([0, 1, 2, 7, 100, 127], dtype=source)
    if source.startswith(("int", "float")):
        values = np.concatenate([values, np.array([-1, -5, -128], dtype=source)])
    if source.startswith("float") and not target.startswith("uint"):
        values = np.concatenate([values, np.array([0.5, -0.5, 2.75, -2.75], dtype=source)])
    if source.startswith("float") and target.startswith("uint"):
        values = values[values >= 0]
    out = wp.zeros(len(values), dtype=to_type)
    wp.launch(k, dim=len(values), inputs=[values, out])
    np.testing.assert_array_equal(out.numpy(), values.astype(np.dtype(target)))
