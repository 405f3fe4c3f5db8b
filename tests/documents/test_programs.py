"""Our own counterparts of the seeds' programs: each runs the sample's kernels and checks the
numbers that the contract states. The samples themselves run in test_documents.py if the documents lie beside us."""

import subprocess
import sys

import numpy as np
import pytest
import warp as wp


@pytest.mark.seed("P-01")
@pytest.mark.seed("S-USE-011")
def test_list_to_array_to_numpy(capsys):
    w = wp.array([1.0, 2.0, 3.0], dtype=float, device="cpu")
    print(np.array(w))
    assert capsys.readouterr().out == "[1. 2. 3.]\n"


@pytest.mark.seed("P-02")
@pytest.mark.seed("P-03")
@pytest.mark.parametrize("n", [1, 1000])
def test_saxpy_on_numpy_arrays(n):
    @wp.kernel
    def older(x: wp.array(dtype=float), y: wp.array(dtype=float), a: float):
        i = wp.tid()
        y[i] = a * x[i] + y[i]

    @wp.kernel
    def newer(x: wp.array[float], y: wp.array[float], a: float):
        i = wp.tid()
        y[i] = a * x[i] + y[i]

    x, y = np.arange(n, dtype=np.float32), np.ones(n, dtype=np.float32)
    wp.launch(older, dim=n, inputs=[x, y, 1.0], device="cpu")
    np.testing.assert_array_equal(y, np.arange(n) + 1.0)
    wp.launch(newer, dim=n, inputs=[x, y, 2.0], device="cpu")
    np.testing.assert_array_equal(y, 3.0 * np.arange(n) + 1.0)


@pytest.mark.seed("P-07")
def test_dtypes_shared_with_numpy():
    numpy_type = wp.dtype_to_numpy(wp.float32)
    a, b = wp.zeros(9, dtype=wp.float32), np.zeros(9, dtype=numpy_type)
    assert numpy_type is np.float32 and a.numpy().dtype == b.dtype and not a.numpy().any()


@pytest.mark.seed("P-97")
def test_from_numpy_and_array_with_and_without_a_dtype():
    rng = np.random.default_rng(0)
    rows, blocks, square = (rng.standard_normal(shape) for shape in ((5, 3), (5, 2, 2), (6, 6)))
    # Without a dtype from_numpy() makes vectors and matrices of trailing axes, wp.array() scalars.
    for data, dtype in ((rows, wp.vec3d), (blocks, wp.mat22d), (square, wp.types.vector(6, wp.float64))):
        elements, scalars = wp.from_numpy(data), wp.array(data=data)
        assert elements.dtype is dtype and elements.shape == data.shape[:1]
        assert scalars.dtype is wp.float64 and scalars.shape == data.shape
        np.testing.assert_array_equal(elements.numpy(), data)
        np.testing.assert_array_equal(scalars.numpy(), data)
    for make in (wp.from_numpy, lambda nd, dtype: wp.array(data=nd, dtype=dtype)):
        floats, vectors = make(rows, float), make(rows, wp.vec3)
        assert (floats.dtype, floats.shape, vectors.dtype, vectors.shape) == (wp.float32, (5, 3), wp.vec3, (5,))
        for a in (floats, vectors):
            np.testing.assert_array_equal(a.numpy(), rows.astype(np.float32))


@pytest.mark.seed("P-44")
@pytest.mark.seed("S-INI-005")
def test_configuration_before_init(tmp_path):
    program = tmp_path / "debug.py"
    program.write_text("""
import warp as wp

wp.config.mode = "debug"
wp.config.verify_cuda = True
wp.init()

@wp.kernel
def add_one(x: wp.array(dtype=float)):
    i = wp.tid()
    x[i] = x[i] + 1.0

x = wp.zeros(3)
wp.launch(add_one, dim=3, inputs=[x])
assert x.numpy().tolist() == [1.0] * 3
try:
    wp.launch(add_one, dim=4, inputs=[x])
except IndexError as error:
    print(error)
""")
    result = subprocess.run([sys.executable, str(program)], capture_output=True, text=True, timeout=120)
    assert result.returncode == 0, result.stderr
    assert "index 3 is out of bounds for axis 0 of 'x'" in result.stdout and "'add_one'" in result.stdout


@pytest.mark.seed("P-92")
@pytest.mark.seed("S-CNV-002")
def test_a_float_and_an_int_are_not_added():
    @wp.kernel
    def as_printed(out: wp.array(dtype=float)):
        x = float(0.0) + int(4)
        out[0] = x

    @wp.kernel
    def converted(out: wp.array(dtype=float)):
        out[0] = float(0.0) + float(int(4))

    out = wp.zeros(1)
    with pytest.raises(wp.CompileError, match="float32 and int32"):
        as_printed.compile()
    with pytest.raises(wp.CompileError, match="float32 and int32"):
        wp.launch(as_printed, dim=1, inputs=[out])
    wp.launch(converted, dim=1, inputs=[out])
    assert out.numpy()[0] == 4.0


@wp.kernel
def truth_table(a: wp.array(dtype=bool), b: wp.array(dtype=bool), out: wp.array2d(dtype=int)):
    i = wp.tid()
    if a[i] and b[i]:
        out[i, 0] = 1
    if a[i] or b[i]:
        out[i, 1] = 1
    if not a[i]:
        out[i, 2] = 1
    out[i, 3] = int(a[i] and not b[i] or not a[i] and b[i])


@wp.kernel(module_options={"mode": "debug"}, module="unique")
def guarded_by_the_first(limits: wp.array(dtype=int), values: wp.array(dtype=float), out: wp.array(dtype=int)):
    i = wp.tid()
    n = limits[i]
    if n < values.shape[0] and values[n] > 0.5:
        out[i] = 1
    if n >= values.shape[0] or values[n] <= 0.5:
        out[i] += 10


@pytest.mark.seed("P-93")
@pytest.mark.seed("D-15")
def test_boolean_operators_over_all_truth_values():
    a, b = np.array([False, False, True, True] * 5), np.array([False, True, False, True] * 5)
    out = wp.zeros((20, 4), dtype=int)
    wp.launch(truth_table, dim=20, inputs=[wp.array(a), wp.array(b), out])
    np.testing.assert_array_equal(out.numpy(), np.stack([a & b, a | b, ~a, a ^ b], axis=1))
    # In debug mode an access out of bounds would be an exception.
    limits, values = wp.array([0, 1, 2, 3, 10**6], dtype=int), wp.array([1.0, 0.0, 0.75], dtype=float)
    out = wp.zeros(5, dtype=int)
    wp.launch(guarded_by_the_first, dim=5, inputs=[limits, values, out])
    assert out.numpy().tolist() == [1, 10, 1, 10, 10]


@wp.kernel
def simple_kernel(a: wp.array(dtype=wp.vec3), b: wp.array(dtype=wp.vec3), c: wp.array(dtype=float)):
    tid = wp.tid()
    x = a[tid]
    y = b[tid]
    r = wp.dot(x, y)
    c[tid] = r


@pytest.mark.seed("P-45")
@pytest.mark.seed("P-54")
@pytest.mark.parametrize("n", [1, 1000, 1024])
def test_dot_product_per_thread(n):
    rng = np.random.default_rng(0)
    a, b = rng.standard_normal((2, n, 3)).astype(np.float32)
    c = wp.zeros(n)
    wp.launch(simple_kernel, dim=n, inputs=[wp.array(a, dtype=wp.vec3), wp.array(b, dtype=wp.vec3), c])
    np.testing.assert_allclose(c.numpy(), (a * b).sum(axis=1), rtol=1e-5, atol=1e-6)


@pytest.mark.seed("P-46")
@pytest.mark.seed("S-ARR-001")
def test_allocation_by_n():
    e = wp.empty(n=1024, dtype=wp.vec3, device="cpu")
    z = wp.zeros(n=1024, dtype=float, device="cpu")
    assert e.shape == z.shape == (1024,) and not z.numpy().any()


@pytest.mark.seed("P-56")
@pytest.mark.seed("S-ARR-002")
def test_allocation_by_shape():
    e = wp.empty(shape=1024, dtype=wp.vec3, device="cpu")
    z = wp.zeros(shape=1024, dtype=float, device="cpu")
    assert e.shape == z.shape == (1024,) and not z.numpy().any()


@pytest.mark.seed("P-47", "S-ARR-006", "S-ARR-007", "S-ARR-008")
def test_wrapping_a_numpy_vector():
    r = np.random.default_rng(0).random(1024)
    a = wp.array(r, dtype=float, device="cpu")
    b = wp.array(r, dtype=float, copy=False, device="cpu")
    np.testing.assert_array_equal(a.numpy(), r.astype(np.float32))
    np.testing.assert_array_equal(b.numpy(), r.astype(np.float32))
    f = r.astype(np.float32)
    alias = wp.array(f, dtype=float, copy=False, device="cpu")
    f[3] = 7.0
    copied = wp.array(f, dtype=float, device="cpu")
    f[4] = 8.0
    assert alias.numpy()[3:5].tolist() == [7.0, 8.0] and copied.numpy()[4] == a.numpy()[4]
    alias.fill_(5.0)
    assert (f == 5.0).all() and copied.numpy()[4] == a.numpy()[4]


@pytest.mark.seed("P-48")
@pytest.mark.seed("S-ARR-009")
@pytest.mark.seed("S-ARR-010")
def test_rows_of_three_become_vectors():
    a = wp.array(np.random.default_rng(0).random((1024, 3)), dtype=wp.vec3, device="cpu")
    assert a.shape == (1024,) and a.dtype is wp.vec3
    with pytest.raises(RuntimeError, match="3"):
        wp.array(np.zeros((10, 4)), dtype=wp.vec3)


@pytest.mark.seed("P-49")
@pytest.mark.seed("S-USE-005")
@pytest.mark.seed("S-ARR-014")
def test_moving_between_devices():
    vectors = wp.array(np.arange(3072.0).reshape(1024, 3), dtype=wp.vec3, device="cpu")
    host = wp.array(vectors, dtype=float, device="cpu")
    assert host.shape == (1024, 3) and host.dtype is wp.float32 and host.ptr != vectors.ptr
    np.testing.assert_array_equal(host.numpy(), vectors.numpy())
    assert host.to("cpu") is host
    if wp.is_cuda_available():
        np.testing.assert_array_equal(host.to("cuda").numpy(), vectors.numpy())
    else:
        with pytest.raises(RuntimeError, match="cuda"):
            host.to("cuda")


@pytest.mark.seed("P-50")
@pytest.mark.seed("S-USE-006")
def test_copy_has_the_destination_first():
    src = wp.array([1.0, 2.0, 3.0], dtype=float, device="cpu")
    dest = wp.full(3, 9.0, device="cpu")
    wp.copy(dest, src)
    assert dest.numpy().tolist() == src.numpy().tolist() == [1.0, 2.0, 3.0]
    src.zero_()
    assert dest.numpy().tolist() == [1.0, 2.0, 3.0]


@pytest.mark.seed("P-55")
def test_every_coordinate_once():
    @wp.kernel
    def complex_kernel(x: wp.array3d(dtype=int)):
        i, j, k = wp.tid()
        x[i, j, k] = x[i, j, k] + 1

    x = wp.zeros((128, 128, 3), dtype=int)
    wp.launch(complex_kernel, dim=(128, 128, 3), inputs=[x])
    assert (x.numpy() == 1).all()


@pytest.mark.seed("P-57")
def test_two_dimensional_array():
    assert wp.zeros(shape=(1024, 16), dtype=float, device="cpu").shape == (1024, 16)


@pytest.mark.seed("P-58")
@pytest.mark.seed("P-59")
@pytest.mark.seed("P-60")
def test_elements_rows_and_chained_slices():
    @wp.func
    def total(row: wp.array(dtype=float)):
        s = float(0.0)
        for k in range(row.shape[0]):
            s += row[k]
        row[0] = 0.0
        return s

    @wp.kernel
    def test(input: wp.array(dtype=float, ndim=2), array: wp.array(dtype=float, ndim=3), out: wp.array(dtype=float)):
        i, j = 1, 2
        value = input[i, j]
        row = input[i]
        s = array[i][j][0]
        out[0] = value
        out[1] = s
        out[2] = total(row)

    a, b = np.arange(6, dtype=np.float32).reshape(2, 3), np.arange(24, dtype=np.float32).reshape(2, 3, 4)
    wa, out = wp.array(a, dtype=float), wp.zeros(3)
    wp.launch(test, dim=1, inputs=[wa, wp.array(b, dtype=float), out])
    assert out.numpy().tolist() == [a[1, 2], b[1, 2, 0], a[1].sum()]
    assert wa.numpy()[1].tolist() == [0.0, 4.0, 5.0]


@pytest.mark.seed("P-62")
def test_cross_product_of_basis_vectors():
    @wp.kernel
    def compute(c_out: wp.array(dtype=wp.vec3), r_out: wp.array(dtype=float)):
        a = wp.vec3(1.0, 0.0, 0.0)
        b = wp.vec3(0.0, 1.0, 0.0)
        c = wp.cross(a, b)
        r = wp.dot(c, c)
        c_out[0] = c
        r_out[0] = r

    c, r = wp.zeros(1, dtype=wp.vec3), wp.zeros(1)
    wp.launch(compute, dim=1, inputs=[c, r])
    assert c.numpy()[0].tolist() == [0.0, 0.0, 1.0] and r.numpy()[0] == 1.0


vec5d = wp.types.vector(length=5, dtype=wp.float64)


@pytest.mark.seed("P-63")
@pytest.mark.seed("P-64")
@pytest.mark.seed("P-65")
@pytest.mark.seed("S-VEC-006")
@pytest.mark.seed("S-VEC-007")
def test_vectors_of_five_doubles():
    arr = wp.zeros(10, dtype=vec5d)
    assert arr.numpy().shape == (10, 5) and arr.numpy().dtype == np.float64

    @wp.kernel
    def compute(out: wp.array(dtype=vec5d)):
        v = vec5d()
        out[0] = v
        v = vec5d(wp.float64(1.0), wp.float64(2.0), wp.float64(3.0), wp.float64(4.0), wp.float64(5.0))
        out[1] = v

    out = wp.full(2, vec5d(9.0, 9.0, 9.0, 9.0, 9.0), dtype=vec5d)
    wp.launch(compute, dim=1, inputs=[out])
    assert out.numpy().tolist() == [[0.0] * 5, [1.0, 2.0, 3.0, 4.0, 5.0]]


@pytest.mark.seed("P-66")
@pytest.mark.seed("S-VEC-008")
def test_anonymous_vectors():
    @wp.kernel
    def compute(out: wp.array(dtype=vec5d)):
        v = wp.vector(dtype=wp.float64, length=5)
        out[0] = v
        v = wp.vector(wp.float64(1.0), length=5)
        out[1] = v
        v = wp.vector(wp.float64(1.0), wp.float64(2.0), wp.float64(3.0), wp.float64(4.0), wp.float64(5.0))
        out[2] = v

    out = wp.full(3, vec5d(9.0, 9.0, 9.0, 9.0, 9.0), dtype=vec5d)
    wp.launch(compute, dim=1, inputs=[out])
    assert out.numpy().tolist() == [[0.0] * 5, [1.0] * 5, [1.0, 2.0, 3.0, 4.0, 5.0]]


@pytest.mark.seed("P-67")
def test_inverse_of_a_matrix_times_a_vector():
    @wp.kernel
    def compute(out: wp.array(dtype=wp.vec2)):
        m = wp.mat22(1.0, 2.0, 3.0, 4.0)
        minv = wp.inverse(m)
        v = minv * wp.vec2(0.5, 0.3)
        out[0] = v

    out = wp.zeros(1, dtype=wp.vec2)
    wp.launch(compute, dim=1, inputs=[out])
    np.testing.assert_allclose(out.numpy()[0], [-0.7, 0.6], rtol=1e-5)


mat32h = wp.types.matrix(shape=(3, 2), dtype=wp.float64)  # the sample's name, and its type
real_mat32h = wp.types.matrix(shape=(3, 2), dtype=wp.float16)


@pytest.mark.seed("P-68")
@pytest.mark.seed("S-MAT-006")
def test_arrays_of_matrices_of_any_shape():
    a = wp.zeros(10, dtype=mat32h)
    assert a.numpy().shape == (10, 3, 2) and a.numpy().dtype == np.float64


@pytest.mark.seed("P-69")
@pytest.mark.seed("S-MAT-008")
def test_half_matrix_times_half_vector_and_the_strict_rule():
    @wp.kernel
    def right(out: wp.array(dtype=wp.vec3h)):
        m = real_mat32h(
            wp.float16(1.0), wp.float16(2.0), wp.float16(3.0), wp.float16(4.0), wp.float16(5.0), wp.float16(6.0)
        )
        v2 = wp.vec2h(wp.float16(1.0), wp.float16(1.0))
        v3 = m * v2
        out[0] = v3

    @wp.kernel
    def as_printed(out: wp.array(dtype=wp.vec3h)):
        m = mat32h(wp.float16(1.0), wp.float16(2.0), wp.float16(3.0), wp.float16(4.0), wp.float16(5.0), wp.float16(6.0))
        out[0] = m * wp.vec2h(wp.float16(1.0), wp.float16(1.0))

    out = wp.zeros(1, dtype=wp.vec3h)
    wp.launch(right, dim=1, inputs=[out])
    assert out.numpy()[0].tolist() == [3.0, 7.0, 11.0]
    with pytest.raises(wp.CompileError, match=r"dtype=float64\) is float16, expected float64"):
        wp.launch(as_printed, dim=1, inputs=[out])


mat55d = wp.types.matrix(shape=(5, 5), dtype=wp.float64)


@pytest.mark.seed("P-70")
@pytest.mark.seed("S-MAT-007")
def test_anonymous_matrices_in_one_variable():
    @wp.kernel
    def compute(first: wp.array(dtype=real_mat32h), last: wp.array(dtype=mat55d)):
        m = wp.matrix(
            wp.float16(1.0),
            wp.float16(2.0),
            wp.float16(1.0),
            wp.float16(2.0),
            wp.float16(1.0),
            wp.float16(2.0),
            shape=(3, 2),
        )
        first[0] = m
        m = wp.matrix(wp.float16(0.0), shape=(3, 2))
        first[1] = m
        m = wp.identity(n=5, dtype=wp.float64)
        last[0] = m

    first, last = wp.full(2, 9.0, dtype=real_mat32h), wp.full(1, 9.0, dtype=mat55d)
    wp.launch(compute, dim=1, inputs=[first, last])
    assert first.numpy().tolist() == [[[1.0, 2.0]] * 3, [[0.0, 0.0]] * 3]
    np.testing.assert_array_equal(last.numpy()[0], np.eye(5))


@wp.struct
class MyStruct:
    param1: int
    param2: float
    param3: wp.array(dtype=wp.vec3)


@pytest.mark.seed("P-77")
@pytest.mark.seed("S-STR-004")
def test_structs_as_arguments(capsys):
    @wp.kernel
    def compute(args: MyStruct):
        tid = wp.tid()
        print(args.param1)
        print(args.param2)
        print(args.param3[tid])

    s = MyStruct()
    s.param1 = 10
    s.param2 = 2.5
    s.param3 = wp.zeros(shape=10, dtype=wp.vec3)
    wp.launch(compute, dim=10, inputs=[s])
    wp.synchronize()
    lines = capsys.readouterr().out.splitlines()
    assert sorted(lines) == ["0 0 0"] * 10 + ["10"] * 10 + ["2.5"] * 10


@pytest.mark.seed("P-78")
@pytest.mark.seed("P-79")
def test_arrays_of_structs():
    a = wp.zeros(shape=10, dtype=MyStruct)
    assert a.shape == (10,) and all((s.param1, s.param2, s.param3) == (0, 0.0, None) for s in a)
    a = wp.array([MyStruct(), MyStruct(), MyStruct()], dtype=MyStruct)
    assert a.shape == (3,) and a.dtype is MyStruct


TYPE_SPHERE = wp.constant(0)
TYPE_CUBE = wp.constant(1)
TYPE_CAPSULE = wp.constant(2)


@pytest.mark.seed("P-80")
@pytest.mark.seed("S-BLT-002")
def test_constants_choose_what_is_printed(capsys):
    @wp.kernel
    def collide(geometry: wp.array(dtype=int)):
        t = geometry[wp.tid()]
        if t == TYPE_SPHERE:
            print("sphere")
        if t == TYPE_CUBE:
            print("cube")
        if t == TYPE_CAPSULE:
            print("capsule")

    shapes = np.array([0, 1, 2, 2, 7, 0], dtype=np.int32)
    wp.launch(collide, dim=6, inputs=[wp.array(shapes)])
    wp.synchronize()
    assert sorted(capsys.readouterr().out.splitlines()) == ["capsule"] * 2 + ["cube"] + ["sphere"] * 2
    shapes = np.random.default_rng(0).integers(0, 4, 3000).astype(np.int32)
    wp.config.serial = True
    try:
        wp.launch(collide, dim=3000, inputs=[wp.array(shapes)])
        wp.synchronize()
    finally:
        wp.config.serial = False
    names = ["sphere", "cube", "capsule"]
    assert capsys.readouterr().out.splitlines() == [names[shape] for shape in shapes if shape < 3]


@pytest.mark.seed("S-BLT-001")
def test_sum_of_squares_by_atomic_add():
    @wp.kernel
    def loss(xs: wp.array(dtype=float, ndim=2), l: wp.array(dtype=float)):
        tid = wp.tid()
        wp.atomic_add(l, 0, xs[tid, 0] ** 2.0 + xs[tid, 1] ** 2.0)

    xs = np.random.default_rng(0).standard_normal((100, 2)).astype(np.float32)
    l = wp.zeros(1)
    wp.launch(loss, dim=100, inputs=[wp.array(xs, dtype=float), l])
    np.testing.assert_allclose(l.numpy()[0], (xs**2).sum(), rtol=1e-5)
