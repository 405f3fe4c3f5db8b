"""Kernels as functions of JAX under its transformations, each beside JAX's own formula."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import pytest
import warp as wp
from jax.sharding import PartitionSpec
from jax_programs import CASES, Case, agree, loss

pytestmark = [
    pytest.mark.seed("S-JAX-013"),
    pytest.mark.cpu_only("other frameworks are built for the CPU here; their GPUs come later"),
]


@pytest.fixture(params=CASES, ids=[case.name for case in CASES])
def case(request) -> Case:
    return request.param


@pytest.mark.seed("S-JAX-010", "D-26")
def test_without_a_transformation(case):
    agree(case.function()(*case.arguments()), case.formula(*case.arguments()))


def test_jit(case):
    agree(jax.jit(case.function())(*case.arguments()), case.formula(*case.arguments()))


@pytest.mark.parametrize("arguments", [0, 1, (0, 1)])
def test_grad(case, arguments):
    found = jax.jit(jax.grad(loss(case.function()), arguments))(*case.arguments())
    agree(found, jax.grad(loss(case.formula), arguments)(*case.arguments()))


def test_vjp_with_one_output_unused(case):
    def last(function):
        return lambda *args: jnp.sum(function(*args)[-1] ** 2)

    found = jax.grad(last(case.function()), (0, 1))(*case.arguments())
    agree(found, jax.grad(last(case.formula), (0, 1))(*case.arguments()))


@pytest.mark.seed("S-JAX-012")
@pytest.mark.parametrize("method", ["broadcast_all", "expand_dims", "legacy_vectorized", "sequential"])
def test_vmap(case, method):
    function = wp.jax_kernel(case.kernel, vmap_method=method, **case.options)
    agree(jax.jit(jax.vmap(function))(*case.arguments(4)), jax.vmap(case.formula)(*case.arguments(4)))


@pytest.mark.parametrize("axes", [(0, None), (None, 0), (1, 0)])
def test_vmap_of_some_arguments(case, axes):
    given = []
    for argument, axis in zip(case.arguments(4), axes, strict=True):
        given.append(argument[1] if axis is None else jnp.moveaxis(argument, 0, axis))
    agree(jax.vmap(case.function(), axes)(*given), jax.vmap(case.formula, axes)(*given))


@pytest.mark.parametrize("method", ["legacy_vectorized", "sequential"])
@pytest.mark.parametrize("outer, inner", [((0, 0), (0, 0)), ((0, None), (None, 0)), ((None, 0), (0, 0))])
def test_vmap_of_vmap(case, outer, inner, method):
    given = []
    for argument, first, second in zip(case.arguments(3, 4), outer, inner, strict=True):
        argument = argument[0] if first is None else argument
        given.append(jnp.take(argument, 0, axis=0 if first is None else 1) if second is None else argument)
    function = wp.jax_kernel(case.kernel, vmap_method=method, **case.options)
    found = jax.vmap(jax.vmap(function, inner), outer)(*given)
    agree(found, jax.vmap(jax.vmap(case.formula, inner), outer)(*given))


@pytest.mark.parametrize("axes", [(0, 0), (None, 0), (0, None)])
def test_vmap_of_grad(case, axes):
    given = [a[0] if axis is None else a for a, axis in zip(case.arguments(4), axes, strict=True)]
    found = jax.vmap(jax.grad(loss(case.function()), (0, 1)), axes)(*given)
    agree(found, jax.vmap(jax.grad(loss(case.formula), (0, 1)), axes)(*given))


@pytest.mark.parametrize("axes", [(0, 0), (None, 0), (0, None)])
def test_grad_of_vmap(case, axes):
    given = [a[0] if axis is None else a for a, axis in zip(case.arguments(4), axes, strict=True)]
    found = jax.grad(loss(jax.vmap(case.function(), axes)), (0, 1))(*given)
    agree(found, jax.grad(loss(jax.vmap(case.formula, axes)), (0, 1))(*given))


def scanned(function):
    """Each step's outputs change the numbers of the next."""

    def run(x, ys):
        def step(x, y):
            outputs = function(x, y)
            return x * 0.5 + 0.1 * sum(jnp.sum(output) for output in outputs) / x.size, outputs

        last, outputs = jax.lax.scan(step, x, ys)
        return [last, *outputs]

    return run


def test_scan(case):
    x, _ = case.arguments()
    _, ys = case.arguments(6)
    agree(jax.jit(scanned(case.function()))(x, ys), scanned(case.formula)(x, ys))


def test_grad_of_scan(case):
    x, _ = case.arguments()
    _, ys = case.arguments(6)
    found = jax.jit(jax.grad(loss(scanned(case.function())), (0, 1)))(x, ys)
    agree(found, jax.grad(loss(scanned(case.formula)), (0, 1))(x, ys), 1e-4)


def on_shards(function, is_checked):
    """The function for each row, in a shard_map over one device."""
    each = jax.vmap(function)
    return jax.shard_map(
        lambda *args: tuple(each(*args)),
        mesh=jax.make_mesh((1,), ("x",), axis_types=(jax.sharding.AxisType.Auto,)),
        in_specs=PartitionSpec("x"),
        out_specs=PartitionSpec("x"),
        check_vma=is_checked,
    )


@pytest.mark.parametrize("is_checked", [False, True])
def test_shard_map(case, is_checked):
    arguments = case.arguments(2)

    agree(jax.jit(on_shards(case.function(), is_checked))(*arguments), on_shards(case.formula, is_checked)(*arguments))
    found = jax.jit(jax.grad(loss(on_shards(case.function(), is_checked)), (0, 1)))(*arguments)
    agree(found, jax.grad(loss(jax.vmap(case.formula)), (0, 1))(*arguments))


def test_shard_map_of_an_argument_that_all_devices_share(case):
    mesh = jax.make_mesh((1,), ("x",), axis_types=(jax.sharding.AxisType.Auto,))
    x, y = case.arguments(2)

    def sharded(function):
        each = jax.vmap(function, (0, None))
        specs = (PartitionSpec("x"), PartitionSpec())
        return jax.shard_map(lambda *a: tuple(each(*a)), mesh=mesh, in_specs=specs, out_specs=PartitionSpec("x"))

    found = jax.jit(jax.grad(loss(sharded(case.function())), (0, 1)))(x, y[0])
    agree(found, jax.grad(loss(jax.vmap(case.formula, (0, None))), (0, 1))(x, y[0]))


def test_jax_checkpoint_gives_the_same_gradients(case):
    found = jax.jit(jax.grad(loss(jax.checkpoint(case.function())), (0, 1)))(*case.arguments())
    agree(found, jax.grad(loss(case.formula), (0, 1))(*case.arguments()))


def test_donated_arguments_give_the_same_result(case):
    x, y = case.arguments()
    expected = case.formula(x, y)
    donated = jax.jit(case.function(), donate_argnums=(0, 1))
    agree(donated(x + 0, y + 0), expected)
    agree(donated(x + 0, y + 0), expected)


def test_inside_of_a_condition_and_a_loop(case):
    def run(function):
        def total(x, y):
            def body(i, carried):
                return carried + sum(jnp.sum(o) for o in function(x + carried, y))

            looped = jax.lax.fori_loop(0, 3, body, jnp.float32(0))
            return [jax.lax.cond(looped > 0, lambda: loss(function)(x, y), lambda: looped), looped]

        return total

    agree(jax.jit(run(case.function()))(*case.arguments()), run(case.formula)(*case.arguments()), 1e-4)


# ---- forward mode and second derivatives ----


def along(case, *leading):
    """A direction in which the arguments move."""
    return case.arguments(*leading, seed=3)


def test_jvp(case):
    def moved(function):
        return lambda a, t: jax.jvp(lambda *args: function(*args), a, t)

    arguments, tangents = case.arguments(), along(case)
    agree(moved(case.function())(arguments, tangents), moved(case.formula)(arguments, tangents))
    agree(jax.jit(moved(case.function()))(arguments, tangents), moved(case.formula)(arguments, tangents))


def test_jvp_along_one_argument(case):
    x, y = case.arguments()

    def moved(function):
        return jax.jvp(lambda x: function(x, y), (x,), along(case)[:1])[1][-1]

    agree(moved(case.function()), moved(case.formula))


def test_jacobians(case):
    for jacobian in (jax.jacfwd, jax.jacrev):
        found = jax.jit(jacobian(lambda *args: case.function()(*args), (0, 1)))(*case.arguments())
        expected = jacobian(case.formula, (0, 1))(*case.arguments())
        for one, other in zip(jax.tree.leaves(found), jax.tree.leaves(expected), strict=True):
            assert jnp.allclose(one, other, rtol=2e-5, atol=2e-5)
        assert any(jnp.any(other != 0) for other in jax.tree.leaves(expected))


def test_linearize_and_its_transpose(case):
    arguments, tangents = case.arguments(), along(case)

    def both(function):
        values, linear = jax.linearize(lambda *args: function(*args), *arguments)
        return linear(*tangents), jax.linear_transpose(linear, *arguments)(values)

    agree(both(case.function()), both(case.formula))


@pytest.mark.parametrize("axes", [(0, 0), (None, 0), (0, None), (1, 0)])
def test_vmap_of_jvp_and_jvp_of_vmap(case, axes):
    given, tangents = (
        [
            a[0] if axis is None else jnp.moveaxis(a, 0, axis)
            for a, axis in zip(case.arguments(4, seed=seed), axes, strict=True)
        ]
        for seed in (0, 3)
    )

    def runs(function):
        each = jax.vmap(lambda *args: jax.jvp(lambda *a: function(*a), args[:2], args[2:])[1], axes * 2)
        return each(*given, *tangents), jax.jvp(lambda *a: jax.vmap(function, axes)(*a), given, tangents)[1]

    agree(runs(case.function()), runs(case.formula))


def test_jvp_in_scan(case):
    x, y = (case.arguments()[0], case.arguments(6)[1])
    tangents = (along(case)[0], along(case, 6)[1])

    def moved(function):
        return jax.jit(lambda x, y, *t: jax.jvp(scanned(function), (x, y), t))(x, y, *tangents)

    agree(moved(case.function()), moved(case.formula), 1e-4)


@pytest.mark.parametrize("is_checked", [False, True])
def test_jvp_and_second_derivatives_in_shard_map(case, is_checked):
    arguments, tangents = case.arguments(2), along(case, 2)

    def runs(function, slope_of):
        slope = jax.grad(loss(slope_of(function)), (0, 1))
        return jax.jvp(slope_of(function), arguments, tangents)[1], jax.jvp(slope, arguments, tangents)[1]

    found = jax.jit(lambda: runs(case.function(), lambda function: on_shards(function, is_checked)))()
    agree(found, runs(case.formula, lambda f: lambda *args: tuple(jax.vmap(f)(*args))), 1e-4)


SECOND = {
    "hessian": lambda loss, x, y, t: jax.hessian(loss, (0, 1))(x, y),
    "jit of hessian": lambda loss, x, y, t: jax.jit(jax.hessian(loss, (0, 1)))(x, y),
    "reverse over reverse": lambda loss, x, y, t: jax.jacrev(jax.grad(loss, (0, 1)), (0, 1))(x, y),
    "forward over reverse": lambda loss, x, y, t: jax.jvp(jax.grad(loss, (0, 1)), (x, y), t)[1],
    "reverse over forward": lambda loss, x, y, t: jax.grad(lambda *args: jnp.sin(jax.jvp(loss, args, t)[1]), (0, 1))(
        x, y
    ),
    "gradient of a norm": lambda loss, x, y, t: jax.grad(
        lambda *args: sum(jnp.sum(g * g) for g in jax.grad(loss, (0, 1))(*args)), (0, 1)
    )(x, y),
    "of samples": lambda loss, x, y, t: jax.vmap(jax.hessian(loss), (0, None))(jnp.stack([x, 2 * x]), y),
    "checkpoint": lambda loss, x, y, t: jax.hessian(jax.checkpoint(loss))(x, y),
}


@pytest.mark.parametrize("name", SECOND)
def test_second_derivatives(case, name):
    arguments = (*case.arguments(), along(case))
    agree(SECOND[name](loss(case.function()), *arguments), SECOND[name](loss(case.formula), *arguments), 1e-4)


def test_what_is_not_computed_is_an_error(case):
    function, arguments = loss(case.function()), case.arguments()
    with pytest.raises(NotImplementedError, match="kernel '(wave|pair|turn)': forward mode of its forward mode"):
        jax.jacfwd(jax.jacfwd(function))(*arguments)
    with pytest.raises(NotImplementedError, match="first and second derivatives, and a third was asked for"):
        jax.jacrev(jax.jacrev(jax.grad(function)))(*arguments)
