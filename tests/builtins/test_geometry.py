"""Functions of the device library: in lanes as alone, inlined, with derivatives; segments in special positions."""

import numpy as np
import pytest
import warp as wp

RNG = np.random.default_rng(17)


def make(lanes, real=wp.float64, point=wp.vec3d):
    @wp.kernel(module_options={"lanes": lanes})
    def closest(
        p1: wp.array[point],
        q1: wp.array[point],
        p2: wp.array[point],
        q2: wp.array[point],
        epsilon: real,
        result: wp.array[point],
    ):
        i = wp.tid()
        result[i] = wp.closest_point_edge_edge(p1[i], q1[i], p2[i], q2[i], epsilon)

    return closest


def points(rows):
    p1, p2 = RNG.uniform(-2, 2, (2, rows, 3))
    return [p1, p1 + RNG.uniform(-2, 2, (rows, 3)), p2, p2 + RNG.uniform(-2, 2, (rows, 3))]


def run(kernel, ends, epsilon=1e-6, point=wp.vec3d, device=None):
    result = wp.zeros(len(ends[0]), dtype=point, device=device)
    given = [wp.array(e, dtype=point, device=device) for e in ends]
    wp.launch(kernel, dim=len(ends[0]), inputs=[*given, epsilon, result], device=device)
    return result.numpy()


def test_neither_lanes_nor_the_device_change_a_bit():
    ends = points(203)
    alone = run(make(1), ends, device="cpu")
    for lanes in (1, 2, 4, 8, 16):
        np.testing.assert_array_equal(run(make(lanes), ends), alone)


# The results of release 1.19, in float32: a segment that is a point, the other one, both, parallel, opposite, short.
SPECIAL = [
    ((0, 1, 2), (0, 1, 2), (0, 0, 0), (0, 0, 2), (0.0, 1.0, 1.0)),
    ((0, 0, 0), (4, 0, 0), (1, 2, 0), (1, 2, 0), (0.25, 0.0, 2.0)),
    ((0, 0, 0), (0, 0, 0), (1, 2, 2), (1, 2, 2), (0.0, 0.0, 3.0)),
    ((0, 0, 0), (4, 0, 0), (0, 1, 0), (4, 1, 0), (0.0, 0.0, 1.0)),
    ((0, 0, 0), (4, 0, 0), (4, 1, 0), (0, 1, 0), (0.0, 1.0, 1.0)),
    ((0, 0, 0), (4, 0, 0), (5, 1, 0), (9, 1, 0), (1.0, 0.0, 2**0.5)),
    ((0, 0, 0), (0.05, 0, 0), (1, 0, 0), (1, 1, 0), (1.0, 0.0, 0.95)),
]


def test_segments_in_special_positions():
    ends = [np.array([row[k] for row in SPECIAL], dtype=np.float32) for k in range(4)]
    for lanes in (1, 8):
        found = run(make(lanes, wp.float32, wp.vec3), ends, 1e-6, wp.vec3)
        np.testing.assert_allclose(found, [row[4] for row in SPECIAL], rtol=1e-6, atol=1e-7)


def test_a_segment_of_at_most_epsilon_squared_length_is_its_first_point():
    ends = [np.array([p], dtype=np.float64) for p in ((0, 0, 0), (0.05, 0, 0), (1, 0, 0), (1, 1, 0))]
    np.testing.assert_allclose(run(make(1), ends, 0.002), [[1.0, 0.0, 0.95]], rtol=1e-12)
    np.testing.assert_allclose(run(make(1), ends, 0.003), [[0.0, 0.0, 1.0]], rtol=1e-12)


def slope(kernel, ends, directions, step=1e-6):
    ahead, behind = (run(kernel, [e + sign * step * d for e, d in zip(ends, directions)]) for sign in (1, -1))
    return (ahead - behind) / (2 * step)


@pytest.mark.parametrize("lanes", [1, 8])
def test_gradients_and_tangents_are_those_of_differences(lanes):
    kernel, ends = make(lanes), points(301)
    directions = [RNG.standard_normal(e.shape) for e in ends]
    expected = slope(kernel, ends, directions)
    assert np.count_nonzero(np.abs(expected[:, :2]) > 1e-3) > 150
    arrays = [wp.array(e, dtype=wp.vec3d, requires_grad=True) for e in ends]
    result, tangent = wp.zeros(301, dtype=wp.vec3d, requires_grad=True), wp.zeros(301, dtype=wp.vec3d)
    weights = RNG.standard_normal((301, 3))
    with wp.Tape() as tape:
        wp.launch(kernel, dim=301, inputs=[*arrays, 1e-6, result])
    tape.backward(grads={result: wp.array(weights, dtype=wp.vec3d)})
    backward = sum((a.grad.numpy() * d).sum(axis=1) for a, d in zip(arrays, directions))
    np.testing.assert_allclose(backward, (expected * weights).sum(axis=1), rtol=1e-5, atol=1e-6)
    wp.jvp(
        kernel,
        dim=301,
        inputs=[*arrays, 1e-6],
        outputs=[result],
        input_tangents=[wp.array(d, dtype=wp.vec3d) for d in directions],
        output_tangents=[tangent],
    )
    np.testing.assert_allclose(tangent.numpy(), expected, rtol=1e-5, atol=1e-6)


def test_only_what_a_kernel_uses_is_there_and_it_is_inlined():
    kernel = make(8, wp.float32, wp.vec3)
    for options in ({}, {"adjoint": True}, {"tangents": True}):
        code = kernel.listing("optimized_llvm", **options)
        assert "weft_lib" not in code
        assert "<8 x float>" in code


def test_a_second_derivative_is_an_error_that_names_the_function():
    named = "the library function 'weft_lib_closest_edge_edge_adjoint_f64', whose derivative is not known"
    with pytest.raises(wp.CompileError, match=named):
        make(1).listing("ir", adjoint=True, tangents=True)


def test_on_the_host_and_with_short_floats():
    found = wp.closest_point_edge_edge(wp.vec3(0, 0, 0), wp.vec3(4, 0, 0), wp.vec3(1, 2, 0), wp.vec3(1, 4, 0), 1e-6)
    np.testing.assert_allclose(found, (0.25, 0.0, 2.0))
    half = wp.vec3h
    found = wp.closest_point_edge_edge(half(0, 0, 0), half(4, 0, 0), half(1, 2, 0), half(1, 4, 0), 0.001)
    np.testing.assert_allclose(np.array(found, dtype=np.float64), (0.25, 0.0, 2.0))
