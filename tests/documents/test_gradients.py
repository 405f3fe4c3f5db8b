"""The seeds' samples about gradients, as they are printed, against central differences and analytic Jacobians; then the
items of the contract one by one."""

import numpy as np
import pytest
import warp as wp
import warp.autograd
import warp.utils

RNG = np.random.default_rng(23)
HEADER = "import warp as wp\nimport numpy as np\n"


@wp.kernel
def compute1(a: wp.array[wp.vec3d], b: wp.array[wp.float64]):
    i = wp.tid()
    b[i] = wp.dot(a[i], a[i])


@wp.kernel
def compute2(c: wp.array[wp.float64], d: wp.array[wp.float64]):
    i = wp.tid()
    d[i] = wp.sin(c[i]) * c[i]


@wp.kernel
def loss(d: wp.array[wp.float64], l: wp.array[wp.float64]):
    i = wp.tid()
    wp.atomic_add(l, 0, d[i] * d[i])


def names_of_the_sample(values):
    a = wp.array(values, dtype=wp.vec3d, requires_grad=True)
    b, d = (wp.zeros(len(values), dtype=wp.float64, requires_grad=True) for _ in range(2))
    l = wp.zeros(1, dtype=wp.float64, requires_grad=True)
    return {"a": a, "b": b, "c": b, "d": d, "l": l, "compute1": compute1, "compute2": compute2, "loss": loss}


def loss_of(values):
    c = (values**2).sum(axis=1)
    return ((np.sin(c) * c) ** 2).sum()


def differences(values, eps=1e-6):
    gradient = np.zeros_like(values)
    for index in np.ndindex(values.shape):
        moved = values.copy()
        moved[index] += eps
        gradient[index] = loss_of(moved)
        moved[index] -= 2.0 * eps
        gradient[index] = (gradient[index] - loss_of(moved)) / (2.0 * eps)
    return gradient


def slopes(function, values):
    """The derivative of a function of single numbers, exact but for rounding: by a step along the imaginary axis."""
    return function(values + 1e-30j).imag / 1e-30


@pytest.mark.seed("P-87")
def test_p87_zeros_have_a_gradient_of_zeros(load_seed, run_cuda_sample):
    sample = HEADER + load_seed(4).text(741)
    a = run_cuda_sample(sample)["a"]
    assert a.requires_grad and a.grad.shape == (1024,) and a.grad.dtype is wp.vec3
    assert not a.grad.numpy().any()


@pytest.mark.seed("P-87")
def test_zeros_have_a_gradient_of_zeros():
    a = wp.zeros(64, dtype=wp.vec3, requires_grad=True, device="cpu")
    assert a.requires_grad and a.grad.shape == (64,) and a.grad.dtype is wp.vec3
    assert not a.grad.numpy().any()


@pytest.mark.seed("P-53")
@pytest.mark.seed("S-DIF-001")
@pytest.mark.seed("S-DIF-002")
@pytest.mark.seed("S-DIF-007")
@pytest.mark.seed("D-05")
def test_a_tape_without_a_loss(capsys):
    values = RNG.standard_normal((6, 3))
    names = names_of_the_sample(values)
    a, b, d, l = (names[name] for name in "abdl")
    tape = wp.Tape()
    with tape:
        wp.launch(compute1, inputs=[a, b])
        wp.launch(compute2, inputs=[b, d])
        wp.launch(loss, inputs=[d, l])
    tape.backward()
    expected = differences(values)
    assert (np.abs(expected) > 1e-6).all()
    np.testing.assert_allclose(tape.adjoints[a].numpy(), expected, rtol=1e-6, atol=1e-7)
    print(tape.adjoints[a])
    assert capsys.readouterr().out == f"{a.grad}\n"


@pytest.mark.seed("P-88")
@pytest.mark.seed("P-89")
@pytest.mark.seed("S-DIF-003")
@pytest.mark.seed("S-DIF-008")
def test_a_loss_by_position():
    values = RNG.standard_normal((6, 3))
    names = names_of_the_sample(values)
    a, b, d, l = (names[name] for name in "abdl")
    with wp.Tape() as tape:
        wp.launch(compute1, inputs=[a, b])
        wp.launch(compute2, inputs=[b, d])
        wp.launch(loss, inputs=[d, l])
    tape.backward(l)
    np.testing.assert_allclose(tape.gradients[a].numpy(), differences(values), rtol=1e-6, atol=1e-7)
    tape.backward(l)  # without zero() it adds up
    np.testing.assert_allclose(tape.gradients[a].numpy(), 2.0 * differences(values), rtol=1e-6, atol=1e-7)
    tape.zero()
    assert not a.grad.numpy().any() and not d.grad.numpy().any()


@pytest.mark.seed("P-53")
@pytest.mark.seed("S-DIF-001")
@pytest.mark.seed("S-DIF-002")
@pytest.mark.seed("S-DIF-007")
@pytest.mark.seed("D-05")
def test_p53_a_tape_without_a_loss(load_seed, run_cuda_sample, capsys):
    values = RNG.standard_normal((5, 3))
    names = names_of_the_sample(values)
    seed = load_seed(3)
    run_cuda_sample(HEADER + seed.text(150, 159) + seed.text(164), **names)
    expected = differences(values)
    assert (np.abs(expected) > 1e-6).all()
    np.testing.assert_allclose(names["a"].grad.numpy(), expected, rtol=1e-6, atol=1e-7)
    assert capsys.readouterr().out == f"{names['a'].grad}\n"


@pytest.mark.seed("P-88")
@pytest.mark.seed("P-89")
@pytest.mark.seed("S-DIF-003")
@pytest.mark.seed("S-DIF-008")
def test_p88_and_p89_a_loss_by_position(load_seed, run_cuda_sample, capsys):
    seed = load_seed(4)
    values = RNG.standard_normal((5, 3))
    sample = HEADER + "".join(seed.text(*lines) for lines in ((745, 754), (759,), (763,)))
    names = run_cuda_sample(sample, **names_of_the_sample(values))
    a, tape = names["a"], names["tape"]
    assert not a.grad.numpy().any()  # zero() has run
    tape.backward(names["l"])
    assert capsys.readouterr().out == f"{a.grad}\n"
    expected = differences(values)
    assert (np.abs(expected) > 1e-6).all()  # a reaches the loss: b and c are one array
    np.testing.assert_allclose(a.grad.numpy(), expected, rtol=1e-6, atol=1e-7)
    tape.backward(names["l"])  # without zero() it adds up
    np.testing.assert_allclose(a.grad.numpy(), 2.0 * differences(values), rtol=1e-6, atol=1e-7)


@pytest.mark.seed("S-DIF-004")
@pytest.mark.seed("S-DIF-009")
@pytest.mark.seed("D-05")
def test_the_loss_by_name_is_seeded_with_one():
    values = RNG.standard_normal((5, 3))
    names = names_of_the_sample(values)
    a, gradient = names["a"], names["a"].grad
    names["l"].grad.fill_(5.0)  # is not what it begins with
    with wp.Tape() as tape:
        wp.launch(compute1, inputs=[a, names["b"]])
        wp.launch(compute2, inputs=[names["b"], names["d"]])
        wp.launch(loss, inputs=[names["d"], names["l"]])
    tape.backward(loss=names["l"])
    np.testing.assert_allclose(a.grad.numpy(), differences(values), rtol=1e-6, atol=1e-7)
    assert a.grad is gradient and tape.gradients[a] is gradient


@pytest.mark.seed("P-61")
@pytest.mark.seed("S-MUL-005")
def test_p61_a_product_on_a_tape(load_seed, run_sample):
    @wp.kernel
    def loss_kernel(x: wp.array2d[wp.float64], total: wp.array[wp.float64]):
        i, j = wp.tid()
        wp.atomic_add(total, 0, x[i, j] * x[i, j])

    values = {name: RNG.standard_normal(shape) for name, shape in (("A", (4, 3)), ("B", (3, 5)))}
    names = {name: wp.array(v, dtype=wp.float64, requires_grad=True) for name, v in values.items()}
    names |= {name: wp.zeros((4, 5), dtype=wp.float64, requires_grad=True) for name in "CD"}
    names["loss"] = wp.zeros(1, dtype=wp.float64, requires_grad=True)
    names = run_sample(
        HEADER + load_seed(4).text(135, 141), m=4, n=5, device=str(wp.get_device()), loss_kernel=loss_kernel, **names
    )
    product = values["A"] @ values["B"]
    np.testing.assert_allclose(names["D"].numpy(), product)
    np.testing.assert_allclose(names["A_grad"], 2.0 * product @ values["B"].T)
    np.testing.assert_allclose(names["B"].grad.numpy(), 2.0 * values["A"].T @ product)

    # The same with the operator that the page names: D = A @ B.
    A, B, total = (wp.array(v, dtype=wp.float64, requires_grad=True) for v in (values["A"], values["B"], [0.0]))
    with wp.Tape() as tape:
        D = A @ B
        wp.launch(loss_kernel, dim=(4, 5), inputs=[D, total])
    tape.backward(loss=total)
    np.testing.assert_allclose(D.numpy(), product)
    np.testing.assert_allclose(total.numpy()[0], (product**2).sum())
    np.testing.assert_allclose(A.grad.numpy(), 2.0 * product @ values["B"].T)
    np.testing.assert_allclose(B.grad.numpy(), 2.0 * values["A"].T @ product)


@wp.func
def body(s: wp.float64, x: wp.float64, k: int):
    return s * wp.cos(x) + wp.float64(k) * x * s


@wp.kernel
def loops_and_sums(
    x: wp.array[wp.float64],
    n: int,
    moved: wp.array[wp.float64],
    unrolled: wp.array[wp.float64],
    sums: wp.array[wp.float64],
):
    i = wp.tid()
    s = x[i]
    for k in range(n):  # dynamic, its body in a function
        s = body(s, x[i], k)
    moved[i] = s
    t = wp.float64(1.0)
    for k in range(4):  # static, changes a local
        t = t * x[i] + wp.float64(k)
        if k == 2:
            t = t * t
    unrolled[i] = t
    wp.atomic_add(sums, 0, s * t)
    wp.atomic_sub(sums, 1, t * x[i])
    wp.atomic_add(sums, i % 2, x[i])


@pytest.mark.seed("P-95")
@pytest.mark.seed("S-BLT-007")
def test_p95_loops_in_functions_static_loops_and_atomic_sums():
    def outputs(values):
        x = wp.array(values, dtype=wp.float64, requires_grad=True)
        results = [wp.zeros(n, dtype=wp.float64, requires_grad=True) for n in (5, 5, 2)]
        with wp.Tape() as tape:
            wp.launch(loops_and_sums, dim=5, inputs=[x, 3], outputs=results)
        return x, results, tape

    values = RNG.uniform(0.3, 1.2, 5)
    x, results, tape = outputs(values)
    # The values themselves, in NumPy.
    s, t = values.copy(), np.ones(5)
    for k in range(3):
        s = s * np.cos(values) + k * values * s
    for k in range(4):
        t = t * values + k
        t = t * t if k == 2 else t
    by_parity = [values[::2].sum(), values[1::2].sum()]
    np.testing.assert_allclose(results[0].numpy(), s)
    np.testing.assert_allclose(results[1].numpy(), t)
    np.testing.assert_allclose(results[2].numpy(), [(s * t).sum() + by_parity[0], by_parity[1] - (t * values).sum()])
    for index, result in enumerate(results):
        weights = RNG.standard_normal(result.size)
        tape.backward(grads={result: wp.array(weights, dtype=wp.float64)})
        expected = np.zeros(5)
        for i in range(5):
            for sign in (1.0, -1.0):
                ends = outputs(values + sign * 1e-6 * (np.arange(5) == i))[1][index].numpy()
                expected[i] += sign * (weights * ends).sum() / 2e-6
        assert (np.abs(expected) > 1e-3).all()
        np.testing.assert_allclose(x.grad.numpy(), expected, rtol=1e-6)
        tape.zero()


# ---- Jacobians ----

INPUTS, OUTPUTS = 4, 3


@wp.kernel
def residuals(x: wp.array[float], outputs: int, inputs: int, y: wp.array[float]):
    environment, k = wp.tid()
    s = float(0.0)
    for j in range(inputs):
        s += x[environment * inputs + j] * x[environment * inputs + j] * float(j + k)
    y[environment * outputs + k] = s * x[environment * inputs]


def run_residuals(x):
    environments = x.size // INPUTS
    y = wp.zeros(environments * OUTPUTS, dtype=wp.float32, requires_grad=True)
    wp.launch(residuals, dim=(environments, OUTPUTS), inputs=[x, OUTPUTS, INPUTS, y])
    return y


def analytic(x):
    j, k = np.arange(INPUTS), np.arange(OUTPUTS)[:, None]
    matrix = 2.0 * x * (j + k) * x[0]
    matrix[:, 0] += (x**2 * (j + k)).sum(axis=1)
    return matrix


@pytest.mark.seed("P-90")
@pytest.mark.seed("S-DIF-005")
@pytest.mark.seed("S-JAC-001")
@pytest.mark.seed("S-JAC-003")
def test_a_jacobian_by_rows():
    x = wp.array(RNG.standard_normal(INPUTS), dtype=wp.float32, requires_grad=True)
    with wp.Tape() as tape:
        y = run_residuals(x)
    rows = []
    for k in range(OUTPUTS):
        chosen = wp.array(np.eye(OUTPUTS, dtype=np.float32)[k])
        tape.backward(grads={y: chosen})
        rows.append(tape.gradients[x].numpy().copy())
        np.testing.assert_array_equal(chosen.numpy(), np.eye(OUTPUTS)[k])
        tape.zero()
    np.testing.assert_allclose(rows, analytic(x.numpy()), rtol=1e-5, atol=1e-6)


@pytest.mark.seed("P-91")
@pytest.mark.seed("S-JAC-004")
def test_jacobians_of_many_environments():
    count = 5
    x = wp.array(RNG.standard_normal(count * INPUTS), dtype=wp.float32, requires_grad=True)
    with wp.Tape() as tape:
        y = run_residuals(x)
    jacobians = np.empty((count, OUTPUTS, INPUTS))
    for k in range(OUTPUTS):
        tape.backward(grads={y: wp.array(np.tile(np.eye(OUTPUTS, dtype=np.float32)[k], count))})
        jacobians[:, k] = tape.gradients[x].numpy().reshape(count, INPUTS)
        tape.zero()
    expected = [analytic(one) for one in x.numpy().reshape(count, INPUTS)]
    np.testing.assert_allclose(jacobians, expected, rtol=1e-5, atol=1e-6)


@pytest.mark.seed("P-90")
@pytest.mark.seed("S-DIF-005")
@pytest.mark.seed("S-JAC-001")
@pytest.mark.seed("S-JAC-003")
def test_p90_a_jacobian_by_rows(load_seed, run_sample):
    x = wp.array(RNG.standard_normal(INPUTS), dtype=wp.float32, requires_grad=True)
    names = {"input_dim": INPUTS, "output_dim": OUTPUTS, "input_buffer": x}
    names["launch_kernels_to_be_differentiated"] = run_residuals
    names = run_sample(HEADER + load_seed(4).text(783, 796), **names)
    np.testing.assert_allclose(names["jacobian"], analytic(x.numpy()), rtol=1e-5, atol=1e-6)
    np.testing.assert_array_equal(names["e"].numpy(), [0.0, 0.0, 1.0])


@pytest.mark.seed("S-DIF-005")
def test_seeds_of_several_outputs_replace_their_gradients_in_each_call():
    values = RNG.standard_normal((5, 3))
    names = names_of_the_sample(values)
    a, b, d = (names[name] for name in "abd")
    with wp.Tape() as tape:
        wp.launch(compute1, inputs=[a, b])
        wp.launch(compute2, inputs=[b, d])
    c = (values**2).sum(axis=1)
    of_d = (np.cos(c) * c + np.sin(c))[:, None] * 2.0 * values  # of each d[i] by a[i]
    for of_b in (3.0, -1.0):
        seeds = {d: wp.full(5, 2.0, dtype=wp.float64), b: wp.full(5, of_b, dtype=wp.float64)}
        b.grad.fill_(100.0)
        d.grad.fill_(100.0)  # both are replaced, not added to
        tape.backward(grads=seeds)
        np.testing.assert_allclose(a.grad.numpy(), 2.0 * of_d + of_b * 2.0 * values, rtol=1e-12)
        assert (seeds[d].numpy() == 2.0).all() and (seeds[b].numpy() == of_b).all()
        a.grad.zero_()


@pytest.mark.seed("P-91")
@pytest.mark.seed("S-JAC-004")
def test_p91_jacobians_of_many_environments(load_seed, run_sample):
    count = 7
    x = wp.array(RNG.standard_normal(count * INPUTS), dtype=wp.float32, requires_grad=True)
    names = {"num_envs": count, "input_dim": INPUTS, "output_dim": OUTPUTS, "input_buffer": x}
    names["launch_kernels_to_be_differentiated"] = run_residuals
    names = run_sample(HEADER + load_seed(4).text(801, 814), **names)
    expected = [analytic(one) for one in x.numpy().reshape(count, INPUTS)]
    np.testing.assert_allclose(names["jacobians"], expected, rtol=1e-5, atol=1e-6)
    np.testing.assert_array_equal(names["e"].numpy(), np.tile([0.0, 0.0, 1.0], count))


@pytest.mark.seed("S-JAC-002")
@pytest.mark.parametrize("shares", [False, True])
def test_selections_made_before_are_never_written(shares):
    x = wp.array(RNG.standard_normal(INPUTS), dtype=wp.float32, requires_grad=True)
    with wp.Tape() as tape:
        y = run_residuals(x)
    selections = wp.array(np.eye(OUTPUTS, dtype=np.float32))
    if shares:  # even where they lie in the gradient's memory
        y.grad = selections[0]
    rows = []
    for k in range(OUTPUTS):
        tape.backward(grads={y: selections[k]})
        rows.append(x.grad.numpy().copy())
        np.testing.assert_array_equal(selections.numpy()[k], np.eye(OUTPUTS)[k])
        if not shares:
            tape.zero()
        else:
            x.grad.zero_()
    np.testing.assert_allclose(rows, analytic(x.numpy()), rtol=1e-5, atol=1e-6)
    if not shares:
        np.testing.assert_array_equal(selections.numpy(), np.eye(OUTPUTS))


# ---- the contract's items ----


@pytest.mark.seed("S-DIF-010")
@pytest.mark.seed("S-DIF-011")
def test_one_tape_and_an_optimiser_that_changes_its_input():
    target = RNG.standard_normal((4, 3))
    x = wp.zeros(4, dtype=wp.vec3d, requires_grad=True)
    goal = wp.array(target, dtype=wp.vec3d)
    total = wp.zeros(1, dtype=wp.float64, requires_grad=True)

    @wp.kernel
    def distance(x: wp.array[wp.vec3d], goal: wp.array[wp.vec3d], total: wp.array[wp.float64]):
        i = wp.tid()
        wp.atomic_add(total, 0, wp.length_sq(x[i] - goal[i]))

    @wp.kernel
    def descend(x: wp.array[wp.vec3d], gradient: wp.array[wp.vec3d]):
        i = wp.tid()
        x[i] = x[i] - gradient[i] * wp.float64(0.05)

    with wp.Tape() as tape:
        wp.launch(distance, dim=4, inputs=[x, goal, total])
    for _ in range(500):
        tape.zero()
        tape.backward(total)
        wp.launch(descend, dim=4, inputs=[x, x.grad])
    np.testing.assert_allclose(x.numpy(), target, atol=1e-12)


@pytest.mark.seed("S-DIF-014")
def test_the_members_of_a_tape():
    values = RNG.standard_normal((5, 3))
    names = names_of_the_sample(values)
    a, b, d, l = (names[name] for name in "abdl")
    tape = wp.Tape()
    tape.record_launch(compute1, dim=5, inputs=[a], outputs=[b])
    wp.launch(compute1, dim=5, inputs=[a, b])
    with tape:
        wp.launch(compute2, dim=5, inputs=[b], outputs=[d])
        with pytest.raises(RuntimeError, match="another tape is recording"), wp.Tape():
            pass
        wp.launch(loss, dim=5, inputs=[d, l])
        tape.record_func(backward=lambda: l.grad.fill_(2.0), arrays=[l])
    assert len(tape.launches) == 4
    tape.backward(loss=l, grads=None)
    np.testing.assert_allclose(tape.get_adjoint(a).numpy(), 2.0 * differences(values), rtol=1e-6, atol=1e-7)
    assert set(tape.gradients) >= {a, b, d, l}
    tape.zero()
    assert not a.grad.numpy().any() and not l.grad.numpy().any()
    tape.reset()
    assert not tape.launches and not tape.gradients


@pytest.mark.seed("S-DIF-015")
def test_intermediate_values_are_kept_or_made_again():
    @wp.kernel
    def chain(x: wp.array[wp.float64], n: int, y: wp.array[wp.float64]):
        i = wp.tid()
        s = x[i]
        t = wp.float64(1.0)
        for k in range(n):
            before = s
            s = wp.sin(s * t) + before
            t = before * wp.float64(0.5)
        y[i] = s * t

    def in_numpy(x):
        s, t = x, np.ones_like(x)
        for _ in range(20):
            s, t = np.sin(s * t) + s, s * 0.5
        return s * t

    values = RNG.uniform(0.1, 1.0, 9)
    x, y = wp.array(values, dtype=wp.float64, requires_grad=True), wp.zeros(9, dtype=wp.float64, requires_grad=True)
    with wp.Tape() as tape:
        wp.launch(chain, dim=9, inputs=[x, 20, y])
    tape.backward(grads={y: wp.ones_like(y)})
    np.testing.assert_allclose(y.numpy(), in_numpy(values))
    np.testing.assert_allclose(x.grad.numpy(), slopes(in_numpy, values), rtol=1e-12)


@pytest.mark.seed("S-DIF-016")
@pytest.mark.seed("S-DIF-017")
@pytest.mark.parametrize("count", ["n", "4"])
def test_loops_static_and_dynamic_change_what_was_declared_before(run_sample, count):
    text = "@wp.kernel\ndef kernel(x: wp.array[wp.float64], n: int, y: wp.array[wp.float64]):\n"
    text += "    i = wp.tid()\n    s = x[i]\n    v = wp.vec2d(s, s)\n"
    text += f"    for k in range({count}):\n        s = s * x[i]\n        v[k % 2] += s * v[1]\n"
    text += "    y[i] = v[0] * s + x[i]\n"
    kernel = run_sample(HEADER + text)["kernel"]

    def in_numpy(x):
        s, v = x, [x, x]
        for k in range(4):
            s = s * x
            v[k % 2] = v[k % 2] + s * v[1]
        return v[0] * s + x

    values = RNG.uniform(0.5, 1.5, 5)
    x, y = wp.array(values, dtype=wp.float64, requires_grad=True), wp.zeros(5, dtype=wp.float64, requires_grad=True)
    with wp.Tape() as tape:
        wp.launch(kernel, dim=5, inputs=[x, 4, y])
    tape.backward(grads={y: wp.ones_like(y)})
    np.testing.assert_allclose(y.numpy(), in_numpy(values))
    np.testing.assert_allclose(x.grad.numpy(), slopes(in_numpy, values), rtol=1e-12)


@pytest.mark.seed("S-DIF-012")
@pytest.mark.usefixtures("on_the_cpu")
def test_gradients_in_memory_of_torch_serve_its_optimiser():
    import torch

    x = torch.nn.Parameter(torch.tensor([3.0, -2.0]))
    x.grad = torch.zeros(2)
    values = wp.array(x.detach().numpy(), dtype=float, copy=False)
    values.grad = wp.array(x.grad.numpy(), dtype=float, copy=False)
    total = wp.zeros(1, requires_grad=True)

    @wp.kernel
    def squares(x: wp.array[float], total: wp.array[float]):
        i = wp.tid()
        wp.atomic_add(total, 0, x[i] * x[i])

    with wp.Tape() as tape:
        wp.launch(squares, dim=2, inputs=[values, total])
    optimiser = torch.optim.SGD([x], lr=0.1)
    for _ in range(60):
        tape.zero()
        tape.backward(total)
        optimiser.step()
    np.testing.assert_allclose(x.detach().numpy(), 0.0, atol=1e-4)


@pytest.mark.seed("S-DIF-020")
def test_a_program_as_a_function_of_torch():
    import torch

    class Sum(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.x = wp.array(x.detach().numpy(), requires_grad=True)
            ctx.tape = wp.Tape()
            with ctx.tape:
                ctx.y = wp.map(wp.sin, ctx.x * ctx.x)
            return torch.from_numpy(ctx.y.numpy())

        @staticmethod
        def backward(ctx, gradient):
            ctx.tape.backward(grads={ctx.y: wp.array(gradient.contiguous().numpy())})
            return torch.from_numpy(ctx.x.grad.numpy())

    x = torch.tensor([0.5, 1.5], dtype=torch.float64, requires_grad=True)
    (Sum.apply(x * 2.0) ** 2).sum().backward()
    own = x.grad.clone()
    x.grad = None
    (torch.sin((x * 2.0) ** 2) ** 2).sum().backward()
    np.testing.assert_allclose(own.numpy(), x.grad.numpy())
