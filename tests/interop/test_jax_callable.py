"""wp.jax_callable: Python functions that launch kernels, as functions of JAX."""

import gc
import weakref

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import warp as wp
from jax.sharding import PartitionSpec
from run_in_threads import run_in_threads

pytestmark = pytest.mark.cpu_only("other frameworks are built for the CPU here; their GPUs come later")


@wp.kernel
def scale(x: wp.array[float], factor: float, y: wp.array[float]):
    y[wp.tid()] = factor * x[wp.tid()]


@wp.kernel
def add(x: wp.array[float], y: wp.array[float]):
    y[wp.tid()] = y[wp.tid()] + x[wp.tid()]


@wp.kernel
def spread(x: wp.array[float], v: wp.array[wp.vec2]):
    v[wp.tid()] = wp.vec2(x[wp.tid()], -x[wp.tid()])


def scaled_and_added(x: wp.array[float], factor: float, y: wp.array[float]):
    wp.launch(scale, dim=x.shape, inputs=[x, factor], outputs=[y])
    wp.launch(add, dim=x.shape, inputs=[x], outputs=[y])


def two(x: wp.array[float], y: wp.array[float], v: wp.array[wp.vec2]):
    wp.launch(add, dim=x.shape, inputs=[x], outputs=[y])
    wp.launch(spread, dim=x.shape, inputs=[x], outputs=[v])


def accumulate(x: wp.array[float], state: wp.array[float]):
    wp.launch(add, dim=x.shape, inputs=[x], outputs=[state])


X = jnp.arange(12.0).reshape(3, 4)
CASES = {
    "one output": (lambda: lambda x: wp.jax_callable(scaled_and_added)(x, 2.0), lambda x: [3 * x]),
    "two outputs": (
        lambda: wp.jax_callable(two, num_outputs=2, output_dims=4),
        lambda x: [x, jnp.stack([x, -x], axis=-1)],
    ),
}


def same(found, expected):
    assert len(found) == len(expected)
    for one, other in zip(found, expected, strict=True):
        assert one.shape == other.shape
        np.testing.assert_array_equal(one, other)


@pytest.fixture(params=CASES)
def case(request):
    function, formula = CASES[request.param]
    return function(), formula


def test_eager_jit_and_scan(case):
    function, formula = case
    same(function(X[1]), formula(X[1]))
    same(jax.jit(function)(X[1]), formula(X[1]))
    _, found = jax.jit(lambda xs: jax.lax.scan(lambda _, x: (None, function(x)), None, xs))(X)
    same(found, jax.vmap(formula)(X))


@pytest.mark.parametrize("method", ["broadcast_all", "sequential"])
def test_vmap(method):
    function = wp.jax_callable(two, num_outputs=2, vmap_method=method)
    same(jax.jit(jax.vmap(function))(X), jax.vmap(CASES["two outputs"][1])(X))
    nested = jnp.stack([X, X + 1])
    same(jax.vmap(jax.vmap(function))(nested), jax.vmap(jax.vmap(CASES["two outputs"][1]))(nested))
    both = wp.jax_callable(accumulate, in_out_argnames=["state"], vmap_method=method)
    same(jax.vmap(both, (0, None))(X, X[0]), [X + X[0]])
    same(jax.vmap(both, (None, 0))(X[0], X), [X + X[0]])


@pytest.mark.parametrize("is_checked", [False, True])
def test_shard_map(case, is_checked):
    function, formula = case
    mesh = jax.make_mesh((1,), ("x",), axis_types=(jax.sharding.AxisType.Auto,))
    sharded = jax.shard_map(
        lambda x: tuple(function(x)),
        mesh=mesh,
        in_specs=PartitionSpec("x"),
        out_specs=PartitionSpec("x"),
        check_vma=is_checked,
    )
    same(jax.jit(sharded)(X[1]), formula(X[1]))


def test_inputs_that_are_outputs_and_what_is_not_written():
    state = jnp.ones(4)
    same(wp.jax_callable(accumulate, in_out_argnames=["state"])(X[1], state), [X[1] + 1])
    assert state.tolist() == [1, 1, 1, 1]

    def nothing(x: wp.array[float], y: wp.array2d[float], v: wp.array[wp.vec3]):
        pass

    for _ in range(3):
        y, v = wp.jax_callable(nothing, num_outputs=2, output_dims={"y": (2, 3), "v": 5})(X[1])
        assert y.shape == (2, 3) and v.shape == (5, 3) and not np.any(y) and not np.any(v)
    assert wp.jax_callable(nothing, num_outputs=2)(X[1], output_dims={"y": (0, 2)})[0].shape == (0, 2)


def test_values_of_one_function_do_not_mix():
    function = wp.jax_callable(scaled_and_added)
    found = jax.jit(lambda x: [function(x, f)[0] for f in (2, 2.5, 2)])(X[1])
    same(found, [3 * X[1], 3.5 * X[1], 3 * X[1]])
    with pytest.raises(TypeError, match="argument 2 'factor'.*traced"):
        jax.jit(function)(X[1], 2.0)


def test_what_the_function_raises_is_jaxs_error():
    def failing(x: wp.array[float], y: wp.array[float]):
        raise ValueError("the water is too deep")

    for call in (wp.jax_callable(failing), jax.jit(wp.jax_callable(failing))):
        with pytest.raises(Exception, match="(?s)function 'failing'.*ValueError: the water is too deep"):
            call(X[1])[0].block_until_ready()

    def writes(x: wp.array[float], y: wp.array[float]):
        x.fill_(1.0)

    with pytest.raises(Exception, match="read-only"):
        wp.jax_callable(writes)(X[1])[0].block_until_ready()

    def returns(x: wp.array[float], y: wp.array[float]):
        return x

    with pytest.raises(Exception, match="function 'returns' returned .*array.*expected None"):
        wp.jax_callable(returns)(X[1])[0].block_until_ready()


def test_arrays_that_are_kept_are_an_error():
    kept = []

    def keeps(x: wp.array[float], y: wp.array[float]):
        kept.append(y[1:])

    with pytest.raises(Exception, match="function 'keeps' keeps its argument 'y'.*wp.clone"):
        wp.jax_callable(keeps)(X[1])[0].block_until_ready()

    def in_a_cycle(x: wp.array[float], y: wp.array[float]):
        cycle = [x, y]
        cycle.append(cycle)
        wp.launch(add, dim=x.shape, inputs=[x], outputs=[y])

    same(wp.jax_callable(in_a_cycle)(X[1]), [X[1]])


def test_a_tape_outside_records_nothing_of_it():
    with wp.Tape() as tape:
        wp.jax_callable(two, num_outputs=2)(X[1])[0].block_until_ready()
    assert not tape.launches


def test_gradients_are_an_error():
    function = wp.jax_callable(two, num_outputs=2)
    with pytest.raises(RuntimeError, match="function 'two' has no derivative.*jax.custom_vjp"):
        jax.grad(lambda x: jnp.sum(function(x)[0]))(X[1])


def test_what_does_not_fit_is_an_error_when_it_is_made_or_traced():
    def bare(x, y):
        pass

    def keyword(x: wp.array[float], *, y: wp.array[float]):
        pass

    for call, kind, text in [
        (lambda: wp.jax_callable(bare), TypeError, "function 'bare': parameter 'x' has no annotation"),
        (lambda: wp.jax_callable(keyword), TypeError, "parameter 'y' cannot be given by its place"),
        (lambda: wp.jax_callable(3), TypeError, "func is 3"),
        (lambda: wp.jax_callable(two)(X[1]), TypeError, "got 1 arguments, expected its first 2: 'x', 'y'"),
        (lambda: wp.jax_callable(two, num_outputs=2)(X), TypeError, r"argument 1 'x' has the shape \(3, 4\)"),
        (lambda: wp.jax_callable(two, num_outputs=2)(jnp.arange(3)), TypeError, "'x' has numbers of int32"),
        (lambda: wp.jax_callable(two, in_out_argnames=["q"]), ValueError, "in_out_argnames has 'q'"),
        (lambda: wp.jax_callable(two, graph_mode=7), ValueError, "7 is not a valid"),
        (lambda: wp.jax_callable(two, graph_cache_max=0), ValueError, "graph_cache_max is 0, expected at least 1"),
        (lambda: wp.jax_callable(two, stage_in_argnames=["q"]), ValueError, "no argument 'q'"),
        (lambda: wp.clear_jax_callable_graph_cache(3), TypeError, "got 3"),
    ]:
        with pytest.raises(kind, match=text):
            call()
    wp.clear_jax_callable_graph_cache()
    wp.clear_jax_callable_graph_cache(wp.jax_callable(two, num_outputs=2))
    for mode in wp.JaxCallableGraphMode:
        function = wp.jax_callable(two, num_outputs=2, graph_mode=mode)
        same(function(X[1]), CASES["two outputs"][1](X[1]))


def test_names_of_todays_programs():
    import warp.jax_experimental.ffi

    assert warp.jax_experimental.ffi.jax_callable is wp.jax_callable
    assert [mode.name for mode in wp.JaxCallableGraphMode] == ["NONE", "JAX", "WARP", "WARP_STAGED", "WARP_STAGED_EX"]
    assert [mode.name for mode in wp.JaxModulePreloadMode] == ["NONE", "CURRENT_DEVICE", "ALL_DEVICES"]


def test_a_jitted_callable_runs_in_many_threads():
    function = jax.jit(wp.jax_callable(two, num_outputs=2))
    wrong = []

    def work(seed):
        x = jnp.arange(1000.0) + seed
        for _ in range(50):
            y, v = function(x)
            if not (np.array_equal(y, x) and np.array_equal(v[:, 1], -x)):
                wrong.append(seed)

    run_in_threads(work, range(4))
    assert not wrong


def test_arrays_of_a_call_are_freed():
    seen = []

    def look(x: wp.array[float], y: wp.array[float]):
        seen.append(weakref.ref(x))

    function = jax.jit(wp.jax_callable(look))
    for _ in range(10):
        function(X[1])[0].block_until_ready()
    gc.collect()
    assert len(seen) == 10 and all(reference() is None for reference in seen)


def test_annotations_that_mean_something_later_are_read_at_the_first_call():
    scope = {"wp": wp, "two": two}
    text = "def late(x: 'wp.array(dtype=Later)', y: 'wp.array(dtype=Later)'):\n    wp.copy(y, x)\n"
    exec(text, scope)
    made = wp.jax_callable(scope["late"])
    with pytest.raises(NameError, match="Later"):
        made(jnp.ones(3))
    with pytest.raises(ValueError, match="in_out_argnames has 'q'"):
        wp.jax_callable(scope["late"], in_out_argnames=["q"])
    scope["Later"] = float
    assert made(jnp.ones(3))[0].tolist() == [1.0] * 3
