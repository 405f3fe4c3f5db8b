"""The text of kernels for CUDA devices: which accesses and instructions stand in it, and that they compute what they
should."""

import re

import numpy as np
import pytest
import warp as wp

DEVICE = "cuda:0"
pytestmark = pytest.mark.gpu


def text_of(kernel, **options):
    """Without comments and directives of the debugger, so that nothing is found by chance."""
    return re.sub(r"//.*", "", kernel.listing("assembly", device=DEVICE, **options))


def accesses(text, kind):
    """The accesses of one kind (ld, st, atom, red, shfl), without registers."""
    return sorted(re.findall(rf"^\s*(?:@!?%p\d+\s+)?({kind}\.\S+)", text, re.MULTILINE))


def global_accesses(text):
    return [a for kind in ("ld", "st") for a in accesses(text, kind) if ".global" in a]


# ---- loads and stores ----


@wp.kernel
def scale(x: wp.array[float], y: wp.array[float]):
    i = wp.tid()
    y[i] = 2.0 * x[i] + y[i]


def test_neighbours_read_neighbours_with_one_access_each():
    """A thread has one element or four: the text has each access five times."""
    text = text_of(scale)
    assert global_accesses(text) == 5 * ["ld.global.b32"] + 5 * ["ld.global.nc.b32"] + 5 * ["st.global.b32"]
    # The address grows by the size of a number with each thread.
    assert re.search(r"(shl\.b64\s+%rd\d+, %rd\d+, 2|mul\.wide\.[us]32\s+%rd\d+, %r\d+, 4|mad\.lo\.s64.*, 4,)", text)


@wp.kernel
def stencil(u: wp.array3d[float], result: wp.array3d[float]):
    i, j, k = wp.tid()
    if i > 0 and i < u.shape[0] - 1 and j > 0 and j < u.shape[1] - 1 and k > 0 and k < u.shape[2] - 1:
        sides = u[i, j - 1, k] + u[i, j + 1, k] + u[i, j, k - 1] + u[i, j, k + 1]
        result[i, j, k] = u[i - 1, j, k] + u[i + 1, j, k] + sides - 6.0 * u[i, j, k]


def test_four_points_of_a_stencil_load_what_they_share_once():
    """Four points in a row have 4 + 2 points in that row, and 4 on each of four sides; a point by itself has 7."""
    text = text_of(stencil)
    assert accesses(text, "ld").count("ld.global.nc.b32") == 22 + 7
    assert accesses(text, "st").count("st.global.b32") == 4 + 1
    # The point by itself takes its number apart by two divisions, of 32 or of 64 bits; the four take none apart.
    assert text.count("mul.hi.u32") == text.count("mul.hi.u64") == 2
    # ptxas waits between the loads unless it is told that it may have the registers.
    assert ".maxnreg 64" in text


@wp.kernel
def vectors(
    a: wp.array[wp.vec4], b: wp.array[wp.vec2d], c: wp.array[wp.mat22], d: wp.array[wp.vec3], out: wp.array[wp.vec4]
):
    i = wp.tid()
    out[i] = a[i] * float(b[i][0] + b[i][1]) + wp.vec4(c[i][0, 0], c[i][0, 1], c[i][1, 0], c[i][1, 1]) * d[i][2]


@wp.struct
class Particle:
    position: wp.vec3
    mass: float
    velocity: wp.vec3
    kind: int


@wp.kernel
def push(p: wp.array[Particle], out: wp.array2d[Particle]):
    i = wp.tid()
    q = p[i]
    q.position = q.position + q.velocity * q.mass
    q.kind = q.kind + 1
    out[i, 1] = q


def test_vectors_matrices_and_structs_of_sixteen_bytes_are_one_access():
    loads = accesses(text_of(vectors), "ld")
    assert loads.count("ld.global.nc.v4.b32") == 2 and loads.count("ld.global.nc.v2.b64") == 1
    assert loads.count("ld.global.nc.b32") == 1, "one number of a vector with three"
    assert accesses(text_of(vectors), "st") == ["st.global.v4.b32"]
    assert [a for a in global_accesses(text_of(push)) if "v4" not in a] == []
    assert len(global_accesses(text_of(push))) == 4


def numbers(count, dtype, offset=0, pitch=None):
    """An array of these elements that begins at `offset` floats of its memory; `pitch`: floats from one to the next."""
    size = wp.types.type_size_in_bytes(dtype) // 4
    pitch = pitch or size
    memory = wp.array(np.arange(offset + pitch * count, dtype=np.float32), dtype=float, device=DEVICE)
    made = wp.array(
        ptr=memory.ptr + 4 * offset, dtype=dtype, shape=(count,), strides=(4 * pitch,), device=DEVICE, copy=False
    )
    rows = offset + pitch * np.arange(count)[:, None] + np.arange(size)
    return made, rows.astype(np.float32), memory


@wp.kernel
def copy(a: wp.array[wp.vec4], out: wp.array[wp.vec4]):
    i = wp.tid()
    out[i] = a[i]


@pytest.mark.parametrize("offset, pitch", [(0, 4), (4, 4), (1, 4), (2, 4), (3, 4), (0, 5), (0, 6), (2, 8), (4, 8)])
def test_elements_that_begin_anywhere_are_read_and_written(offset, pitch):
    a, expected, memory = numbers(70, wp.vec4, offset, pitch)
    out = wp.zeros(70, dtype=wp.vec4, device=DEVICE)
    wp.launch(copy, 70, inputs=[a, out], device=DEVICE)
    np.testing.assert_array_equal(out.numpy(), expected)
    wp.launch(copy, 70, inputs=[wp.full(70, wp.vec4(-1.0), dtype=wp.vec4, device=DEVICE), a], device=DEVICE)
    assert (memory.numpy() == -1).sum() == 280 and memory.numpy()[:offset].tolist() == list(range(offset))


def test_a_gradient_that_begins_between_is_read_and_written():
    a = wp.array(np.ones((20, 4)), dtype=wp.vec4, device=DEVICE, requires_grad=True)
    grad, _, memory = numbers(20, wp.vec4, 1)
    grad.zero_()
    a.grad = grad
    out = wp.zeros(20, dtype=wp.vec4, device=DEVICE, requires_grad=True)
    with wp.Tape() as tape:
        wp.launch(copy, 20, inputs=[a, out], device=DEVICE)
    tape.backward(grads={out: wp.full(20, wp.vec4(3.0), dtype=wp.vec4, device=DEVICE)})
    assert memory.numpy()[1:].tolist() == [3.0] * 80 and memory.numpy()[0] == 0


@wp.kernel
def rotate(x: wp.array[float], y: wp.array[float], n: int):
    i = wp.tid()
    y[i] = x[(i + 1) % n]


def test_what_the_launch_writes_elsewhere_is_read_plainly():
    """Of one array under two names no load may be read-only; the same kernel with two arrays has such loads."""
    assert "ld.global.nc" in text_of(rotate)
    x = wp.array(np.arange(64, dtype=np.float32), device=DEVICE)
    wp.launch(rotate, 1, inputs=[x, x, 64], device=DEVICE)
    assert x.numpy()[0] == 1.0  # the emulated device stops a read-only load of what the launch writes
    y = wp.zeros(64, dtype=float, device=DEVICE)
    wp.launch(rotate, 64, inputs=[x, y, 64], device=DEVICE)
    assert y.numpy().tolist() == [*range(1, 64), 1]


@wp.kernel
def in_place(x: wp.array[float], y: wp.array[float]):
    i = wp.tid()
    wp.atomic_add(y, i, x[i])
    x[i] = y[i]


def test_arrays_that_the_kernel_writes_are_read_plainly():
    assert not [a for a in global_accesses(text_of(in_place)) if ".nc" in a]


# ---- memory of a thread ----


vec16, mat88 = wp.types.vector(16, float), wp.types.matrix((8, 8), float)


@wp.kernel
def chosen_of_three(x: wp.array[wp.vec3], which: wp.array[int], out: wp.array[float]):
    i = wp.tid()
    v = 2.0 * x[i]
    out[i] = v[which[i]]


@wp.kernel
def chosen_of_rows(x: wp.array[wp.vec4], which: wp.array[int], out: wp.array[float]):
    i = wp.tid()
    m = wp.matrix_from_rows(x[i], 2.0 * x[i], 3.0 * x[i], 4.0 * x[i])
    out[i] = m[which[i], which[i + 1]]


@wp.kernel
def set_in_sixteen(x: wp.array[vec16], which: wp.array[int], out: wp.array[vec16]):
    i = wp.tid()
    v = 2.0 * x[i]
    v[which[i]] = -1.0
    out[i] = v


@wp.kernel
def chosen_of_sixty_four(x: wp.array[mat88], which: wp.array[int], out: wp.array[float]):
    i = wp.tid()
    m = 2.0 * x[i]
    out[i] = m[which[i], which[i + 1]]


@wp.kernel
def counted_in_an_array(which: wp.array[int], out: wp.array[float]):
    i = wp.tid()
    found = wp.zeros(shape=32, dtype=float)
    for j in range(8):
        found[which[i + j]] += 1.0
    out[i] = found[which[i]]


def drawn(parts, dtype, count=50):
    """(elements, their numbers, a part of each)"""
    rng = np.random.default_rng(4)
    size = wp.types.type_size_in_bytes(dtype) // 4
    x, which = rng.normal(size=(count, size)).astype(np.float32), rng.integers(0, parts, count + 8).astype(np.int32)
    shape = (count, 8, 8) if size == 64 else (count, size)
    return wp.array(x.reshape(shape), dtype=dtype, device=DEVICE), x, which


def run_chosen(kernel, inputs, which, dtype=float):
    out = wp.zeros(50, dtype=dtype, device=DEVICE)
    wp.launch(kernel, 50, inputs=[*inputs, wp.array(which, device=DEVICE), out], device=DEVICE)
    return out.numpy()


def of_a_thread(text):
    """The accesses to local memory."""
    return [a for kind in ("ld", "st") for a in accesses(text, kind) if ".local" in a]


def test_parts_of_small_values_are_selected_as_the_kernel_runs():
    """Up to sixteen numbers stay in registers: one select less than there are numbers, and no local memory."""
    for kernel, least in ((chosen_of_three, 2), (chosen_of_rows, 15), (set_in_sixteen, 16)):
        text = text_of(kernel)
        assert not of_a_thread(text) and ".local" not in text, kernel.key
        assert len(re.findall(r"\bselp\.", text)) >= least, kernel.key
    a, x, which = drawn(3, wp.vec3)
    each = np.arange(50)
    np.testing.assert_array_equal(run_chosen(chosen_of_three, [a], which), 2.0 * x[each, which[:50]])
    a, x, which = drawn(4, wp.vec4)
    expected = np.float32(which[:50] + 1) * x[each, which[1:51]]
    np.testing.assert_array_equal(run_chosen(chosen_of_rows, [a], which), expected)
    a, x, which = drawn(16, vec16)
    expected = 2.0 * x
    expected[each, which[:50]] = -1.0
    np.testing.assert_array_equal(run_chosen(set_in_sixteen, [a], which, vec16), expected)


def test_parts_of_large_values_are_in_memory_of_the_thread():
    """Of more numbers the whole value is stored there, and one of them is read, by accesses that say where."""
    for kernel in (chosen_of_sixty_four, counted_in_an_array):
        text = text_of(kernel)
        assert [a for a in of_a_thread(text) if a.startswith("st.local")], kernel.key
        assert [a for a in of_a_thread(text) if a.startswith("ld.local")], kernel.key
        assert len(re.findall(r"\bselp\.", text)) < 8, kernel.key
        assert not [a for a in accesses(text, "ld") if a.startswith(("ld.b", "ld.v"))], "no generic access"
    assert of_a_thread(text_of(chosen_of_sixty_four)).count("ld.local.b32") == 1
    a, x, which = drawn(8, mat88)
    each = np.arange(50)
    expected = 2.0 * x.reshape(50, 8, 8)[each, which[:50], which[1:51]]
    np.testing.assert_array_equal(run_chosen(chosen_of_sixty_four, [a], which), expected)
    _, _, which = drawn(32, wp.vec3)
    expected = [(which[i : i + 8] == which[i]).sum() for i in range(50)]
    np.testing.assert_array_equal(run_chosen(counted_in_an_array, [], which), expected)


# ---- functions of libraries ----


@wp.kernel
def raising(x: wp.array[float]):
    if x[wp.tid()] < 0.0:
        raise ValueError("negative")


@wp.kernel
def one_sine(x: wp.array[float]):
    i = wp.tid()
    x[i] = wp.sin(x[i])


def test_only_functions_that_are_called_are_linked():
    """Both libraries have hundreds; a kernel has those that it calls, and of their tables only what these read."""
    names = r"@((?:weft_lib_|__nv_|_Z)\w+)\("
    assert re.findall(names, scale.listing("llvm", device=DEVICE)) == []
    assert set(re.findall(names, raising.listing("llvm", device=DEVICE))) == {"weft_lib_report_raise"}
    assert set(re.findall(names, one_sine.listing("llvm", device=DEVICE))) in ({"__nv_sinf"}, {"_Z3sinf"})
    for kernel, tables in ((scale, 0), (raising, 0), (one_sine, 1)):
        text = text_of(kernel)
        assert ".extern" not in text and (".func" in text) == (kernel is raising)
        assert len(re.findall(r"^\.(?:global|const|visible|weak).*\[\d+\]", text, re.MULTILINE)) <= tables


# ---- arithmetic ----


@wp.kernel
def two_sines(x: wp.array[float]):
    i = wp.tid()
    x[i] = wp.sin(wp.cos(x[i]))


def test_functions_that_are_inlined_share_the_memory_of_a_thread():
    def depot(kernel):
        (size,) = re.findall(r"__local_depot\d+\[(\d+)\]", text_of(kernel))
        return int(size)

    assert depot(two_sines) == depot(one_sine) > 0


@wp.kernel
def grid(x: wp.array4d[float], out: wp.array4d[float]):
    i, j, k, l = wp.tid()
    out[i, j, k, l] = x[l, k, j, i] / 3.0 - wp.sqrt(x[i, j, k, l]) * x[0, 0, 0, 0] + 1.0


@pytest.mark.parametrize("kernel", [scale, vectors, push, copy, grid, in_place], ids=lambda k: k.key)
@pytest.mark.parametrize("adjoint", [False, True])
def test_simple_kernels_divide_no_index_keep_nothing_on_the_stack_and_round_as_the_cpu(kernel, adjoint):
    text = text_of(kernel, adjoint=adjoint)
    assert not re.search(r"\b(div|rem)\.[us]\d+", text)
    assert ".local" not in text and "__local_depot" not in text and "call" not in text
    assert not re.search(r"\.(approx|ftz|full)\b", text)
    # Products, sums and quotients of floats say how they are rounded, so that ptxas fuses none.
    assert not re.search(r"^\s*(@!?%p\d+ )?(add|sub|mul|fma|mad|div|sqrt)\.f(32|64)\b", text, re.MULTILINE)
    assert re.search(r"\.rn\.f(32|64)\b", text) or kernel is copy


@wp.kernel(module_options={"fast_math": True})
def fast(x: wp.array[float], y: wp.array[float]):
    i = wp.tid()
    y[i] = wp.sin(x[i]) + wp.exp(x[i]) + wp.log(x[i])


@wp.kernel
def exact(x: wp.array[float], y: wp.array[float]):
    i = wp.tid()
    y[i] = wp.sin(x[i]) + wp.exp(x[i]) + wp.log(x[i])


def test_fast_math_takes_the_instructions_of_the_hardware():
    assert {"sin.approx.f32", "ex2.approx.f32", "lg2.approx.f32"} <= set(
        re.findall(r"\b(?:sin|ex2|lg2)\.approx\.f32", text_of(fast))
    )
    assert not re.search(r"\b(sin|lg2)\.approx", text_of(exact))
    x = wp.array(np.linspace(0.1, 3, 100, dtype=np.float32), device=DEVICE)
    results = []
    for kernel in (fast, exact):
        y = wp.zeros(100, dtype=float, device=DEVICE)
        wp.launch(kernel, 100, inputs=[x, y], device=DEVICE)
        results.append(y.numpy())
    x = x.numpy().astype(np.float64)
    expected = np.sin(x) + np.exp(x) + np.log(x)
    np.testing.assert_allclose(results[0], expected, rtol=2e-6, atol=2e-6)
    np.testing.assert_allclose(results[1], expected, rtol=3e-7, atol=3e-7)


# ---- atomics ----


@wp.kernel
def narrow(h: wp.array[wp.float16], b: wp.array[wp.bfloat16], k: wp.array[wp.int32], f: wp.array[wp.float32]):
    i = wp.tid()
    wp.atomic_add(h, i % 3, wp.float16(0.5))
    wp.atomic_add(b, i % 3, wp.bfloat16(0.5))
    wp.atomic_max(k, i % 3, i)
    wp.atomic_min(f, i % 3, -float(i))


def test_atomics_are_instructions_where_there_are_any_and_hold_within_the_device():
    text = text_of(narrow)
    found = accesses(text, "atom") + accesses(text, "red")
    assert "atom.global.add.noftz.f16" in "".join(f + " " for f in found)
    if wp.get_device(DEVICE).arch >= 90:
        assert any("add.noftz.bf16" in f for f in found)
    assert any(re.fullmatch(r"(atom|red)\S*\.max\.s32", f) for f in found) and any(".cas.b32" in f for f in found)
    assert not any(".sys" in f for f in found) and ".sys" not in text
    # Neither do those of functions of the device library, which clang compiles without a scope.
    reported = text_of(raising)
    assert "atom.relaxed.gpu.cas.b32" in reported and ".sys" not in reported
    arrays = [wp.zeros(3, dtype=t, device=DEVICE) for t in (wp.float16, wp.bfloat16, wp.int32, wp.float32)]
    wp.launch(narrow, 99, inputs=arrays, device=DEVICE)
    assert arrays[0].numpy().tolist() == [16.5] * 3 and arrays[1].list() == [16.5] * 3
    assert arrays[2].numpy().tolist() == [96, 97, 98] and arrays[3].numpy().tolist() == [-96.0, -97.0, -98.0]


@wp.kernel
def spent(h: wp.array[wp.float16], f: wp.array[float], d: wp.array[wp.float64], x: wp.array[float]):
    i = wp.tid()
    wp.atomic_sub(h, i % 3, wp.float16(x[i]))
    wp.atomic_sub(f, i % 3, x[i])
    wp.atomic_sub(d, i % 3, wp.float64(x[i]))


def test_what_is_taken_away_from_floats_is_added_by_an_instruction():
    assert ".cas" not in text_of(spent)
    x = (np.arange(99) % 5 - 1.0).astype(np.float32)
    kinds = (wp.float16, float, wp.float64)
    arrays = [wp.array([-0.0, 1.0, 2.0], dtype=kind, device=DEVICE) for kind in kinds]
    wp.launch(spent, 99, inputs=[*arrays, wp.array(x, device=DEVICE)], device=DEVICE)
    for array in arrays:
        assert array.numpy().tolist() == [k - float(x[k::3].sum()) for k in range(3)]


@wp.kernel
def sums(
    n: int,
    f: wp.array[float],
    d: wp.array[wp.float64],
    i32: wp.array[wp.int32],
    u64: wp.array[wp.uint64],
    v: wp.array[wp.vec3],
    least: wp.array[float],
    bits: wp.array[wp.uint32],
):
    i = wp.tid()
    if i % 7 != n:
        wp.atomic_add(f, 0, 0.25)
        wp.atomic_add(d, 1, wp.float64(i))
        wp.atomic_sub(i32, 0, i)
        wp.atomic_max(u64, 1, wp.uint64(i) << wp.uint64(33))
        wp.atomic_add(v, 0, wp.vec3(1.0, 2.0, float(i)))
        wp.atomic_min(least, 0, 100.0 - float(i))
        wp.atomic_or(bits, 0, wp.uint32(1) << wp.uint32(i % 32))


@pytest.mark.parametrize("missing", [-1, 3])
@pytest.mark.parametrize(
    "threads, block_dim", [(1, 256), (31, 256), (32, 32), (200, 64), (1000, 96), (64, 7), (4096, 256)]
)
def test_sums_over_all_threads_count_each_once(threads, block_dim, missing):
    """Whole warps, the last part of one, threads that are missing in the middle, blocks that are no multiple of 32."""
    arrays = [
        wp.zeros(2, dtype=t, device=DEVICE) for t in (float, wp.float64, wp.int32, wp.uint64, wp.vec3, float, wp.uint32)
    ]
    arrays[5].fill_(1e9)
    wp.launch(sums, threads, inputs=[missing, *arrays], device=DEVICE, block_dim=block_dim)
    there = np.array([i for i in range(threads) if i % 7 != missing])
    f, d, i32, u64, v, least, bits = (array.numpy() for array in arrays)
    assert f[0] == 0.25 * len(there) and d[1] == there.sum() and i32[0] == -there.sum()
    assert u64[1] == int(there.max()) << 33 and least[0] == 100.0 - there.max()
    assert v[0].tolist() == [len(there), 2 * len(there), there.sum()]
    assert bits[0] == np.bitwise_or.reduce(np.uint32(1) << (there % 32).astype(np.uint32))
    assert f[1] == d[0] == 0


@wp.kernel
def total(x: wp.array[float], n: wp.array[int], out: wp.array[float], count: wp.array[int], seen: wp.array[float]):
    i = wp.tid()
    seen[i] = out[1] + float(count[1])
    wp.atomic_add(out, 0, x[i])
    wp.atomic_sub(count, 0, n[i])


@wp.kernel
def tickets(out: wp.array[int], place: wp.array[int]):
    i = wp.tid()
    place[i] = wp.atomic_add(out, 0, 1)


def test_atomics_of_a_warp_at_one_address_are_one():
    """Of arrays that the kernel also reads, so that a block does not combine more."""
    text = text_of(total)
    reduces = wp.get_device(DEVICE).arch >= 80  # integers of 32 bits in one instruction
    assert accesses(text, "shfl").count("shfl.sync.bfly.b32") == (5 if reduces else 10)
    assert text.count("redux.sync.add.s32") == (1 if reduces else 0)
    x = np.random.default_rng(1).random(10_000).astype(np.float32)
    out = wp.array([0, 0.5], dtype=float, device=DEVICE)
    count, seen = wp.array([7, 1], dtype=int, device=DEVICE), wp.zeros(10_000, dtype=float, device=DEVICE)
    numbers = wp.array(np.arange(10_000), dtype=int, device=DEVICE)
    wp.launch(total, 10_000, inputs=[wp.array(x, device=DEVICE), numbers, out, count, seen], device=DEVICE)
    np.testing.assert_allclose(out.numpy(), [x.astype(np.float64).sum(), 0.5], rtol=1e-5)
    assert count.numpy().tolist() == [7 - 9999 * 5000, 1] and (seen.numpy() == 1.5).all()
    # If the old value is used, each thread has an atomic of its own.
    assert not accesses(text_of(tickets), "shfl")
    place, out = wp.zeros(100, dtype=int, device=DEVICE), wp.zeros(1, dtype=int, device=DEVICE)
    wp.launch(tickets, 100, inputs=[out, place], device=DEVICE)
    assert sorted(place.numpy().tolist()) == list(range(100))


# ---- sine and cosine ----


@wp.kernel
def both(x: wp.array[float], d: wp.array[wp.float64], y: wp.array[wp.vec2], z: wp.array[wp.vec2d]):
    i = wp.tid()
    y[i] = wp.vec2(wp.sin(x[i]), wp.cos(x[i]))
    z[i] = wp.vec2d(wp.cos(d[i]), wp.sin(d[i]))


@wp.kernel
def one_by_one(x: wp.array[float], d: wp.array[wp.float64], s: wp.array[float], c: wp.array[wp.float64]):
    i = wp.tid()
    s[i] = wp.sin(x[i])
    c[i] = wp.cos(d[i])


def test_sine_and_cosine_of_an_angle_are_those_of_each():
    x = np.concatenate([np.linspace(-100, 100, 2001), [0.0, -0.0, 1e6, -3e8, 1e30, np.inf, np.nan]])
    count = len(x)
    arrays = [wp.array(x, dtype=t, device=DEVICE) for t in (float, wp.float64)]
    y, z = wp.zeros(count, dtype=wp.vec2, device=DEVICE), wp.zeros(count, dtype=wp.vec2d, device=DEVICE)
    s, c = wp.zeros(count, dtype=float, device=DEVICE), wp.zeros(count, dtype=wp.float64, device=DEVICE)
    wp.launch(both, count, inputs=[*arrays, y, z], device=DEVICE)
    wp.launch(one_by_one, count, inputs=[*arrays, s, c], device=DEVICE)
    np.testing.assert_array_equal(y.numpy()[:, 0], s.numpy())
    np.testing.assert_array_equal(z.numpy()[:, 0], c.numpy())
    with np.errstate(invalid="ignore"):
        np.testing.assert_allclose(z.numpy(), np.stack([np.cos(x), np.sin(x)], axis=1), rtol=0, atol=4e-16)
    # -0.0 keeps its sign.
    assert np.signbit(y.numpy()[2002, 0]) and np.signbit(z.numpy()[2002, 1])


# ---- conversions ----

# Around the limits of all integer types.
AT_LIMITS = [
    *(0.0, -0.0, 0.5, -0.5, 1.9, -1.9, 1e30, -1e30, np.inf, -np.inf, np.nan, 300.0),
    *(s * (2.0**bits + d) for bits in (7, 8, 15, 16, 31, 32, 63, 64) for s in (1, -1) for d in (0, -0.5, -1, 1)),
]
FLOATS = {wp.float16: np.float16, wp.float32: np.float32, wp.float64: np.float64}


@pytest.mark.parametrize("to", [wp.int8, wp.uint8, wp.int16, wp.uint16, wp.int32, wp.uint32, wp.int64, wp.uint64])
@pytest.mark.parametrize("of", FLOATS)
def test_floats_become_integers_by_one_conversion(of, to):
    @wp.kernel(module="unique")
    def convert(x: wp.array[of], y: wp.array[to]):
        i = wp.tid()
        y[i] = to(x[i])

    text = text_of(convert)
    assert text.count("cvt.rzi") == sum(".global" in access for access in accesses(text, "ld"))
    with np.errstate(over="ignore"):
        numbers = np.array(AT_LIMITS).astype(FLOATS[of])
    found = {}
    for device in ("cpu", DEVICE):
        y = wp.zeros(len(numbers), dtype=to, device=device)
        wp.launch(convert, len(numbers), inputs=[wp.array(numbers, dtype=of, device=device), y], device=device)
        found[device] = y.numpy()
    np.testing.assert_array_equal(found[DEVICE], found["cpu"])
    if of is wp.float32 and to in (wp.int32, wp.uint32):  # nothing is compared
        assert "selp" not in text and "setp.nan" not in text


# ---- negative indices ----


@wp.kernel
def gather(at: wp.array[int], x: wp.array[float], y: wp.array[float]):
    i = wp.tid()
    y[i] = x[at[i]]


@wp.kernel
def gather_rows(at: wp.array[int], x: wp.array2d[float], y: wp.array[float]):
    i = wp.tid()
    row = x[at[i]]
    y[i] = row[at[i]] + x[at[i], 1]


@wp.kernel
def ends(at: wp.array[int], x: wp.array[float], y: wp.array[int]):
    i = wp.tid()
    j = at[i]
    y[i] = wp.where(j < 0, j + x.shape[0], j)


def test_an_index_that_is_loaded_counts_from_the_end_by_one_minimum():
    n = 7
    at = np.arange(-n, n, dtype=np.int32)
    x, square = np.linspace(1.0, 2.0, n, dtype=np.float32), np.arange(n * n, dtype=np.float32).reshape(n, n)
    for kernel, source, expected in (
        (gather, x, x[at]),
        (gather_rows, square, square[at, at] + square[at, 1]),
    ):
        text = text_of(kernel)
        assert "min.u32" in text and "selp" not in text and "shr.s32" not in text
        y = wp.zeros(len(at), dtype=float, device=DEVICE)
        wp.launch(
            kernel, len(at), inputs=[wp.array(at, device=DEVICE), wp.array(source, device=DEVICE), y], device=DEVICE
        )
        np.testing.assert_array_equal(y.numpy(), expected)


def test_a_number_that_a_kernel_counts_from_the_end_is_exact():
    n = 7
    at = np.array([-(2**31), -100, -8, -7, -1, 0, 6, 7, 2**31 - 1], dtype=np.int32)
    y = wp.zeros(len(at), dtype=int, device=DEVICE)
    x = wp.zeros(n, dtype=float, device=DEVICE)
    wp.launch(ends, len(at), inputs=[wp.array(at, device=DEVICE), x, y], device=DEVICE)
    np.testing.assert_array_equal(y.numpy(), np.where(at < 0, at + n, at))


# ---- loops ----


@wp.kernel
def dot_rows(offsets: wp.array[int], at: wp.array[int], v: wp.array[float], x: wp.array[float], y: wp.array[float]):
    row = wp.tid()
    total = float(0.0)
    for i in range(offsets[row], offsets[row + 1]):
        total += v[i] * x[at[i]]
    y[row] = total


def test_an_unrolled_loop_may_be_unrolled_further():
    """LLVM makes four iterations one; NVIDIA's compiler makes several of these one, unless it is told not to."""
    text = text_of(dot_rows)
    blocks = re.split(r"^\$L\w+:", text, flags=re.MULTILINE)
    (unrolled,) = [block for block in blocks if block.count("ld.global.nc.b32") == 12]
    assert "nounroll" not in unrolled


# ---- indices ----


@wp.kernel
def sum_of_squares(x: wp.array[float], total: wp.array[float]):
    i = wp.tid()
    wp.atomic_add(total, 0, x[i] * x[i])


@wp.kernel
def count_values(x: wp.array[int], counts: wp.array[int]):
    i = wp.tid()
    wp.atomic_add(counts, x[i], 1)


@pytest.mark.parametrize("kernel", [sum_of_squares, count_values])
def test_several_elements_of_a_thread_are_numbered_with_32_bits(kernel):
    """One instruction of the GPU makes an address of such a number, and two or three make it of one with 64 bits."""
    blocks = re.split(r"^\$L\w+:", text_of(kernel), flags=re.MULTILINE)
    together = max(blocks, key=lambda block: block.count("ld.global"))
    assert together.count("ld.global") == 4 and together.count("mul.wide.u32") >= 4
    assert not re.search(r"setp\.\w+\.[su]64|mul\.lo\.s64|shl\.b64", together)


@wp.kernel
def count_odd(total: wp.array[int]):
    i = wp.tid()
    wp.atomic_add(total, 0, i & 1)


@pytest.mark.large
def test_elements_behind_those_that_are_numbered_with_32_bits_count_too():
    n = 2**30 + 70007
    total = wp.zeros(1, dtype=int, device=DEVICE)
    wp.launch(count_odd, n, inputs=[total], device=DEVICE)
    assert total.numpy() == [n // 2]
