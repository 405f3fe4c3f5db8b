"""The seeds' samples, read from the documents and run line by line as they are printed.

If a sample names "cuda" and there is none, it must fail with an error that names the device, and pass with "cpu" in
its place; on the emulated device it runs as it is printed. Samples that are the body of a kernel get a
header.
"""

import subprocess
import sys

import numpy as np
import pytest
import warp as wp

HEADER = "import warp as wp\nimport numpy as np\n"


def without_output(text):
    """A sample's code: its output is shown behind '>'."""
    return "".join(line + "\n" for line in text.splitlines() if not line.startswith(">"))


@pytest.mark.seed("P-01")
@pytest.mark.parametrize(("seed", "first", "last"), [(0, 16, 19), (1, 66, 69), (2, 56, 59)])
def test_p01_list_to_numpy(load_seed, run_sample, capsys, seed, first, last):
    run_sample(HEADER + without_output(load_seed(seed).text(first, last)))
    assert capsys.readouterr().out == "[1. 2. 3.]\n"


def indented(text):
    """The page whose lines have lost their indentation (002): the bodies of its kernels get it back."""
    lines, inside = [], False
    for line in text.splitlines():
        inside = inside and line.startswith(("i = ", "y[i]"))
        lines.append("    " + line if inside else line)
        inside = inside or line.startswith("def ")
    return "\n".join(lines) + "\n"


@pytest.mark.seed("P-02")
@pytest.mark.seed("P-03")
@pytest.mark.parametrize("n", [1, 1000])
@pytest.mark.parametrize(("seed", "first", "last"), [(1, 12, 23), (2, 37, 45)])
def test_p02_and_p03_saxpy_on_numpy_arrays(load_seed, run_sample, seed, first, last, n):
    text = load_seed(seed).text(first, last)
    y = run_sample(indented(text) if seed == 2 else text, n=n)["y"]
    assert type(y) is np.ndarray and y.dtype == np.float32
    np.testing.assert_array_equal(y, np.arange(n) + 1.0)


@pytest.mark.seed("P-07")
@pytest.mark.parametrize("n", [1, 1000])
@pytest.mark.parametrize(("seed", "first", "last"), [(1, 75, 80), (2, 61, 66)])
def test_p07_dtypes_shared_with_numpy(load_seed, run_sample, seed, first, last, n):
    names = run_sample(HEADER + load_seed(seed).text(first, last), n=n)
    assert names["numpy_type"] is np.float32 and names["a"].dtype is wp.float32
    assert names["a"].numpy().dtype == names["b"].dtype and names["a"].shape == names["b"].shape == (n,)
    assert not names["a"].numpy().any() and not names["b"].any()


BEYOND = """
@wp.kernel
def beyond(x: wp.array(dtype=float), n: int):
    x[wp.tid() + n] = 2.0

x = wp.zeros(4, device="cpu")
wp.launch(beyond, dim=4, inputs=[x, 0], device="cpu")
print(x.numpy())
try:
    wp.launch(beyond, dim=4, inputs=[x, 1], device="cpu")
except IndexError as error:
    print(error)
"""


@pytest.mark.seed("P-44")
@pytest.mark.parametrize("where", ["cpu", pytest.param("cuda", marks=pytest.mark.gpu)])
def test_p44_configuration(load_seed, tmp_path, where):
    program = tmp_path / "debug.py"
    program.write_text(load_seed(3).text(14, 19) + BEYOND.replace("cpu", where))
    result = subprocess.run([sys.executable, str(program)], capture_output=True, text=True, timeout=120)
    assert result.returncode == 0, result.stderr
    first, rest = result.stdout.split("\n", 1)
    assert first == "[2. 2. 2. 2.]" and "index 4 is out of bounds for axis 0 of 'x'" in rest and "'beyond'" in rest


@pytest.mark.seed("P-45")
def test_p45_simple_kernel(load_seed, run_sample, run_cuda_sample):
    names = run_sample(HEADER + load_seed(3).text(30, 46))
    rng = np.random.default_rng(0)
    a, b = (wp.array(rng.standard_normal((1000, 3)), dtype=wp.vec3) for _ in "ab")
    c = wp.zeros(1000)
    wp.launch(names["simple_kernel"], dim=1000, inputs=[a, b, c])
    np.testing.assert_allclose(c.numpy(), (a.numpy() * b.numpy()).sum(axis=1), rtol=1e-5, atol=1e-6)

    sample = HEADER + load_seed(4).text(19)
    a, b = wp.zeros(1024, dtype=wp.vec3), wp.zeros(1024, dtype=wp.vec3)
    values = {"simple_kernel": names["simple_kernel"], "a": a, "b": b, "c": wp.ones(1024)}
    run_cuda_sample(sample, **values)
    assert not values["c"].numpy().any()


@pytest.mark.seed("P-46")
@pytest.mark.seed("P-56")
@pytest.mark.parametrize(("seed", "first", "last"), [(3, 57, 58), (4, 42, 43)])
def test_allocation(load_seed, run_cuda_sample, seed, first, last):
    sample = HEADER + load_seed(seed).text(first, last)
    names = run_cuda_sample(sample.replace("wp.empty", "empty = wp.empty").replace("wp.zeros", "zeros = wp.zeros"))
    assert names["empty"].shape == names["zeros"].shape == (1024,) and names["empty"].dtype is wp.vec3
    assert names["zeros"].dtype is wp.float32 and not names["zeros"].numpy().any()


@pytest.mark.seed("P-47", "S-ARR-008")
@pytest.mark.parametrize(("seed", "first", "last"), [(3, 63, 72), (4, 48, 57)])
def test_p47_three_ways_to_wrap(load_seed, run_cuda_sample, seed, first, last):
    sample = HEADER + load_seed(seed).text(first, last)
    # All three are called a: the result of each statement is kept.
    parts = sample.split("\na = ")
    assert len(parts) == 4
    numbered = parts[0] + "".join(f"\na{n} = {part}" for n, part in enumerate(parts[1:], 1))
    for dtype in (np.float64, np.float32):
        text = numbered.replace("np.random.rand(1024)", f"np.random.rand(1024).astype(np.{dtype.__name__})")
        names = run_cuda_sample(text)
        r, arrays = names["r"], [names[f"a{n}"] for n in (1, 2, 3)]
        before = r.astype(np.float32)
        assert r.dtype == dtype
        for a in arrays:
            assert a.dtype is wp.float32 and a.shape == (1024,)
            np.testing.assert_array_equal(a.numpy(), before)
        r[7] += 1.0
        copied, viewed, moved = (bool(a.numpy()[7] != before[7]) for a in arrays)
        assert (copied, moved) == (False, False) and viewed == (dtype is np.float32)
        arrays[1].fill_(3.0)
        assert (r == 3.0).all() == (dtype is np.float32)
        np.testing.assert_array_equal(arrays[0].numpy(), before)


@pytest.mark.seed("P-48")
@pytest.mark.parametrize(("seed", "first", "last"), [(3, 76, 79), (4, 61, 64)])
def test_p48_vectors_from_rows(load_seed, run_cuda_sample, seed, first, last):
    repaired = load_seed(seed).text(first, last).replace("rand((1024, 3))", "rand(1024, 3)")
    names = run_cuda_sample(HEADER + repaired)
    assert names["a"].shape == (1024,) and names["a"].dtype is wp.vec3
    np.testing.assert_array_equal(names["a"].numpy(), names["r"].astype(np.float32))
    with pytest.raises(RuntimeError, match=r"\(3,\)"):
        run_cuda_sample(HEADER + repaired.replace("rand(1024, 3)", "rand(10, 4)"))


# The `a` of the page at the samples of P-49 and P-50: an array of vec3. Others are tried too.
WRAPPED = {
    "vectors": lambda: wp.array(np.arange(3072.0).reshape(1024, 3), dtype=wp.vec3, device="cpu"),
    "floats": lambda: wp.array([1.0, 2.0, 3.0], dtype=float, device="cpu"),
    "list": lambda: [1.0, 2.0, 3.0],
}


def values_of(a):
    return np.array(a, np.float32) if isinstance(a, list) else a.numpy()


@pytest.mark.seed("P-49")
@pytest.mark.parametrize("kind", WRAPPED)
@pytest.mark.parametrize(("seed", "first", "last"), [(3, 85, 88), (4, 71, 74)])
def test_p49_to_a_device(load_seed, run_cuda_sample, seed, first, last, kind):
    sample = HEADER + load_seed(seed).text(first, last)
    a = WRAPPED[kind]()
    names = run_cuda_sample(sample, a=a)
    host, device = names["host_array"], names["device_array"]
    assert host.dtype is wp.float32 and host.shape == values_of(a).shape and host.device == "cpu"
    np.testing.assert_array_equal(host.numpy(), values_of(a))
    np.testing.assert_array_equal(device.numpy(), values_of(a))
    assert (device is host) == (not wp.is_cuda_available())  # it is there already
    assert device.device == ("cuda:0" if wp.is_cuda_available() else "cpu")
    if isinstance(a, wp.array):
        a.fill_(-1.0)
        assert (host.numpy() >= 0.0).all()


@pytest.mark.seed("P-50")
@pytest.mark.parametrize("kind", WRAPPED)
@pytest.mark.parametrize(("seed", "first", "last"), [(3, 92, 96), (4, 78, 82)])
def test_p50_copy(load_seed, run_sample, seed, first, last, kind):
    a = WRAPPED[kind]()
    host_array = wp.array(a, dtype=float, device="cpu")
    names = run_sample(HEADER + load_seed(seed).text(first, last), a=a, host_array=host_array)
    source, dest = names["src_array"], names["dest_array"]
    assert dest.shape == host_array.shape and len({source.ptr, dest.ptr, host_array.ptr}) == 3
    np.testing.assert_array_equal(dest.numpy(), values_of(a))
    source.fill_(-1.0)
    np.testing.assert_array_equal(dest.numpy(), values_of(a))


COMPUTE = """
@wp.kernel
def compute1(a: wp.array(dtype=float), b: wp.array(dtype=float)):
    i = wp.tid()
    b[i] = b[i] + a[i]
"""


@pytest.mark.seed("P-51", "P-52", "S-GRF-001", "S-GRF-002", "S-GRF-003", "S-GRF-004")
@pytest.mark.parametrize(("number", "first", "last", "launch"), [(3, 110, 118, 123), (4, 824, 832, 837)])
def test_p51_and_p52_a_hundred_launches_in_a_graph(load_seed, run_sample, number, first, last, launch):
    """As printed if the default device is a GPU; the CPU takes the place of "cuda" elsewhere."""
    seed = load_seed(number)
    capture = seed.text(first, last)
    assert capture.count('device="cuda"') == 1
    if not wp.get_device().is_cuda:
        capture = capture.replace('"cuda"', '"cpu"')
    compute1 = run_sample(HEADER + COMPUTE)["compute1"]
    numbers = np.arange(1.0, 1025.0, dtype=np.float32)
    a, b = wp.array(numbers), wp.full(1024, 0.5, dtype=float)
    graph = run_sample(HEADER + capture, compute1=compute1, a=a, b=b)["graph"]
    assert isinstance(graph, wp.Graph) and graph.device == wp.get_device()
    assert (b.numpy() == 0.5).all(), "launches are recorded, and none of them has run"
    for times in (1, 2, 3):
        run_sample(HEADER + seed.text(launch), graph=graph)
        np.testing.assert_array_equal(b.numpy(), 0.5 + 100.0 * times * numbers)
    # The arrays of the graph are read when it runs.
    a.fill_(2.0)
    b.zero_()
    run_sample(HEADER + seed.text(launch), graph=graph)
    assert (b.numpy() == 200.0).all() and (a.numpy() == 2.0).all()


@pytest.mark.seed("P-51", "D-22")
@pytest.mark.parametrize(("number", "first", "last"), [(3, 110, 118), (4, 824, 832)])
def test_p51_where_the_default_device_is_not_the_gpu(load_seed, run_sample, number, first, last):
    """The capture names no device, and is the CPU's then: the launches on "cuda" are an error that says so."""
    compute1 = run_sample(HEADER + COMPUTE)["compute1"]
    with wp.ScopedDevice("cpu"):
        a, b = wp.ones(8, dtype=float), wp.zeros(8)
        with pytest.raises(RuntimeError, match="cuda"):
            run_sample(HEADER + load_seed(number).text(first, last), compute1=compute1, a=a, b=b)
        wp.capture_end()  # the sample did not come to it
        wp.launch(compute1, inputs=[a, b])
        assert b.list() == [1.0] * 8


@pytest.mark.seed("P-55")
def test_p55_grid(load_seed, run_sample):
    seed = load_seed(4)
    body = seed.text(27) + "x[i, j, k] = x[i, j, k] + 1\n"
    kernel = HEADER + "@wp.kernel\ndef complex_kernel(x: wp.array3d(dtype=int)):\n"
    kernel += "".join(f"    {line}\n" for line in body.splitlines())
    x = wp.zeros((128, 128, 3), dtype=int)
    launch = seed.text(23).replace("...", "inputs=[x]")
    with pytest.raises(SyntaxError):
        run_sample(kernel + seed.text(23), x=x)
    run_sample(kernel + launch, x=x)
    assert (x.numpy() == 1).all()


@pytest.mark.seed("P-57")
def test_p57_two_dimensions(load_seed, run_cuda_sample):
    a = run_cuda_sample(HEADER + "a = " + load_seed(4).text(89))["a"]
    assert a.shape == (1024, 16) and not a.numpy().any()


@pytest.mark.seed("P-58")
@pytest.mark.seed("P-59")
@pytest.mark.seed("P-60")
def test_p58_to_p60_indexing(load_seed, run_sample):
    seed = load_seed(4)
    more = "ndim=2), array: wp.array3d(dtype=float), out: wp.array(dtype=float)):"
    header = seed.text(94, 95).replace("ndim=2)):", more)
    slice_of = seed.lines[106][seed.lines[106].index("``s = ") + 2 :].split("``")[0]
    body = "\n".join(
        ["i, j, k = 1, 2, 3", *seed.text(99, 100).splitlines(), *seed.text(104, 105).splitlines(), slice_of,
         "out[0] = value", "out[1] = row[0]", "out[2] = s"]
    )  # fmt: skip
    text = HEADER + header + "".join(f"    {line}\n" for line in body.splitlines())
    names = run_sample(text)
    a, b = np.arange(6.0).reshape(2, 3), np.arange(24.0).reshape(2, 3, 4)
    out = wp.zeros(3)
    wp.launch(names["test"], dim=1, inputs=[wp.array(a, dtype=float), wp.array(b, dtype=float), out])
    assert out.numpy().tolist() == [a[1, 2], a[1, 0], b[1, 2, 3]]


def fragment(seed, first, last, results, **parameters):
    """A kernel whose body is the lines of a sample, its '...' left out, and stores for what is to be checked."""
    lines = [line for line in seed.text(first, last).splitlines() if line.strip() != "..."]
    header = next((n for n, line in enumerate(lines) if line.startswith("def ")), -1)
    import textwrap

    body = textwrap.dedent("\n".join(lines[header + 1 :])).splitlines()
    arguments = ", ".join(f"{name}: {annotation}" for name, annotation in parameters.items())
    text = f"@wp.kernel\ndef compute({arguments}):\n" + "".join(f"    {line}\n" for line in [*body, *results])
    return HEADER + text


def stored_before(text, comment, store):
    """The kernel with a store of a variable's value before the comment at which it gets another value."""
    assert text.count(comment) == 1
    return text.replace(comment, f"{store}\n    {comment}")


@pytest.mark.seed("P-62")
def test_p62_basis_vectors(load_seed, run_sample):
    parameters = {"out": "wp.array(dtype=float)", "cross": "wp.array(dtype=wp.vec3)"}
    names = run_sample(fragment(load_seed(4), 209, 222, ["out[0] = r", "cross[0] = c"], **parameters))
    out, cross = wp.zeros(1), wp.zeros(1, dtype=wp.vec3)
    wp.launch(names["compute"], dim=1, inputs=[out, cross])
    assert out.numpy()[0] == 1.0 and cross.numpy()[0].tolist() == [0.0, 0.0, 1.0]


@pytest.mark.seed("P-63")
@pytest.mark.seed("P-64")
@pytest.mark.seed("P-65")
def test_p63_to_p65_vec5d(load_seed, run_sample):
    seed = load_seed(4)
    declared = HEADER + seed.text(228) + seed.text(233)
    names = run_sample(declared)
    assert names["arr"].numpy().shape == (10, 5) and names["arr"].numpy().dtype == np.float64
    text = fragment(seed, 236, 249, ["out[1] = v"], out="wp.array(dtype=vec5d)")
    text = stored_before(text, "# component-wise", "out[0] = v")
    names = run_sample(text, vec5d=names["vec5d"])
    out = wp.full(2, 9.0, dtype=names["vec5d"])
    wp.launch(names["compute"], dim=1, inputs=[out])
    assert out.numpy().tolist() == [[0.0] * 5, [1.0, 2.0, 3.0, 4.0, 5.0]]


@pytest.mark.seed("P-66")
def test_p66_anonymous_vectors(load_seed, run_sample):
    vec5d = wp.types.vector(length=5, dtype=wp.float64)
    text = fragment(load_seed(4), 253, 267, ["out[2] = v"], out="wp.array(dtype=vec5d)")
    text = stored_before(stored_before(text, "# scalar", "out[0] = v"), "# component-wise", "out[1] = v")
    out = wp.full(3, 9.0, dtype=vec5d)
    wp.launch(run_sample(text, vec5d=vec5d)["compute"], dim=1, inputs=[out])
    assert out.numpy().tolist() == [[0.0] * 5, [1.0] * 5, [1.0, 2.0, 3.0, 4.0, 5.0]]


@pytest.mark.seed("P-67")
def test_p67_inverse(load_seed, run_sample):
    names = run_sample(fragment(load_seed(4), 297, 308, ["out[0] = v"], out="wp.array(dtype=wp.vec2)"))
    out = wp.zeros(1, dtype=wp.vec2)
    wp.launch(names["compute"], dim=1, inputs=[out])
    np.testing.assert_allclose(out.numpy()[0], [-0.7, 0.6], rtol=1e-5)


@pytest.mark.seed("P-68")
@pytest.mark.seed("P-69")
def test_p68_and_p69_mat32h(load_seed, run_sample):
    seed = load_seed(4)
    names = run_sample(HEADER + seed.text(316) + seed.text(319))
    assert names["a"].numpy().shape == (10, 3, 2) and names["a"].numpy().dtype == np.float64
    text = fragment(seed, 323, 337, ["out[0] = v3"], out="wp.array(dtype=wp.vec3h)")
    out = wp.zeros(1, dtype=wp.vec3h)
    as_printed = run_sample(text, mat32h=names["mat32h"])
    with pytest.raises(wp.CompileError, match=r"dtype=float64\) is float16, expected float64"):
        wp.launch(as_printed["compute"], dim=1, inputs=[out])
    repaired = run_sample(text, mat32h=wp.types.matrix(shape=(3, 2), dtype=wp.float16))
    wp.launch(repaired["compute"], dim=1, inputs=[out])
    assert out.numpy()[0].tolist() == [3.0, 7.0, 11.0]


@pytest.mark.seed("P-70")
def test_p70_one_variable_three_types(load_seed, run_sample):
    mat55d = wp.types.matrix(shape=(5, 5), dtype=wp.float64)
    mat32h = wp.types.matrix(shape=(3, 2), dtype=wp.float16)
    parameters = {"halves": "wp.array(dtype=mat32h)", "out": "wp.array(dtype=mat55d)"}
    text = fragment(load_seed(4), 341, 356, ["out[0] = m"], **parameters)
    # Each value is stored before m is bound again.
    for index, comment in enumerate(("# zero initialize", "# create a 5x5")):
        text = stored_before(text, comment, f"halves[{index}] = m")
    names = run_sample(text, mat55d=mat55d, mat32h=mat32h)
    halves, out = wp.full(2, 9.0, dtype=mat32h), wp.full(1, 9.0, dtype=mat55d)
    wp.launch(names["compute"], dim=1, inputs=[halves, out])
    assert halves.numpy().tolist() == [[[1.0, 2.0]] * 3, [[0.0, 0.0]] * 3]
    np.testing.assert_array_equal(out.numpy()[0], np.eye(5))


def angle_of(array):
    """The result of degrees(30.0) in a kernel: a float32 at most one unit in the last place beside the exact angle."""
    angle = array.numpy()[0]
    assert abs(angle - np.degrees(30.0)) <= np.spacing(angle)
    return float(angle)


@pytest.mark.seed("P-71")
def test_p71_rotation_about_x(load_seed, run_sample):
    parameters = {"out": "wp.array(dtype=wp.vec3)", "angle": "wp.array(dtype=float)"}
    results = ["out[0] = v", "angle[0] = wp.degrees(30.0)"]
    names = run_sample(fragment(load_seed(4), 379, 385, results, **parameters))
    out, angle = wp.zeros(1, dtype=wp.vec3), wp.zeros(1)
    wp.launch(names["compute"], dim=1, inputs=[out, angle])
    turned = angle_of(angle)
    np.testing.assert_allclose(out.numpy()[0], [0.0, np.cos(turned), np.sin(turned)], atol=5e-7)
    np.testing.assert_allclose(out.numpy()[0], [0.0, -0.91219, -0.40977], atol=2e-4)


@pytest.mark.seed("P-72")
@pytest.mark.seed("P-75")
def test_p72_and_p75_declared_types(load_seed, run_sample):
    quatd = run_sample(HEADER + load_seed(4).text(390))["quatd"]
    transformd = run_sample(HEADER + load_seed(4).text(450))["transformd"]
    assert wp.zeros(2, dtype=quatd).numpy().shape == (2, 4) and wp.zeros(2, dtype=transformd).numpy().shape == (2, 7)
    assert quatd is wp.quatd and transformd is wp.transformd


@pytest.mark.seed("P-73")
def test_p73_quaternions_in_three_precisions(load_seed, run_sample):
    text = fragment(
        load_seed(4),
        394,
        413,
        ["d[0] = qd", "f[0] = qf", "h[0] = qh"],
        d="wp.array(dtype=wp.quatd)",
        f="wp.array(dtype=wp.quatf)",
        h="wp.array(dtype=wp.quath)",
    )
    out = [wp.zeros(1, dtype=t) for t in (wp.quatd, wp.quatf, wp.quath)]
    wp.launch(run_sample(text)["compute"], dim=1, inputs=out)
    assert all(a.numpy()[0].tolist() == [0.0, 0.0, 0.0, 1.0] for a in out)


@pytest.mark.seed("P-74")
def test_p74_transform_of_four_scalars(load_seed, run_sample):
    parameters = {"out": "wp.array(dtype=wp.vec3)", "angle": "wp.array(dtype=float)"}
    text = fragment(load_seed(4), 432, 445, ["out[1] = p", "angle[0] = wp.degrees(30.0)"], **parameters)
    text = text.replace("    # transform a vector", "    out[0] = p\n    # transform a vector")
    out, angle = wp.zeros(2, dtype=wp.vec3), wp.zeros(1)
    wp.launch(run_sample(text)["compute"], dim=1, inputs=[out, angle])
    point, vector = out.numpy()
    c, s = np.cos(angle_of(angle)), np.sin(angle_of(angle))
    turned = np.array([10.0 * c + s, 0.5, -10.0 * s + c])
    np.testing.assert_allclose(vector, turned, atol=5e-6)
    np.testing.assert_allclose(point, turned + [1.0, 2.0, 3.0], atol=5e-6)
    np.testing.assert_allclose(vector, [-9.5316, 0.5, 3.186], atol=2e-3)


@pytest.mark.seed("P-76")
def test_p76_identity_transform(load_seed, run_sample):
    text = fragment(load_seed(4), 454, 458, ["out[0] = qd"], out="wp.array(dtype=wp.transformd)")
    out = wp.zeros(1, dtype=wp.transformd)
    wp.launch(run_sample(text)["compute"], dim=1, inputs=[out])
    assert out.numpy()[0].tolist() == [0.0] * 6 + [1.0]


@pytest.mark.seed("P-77")
@pytest.mark.seed("P-78")
@pytest.mark.seed("P-79")
def test_p77_to_p79_structs(load_seed, run_sample, capsys):
    seed = load_seed(4)
    names = run_sample(HEADER + seed.text(465, 470) + seed.text(474, 490))
    wp.synchronize()
    lines = capsys.readouterr().out.splitlines()
    assert sorted(lines) == ["0 0 0"] * 10 + ["10"] * 10 + ["2.5"] * 10
    struct = names["MyStruct"]
    zeros = run_sample(HEADER + seed.text(494), MyStruct=struct)["a"]
    assert zeros.shape == (10,) and all((s.param1, s.param2, s.param3) == (0, 0.0, None) for s in zeros)
    assert run_sample(HEADER + seed.text(498), MyStruct=struct)["a"].shape == (3,)


@pytest.mark.seed("P-80")
def test_p80_constants(load_seed, run_sample, capsys):
    names = run_sample(HEADER + load_seed(4).text(515, 529))
    wp.launch(names["collide"], dim=3, inputs=[wp.array([0, 1, 2], dtype=int)])
    wp.synchronize()
    assert sorted(capsys.readouterr().out.splitlines()) == ["capsule", "cube", "sphere"]
    wp.config.serial = True
    try:
        wp.launch(names["collide"], dim=3, inputs=[wp.array([0, 1, 2], dtype=int)])
        wp.synchronize()
    finally:
        wp.config.serial = False
    assert capsys.readouterr().out == "sphere\ncube\ncapsule\n"


@pytest.mark.usefixtures("on_the_cpu")
@pytest.mark.seed("P-81")
@pytest.mark.seed("P-82")
@pytest.mark.seed("P-94")
def test_p81_p82_and_p94_rays(load_seed, run_sample):
    seed = load_seed(4)
    points = wp.array([[0.0, 0, 0], [1, 0, 0], [0, 1, 0]], dtype=wp.vec3)
    indices, velocities = wp.array([0, 1, 2], dtype=int), wp.zeros(3, dtype=wp.vec3)
    names = run_sample(HEADER + seed.text(598), points=points, indices=indices, velocities=velocities)
    mesh = names["mesh"]
    assert mesh.points is points and mesh.velocities is velocities
    raycast = run_sample(HEADER + seed.text(605, 628))["raycast"]
    start = wp.array([[0.2, 0.2, 3.0], [0.9, 0.9, 3.0], [5.2, 0.2, 3.0]], dtype=wp.vec3)
    down = wp.array([[0.0, 0, -1]] * 3, dtype=wp.vec3)
    hits = []
    for _ in range(2):
        colors = wp.full(3, wp.vec3(7.0), dtype=wp.vec3)
        wp.launch(raycast, dim=3, inputs=[mesh.id, start, down, colors])
        hits.append(colors.numpy().tolist())
        mesh.points.assign([[5.0, 0, 0], [6, 0, 0], [5, 1, 0]])
        mesh.refit()
    assert hits == [[[0.5, 0.5, 1], [0, 0, 0], [0, 0, 0]], [[0, 0, 0], [0, 0, 0], [0.5, 0.5, 1]]]


@pytest.mark.usefixtures("on_the_cpu")
@pytest.mark.seed("P-83")
@pytest.mark.seed("P-84")
@pytest.mark.parametrize("codec", ["none", "zip"])
def test_p83_and_p84_volumes(load_seed, run_sample, tmp_path, monkeypatch, codec):
    seed = load_seed(4)
    values = np.random.default_rng(0).standard_normal((6, 7, 8)).astype(np.float32)
    made = wp.Volume.load_from_numpy(values, min_world=(1, 2, 3), voxel_size=0.5)
    made.save_to_nvdb(tmp_path / "mygrid.nvdb", codec=codec)
    monkeypatch.chdir(tmp_path)
    names = run_sample(HEADER + seed.text(650, 654))
    names["file"].close()
    sample_grid = run_sample(HEADER + seed.text(661, 678))["sample_grid"]
    at = np.random.default_rng(1).uniform(0, 5, (50, 3))
    points = wp.array(at * 0.5 + [1, 2, 3], dtype=wp.vec3)
    samples = wp.zeros(50, dtype=float)
    wp.launch(sample_grid, dim=50, inputs=[names["volume"].id, points, samples])
    low = np.floor(at).astype(int)
    expected = sum(
        values[tuple((low + corner).T)] * np.where(corner, at - low, 1 - at + low).prod(axis=1)
        for corner in np.ndindex(2, 2, 2)
    )
    np.testing.assert_allclose(samples.numpy(), expected, atol=2e-5)


@pytest.mark.usefixtures("on_the_cpu")
@pytest.mark.seed("P-85", "P-86")
def test_p85_and_p86_neighbours(load_seed, run_sample):
    seed = load_seed(4)
    p = wp.array([[0.0, 0, 0], [0.4, 0, 0], [2, 0, 0]], dtype=wp.vec3)
    if wp.get_cuda_device_count():
        grid = run_sample(HEADER + seed.text(696, 698), p=p.to("cuda:0"), r=0.5)["grid"]
        assert grid.device == "cuda:0"
        assert grid._cells()[1].tolist() == [0, 0, 4]
    else:
        with pytest.raises(RuntimeError, match="cuda"):
            run_sample(HEADER + seed.text(696, 698), p=p, r=0.5)
    build = HEADER + seed.text(696, 698).replace('"cuda"', '"cpu"')
    grid = run_sample(build, p=p, r=0.5)["grid"]
    sum_of = run_sample(HEADER + seed.text(702, 728))["sum"]
    out = wp.zeros(3, dtype=wp.vec3)
    wp.launch(sum_of, dim=3, inputs=[grid.id, p, out, 0.5])
    np.testing.assert_allclose(out.numpy(), [[0.4, 0, 0], [0.4, 0, 0], [2, 0, 0]], rtol=1e-6)
    points = np.random.default_rng(2).uniform(-2, 2, (300, 3)).astype(np.float32)
    p = wp.array(points, dtype=wp.vec3)
    grid = run_sample(build, p=p, r=0.5)["grid"]
    out = wp.zeros(300, dtype=wp.vec3)
    wp.launch(sum_of, dim=300, inputs=[grid.id, p, out, 0.5])
    near = np.linalg.norm(points[:, None] - points[None], axis=2) <= 0.5
    np.testing.assert_allclose(out.numpy(), near @ points, atol=1e-4)
