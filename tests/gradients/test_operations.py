"""Operations on whole arrays beside a tape: each is recorded with its adjoint, against central differences."""

import numpy as np
import pytest
import warp as wp
import warp.utils
from differences import check_program
from tapes import square

pytestmark = pytest.mark.protected

RNG = np.random.default_rng(11)


@wp.kernel
def cube_of(x: wp.array[wp.float64], y: wp.array[wp.float64]):
    i = wp.tid()
    y[i] = x[i] * x[i] * x[i]


def zeros(shape, dtype=wp.float64):
    return wp.zeros(shape, dtype=dtype, requires_grad=True)


# ---- products ----


@pytest.mark.seed("S-MUL-005")
@pytest.mark.parametrize("alpha, beta", [(1.0, 0.0), (-0.5, 2.0)])
def test_matmul(alpha, beta):
    def program(a, b, c):
        d = zeros((4, 5))
        wp.matmul(a, b, c, d, alpha=alpha, beta=beta)
        return d

    unused = () if beta else (2,)
    check_program(program, [RNG.standard_normal(s) for s in ((4, 3), (3, 5), (4, 5))], unused=unused)


COPIES = {
    "forward": lambda b: wp.copy(b, b, dest_offset=1, src_offset=0, count=b.size - 1),
    "backward": lambda b: wp.copy(b, b, dest_offset=0, src_offset=1, count=b.size - 1),
    "far": lambda b: wp.copy(b, b, dest_offset=b.size // 2, src_offset=1, count=b.size // 2),
    "onto itself": lambda b: wp.copy(b, b),
    "slices": lambda b: b[2:].assign(b[:-2]),
    "steps": lambda b: wp.copy(b[: b.size // 2], b[::2]),
    "reversed": lambda b: wp.copy(b, b[::-1]),
    "transposed": lambda b: wp.copy(b.reshape((2, -1)).T, b.reshape((-1, 2))),
}


@pytest.mark.parametrize("size", [4, 40])
@pytest.mark.parametrize("name", COPIES)
def test_copies_within_one_array(name, size):
    def program(x):
        b = x * 1.0
        COPIES[name](b)
        return b * b

    check_program(program, [RNG.standard_normal(size)])


def test_matmul_of_transposed_and_sliced_arrays():
    def program(a, b):
        d = zeros((3, 2))
        wp.matmul(a.T, b[:, ::2], d, d, beta=1.0)
        return d

    check_program(program, [RNG.standard_normal((4, 3)), RNG.standard_normal((4, 4))])


def test_batched_matmul():
    def program(a, b, c):
        d = zeros((3, 2, 5))
        wp.batched_matmul(a, b, c, d, alpha=2.0, beta=0.5)
        return d

    check_program(program, [RNG.standard_normal(s) for s in ((3, 2, 4), (3, 4, 5), (3, 2, 5))])


@pytest.mark.seed("S-MUL-005")
def test_products_with_at_of_one_array_and_its_powers():
    check_program(lambda a, b: (a @ b) @ a @ a, [RNG.standard_normal((3, 3)), RNG.standard_normal((3, 3))])


def test_a_product_over_its_own_factor_keeps_what_is_needed():
    def program(a, b):
        work = wp.clone(a)
        for _ in range(3):
            wp.matmul(work, b, work, work, alpha=0.5, beta=1.0)
        b.fill_(7.0)  # b is needed as it was
        return work

    tape = check_program(program, [RNG.standard_normal((3, 3)), RNG.standard_normal((3, 3))])
    assert tape.memory.copies == 4  # the first three states of `work`, and b


def test_what_a_product_does_not_need_is_not_kept():
    a, b = zeros((2, 2)), wp.zeros((2, 2), dtype=wp.float64)
    with wp.Tape() as tape:
        d = a @ b
        a.fill_(1.0)  # only needed for the gradient of b, which has none
        d.fill_(0.0)
    assert tape.memory.copies == 0


@pytest.mark.parametrize("dtype, rtol", [(wp.float16, 2e-3), (wp.bfloat16, 2e-2), (wp.float32, 1e-6)])
def test_products_in_other_precisions(dtype, rtol):
    values = RNG.integers(-3, 4, (2, 3, 3)).astype(np.float32)
    a, b = (wp.array(v, dtype=wp.float32).astype(dtype) for v in values)
    a.requires_grad = b.requires_grad = True
    with wp.Tape() as tape:
        d = a @ b
    tape.backward(grads={d: wp.ones((3, 3), dtype=dtype)})
    expected = np.ones((3, 3)) @ values[1].T
    np.testing.assert_allclose(a.grad.astype(wp.float32).numpy(), expected, rtol=rtol)


@pytest.mark.seed("P-61")
@pytest.mark.host_memory('names the device "cpu"')
def test_p61_a_product_on_a_tape():
    a_values, b_values = RNG.standard_normal((6, 4)), RNG.standard_normal((4, 5))
    A, B = (wp.array(v, dtype=wp.float64, requires_grad=True) for v in (a_values, b_values))
    C, D = zeros((6, 5)), zeros((6, 5))

    @wp.kernel
    def loss_kernel(arr: wp.array2d(dtype=wp.float64), loss: wp.array(dtype=wp.float64)):
        i, j = wp.tid()
        wp.atomic_add(loss, 0, arr[i, j] * arr[i, j])

    loss = zeros(1)
    tape = wp.Tape()
    with tape:
        wp.matmul(A, B, C, D, device="cpu")
        wp.launch(loss_kernel, dim=(6, 5), inputs=[D, loss], device="cpu")
    tape.backward(loss=loss)
    product = a_values @ b_values
    np.testing.assert_allclose(D.numpy(), product)
    np.testing.assert_allclose(A.grad.numpy(), 2.0 * product @ b_values.T)
    np.testing.assert_allclose(B.grad.numpy(), 2.0 * a_values.T @ product)
    np.testing.assert_array_equal(C.grad.numpy(), np.zeros((6, 5)))  # beta is 0


def test_adjoints_of_products_are_recorded_themselves():
    def program(a, b, g):
        c, adj_a, adj_b, adj_c = zeros((3, 2)), wp.clone(a), zeros((4, 2)), zeros((3, 2))
        wp.adj_matmul(a, b, c, adj_a, adj_b, adj_c, g, alpha=2.0, beta=0.5)
        out = zeros(1)
        wp.utils.array_sum(adj_a * adj_a, out=out)
        sums = zeros(1)
        wp.utils.array_inner(adj_b, adj_b, out=sums)
        return out * sums + wp.utils.array_sum(adj_c, axis=0)[:, 1]

    check_program(program, [RNG.standard_normal(s) for s in ((3, 4), (4, 2), (3, 2))])


# ---- sums ----


@pytest.mark.parametrize("axis", [None, 0, 1, -1])
def test_array_sum_is_differentiated_along_each_axis(axis):
    def program(x):
        if axis is None:
            out = zeros(1)
            wp.utils.array_sum(x, out=out)
            return out * out
        total = wp.utils.array_sum(x * x, axis=axis)
        return total * total

    check_program(program, [RNG.standard_normal((3, 4))])


def test_a_sum_of_the_first_vectors():
    def program(x):
        out = zeros(1, wp.vec3d)
        wp.utils.array_sum(x, out=out, value_count=4)
        return out

    check_program(program, [RNG.standard_normal((6, 3))], dtypes={0: wp.vec3d})


def test_a_sum_in_a_wider_type():
    x = wp.array([1.0, 2.0], dtype=wp.float32, requires_grad=True)
    out = zeros(1)
    with wp.Tape() as tape:
        wp.utils.array_sum(x, out=out)
    tape.backward(out)
    np.testing.assert_array_equal(x.grad.numpy(), [1.0, 1.0])
    assert out.grad.numpy()[0] == 0.0  # used up


@pytest.mark.parametrize("axis", [None, 0])
def test_inner_products(axis):
    def program(a, b):
        out = zeros(1 if axis is None else (1, 4))
        wp.utils.array_inner(a, b, out=out, axis=axis)
        a.fill_(0.0)  # both are needed as they were
        return out

    check_program(program, [RNG.standard_normal((3, 4)), RNG.standard_normal((3, 4))])


def test_the_inner_product_of_an_array_of_vectors_with_itself():
    def program(a):
        out = zeros(1)
        wp.utils.array_inner(a, a, out=out)
        return out

    check_program(program, [RNG.standard_normal((5, 3))], dtypes={0: wp.vec3d})


@pytest.mark.parametrize("dtype, width", [(wp.quatd, 4), (wp.transformd, 7), (wp.mat22d, 4)])
def test_sums_and_inner_products_of_other_elements(dtype, width):
    def program(a, b):
        product, total = zeros(1), zeros(1, dtype)
        wp.utils.array_inner(a, b, out=product)
        wp.utils.array_sum(a, out=total)
        total *= product
        return total

    shape = (3, 2, 2) if dtype is wp.mat22d else (3, width)
    check_program(program, [RNG.standard_normal(shape) for _ in "ab"], dtypes={0: dtype, 1: dtype})


# ---- scans ----


@pytest.mark.parametrize("inclusive", [True, False])
@pytest.mark.parametrize("in_place", [True, False])
def test_array_scan_is_differentiated_in_place_and_not(inclusive, in_place):
    def program(x):
        work = x * x
        out = work if in_place else zeros(7)
        wp.utils.array_scan(work, out, inclusive=inclusive)
        wp.launch(square, dim=7, inputs=[out])
        return out

    check_program(program, [RNG.standard_normal(7)])


def test_scans_of_vectors():
    def program(x):
        out = zeros(5, wp.vec3d)
        wp.utils.array_scan(x, out)
        return out

    check_program(program, [RNG.standard_normal((5, 3))], dtypes={0: wp.vec3d})


# ---- sorts and runs ----


def test_sorted_pairs_take_their_gradients_along():
    order = np.array([3, 1, 2, 1, 0, 9, 9, 9], dtype=np.int32)

    def program(values):
        keys = wp.array(order)
        work = wp.clone(values)
        wp.utils.radix_sort_pairs(keys, work, 5)
        wp.launch(square, dim=8, inputs=[work])
        return work

    check_program(program, [RNG.standard_normal(8)])


def test_keys_that_are_floats_have_gradients_too():
    def program(keys, values):
        keys, values = wp.clone(keys), wp.clone(values)
        wp.utils.radix_sort_pairs(keys, values, 6)
        return keys * values

    check_program(program, [RNG.permutation(6) + 0.5, RNG.standard_normal(6)])


def test_segmented_sorts():
    def program(values):
        keys = wp.array(np.array([5, 4, 3, 2, 1, 0], dtype=np.int32))
        starts = wp.array(np.array([0, 2, 6], dtype=np.int32))
        work = wp.clone(values)
        wp.utils.segmented_sort_pairs(keys, work, 6, starts)
        starts.fill_(0)  # the sorted ones stay sorted
        return work * work

    check_program(program, [RNG.standard_normal(6)])


def test_runs_give_their_gradient_to_their_first_element():
    values = wp.array([1.0, 1.0, 5.0, 2.0, 2.0], dtype=wp.float64, requires_grad=True)
    found, lengths = zeros(5), wp.zeros(5, dtype=int)
    with wp.Tape() as tape:
        assert wp.utils.runlength_encode(values, found, lengths) == 3
        lengths.zero_()
    tape.backward(grads={found: wp.array([1.0, 2.0, 3.0, 4.0, 5.0], dtype=wp.float64)})
    np.testing.assert_array_equal(values.grad.numpy(), [1.0, 0.0, 2.0, 3.0, 0.0])
    np.testing.assert_array_equal(found.grad.numpy(), [0.0, 0.0, 0.0, 4.0, 5.0])  # not overwritten


def test_integer_operations_keep_what_an_earlier_launch_needs():
    @wp.kernel
    def pick(x: wp.array[wp.float64], at: wp.array[int], y: wp.array[wp.float64]):
        i = wp.tid()
        y[i] = x[at[i]]

    x = wp.array([1.0, 2.0, 3.0], dtype=wp.float64, requires_grad=True)
    at, other, y = wp.array([2, 0, 1], dtype=int), wp.array([0, 0, 0], dtype=int), zeros(3)
    with wp.Tape() as tape:
        wp.launch(pick, dim=3, inputs=[x, at, y])
        wp.utils.radix_sort_pairs(at, other, 3)
    tape.backward(grads={y: wp.array([10.0, 20.0, 30.0], dtype=wp.float64)})
    np.testing.assert_array_equal(x.grad.numpy(), [20.0, 30.0, 10.0])


# ---- conversions ----


@pytest.mark.parametrize("convert", ["cast", "astype", "assign", "array"])
def test_conversions_between_floats(convert):
    def program(x):
        narrow = wp.zeros(4, dtype=wp.float32, requires_grad=True)
        if convert == "cast":
            wp.utils.array_cast(x, narrow)
        elif convert == "astype":
            narrow = x.astype(wp.float32)
        elif convert == "assign":
            narrow.assign(x)
        else:
            narrow = wp.array(x, dtype=wp.float32, requires_grad=True)
        out = zeros(4)
        wp.utils.array_cast(narrow, out)
        return out * out

    check_program(program, [RNG.standard_normal(4)], eps=1e-2, rtol=1e-4, atol=1e-4)


def test_casts_between_vectors_and_numbers():
    def program(x):
        flat = zeros(6)
        wp.utils.array_cast(x, flat)
        return flat * flat

    check_program(program, [RNG.standard_normal((2, 3))], dtypes={0: wp.vec3d})


def test_a_cast_to_integers_passes_no_gradient():
    x, whole = wp.array([1.5], dtype=wp.float64, requires_grad=True), wp.zeros(1, dtype=int, requires_grad=True)
    with wp.Tape() as tape:
        wp.utils.array_cast(x, whole)
        y = x.astype(wp.int32)
    assert not y.requires_grad
    tape.backward(grads={whole: wp.ones(1, dtype=int)})
    assert x.grad.numpy()[0] == 0.0


# ---- views, copies and the host's numbers ----


def test_views_share_gradients_with_their_array():
    def program(x):
        y = wp.clone(x)
        grid = y.reshape((3, 4))
        turned = grid.T.contiguous()
        vectors = y.reshape((4, 3)).view(wp.vec3d)
        vectors *= wp.float64(2.0)
        return turned.flatten() * y + wp.array(grid[::-1], shape=(12,), requires_grad=True)

    check_program(program, [RNG.standard_normal(12)])


def test_numbers_from_the_host_take_the_gradient_away():
    def program(x):
        y = x * x
        y[1:3] = np.array([5.0, 6.0])
        y[3] = 1.0
        z = y * x
        y.zero_()
        return z

    check_program(program, [RNG.standard_normal(5)])


def test_assignments_that_repeat_or_convert_say_that_they_are_not_recorded():
    x = wp.array([1.0, 2.0], dtype=wp.float64, requires_grad=True)
    y = zeros((3, 2))
    with wp.Tape():
        with pytest.raises(RuntimeError, match="is not recorded"):
            y[...] = x
        with pytest.raises(RuntimeError, match="is not recorded"):
            wp.zeros(2, requires_grad=True)[:] = x
    y[...] = x


# ---- operators and maps ----


@pytest.mark.parametrize(
    "function",
    [
        lambda a, b: a + b,
        lambda a, b: a * b - b / a,
        lambda a, b: -(a**3) + a**b,
        lambda a, b: wp.map(wp.min, a, b),
        lambda a, b: wp.map(lambda x, y: wp.sin(x) * y, a, b),
    ],
)
def test_operators_broadcast_and_add_up_what_was_repeated(function):
    check_program(function, [RNG.uniform(0.5, 2.0, (5, 7)), RNG.uniform(0.5, 2.0, (1, 7))])
    check_program(function, [RNG.uniform(0.5, 2.0, (6, 1, 5)), RNG.uniform(0.5, 2.0, 5)])


def test_operators_in_place():
    def program(x, y):
        z = wp.clone(x)
        z += y
        z *= z
        z /= x + 3.0
        z -= 1.0
        z **= 2
        z += z[::-1]
        return z

    check_program(program, [RNG.uniform(0.5, 1.0, 6), RNG.uniform(0.5, 1.0, 6)])


def test_maps_with_several_results_and_outputs():
    def both(x: wp.float64):
        return wp.sin(x), x * x

    def program(x):
        s, c = zeros(6), wp.clone(x)
        wp.map(both, x, out=[s, c])
        wp.map(both, c[::-1], out=[c, s])
        return s * c

    check_program(program, [RNG.uniform(0.5, 1.0, 6)])


# ---- indexed arrays ----


def test_indexed_arrays_gather_and_scatter():
    def program(x, y):
        z = wp.clone(y)
        chosen = x[[2, 0, 2, -1]] * 3.0  # an element twice: its gradients add up
        z[[1, 1, 3, 0]] = chosen  # an element twice: the last one stays
        z[[0, 2]] += x[[4, 4]]
        z[[1]] *= 2.0
        z[[4]] = 5.0
        return z * z

    check_program(program, [RNG.standard_normal(5), RNG.standard_normal(5)])


def test_indexed_arrays_of_two_dimensions_and_vectors():
    def program(x):
        y = wp.clone(x)
        part = wp.indexedarray(y, [[1, 1, 0], None])
        y[[0], 1:] = part[[1], 1:].contiguous()
        part.assign(part[[0], :].contiguous())  # one row, three times
        return y.view(wp.float64)

    check_program(program, [RNG.standard_normal((2, 3, 3))], dtypes={0: wp.vec3d})


def test_indexed_arrays_in_kernels_have_gradients():
    @wp.kernel
    def squares(x: wp.indexedarray[wp.float64], y: wp.array[wp.float64]):
        i = wp.tid()
        y[i] = x[i] * x[i]

    def program(x):
        y = zeros(4)
        wp.launch(squares, dim=4, inputs=[x[[3, 3, 0, 1]], y])
        return y

    check_program(program, [RNG.standard_normal(5)])


@wp.struct
class Particle:
    mass: wp.float64
    velocity: wp.vec3d


@wp.kernel
def make_particles(x: wp.array[wp.float64], particles: wp.array[Particle]):
    i = wp.tid()
    particles[i].mass = x[i] * x[i]
    particles[i].velocity = wp.vec3d(x[i], wp.float64(0.0), wp.float64(2.0) * x[i])


@wp.kernel
def momenta(particles: wp.array[Particle], y: wp.array[wp.float64]):
    i = wp.tid()
    y[i] = particles[i].mass * particles[i].velocity[2]


def test_chosen_structs_and_copies_of_parts():
    def program(x):
        particles = wp.zeros(4, dtype=Particle, requires_grad=True)
        wp.launch(make_particles, dim=4, inputs=[x, particles])
        wp.copy(particles[[3, 2, 0]], wp.clone(particles), src_offset=1, count=2)
        y = zeros(3)
        wp.launch(momenta, dim=3, inputs=[particles[[2, 3, 2]].contiguous(), y])
        return y

    check_program(program, [RNG.standard_normal(4)])


@pytest.mark.parametrize("dtype", [wp.float16, wp.bfloat16])
def test_operations_on_sixteen_bit_arrays_are_differentiated(dtype):
    x = wp.array([1.0, 2.0, 3.0], dtype=dtype, requires_grad=True)
    total = wp.zeros(1, dtype=wp.float32, requires_grad=True)
    with wp.Tape() as tape:
        y = x[[0, 0, 2]] * x
        sums = wp.zeros_like(y)
        wp.utils.array_scan(y, sums)
        wp.utils.array_sum(sums.astype(wp.float32), out=total)
    tape.backward(total)
    np.testing.assert_array_equal(x.grad.astype(wp.float32).numpy(), [3 * 2 + 2 * 2, 2 * 1, 1 * 6])


# ---- recording ----


def test_what_fails_is_not_on_the_tape():
    x, y = wp.array([3.0], dtype=wp.float64, requires_grad=True), zeros(1)
    with wp.Tape() as tape:
        wp.launch(cube_of, dim=1, inputs=[x, y])
        for _ in range(2):
            with pytest.raises(ValueError):
                wp.utils.array_sum(x, out=zeros(3))
            with pytest.raises(ValueError):
                wp.utils.runlength_encode(wp.array([1.0, 2.0], dtype=wp.float64), y, wp.zeros(1, dtype=int))
            with pytest.raises(RuntimeError):
                wp.launch(cube_of, dim=-1, inputs=[x, y])
        wp.launch(square, dim=1, inputs=[y])
        wp.launch(square, dim=1, inputs=[y])
    assert len(tape.launches) == 3
    tape.backward(grads={y: wp.ones(1, dtype=wp.float64)})
    np.testing.assert_allclose(x.grad.numpy(), 12.0 * 3.0**11)
    assert "array_sum" not in tape.visualize()


def test_the_graph_names_operations():
    x = zeros(2)
    with wp.Tape() as tape:
        wp.utils.array_scan(x, x)
    assert "array_scan()" in tape.visualize()
