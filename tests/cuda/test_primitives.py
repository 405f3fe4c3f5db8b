"""Operations on whole arrays on a CUDA device beside those of the CPU: sums and running sums have its bits."""

import numpy as np
import pytest
import warp as wp

pytestmark = [pytest.mark.gpu, pytest.mark.own_launches("counts launches, orders them or makes them fail")]
DEVICE = "cuda:0"
random = np.random.default_rng(11)

SCALARS = ["bool", "int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64"]
FLOATS = ["float8_e4m3fn", "float8_e5m2", "float16", "bfloat16", "float32", "float64"]
# Around the sizes of blocks, groups and chunks.
LENGTHS = [1, 7, 16, 33, 1000, 1025, 2049, 16385, 40000]


def numbers(name, shape):
    """The same array on both devices: integers of the whole range, floats with their infinities left out."""
    dtype = getattr(wp, name)
    if name == "bool":
        data = random.random(shape) < 0.4
    elif name in FLOATS:
        data = np.clip(random.standard_normal(shape) * 3, -200, 200)
    else:
        limits = np.iinfo(name)
        data = random.integers(limits.min, limits.max, shape, dtype=name, endpoint=True)
    return wp.array(data, dtype=dtype, device="cpu"), wp.array(data, dtype=dtype, device=DEVICE)


def bits(array):
    return (
        wp.array(array, device="cpu").contiguous().numpy().tobytes() if array.device.is_cpu else bits(array.to("cpu"))
    )


@pytest.mark.parametrize("name", SCALARS + FLOATS)
def test_sums_have_the_bits_of_the_cpu(name):
    for n in LENGTHS:
        here, there = numbers(name, n)
        assert wp.utils.array_sum(here) == wp.utils.array_sum(there)
        if name != "bool":
            assert wp.utils.array_inner(here, here[::-1]) == wp.utils.array_inner(there, there[::-1])


@pytest.mark.parametrize("axis", [0, 1, 2, None])
def test_sums_over_axes_have_the_bits_of_the_cpu(axis):
    for shape in [(3, 5000, 2), (5000, 2, 3), (2, 3, 5000), (4, 1, 6)]:
        here, there = numbers("float32", shape)
        results = [wp.utils.array_sum(a, axis=axis) for a in (here, there)]
        products = [wp.utils.array_inner(a, a, axis=axis) for a in (here, there)]
        for at_home, away in (results, products):
            assert at_home == away if axis is None else bits(at_home) == bits(away)


@pytest.mark.parametrize("of", ["int8", "int64", "uint64", "float16", "float64"])
def test_sums_are_converted_as_on_the_cpu(of):
    for scale in (0, 3, 300, 2**40):
        data = random.standard_normal(50) * scale
        data = np.clip(data, -60000, 60000) if of == "float16" else data
        data = data if of.startswith("float") else data.astype(np.int64).astype(of)
        here = wp.array(data, dtype=getattr(wp, of), device="cpu")
        there = here.to(DEVICE)
        for to in SCALARS + FLOATS:
            outs = [wp.zeros(1, dtype=getattr(wp, to), device=a.device) for a in (here, there)]
            for a, out in zip((here, there), outs):
                wp.utils.array_sum(a, out=out)
            assert bits(outs[0]) == bits(outs[1]), (scale, to)


def test_a_sum_of_bools_as_bool_says_whether_there_is_any():
    for device in ("cpu", DEVICE):
        out = wp.zeros(1, dtype=wp.bool, device=device)
        wp.utils.array_sum(wp.ones(6, dtype=wp.bool, device=device), out=out)
        assert bits(out) == b"\1"


@pytest.mark.parametrize("inclusive", [True, False])
@pytest.mark.parametrize("name", SCALARS[1:] + FLOATS)
def test_running_sums_have_the_bits_of_the_cpu(name, inclusive):
    for n in LENGTHS:
        arrays = numbers(name, n)
        outs = [wp.empty_like(a) for a in arrays]
        for a, out in zip(arrays, outs):
            wp.utils.array_scan(a, out, inclusive)
            wp.utils.array_scan(a, a, inclusive)
            assert bits(a) == bits(out)
        assert bits(outs[0]) == bits(outs[1])


def test_running_sums_of_vectors_and_of_views():
    data = random.standard_normal((20000, 3)).astype(np.float32)
    arrays = [wp.array(data, dtype=wp.vec3, device=device) for device in ("cpu", DEVICE)]
    outs = []
    for a in arrays:
        wide = wp.zeros((20000, 2), dtype=wp.vec3, device=a.device)
        wp.utils.array_scan(a[::-1], wide[:, 1], True)
        outs.append(wide)
    assert bits(outs[0]) == bits(outs[1])


@pytest.mark.parametrize("name", [*SCALARS[1:], *FLOATS])
@pytest.mark.parametrize("values", [wp.int32, wp.float64, wp.vec3, wp.uint8])
def test_sorts_agree_with_the_cpu(name, values):
    for n in (2, 31, 1024, 3000):
        arrays = numbers(name, n)
        if name == "float32":  # -0 equals 0, and NaNs keep their order at the end
            for a in arrays:
                a[:n:5].fill_(np.nan)
                a[1:n:5].fill_(-0.0)
                a[2:n:5].fill_(0.0)
        moved = [wp.zeros(n, dtype=values, device=a.device) for a in arrays]
        for a, out in zip(arrays, moved):
            shape = (n, 3) if values is wp.vec3 else n
            number = wp.float32 if values is wp.vec3 else values
            out.assign(np.arange(np.prod(shape)).reshape(shape).astype(wp.dtype_to_numpy(number)))
            wp.utils.radix_sort_pairs(a, out, n)
        assert bits(arrays[0]) == bits(arrays[1]) and bits(moved[0]) == bits(moved[1])


def test_sorts_of_segments_agree_with_the_cpu():
    data = random.integers(-50, 50, 5000).astype(np.int32)
    begins = np.sort(random.choice(5000, 300, replace=False)).astype(np.int32)
    ends = np.append(begins[1:], 5000).astype(np.int32)
    ends[::3] = begins[::3] + (ends[::3] - begins[::3]) // 2  # with gaps, which stay as they are
    results = []
    for device in ("cpu", DEVICE):
        keys, values = wp.array(data, device=device), wp.array(np.arange(5000, dtype=np.int32), device=device)
        where = [wp.array(x, dtype=int, device=device) for x in (begins, ends)]
        wp.utils.segmented_sort_pairs(keys, values, 5000, *where)
        results.append(bits(keys) + bits(values))
    assert results[0] == results[1]


@pytest.mark.parametrize("name", ["int8", "uint64", "float32", "bfloat16"])
def test_runs_agree_with_the_cpu(name):
    for n in (1, 33, 1024, 5000):
        data = np.repeat(random.integers(0, 3, n), random.integers(1, 9, n))[:n]
        results = []
        for device in ("cpu", DEVICE):
            values = wp.array(data, dtype=getattr(wp, name), device=device)
            if name == "float32":
                values[::7].fill_(np.nan)
                values[1::7].fill_(-0.0)
            found, lengths = wp.zeros_like(values), wp.zeros(n, dtype=int, device=device)
            count = wp.utils.runlength_encode(values, found, lengths)
            results.append((count, bits(found[:count]), bits(lengths[:count])))
        assert results[0] == results[1]
    values = wp.array([1, 2, 3], dtype=int, device=DEVICE)
    with pytest.raises(ValueError, match="'run_values' has 2 elements, and there are 3 runs"):
        wp.utils.runlength_encode(values, wp.zeros(2, dtype=int, device=DEVICE), wp.zeros(3, dtype=int, device=DEVICE))


@pytest.mark.parametrize("name", ["float16", "bfloat16", "float32", "float64"])
def test_products_of_views_and_batches(name):
    dtype = getattr(wp, name)
    a, b, c = (random.integers(-4, 4, shape).astype(np.float64) for shape in [(3, 20, 33), (3, 33, 18), (3, 18, 20)])
    A, B, C = (wp.array(x, dtype=dtype, device=DEVICE) for x in (a, b, c))
    out = wp.zeros((3, 20, 18), dtype=dtype, device=DEVICE)
    turned = C.transpose((0, 2, 1))  # strided
    wp.batched_matmul(A, B, turned, out, alpha=2.0, beta=-1.0)
    exact = 2.0 * (a @ b) - c.transpose(0, 2, 1)
    expected = wp.array(exact, dtype=dtype, device="cpu")  # sums of small integers are exact, and rounded once
    assert bits(out) == bits(expected)
    square = wp.array(a[0, :20, :20], dtype=dtype, device=DEVICE)
    wp.matmul(square, square, square, square, alpha=1.0, beta=1.0)  # into its own factor
    assert bits(square) == bits(wp.array(a[0, :20, :20] @ a[0, :20, :20] + a[0, :20, :20], dtype=dtype, device="cpu"))


def test_gradients_of_copies_are_added_on_the_device():
    @wp.struct
    class Particle:
        position: wp.vec3
        count: int
        mass: wp.float16

    for twice in (True, False):
        x = wp.zeros(4, dtype=Particle, device=DEVICE, requires_grad=True)
        y = wp.zeros(4, dtype=Particle, device=DEVICE, requires_grad=True)
        with wp.Tape() as tape:
            wp.copy(y, x)
            if twice:
                wp.copy(y, x)
        seed = Particle()
        seed.position, seed.mass = wp.vec3(1.0, 2.0, 3.0), 0.5
        tape.backward(grads={y: wp.array([seed] * 4, dtype=Particle, device=DEVICE)})
        gradient = x.grad.numpy()
        assert gradient["position"].tolist() == [[1.0, 2.0, 3.0]] * 4 and gradient["mass"].tolist() == [0.5] * 4
