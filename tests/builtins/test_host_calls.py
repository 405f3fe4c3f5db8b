"""Builtins called from Python: the values of the oracle, the types of results, and messages for wrong calls."""

import math

import numpy as np
import pytest
import warp as wp
from oracle import ORACLE, find
from oracle_inputs import mixed
from test_table import ROWS, compare, swept
from warp import _weft

CALLS = 12  # of each overload
DIVISIONS = ("div", "mod", "floordiv", "cw_div", "randi", "randu")  # of integers; an empty range is one


def typed(kind, row):
    if kind.kind == "scalar":
        return bool(row) if kind.scalar == "bool" else kind.dtype(row)
    return kind.dtype(row)


def call_rows(call, arguments):
    """(the rows with a result; results and assigned values): an integer division by zero is an error here."""
    rows, columns = [], [[] for _ in call.outputs]
    for row in range(len(arguments[0])):
        values = [typed(kind, a[row]) for kind, a in zip(call.types, arguments)]
        try:
            given = getattr(wp, call.name)(*values)
        except wp.UsageError as error:
            assert call.name in DIVISIONS and "division by zero" in str(error)
            continue
        results = [given] if len(call.results) == 1 else list(given or ())
        results += [values[i] for i in call.assigned]
        for column, value, kind in zip(columns, results, call.outputs, strict=True):
            column.append(np.reshape(value, kind.shape).astype(kind.numpy))
        rows.append(row)
    return rows, [np.array(column) for column in columns]


@pytest.mark.parametrize("name", [name for name in _weft.builtin_names() if swept(name)])
def test_a_call_from_python_gives_what_the_oracle_gives(name):
    if _weft.builtin_is_for_kernels(name):
        pytest.skip("has a meaning only in kernels")
    # Every overload, with one scalar type each: the table's sweep has run them with all.
    overloads = {}
    for call in swept(name):
        overloads.setdefault((call.signature, call.without_defaults), []).append(call)
    messages = []
    for number, calls in enumerate(overloads.values()):
        call = calls[(number + len(name)) % len(calls)]
        line = find(ORACLE, name, call.signature)
        rng = np.random.default_rng(len(name))
        chosen = rng.choice(ROWS, CALLS, replace=False)
        inputs = [a[chosen] for a in (line.inputs or mixed)(rng, call.types, ROWS)[: len(call.types)]]
        rows, outputs = call_rows(call, inputs)
        if rows:
            messages += compare(call, line, [a[rows] for a in inputs], outputs)
    assert not messages, "\n".join(messages)


def test_python_numbers_adapt_as_literals_do():
    assert wp.sin(0.5) == np.sin(np.float32(0.5), dtype=np.float32) and type(wp.sin(1)) is float
    assert wp.max(2, 3) == 3 and type(wp.max(2, 3)) is int
    assert wp.max(2, 2.5) == 2.5
    assert wp.max(wp.uint8(3), 200) == 200 and type(wp.max(wp.uint8(3), 200)) is wp.uint8
    with pytest.raises(TypeError, match="literal 300, which does not fit uint8"):
        wp.max(wp.uint8(3), 300)
    assert wp.max(wp.uint8(3), 7) == 7  # after a number that did not fit
    assert wp.abs(-1e300) == math.inf and wp.add(2**31, 1) == 1 - 2**31 and wp.mul(3, 2**33 + 1) == 3, "as in C"
    assert wp.abs(-(2**40)) == 0 and wp.add(5, 3) == 8 and wp.add(wp.int64(1), 2**40) == 2**40 + 1
    assert wp.max(wp.uint64(1), 2**64 - 1) == 2**64 - 1


def test_numpy_scalars_count_by_their_dtype():
    assert type(wp.sqrt(np.float64(2.0))) is wp.float64 and wp.sqrt(np.float64(2.0)) == math.sqrt(2.0)
    assert type(wp.abs(np.int16(-3))) is wp.int16
    # numpy.float64 is a Python float too: beside another type it adapts as one.
    assert wp.max(wp.float32(1.0), np.float64(2.5)) == 2.5
    with pytest.raises(TypeError, match="int16"):
        wp.max(wp.int32(1), np.int16(2))


def test_results_keep_a_type_that_no_python_number_stands_for():
    assert type(wp.sin(wp.float64(0.5))) is wp.float64 and wp.sin(wp.float64(0.5)) == math.sin(0.5)
    assert type(wp.dot(wp.vec3(1, 2, 3), wp.vec3(4, 5, 6))) is float
    assert type(wp.dot(wp.vec3d(1, 2, 3), wp.vec3d(4, 5, 6))) is wp.float64
    assert wp.isnan(math.nan) is True
    axis, angle = wp.quat_to_axis_angle(wp.quat_from_axis_angle(wp.vec3(0, 0, 1), 0.5))
    assert axis == wp.vec3(0, 0, 1) and angle == pytest.approx(0.5)


def test_a_random_state_is_advanced_in_place():
    @wp.kernel
    def draw(out: wp.array[float]):
        state = wp.rand_init(42)
        for i in range(4):
            out[i] = wp.randf(state)

    out = wp.zeros(4)
    wp.launch(draw, dim=1, inputs=[out])
    state = wp.rand_init(42)
    assert [wp.randf(state) for _ in range(4)] == out.numpy().tolist()
    with pytest.raises(TypeError, match="typed value|variable"):
        wp.randf(5)
    with pytest.raises(TypeError, match=r"uint32\(...\); got numpy.uint32"):
        wp.randf(np.uint32(5))


def test_output_arguments_are_written():
    t = wp.transform((1, 2, 3), wp.quat_identity())
    assert wp.transform_set_translation(t, wp.vec3(4, 5, 6)) is None
    assert t.p == wp.vec3(4, 5, 6)
    axis, angle = wp.vec3(), wp.float32()
    wp.quat_to_axis_angle(wp.quat(0, 0, 1, 0), axis, angle)
    assert axis == wp.vec3(0, 0, 1) and angle == pytest.approx(math.pi)


@pytest.mark.host_memory("calls outside of kernels read the memory of the host", on="cuda")
def test_arrays_are_passed_by_reference():
    sorted_numbers = wp.array(np.arange(0.0, 20.0), dtype=float)
    assert wp.lower_bound(sorted_numbers, 4.5) == 5
    assert wp.lower_bound(sorted_numbers[::2], 4.5) == 3
    assert wp.where(sorted_numbers, 1, 2) == 1
    with pytest.raises(IndexError, match="out of bounds for axis 0 of 'arr', which has size 20"):
        wp.lower_bound(sorted_numbers, 0, 1000, 900.0)
    with pytest.raises(TypeError, match=r"no overload takes \(array\[vec3f\], float 1.0\)"):
        wp.lower_bound(wp.zeros(2, dtype=wp.vec3), 1.0)


def test_types_and_compile_time_numbers_are_arguments():
    assert wp.identity(n=2) == wp.mat22(1, 0, 0, 1)
    assert wp.identity(5, wp.float64) == np.eye(5) and type(wp.identity(3, dtype=wp.float64)) is wp.mat33d
    assert wp.quat_identity() == wp.quat(0, 0, 0, 1) and type(wp.quat_identity(dtype=wp.float64)) is wp.quatd
    assert type(wp.transform_identity(wp.float16)) is wp.transformh
    assert wp.cast(1.0, wp.int32) == 0x3F800000
    assert wp.static(3) == 3
    with pytest.raises(TypeError, match="expected an integer known at compile time"):
        wp.identity(2.5)


@pytest.mark.seed("S-VEC-008", "S-MAT-007")
def test_anonymous_vectors_and_matrices_are_made_as_in_kernels():
    vec5d = wp.types.vector(5, wp.float64)
    assert wp.vector(dtype=wp.float64, length=5) == vec5d()
    assert wp.vector(wp.float64(1.0), length=5) == vec5d(1.0)
    assert wp.vector(1.0, 2, 3) == wp.vec3(1, 2, 3) and wp.vector(1, 2) == wp.vec2i(1, 2)
    assert wp.vector(wp.vec3d(1, 2, 3)) == wp.vec3d(1, 2, 3)
    mat32h = wp.types.matrix((3, 2), wp.float16)
    assert wp.matrix(wp.float16(0.0), shape=(3, 2)) == mat32h()
    assert wp.matrix(*[wp.float16(i) for i in range(6)], shape=(3, 2)) == mat32h(range(6))
    rows = wp.vec2(1, 2), wp.vec2(3, 4), wp.vec2(5, 6)
    assert wp.matrix_from_rows(*rows) == wp.matrix(1.0, 2, 3, 4, 5, 6, shape=(3, 2))
    assert wp.matrix_from_cols(*rows) == wp.matrix(1.0, 3, 5, 2, 4, 6, shape=(2, 3))
    assert wp.quaternion(1.0, 2.0, 3.0, 4.0) == wp.quat(1, 2, 3, 4)
    assert wp.transformation(wp.vec3(1, 2, 3), wp.quat_identity()) == wp.transform((1, 2, 3), (0, 0, 0, 1))


@pytest.mark.parametrize(
    "call, message",
    [
        (lambda: wp.vector(), "length=3"),
        (lambda: wp.matrix(1.0, 2.0), "shape="),
        (lambda: wp.vector("a", "b"), "argument 1 is str"),
        (lambda: wp.vector(1, 2, size=2), "no parameter 'size'"),
        (lambda: wp.vector(1.0, 2.0, length=3), "got 2 arguments"),
        (lambda: wp.matrix(shape=3), "tuple of two ints"),
    ],
)
def test_an_anonymous_value_that_cannot_be_made(call, message):
    with pytest.raises((TypeError, ValueError), match=message):
        call()


def test_printing_goes_to_pythons_stdout(capsys):
    wp.printf("%d is %s and %.3f\n", 3, "three", 0.125)
    wp.expect_eq(1, 2)
    assert capsys.readouterr().out == "3 is three and 0.125\nError: expect_eq() failed: (1) and (2)\n"
    with pytest.raises(wp.CompileError, match="'%d' needs an integer"):
        wp.printf("%d\n", 0.5)
    with pytest.raises(TypeError, match="argument 2 is vec3f"):
        wp.printf("%d\n", wp.vec3())


@pytest.mark.parametrize("name", ["tid", "block_dim", "range", "len", "atomic_add", "atomic_cas"])
def test_what_only_kernels_can_call_says_so(name):
    with pytest.raises(wp.UsageError, match=rf"wp.{name}\(\): has a meaning only in kernels"):
        getattr(wp, name)()


@pytest.mark.parametrize(
    "call, message",
    [
        (lambda: wp.dot(wp.vec3(), wp.vec2()), "argument 'b' is vec2f, expected vec3f as in 'a'"),
        (lambda: wp.dot((1, 2, 3), (4, 5, 6)), r"argument 1 is tuple of length 3.*wp.vec3"),
        (lambda: wp.sin(None), "argument 1 is None"),
        (lambda: wp.sin("0.5"), "expected a float"),
        (lambda: wp.sin(wp.float32), "is the type float32, expected a value"),
        (lambda: wp.sin(), "missing"),
        (lambda: wp.sin(0.1, 0.2), "takes 1 argument, 2 given"),
        (lambda: wp.sin(y=0.5), "no parameter 'y'"),
        (lambda: wp.sin(0.5, x=0.5), "given twice|takes 1"),
        (lambda: wp.lerp(wp.vec3(), wp.vec3(), wp.float64(0.5)), "float64"),
        (lambda: wp.sin(wp.array(dtype=float)), "argument 1 is array"),
    ],
)
def test_a_call_that_fits_no_overload_lists_them(call, message):
    with pytest.raises((TypeError, ValueError), match=f"(?s){message}"):
        call()


def test_integer_division_by_zero_is_an_error():
    with pytest.raises(ValueError, match="integer division by zero"):
        wp.div(3, 0)
    assert wp.div(3.0, 0.0) == math.inf


def test_functions_of_kernels_run_in_python_with_the_same_builtins():
    @wp.func
    def reflect(v: wp.vec3, n: wp.vec3):
        return v - n * (2.0 * wp.dot(v, n))

    assert reflect(wp.vec3(1, -1, 0), wp.vec3(0, 1, 0)) == wp.vec3(1, 1, 0)


def test_calls_of_huge_values_are_an_error_at_once():
    vector, matrix = wp.types.vector(60000, wp.float32)(1.0), wp.types.matrix((6000, 10), wp.float32)(1.0)
    row, square = wp.types.vector(10, wp.float32)(1.0), wp.types.matrix((36, 36), wp.float32)(1.0)
    calls = {
        120000: [lambda: wp.transpose(matrix)],
        180000: [lambda: wp.cw_mul(vector, vector), lambda: wp.cw_mul(matrix, matrix)],
        120001: [lambda: wp.dot(vector, vector), lambda: wp.ddot(matrix, matrix)],
        60001: [lambda: wp.length(vector), lambda: wp.min(vector)],
        66010: [lambda: matrix @ row, lambda: matrix * row],
    }
    for components, functions in calls.items():
        for function in functions:
            with pytest.raises(ValueError, match=f"may have 4096 components in .*, this one has {components}"):
                function()
    with pytest.raises(ValueError, match="may have 16384 operations, this one has 4"):
        wp.mul(square, square)
    # An operation by components needs no code and has no limit; NumPy has the rest, as the message says.
    np.testing.assert_array_equal(np.array(vector + vector * 2.0), np.full(60000, 3.0))
    np.testing.assert_array_equal(np.array(-matrix), np.full(60000, -1.0))
    assert np.dot(np.array(vector), np.array(vector)) == 60000.0


def test_calls_up_to_the_limit_are_computed():
    rng = np.random.default_rng(3)
    matrix_type, vector_type = wp.types.matrix((40, 20), wp.float64), wp.types.vector(800, wp.float64)
    values = rng.standard_normal((40, 20))
    np.testing.assert_array_equal(np.array(wp.transpose(matrix_type(values))), values.T.ravel())
    flat = values.ravel()
    np.testing.assert_allclose(wp.dot(vector_type(flat), vector_type(flat)), (flat * flat).sum())
