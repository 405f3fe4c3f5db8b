"""warp.autograd: Jacobians by a tape and by differences, and checks that find what is wrong."""

import numpy as np
import pytest
import warp as wp
import warp.autograd

pytestmark = pytest.mark.protected

RNG = np.random.default_rng(5)


@wp.kernel
def mixed(
    a: wp.array[wp.vec3d], b: wp.array[wp.float64], n: int, out: wp.array[wp.float64], vectors: wp.array[wp.vec3d]
):
    i = wp.tid()
    out[i] = wp.dot(a[i], a[i]) * b[(i + 1) % n]
    vectors[i] = a[i] * b[i]


def mixed_arguments(n=3):
    a = wp.array(RNG.standard_normal((n, 3)), dtype=wp.vec3d, requires_grad=True)
    b = wp.array(RNG.standard_normal(n), dtype=wp.float64, requires_grad=True)
    out = wp.zeros(n, dtype=wp.float64, requires_grad=True)
    return [a, b, n], [out, wp.zeros(n, dtype=wp.vec3d, requires_grad=True)]


def mixed_jacobians(a, b):
    n = len(b)
    by_pair = {(0, 0): np.zeros((n, n, 3)), (1, 0): np.zeros((n, n))}
    by_pair |= {(0, 1): np.zeros((n, 3, n, 3)), (1, 1): np.zeros((n, 3, n))}
    for i in range(n):
        by_pair[0, 0][i, i] = 2.0 * a[i] * b[(i + 1) % n]
        by_pair[1, 0][i, (i + 1) % n] = a[i] @ a[i]
        by_pair[0, 1][i, :, i, :] = np.eye(3) * b[i]
        by_pair[1, 1][i, :, i] = a[i]
    rows = {0: n, 1: 3 * n}
    return {(i, o): matrix.reshape(rows[o], -1) for (i, o), matrix in by_pair.items()}


@pytest.mark.parametrize("make, rtol", [(wp.autograd.jacobian, 1e-12), (wp.autograd.jacobian_fd, 1e-8)])
def test_jacobians_of_a_kernel_are_the_analytic_ones(make, rtol):
    inputs, outputs = mixed_arguments()
    found = make(mixed, dim=3, inputs=inputs, outputs=outputs)
    expected = mixed_jacobians(inputs[0].numpy(), inputs[1].numpy())
    assert found.keys() == expected.keys()
    for pair, matrix in expected.items():
        assert found[pair].dtype is wp.float64
        np.testing.assert_allclose(found[pair].numpy(), matrix, rtol=rtol, atol=rtol)


def test_arguments_and_their_gradients_are_left_as_they_are():
    inputs, outputs = mixed_arguments()
    arrays = [*inputs[:2], *outputs]
    for array in arrays:
        array.grad.fill_(3.0)
    before = [(array.numpy().copy(), array.grad.numpy().copy()) for array in arrays]
    with wp.Tape() as tape:
        wp.autograd.jacobian(mixed, dim=3, inputs=inputs, outputs=outputs)
        wp.autograd.gradcheck(mixed, dim=3, inputs=inputs, outputs=outputs, show_summary=False)
    assert not tape.launches
    for array, (values, gradient) in zip(arrays, before, strict=True):
        np.testing.assert_array_equal(array.numpy(), values)
        np.testing.assert_array_equal(array.grad.numpy(), gradient)


def test_a_mask_chooses_pairs_by_name_and_by_position():
    inputs, outputs = mixed_arguments()
    expected = mixed_jacobians(inputs[0].numpy(), inputs[1].numpy())
    mask = [("b", "out"), (0, "vectors"), ("a", -2)]
    found = wp.autograd.jacobian(mixed, dim=3, inputs=inputs, outputs=outputs, input_output_mask=mask)
    assert set(found) == {(1, 0), (0, 1), (0, 0)}
    for pair, matrix in found.items():
        np.testing.assert_allclose(matrix.numpy(), expected[pair])


def test_rows_and_columns_can_be_limited():
    inputs, outputs = mixed_arguments()
    found = wp.autograd.jacobian(mixed, dim=3, inputs=inputs, outputs=outputs, max_outputs_per_var=2)[1, 1].numpy()
    assert np.isfinite(found[:2]).all() and np.isnan(found[2:]).all()
    found = wp.autograd.jacobian_fd(mixed, dim=3, inputs=inputs, outputs=outputs, max_inputs_per_var=1)[1, 1].numpy()
    assert np.isfinite(found[:, 0]).all() and np.isnan(found[:, 1:]).all()
    limits = {"max_inputs_per_var": 2, "max_outputs_per_var": 1, "show_summary": False}
    assert wp.autograd.gradcheck(mixed, dim=3, inputs=inputs, outputs=outputs, **limits)


def test_functions_that_return_arrays():
    def products(a, scale):
        first = a * a
        return [first * scale, first @ a]

    values = RNG.standard_normal((2, 2))
    a = wp.array(values, dtype=wp.float64, requires_grad=True)
    found = wp.autograd.jacobian(products, inputs=[a, 3.0])
    np.testing.assert_allclose(found[0, 0].numpy(), np.diag(6.0 * values.reshape(-1)))
    near = wp.autograd.jacobian_fd(products, inputs=[a, 3.0], eps=None)
    np.testing.assert_allclose(found[0, 1].numpy(), near[0, 1].numpy(), rtol=1e-8, atol=1e-9)


def test_functions_that_write_outputs_and_kernels_in_place():
    @wp.kernel
    def twice(x: wp.array[wp.float64]):
        i = wp.tid()
        x[i] = x[i] * x[i]

    def run(x, y):
        wp.copy(y, x)
        wp.launch(twice, dim=2, inputs=[y])
        wp.launch(twice, dim=2, inputs=[y])

    x = wp.array([1.0, 2.0], dtype=wp.float64, requires_grad=True)
    y = wp.zeros_like(x)
    np.testing.assert_allclose(wp.autograd.jacobian(run, inputs=[x], outputs=[y])[0, 0].numpy(), np.diag([4.0, 32.0]))
    in_place = wp.autograd.jacobian(lambda x: (wp.launch(twice, dim=2, inputs=[x]), x)[1], inputs=[x])
    np.testing.assert_allclose(in_place[0, 0].numpy(), np.diag([2.0, 4.0]))
    assert x.numpy().tolist() == [1.0, 2.0]


def test_one_array_given_twice_is_one_array():
    def product(a, b):
        return a * b

    x = wp.array([3.0], dtype=wp.float64, requires_grad=True)
    assert wp.autograd.jacobian(product, inputs=[x, x])[0, 0].numpy()[0, 0] == 6.0


@pytest.mark.parametrize("dtype, digits", [(wp.float16, 2e-2), (wp.float32, 1e-3), (wp.float64, 1e-8)])
def test_differences_choose_their_step_by_the_type(dtype, digits):
    @wp.kernel
    def kernel(x: wp.array(dtype=dtype), y: wp.array(dtype=dtype)):
        i = wp.tid()
        y[i] = wp.exp(x[i])

    x = wp.array([0.5, 1.5], dtype=dtype, requires_grad=True)
    y = wp.zeros_like(x)
    found = wp.autograd.jacobian_fd(kernel, dim=2, inputs=[x], outputs=[y], eps=None)[0, 0]
    assert found.dtype is (wp.float64 if dtype is wp.float64 else wp.float32)
    np.testing.assert_allclose(found.numpy(), np.diag(np.exp([0.5, 1.5])), rtol=digits)


def test_functions_that_do_little():
    x = wp.array([1.0, 2.0], dtype=wp.float64, requires_grad=True)
    np.testing.assert_array_equal(wp.autograd.jacobian(lambda a: a, inputs=[x])[0, 0].numpy(), np.eye(2))
    nothing = wp.zeros(0, dtype=wp.float64, requires_grad=True)
    assert wp.autograd.jacobian(lambda a: a * 2.0, inputs=[nothing])[0, 0].shape == (0, 0)
    assert wp.autograd.gradcheck(lambda a: a * 2.0, inputs=[nothing], show_summary=False)


@wp.struct
class Parameters:
    x: wp.array[wp.float64]
    work: wp.array[wp.float64]


@wp.kernel
def add_to_work(p: Parameters, y: wp.array[wp.float64]):
    i = wp.tid()
    wp.atomic_add(p.work, i, p.x[i] * y[i])


@wp.kernel
def use_work(p: Parameters, y: wp.array[wp.float64], out: wp.array[wp.float64]):
    i = wp.tid()
    out[i] = p.work[i] * y[i]


def two_launches(p, y):
    out = wp.zeros_like(y)
    wp.launch(add_to_work, dim=2, inputs=[p, y])
    wp.launch(use_work, dim=2, inputs=[p, y, out])
    return out


def test_arrays_in_structs_are_copied_too():
    p = Parameters()
    p.x = wp.array([2.0, 3.0], dtype=wp.float64, requires_grad=True)
    p.work = wp.zeros(2, dtype=wp.float64, requires_grad=True)
    y = wp.array([5.0, 7.0], dtype=wp.float64, requires_grad=True)
    found = wp.autograd.jacobian(two_launches, inputs=[p, y])[1, 0].numpy()
    np.testing.assert_allclose(found, np.diag([2.0 * 2.0 * 5.0, 2.0 * 3.0 * 7.0]))
    assert not p.work.numpy().any() and not p.x.grad.numpy().any()
    assert wp.autograd.gradcheck(two_launches, inputs=[p, y], show_summary=False)


# ---- checks ----


# Central differences over a jump show what a wrong gradient looks like.
@wp.kernel
def jumps(x: wp.array[wp.float64], y: wp.array2d[wp.float64]):
    i = wp.tid()
    y[i, 1] = wp.floor(x[i]) * x[i]
    y[i, 0] = x[i]


def jumping_arguments():
    x = wp.array([0.5, 3.0, 1.5], dtype=wp.float64, requires_grad=True)
    return [x], [wp.zeros((3, 2), dtype=wp.float64, requires_grad=True)]


def test_a_wrong_gradient_is_named_with_its_place_and_both_values(capsys):
    inputs, outputs = jumping_arguments()
    where = r"derivative of y\[1, 1\] by x\[1\] is 3, central differences give 8.5: 5.5 apart, allowed are 0.086 "
    with pytest.raises(ValueError, match=where) as error:
        wp.autograd.gradcheck(jumps, dim=3, inputs=inputs, outputs=outputs, eps=0.25)
    assert isinstance(error.value, wp.UsageError)
    assert "y by x: WRONG, largest error 5.5, relative 0.647" in capsys.readouterr().out
    quiet = {"raise_exception": False, "show_summary": False, "eps": 0.25}
    assert wp.autograd.gradcheck(jumps, dim=3, inputs=inputs, outputs=outputs, **quiet) is False
    assert wp.autograd.gradcheck(jumps, dim=3, inputs=inputs, outputs=outputs, atol=5.5, **quiet) is True
    assert capsys.readouterr().out == ""


def test_nan_is_not_near_anything():
    @wp.kernel
    def root(x: wp.array[wp.float64], y: wp.array[wp.float64]):
        i = wp.tid()
        y[i] = wp.sqrt(x[i])

    x = wp.array([-1.0], dtype=wp.float64, requires_grad=True)
    with pytest.raises(ValueError, match="nan"):
        wp.autograd.gradcheck(root, dim=1, inputs=[x], outputs=[wp.zeros_like(x)], show_summary=False)


def test_every_launch_of_a_tape_is_checked_from_what_its_arrays_held(capsys):
    x = wp.array([0.5, 3.0, 1.5], dtype=wp.float64, requires_grad=True)
    y = wp.zeros((3, 2), dtype=wp.float64, requires_grad=True)
    z = wp.zeros((3, 2), dtype=wp.float64, requires_grad=True)

    @wp.kernel
    def cubes(y: wp.array2d[wp.float64], z: wp.array2d[wp.float64]):
        i, j = wp.tid()
        z[i, j] = y[i, j] * y[i, j] * y[i, j]

    with wp.Tape() as tape:
        wp.launch(cubes, dim=(3, 2), inputs=[y, z])
        wp.launch(jumps, dim=3, inputs=[x, y])
        wp.launch(cubes, dim=(3, 2), inputs=[y, z])
        wp.copy(z, y)
        x.fill_(0.5)  # away from the jump
    with pytest.raises(ValueError, match=r"'jumps'.*by x\[1\] is 3,"):
        wp.autograd.gradcheck_tape(tape, show_summary=False)
    assert wp.autograd.gradcheck_tape(tape, blacklist_kernels=["jumps"])
    assert capsys.readouterr().out.count("gradients of cubes: ok") == 2
    assert wp.autograd.gradcheck_tape(tape, whitelist_kernels=["cubes"], skip_to_launch_index=2)
    assert wp.autograd.gradcheck_tape(tape, reverse_launches=True, raise_exception=False) is False
    lines = [line for line in capsys.readouterr().out.splitlines() if line.startswith("gradients")]
    assert [line.split()[2] for line in lines] == ["cubes:", "cubes:", "jumps:", "cubes:"]
    mask = {"jumps": [("y", "y")]}
    assert wp.autograd.gradcheck_tape(tape, input_output_masks=mask, show_summary=False)


# ---- mistakes ----


def test_mistakes_are_named():
    inputs, outputs = mixed_arguments()
    with pytest.raises(ValueError, match="none of the inputs of 'mixed'"):
        wp.autograd.jacobian(mixed, 3, [wp.zeros(3, dtype=wp.vec3d), wp.zeros(3, dtype=wp.float64), 3], outputs)
    with pytest.raises(ValueError, match="none of the outputs of 'mixed'"):
        plain = [wp.zeros(3, dtype=wp.float64), wp.zeros(3, dtype=wp.vec3d)]
        wp.autograd.jacobian(mixed, 3, inputs, plain)
    with pytest.raises(ValueError, match=r"needs outputs=\[...\]"):
        wp.autograd.jacobian(mixed, 3, [*inputs, *outputs])
    with pytest.raises(TypeError, match="are 4 arguments, expected 5"):
        wp.autograd.jacobian(mixed, 3, inputs, outputs[:1])
    with pytest.raises(ValueError, match="names the input 'c'; 'mixed' has a, b, n"):
        wp.autograd.jacobian(mixed, 3, inputs, outputs, input_output_mask=[("c", "out")])
    with pytest.raises(ValueError, match="'n' of input_output_mask is no array"):
        wp.autograd.jacobian(mixed, 3, inputs, outputs, input_output_mask=[("n", "out")])
    with pytest.raises(TypeError, match="expected a kernel or a function"):
        wp.autograd.gradcheck(None, 3, inputs, outputs)
    with pytest.raises(TypeError, match="'inputs' is array, expected a list"):
        wp.autograd.jacobian(mixed, 3, inputs[0], outputs)
    with pytest.raises(TypeError, match="returned None"):
        wp.autograd.jacobian(lambda a: None, inputs=[inputs[0]])
    with pytest.raises(TypeError, match="array of int32"):
        wp.autograd.jacobian(lambda a: a, inputs=[wp.zeros(3, dtype=int, requires_grad=True)])
    with pytest.raises(ValueError, match="shares memory with an input"):
        wp.autograd.jacobian(lambda a, b: None, inputs=[inputs[1]], outputs=[inputs[1][1:]])
    with pytest.raises(ValueError, match="does not change"):
        wp.autograd.jacobian_fd(mixed, 3, inputs, outputs, eps=1e-30)
    with pytest.raises(TypeError, match="expected a wp.Tape"):
        wp.autograd.gradcheck_tape(mixed)
    with pytest.raises(ValueError, match="no launch"):
        wp.autograd.gradcheck_tape(wp.Tape())


# ---- plots ----


@pytest.mark.needs("matplotlib")
def test_plots_are_written(tmp_path):
    import matplotlib

    matplotlib.use("Agg")
    inputs, outputs = mixed_arguments()
    found = wp.autograd.jacobian(mixed, dim=3, inputs=inputs, outputs=outputs, max_outputs_per_var=2)
    del found[1, 1]
    for number, options in enumerate([{}, {"log_scale": True, "scale_colors_per_submatrix": True, "title": "J"}]):
        path = tmp_path / f"{number}.png"
        figure = wp.autograd.jacobian_plot(found, mixed, inputs, filename=str(path), **options)
        assert path.read_bytes().startswith(b"\x89PNG")
        axes = [axis for axis in figure.axes if axis.get_label() != "<colorbar>"]
        assert [axis.get_ylabel() for axis in axes if axis.get_ylabel()] == ["out", "vectors"]
        assert [axis.get_xlabel() for axis in axes if axis.get_xlabel()] == ["a", "b"]
        matplotlib.pyplot.close(figure)
    with pytest.raises(ValueError, match="'jacobians' is empty"):
        wp.autograd.jacobian_plot({}, mixed, inputs)


def test_kernels_without_backward_have_differences_and_no_jacobian():
    @wp.kernel(enable_backward=False)
    def one_way(x: wp.array[wp.float64], y: wp.array[wp.float64]):
        i = wp.tid()
        y[i] = x[i] * x[i]

    x = wp.array([1.0, 2.0], dtype=wp.float64, requires_grad=True)
    arguments = {"dim": 2, "inputs": [x], "outputs": [wp.zeros_like(x)]}
    for check in (wp.autograd.jacobian, wp.autograd.gradcheck):
        with pytest.raises(
            ValueError, match="'one_way' has no gradient, because it was declared with enable_backward=False"
        ):
            check(one_way, **arguments)
    near = wp.autograd.jacobian_fd(one_way, **arguments, block_dim=None)[0, 0].numpy()
    np.testing.assert_allclose(near, np.diag([2.0, 4.0]), rtol=1e-6)
    with wp.Tape() as tape:
        wp.launch(one_way, **arguments)
    assert wp.autograd.gradcheck_tape(tape, show_summary=False)


def test_inputs_that_a_function_changes_are_as_they_were():
    def doubled(x):
        x *= 2.0
        return x * x

    x = wp.array([1.0, 2.0], dtype=wp.float64, requires_grad=True)
    for differentiate in (wp.autograd.jacobian, wp.autograd.jacobian_fd):
        found = differentiate(doubled, inputs=[x], restore_inputs=True)[0, 0].numpy()
        np.testing.assert_allclose(found, np.diag([8.0, 16.0]), rtol=1e-6)
        np.testing.assert_array_equal(x.numpy(), [1.0, 2.0])
