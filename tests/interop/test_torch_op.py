"""wp.torch_op: kernels as operators of PyTorch, beside the same formulas in torch."""

from __future__ import annotations

import gc

import numpy as np
import pytest
import torch
import warp as wp
from run_in_threads import run_in_threads

pytestmark = pytest.mark.cpu_only("other frameworks are built for the CPU here; their GPUs come later")


@wp.kernel
def wave(a: float, x: wp.array[wp.float64], y: wp.array[wp.float64]):
    i = wp.tid()
    y[i] = wp.float64(a) * wp.sin(x[i]) * x[i]


def wave_of_torch(a, x):
    return a * torch.sin(x) * x


@wp.kernel
def two(x: wp.array[wp.vec3d], w: wp.array[wp.float64], length: wp.array[wp.float64], scaled: wp.array[wp.vec3d]):
    i = wp.tid()
    length[i] = wp.length_sq(x[i]) * w[i]
    scaled[i] = x[i] * (w[i] * w[i])


def two_of_torch(x, w):
    return (x**2).sum(-1) * w, x * (w * w)[:, None]


@wp.kernel
def total(x: wp.array2d[wp.float64], sums: wp.array[wp.float64]):
    i, j = wp.tid()
    wp.atomic_add(sums, j, x[i, j] * x[i, j] * x[i, 0])


@wp.kernel
def overwritten(x: wp.array[wp.float64], y: wp.array[wp.float64]):
    i = wp.tid()
    y[i] = wp.exp(x[i])
    y[i] = y[i] * y[i] * x[i]
    y[i] = wp.sin(y[i])


@wp.kernel
def relaxed(rate: float, x: wp.array[wp.float64], source: wp.array[wp.float64]):
    i = wp.tid()
    for _ in range(3):
        x[i] = x[i] * x[i] * wp.float64(rate) + source[i]


def relaxed_of_torch(rate, x, source):
    for _ in range(3):
        x = x * x * rate + source
    return x


@wp.kernel
def ticket(x: wp.array[wp.float64], count: wp.array[int], y: wp.array[wp.float64]):
    i = wp.tid()
    place = wp.atomic_add(count, 0, 1)
    y[place] = x[i] * x[i]


@wp.struct
class Pair:
    a: wp.array[float]


@wp.kernel
def of_struct(p: Pair, x: wp.array[float], y: wp.array[float]):
    y[wp.tid()] = p.a[wp.tid()]


wave_op, two_op = wp.torch_op(wave), wp.torch_op(two, num_outputs=2)
total_op = wp.torch_op(total)
overwritten_op = wp.torch_op(overwritten)
relaxed_op = wp.torch_op(relaxed, in_out_argnames=["x"])
ticket_op = wp.torch_op(ticket, num_outputs=2, output_dims={"count": 1})

# An operator, the same in torch, and the shapes of its arguments.
CASES = {
    "one output": (lambda x: wave_op(1.5, x), lambda x: wave_of_torch(1.5, x), [(6,)]),
    "two outputs, vectors": (two_op, two_of_torch, [(5, 3), (5,)]),
    "atomics": (
        lambda x: total_op(x, output_dims=x.shape[1]),
        lambda x: (x * x * x[:, :1]).sum(0),
        [(7, 3)],
    ),
    "overwritten": (overwritten_op, lambda x: torch.sin(torch.exp(2 * x) * x), [(6,)]),
    "in place": (lambda x, s: relaxed_op(0.5, x, s), lambda x, s: relaxed_of_torch(0.5, x, s), [(6,), (6,)]),
}
SMOOTH_TWICE = [name for name in CASES if name != "in place"]


def arguments(shapes, requires_grad=True):
    generator = torch.Generator().manual_seed(3)
    made = [torch.randn(*shape, dtype=torch.float64, generator=generator) for shape in shapes]
    return [one.requires_grad_(requires_grad) for one in made]


def as_tuple(values):
    return values if isinstance(values, tuple) else (values,)


def close(first, second):
    for one, other in zip(as_tuple(first), as_tuple(second), strict=True):
        torch.testing.assert_close(one, other, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("name", CASES)
def test_values_and_gradients_are_those_of_torch(name):
    ours, theirs, shapes = CASES[name]
    given = arguments(shapes)
    before = [one.detach().clone() for one in given]
    found, expected = as_tuple(ours(*given)), as_tuple(theirs(*given))
    close(found, expected)
    seeds = arguments([one.shape for one in found], requires_grad=False)
    seeds_before = [one.clone() for one in seeds]
    close(torch.autograd.grad(found, given, seeds), torch.autograd.grad(expected, given, seeds))
    close(tuple(given), tuple(before))  # inputs are as they were
    close(tuple(seeds), tuple(seeds_before))


@pytest.mark.parametrize("name", CASES)
def test_torchs_own_check_of_gradients_passes(name):
    ours, _, shapes = CASES[name]
    assert torch.autograd.gradcheck(ours, arguments(shapes))
    if name in SMOOTH_TWICE:
        assert torch.autograd.gradgradcheck(ours, arguments(shapes))


@wp.func
def bent(x: wp.float64, y: wp.float64):
    return x * y


@wp.func_grad(bent)
def adj_bent(x: wp.float64, y: wp.float64, adj: wp.float64):  # its derivative is not symmetric
    wp.adjoint[x] += y * y * adj
    wp.adjoint[y] += x * adj


@wp.kernel
def bending(x: wp.array[wp.float64], y: wp.array[wp.float64], z: wp.array[wp.float64]):
    z[wp.tid()] = bent(x[wp.tid()], y[wp.tid()])


def test_a_gradient_of_a_users_own_has_no_second_derivative():
    x, y = arguments([(4,), (4,)])
    slopes = torch.autograd.grad(wp.torch_op(bending)(x, y).sum(), (x, y), create_graph=True)
    assert torch.equal(slopes[0], y * y) and torch.equal(slopes[1], x)
    with pytest.raises(NotImplementedError, match="'bending': it has no second derivative.*wp.func_grad.*hvp"):
        torch.autograd.grad(sum(slope.sum() for slope in slopes), (x, y))


def test_what_has_no_further_derivative_says_so():
    x, source = arguments([(4,), (4,)])
    (slope,) = torch.autograd.grad(relaxed_op(0.5, x, source).sum(), x, create_graph=True)
    with pytest.raises(NotImplementedError, match="'relaxed': it has no second derivative.*in_out_argnames"):
        torch.autograd.grad(slope.sum(), x)
    (first,) = torch.autograd.grad(wave_op(1.0, x).sum(), x, create_graph=True)
    (second,) = torch.autograd.grad(first.sum(), x, create_graph=True)
    with pytest.raises(NotImplementedError, match="'wave': it has first and second derivatives"):
        torch.autograd.grad(second.sum(), x)

    @wp.kernel(enable_backward=False)
    def silent(x: wp.array[wp.float64], y: wp.array[wp.float64]):
        y[wp.tid()] = x[wp.tid()]

    y = wp.torch_op(silent)(x)
    with pytest.raises(RuntimeError, match="kernel 'silent' has no gradient: it was made with enable_backward=False"):
        y.sum().backward()
    with pytest.raises(RuntimeError, match="jvp"):
        torch.func.jvp(lambda x: wave_op(1.0, x), (x.detach(),), (torch.ones_like(x),))


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("dynamic", [False, True])
def test_a_compiled_program_has_the_same_gradients(name, dynamic):
    torch.compiler.reset()
    ours, theirs, shapes = CASES[name]
    given = arguments(shapes)
    # aot_eager traces forward and backward as inductor does, and needs no C++ compiler.
    program = torch.compile(
        lambda *a: ours(*(1.0 * x for x in a)), fullgraph=True, backend="aot_eager", dynamic=dynamic
    )
    found, expected = as_tuple(program(*given)), as_tuple(theirs(*given))
    close(found, expected)
    seeds = arguments([one.shape for one in found], requires_grad=False)
    close(torch.autograd.grad(found, given, seeds), torch.autograd.grad(expected, given, seeds))


@pytest.mark.usefixtures("inductor")
def test_inductor_compiles_around_it():
    torch.compiler.reset()
    (x,) = arguments([(6,)])
    program = torch.compile(lambda x, a: torch.cos(wave_op(a, x * 2.0)) + 1.0, fullgraph=True)
    for a in (1.5, 2.5):  # the second time `a` is a symbol
        found, expected = program(x, a), torch.cos(wave_of_torch(a, x * 2.0)) + 1.0
        close(found, expected)
        close(torch.autograd.grad(found.sum(), x), torch.autograd.grad(expected.sum(), x))


def test_vectors_and_matrices_as_arguments():
    @wp.kernel
    def turned(m: wp.mat22, v: wp.vec2, is_sum: bool, x: wp.array[wp.vec2], y: wp.array[wp.vec2]):
        i = wp.tid()
        y[i] = m * x[i]
        if is_sum:
            y[i] = y[i] + v

    op, x = wp.torch_op(turned), torch.randn(4, 2, requires_grad=True)
    m, v = torch.tensor([[1.0, 2.0], [3.0, 4.0]]), torch.tensor([5.0, 6.0])
    expected = x @ m.T + v
    given = ((1.0, 2.0), (3.0, 4.0)), (5.0, 6.0), True
    torch.testing.assert_close(op(wp.mat22(1.0, 2.0, 3.0, 4.0), wp.vec2(5.0, 6.0), True, x), expected)
    torch.testing.assert_close(torch.compile(op, fullgraph=True, backend="aot_eager")(*given, x), expected)


def test_torchs_own_checks_of_operators_pass():
    x, w = arguments([(5, 3), (5,)])
    gradients = arguments([(5,), (5, 3)], requires_grad=False)
    vectors = arguments([(5, 3), (5,)], requires_grad=False)
    rest = ([0], [5, 5, 5])
    torch.library.opcheck(torch.ops.weft.launch, (two_op.number, [x, w], *rest))
    torch.library.opcheck(torch.ops.weft.adjoint, (two_op.number, [x, w], gradients, *rest))
    torch.library.opcheck(torch.ops.weft.second, (two_op.number, [x.detach(), w.detach()], gradients, vectors, *rest))


@pytest.mark.parametrize("name", CASES)
def test_vmap_is_a_loop_over_samples(name):
    ours, theirs, shapes = CASES[name]
    batches = arguments([(3, *shape) for shape in shapes], requires_grad=False)
    close(torch.func.vmap(ours)(*batches), torch.func.vmap(theirs)(*batches))
    first_only = (0, *(None for _ in shapes[1:]))
    mixed = [batches[0], *(batch[0] for batch in batches[1:])]
    close(torch.func.vmap(ours, first_only)(*mixed), torch.func.vmap(theirs, first_only)(*mixed))

    def loss(function):
        return lambda *a: sum((one**2).sum() for one in as_tuple(function(*a)))

    every = tuple(range(len(shapes)))
    close(
        torch.func.vmap(torch.func.grad(loss(ours), every))(*batches),
        torch.func.vmap(torch.func.grad(loss(theirs), every))(*batches),
    )
    close(
        torch.func.grad(lambda *a: loss(torch.func.vmap(ours))(*a), every)(*batches),
        torch.func.grad(lambda *a: loss(torch.func.vmap(theirs))(*a), every)(*batches),
    )
    close(torch.func.jacrev(ours)(*(b[0] for b in batches)), torch.func.jacrev(theirs)(*(b[0] for b in batches)))


def test_vmap_over_another_dimension_nested_and_over_nothing():
    (x,) = arguments([(2, 3, 4)], requires_grad=False)
    run, expected = (lambda x: wave_op(1.0, x)), (lambda x: wave_of_torch(1.0, x))
    close(torch.func.vmap(torch.func.vmap(run))(x), expected(x))
    close(torch.func.vmap(run, in_dims=1, out_dims=1)(x[0]), expected(x[0]))
    assert torch.func.vmap(run)(x[0, :0]).shape == (0, 4)
    hessian = torch.func.jacrev(torch.func.jacrev(lambda x: run(x).sum()))(x[0, 0])
    close(hessian, torch.func.jacrev(torch.func.jacrev(lambda x: expected(x).sum()))(x[0, 0]))


def test_what_atomics_give_is_kept_for_the_adjoint():
    x = torch.arange(1.0, 9.0, dtype=torch.float64, requires_grad=True)
    count, y = ticket_op(x)
    assert count.tolist() == [8] and not count.requires_grad
    assert sorted(y.tolist()) == [i * i for i in range(1, 9)]
    y.sum().backward()
    close(x.grad, 2 * x.detach())


def test_strided_negated_and_expanded_tensors():
    base = torch.randn(6, 8, dtype=torch.float64)
    z = torch.randn(5, dtype=torch.complex128)
    for make in (lambda: base[:, 2], lambda: base[0, ::2], lambda: z.conj().imag, lambda: base[:1, 0].expand(4)):
        x = make().detach().requires_grad_(True)
        found, expected = wave_op(2.0, x), wave_of_torch(2.0, x)
        close(found, expected)
        close(torch.autograd.grad(found.sum(), x), torch.autograd.grad(expected.sum(), x))
    x, w = base.T[:, :3].detach().requires_grad_(True), torch.ones(8, dtype=torch.float64)
    close(two_op(x, w), two_of_torch(x, w))
    close(torch.autograd.grad(two_op(x, w)[1].sum(), x), torch.autograd.grad(two_of_torch(x, w)[1].sum(), x))
    assert wave_op(1.0, torch.zeros(0, dtype=torch.float64)).shape == (0,)


def test_only_what_is_used_has_gradients():
    x, w = arguments([(5, 3), (5,)])
    close(torch.autograd.grad(two_op(x, w)[0].sum(), w), torch.autograd.grad(two_of_torch(x, w)[0].sum(), w))
    with torch.no_grad():
        assert not two_op(x, w)[0].requires_grad
    assert not two_op(x.detach(), w.detach())[0].requires_grad and x.grad is None


def test_only_inputs_that_need_one_have_a_gradient():
    x, w = arguments([(5, 3), (5,)])
    constant = x.detach()
    y = two_op(constant, w)[0]
    close(torch.autograd.grad(y.sum(), w), torch.autograd.grad(two_of_torch(constant, w)[0].sum(), w))
    assert constant.grad is None
    slope = torch.nn.Parameter(w.detach())
    two_op(x, slope)[0].sum().backward()
    expected = torch.autograd.grad(two_of_torch(x, slope)[0].sum(), (x, slope))
    close((x.grad, slope.grad), expected)


@wp.kernel
def of_zeros(x: wp.array[wp.float64], read: wp.array[wp.float64], some: wp.array[wp.float64]):
    i = wp.tid()
    read[i] = (read[i] + 1.0) * x[i] + read[i] * read[i]
    if x[i] > 0.0:
        some[i] = x[i] * x[i]


def test_outputs_start_as_zeros_whatever_their_memory_held():
    op, (x,) = wp.torch_op(of_zeros, num_outputs=2), arguments([(40,)])
    for _ in range(5):
        for _ in range(4):
            wp.full(40, np.nan, dtype=wp.float64)  # freed at once, and given out again
        read, some = op(x)
        close((read, some), (x.detach(), torch.where(x > 0, x * x, 0.0)))
        (slope,) = torch.autograd.grad((read * x.detach()).sum() + some.sum(), x)
        close(slope, torch.where(x > 0, 3 * x, x).detach())


def test_grids_and_shapes_of_outputs_in_all_their_forms():
    @wp.kernel
    def halves(x: wp.array[float], y: wp.array[float], n: wp.array2d[int]):
        i = wp.tid()
        y[i] = x[2 * i] + x[2 * i + 1]
        n[i, 0] = i

    op, x = wp.torch_op(halves, num_outputs=2), torch.arange(8.0)
    expected = [[1.0, 5.0, 9.0, 13.0], [[0], [1], [2], [3]]]
    for dims in (4, (4,), [4], (4, 1)):
        y, n = op(x, launch_dims=dims, output_dims={"y": 4, "n": (4, 1)})
        assert [y.tolist(), n.tolist()] == expected
    fixed = wp.torch_op(halves, 2, launch_dims=4, output_dims={"y": [4], "n": [4, 1]})
    assert [one.tolist() for one in fixed(x)] == expected
    with pytest.raises(RuntimeError, match="output_dims of 'y' is 4.0, expected an int or a tuple of ints"):
        op(x, launch_dims=4, output_dims={"y": 4.0, "n": (4, 1)})
    with pytest.raises(TypeError, match="output 'n' is .*would have the shape"):
        op(x, launch_dims=4, output_dims={"y": 4})


def test_checks_of_the_configuration_see_operators(capfd):
    @wp.kernel
    def logarithm(x: wp.array[wp.float64], y: wp.array[wp.float64]):
        i = wp.tid()
        y[i] = wp.log(x[i])

    op, x = wp.torch_op(logarithm), torch.tensor([1.0, 0.0], dtype=torch.float64, requires_grad=True)
    assert op(x)[1] == -torch.inf
    wp.config.verify_fp, wp.config.print_launches = True, True
    try:
        with pytest.raises(RuntimeError, match="logarithm.*y"):
            op(x)
    finally:
        wp.config.verify_fp, wp.config.print_launches = False, False
    assert "kernel: logarithm" in capfd.readouterr().out


def test_a_changed_input_is_noticed_as_torch_does():
    (x,) = arguments([(4,)])
    scaled = x * 1.0
    y = wave_op(1.0, scaled)
    scaled.add_(1.0)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        y.sum().backward()


def test_an_operator_inside_of_a_tape_is_none_of_its_business():
    (x,) = arguments([(4,)])
    with wp.Tape() as tape:
        y = wave_op(1.0, x)
        y.sum().backward()
    assert tape.launches == []
    close(x.grad, torch.autograd.grad(wave_of_torch(1.0, x).sum(), x)[0])


def test_backward_within_backward_and_twice():
    class Inner(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x.clone()

        @staticmethod
        def backward(ctx, gradient):
            (x,) = ctx.saved_tensors
            with torch.enable_grad():
                inner = x.detach().requires_grad_(True)
                (slope,) = torch.autograd.grad(wave_op(1.0, inner).sum(), inner)
            return gradient * slope

    (x,) = arguments([(4,)])
    y = Inner.apply(wave_op(2.0, x)).sum()
    y.backward(retain_graph=True)
    once = x.grad.clone()
    y.backward()
    close(x.grad, 2 * once)
    inside = wave_of_torch(2.0, x)
    (slope,) = torch.autograd.grad(wave_of_torch(1.0, inside).sum(), inside, retain_graph=True)
    close(once, torch.autograd.grad(inside, x, slope)[0])


def test_threads_have_gradients_of_their_own():
    given = [arguments([(2000,)])[0].detach() * (i + 1) for i in range(4)]
    found = [None] * 4

    def work(i):
        for _ in range(20):
            x = given[i].clone().requires_grad_(True)
            wave_op(1.0, x).sum().backward()
            found[i] = x.grad

    run_in_threads(work, range(4))
    for x, gradient in zip(given, found, strict=True):
        x.requires_grad_(True)
        close(gradient, torch.autograd.grad(wave_of_torch(1.0, x).sum(), x)[0])


def test_graphs_and_tensors_are_freed():
    def alive():
        gc.collect()
        kinds = (torch.Tensor, wp.array, wp._weft.TapeRecorder)
        return sum(issubclass(type(one), kinds) for one in gc.get_objects())  # some are dead references

    (x,) = arguments([(4,)])
    wave_op(1.0, x).sum().backward()
    x.grad = None
    before = alive()
    for _ in range(50):
        y = wave_op(1.0, x)
        (slope,) = torch.autograd.grad(y.sum(), x, create_graph=True)
        slope.sum().backward()
        torch.func.vmap(lambda x: wave_op(1.0, x))(torch.ones(2, 4, dtype=torch.float64))
        x.grad = None
        del y, slope
    assert alive() <= before  # objects of earlier tests may go meanwhile


def test_mistakes_in_making_and_calling():
    x = torch.zeros(4, dtype=torch.float64)
    with pytest.raises(TypeError, match="the kernel is .*expected a function decorated with @wp.kernel"):
        wp.torch_op(lambda x: x)
    with pytest.raises(ValueError, match="writes to 'x', which is an input.*in_out_argnames"):
        wp.torch_op(relaxed)
    with pytest.raises(TypeError, match="num_outputs is 3"):
        wp.torch_op(wave, num_outputs=3)
    with pytest.raises(RuntimeError, match="in_out_argnames has 'z'; the parameters are 'rate', 'x', 'source'"):
        wp.torch_op(relaxed, in_out_argnames="z")
    with pytest.raises(TypeError, match="'wave': got 1 arguments, expected 2: 'a', 'x'"):
        wave_op(x)
    with pytest.raises(TypeError, match="argument 'x' is ndarray, expected a torch.Tensor for array"):
        wave_op(1.0, np.zeros(4))
    with pytest.raises(TypeError, match="argument 'a' is Tensor, expected a number for float32"):
        wave_op(torch.tensor(1.0), x)
    with pytest.raises(TypeError, match=r"argument 'x' has the shape \(2, 4\).*help: torch.func.vmap"):
        wave_op(1.0, torch.zeros(2, 4, dtype=torch.float64))
    with pytest.raises(TypeError, match="its numbers are float32, expected float64"):
        wave_op(1.0, x.float())
    with pytest.raises(RuntimeError, match="launch_dims is 'many', expected an int or a tuple of ints"):
        wave_op(1.0, x, launch_dims="many")
    with pytest.raises(TypeError, match="output 'sums' is .*would have the shape.*help: give output_dims"):
        total_op(torch.zeros(2, 3, dtype=torch.float64))

    with pytest.raises(TypeError, match="'p' is .*, expected an array or a number"):
        wp.torch_op(of_struct)


def test_unsigned_integers_stand_behind_signed_ones():
    @wp.kernel
    def doubled(x: wp.array[wp.uint32], y: wp.array[wp.uint32]):
        y[wp.tid()] = x[wp.tid()] * wp.uint32(2)

    op = wp.torch_op(doubled)
    once = op(torch.tensor([1, 2, 3], dtype=torch.int32))
    assert once.dtype is torch.int32 and op(once).tolist() == [4, 8, 12]
