"""Gradients of decompositions and inverses for which differences prove nothing: equal and nearly equal singular values,
nearly singular matrices, rotations close to each other. Against closed forms."""

import numpy as np
import pytest
import warp as wp

RNG = np.random.default_rng(11)


def rotations(count, n):
    q, r = np.linalg.qr(RNG.normal(size=(count, n, n)))
    q *= np.sign(np.diagonal(r, axis1=1, axis2=2))[:, None, :]
    q[:, :, 0] *= np.linalg.det(q)[:, None]
    return q


def gradient(kernel, given, weights, dtype):
    """Of sum(weights * results) by each of the matrices."""
    n = len(given)
    adjoint = wp.zeros(n, dtype=dtype)
    arguments = [wp.array(given, dtype=dtype), wp.zeros(n, dtype=dtype)]
    wp.launch(kernel, dim=n, inputs=arguments, adj_inputs=[adjoint, wp.array(weights, dtype=dtype)], adjoint=True)
    return adjoint.numpy()


@wp.kernel
def polar3(a: wp.array[wp.mat33d], r: wp.array[wp.mat33d]):
    i = wp.tid()
    u, _s, v = wp.svd3(a[i])
    r[i] = u @ wp.transpose(v)


@wp.kernel
def polar2(a: wp.array[wp.mat22d], r: wp.array[wp.mat22d]):
    i = wp.tid()
    u, _s, v = wp.svd2(a[i])
    r[i] = u @ wp.transpose(v)


SPREADS = {
    "equal": (1.0, 1.0, 1.0),
    "two equal": (2.0, 1.0, 1.0),
    "nearly equal": (1.0 + 1e-9, 1.0, 1.0 - 1e-7),
    "apart": (3.0, 1.5, 0.4),
    "mirrored": (2.0, 1.5, -0.3),
}


@pytest.mark.parametrize("spread", SPREADS)
@pytest.mark.parametrize("n", [2, 3])
def test_the_rotation_of_the_polar_decomposition(n, spread):
    """dR = U K V^T with the skew K[p, q] = (P[p, q] - P[q, p]) / (s_p + s_q), P = U^T dA V."""
    s = np.array(SPREADS[spread][:n] if spread != "mirrored" or n == 3 else (1.5, -0.3))
    u, v = rotations(30, n), rotations(30, n)
    u[0] = v[0] = np.eye(n)
    given, weights = u * s @ v.transpose(0, 2, 1), RNG.normal(size=(30, n, n))
    w = u.transpose(0, 2, 1) @ weights @ v
    expected = u @ ((w - w.transpose(0, 2, 1)) / (s[:, None] + s[None, :] + np.eye(n))) @ v.transpose(0, 2, 1)
    found = gradient(polar3 if n == 3 else polar2, given, weights, wp.mat33d if n == 3 else wp.mat22d)
    np.testing.assert_allclose(found, expected, rtol=1e-6, atol=1e-6)


@wp.kernel
def spectral(a: wp.array[wp.mat33d], r: wp.array[wp.mat33d]):
    i = wp.tid()
    q, d = wp.eig3(a[i])
    e = wp.vec3d(wp.exp(d[0]), wp.exp(d[1]), wp.exp(d[2]))
    r[i] = q @ wp.diag(e) @ wp.transpose(q)


@wp.kernel
def recomposed(a: wp.array[wp.mat33d], r: wp.array[wp.mat33d]):
    i = wp.tid()
    u, s, v = wp.svd3(a[i])
    r[i] = u @ wp.diag(s) @ wp.transpose(v)


@pytest.mark.parametrize("gap", [1.0, 1e-2, 1e-4])
def test_what_is_put_together_again_is_the_matrix(gap):
    s = np.array([1 + 2 * gap, 1 + gap, 1.0])
    weights = RNG.normal(size=(30, 3, 3))
    given = rotations(30, 3) * s @ rotations(30, 3).transpose(0, 2, 1)
    found = gradient(recomposed, given, weights, wp.mat33d)
    np.testing.assert_allclose(found, weights, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("gap", [1.0, 1e-2, 1e-4])
def test_the_exponential_of_symmetric_matrices_by_eigenvalues(gap):
    """By the divided differences of exp (Daleckii and Krein)."""
    d = np.array([0.3, 0.3 + gap, 0.3 + 2 * gap])
    q = rotations(30, 3)
    weights = RNG.normal(size=(30, 3, 3))
    weights = weights + weights.transpose(0, 2, 1)
    difference = d[:, None] - d[None, :] + np.eye(3)
    divided = np.where(np.eye(3) == 1, np.exp(d), np.expm1(difference) * np.exp(d[None, :]) / difference)
    qt = q.transpose(0, 2, 1)
    expected = q @ (divided * (qt @ weights @ q)) @ qt
    found = gradient(spectral, q * d @ qt, weights, wp.mat33d)
    np.testing.assert_allclose(found, expected, rtol=1e-6, atol=1e-6)


@wp.kernel
def inverted(a: wp.array[wp.mat44d], r: wp.array[wp.mat44d]):
    i = wp.tid()
    r[i] = wp.inverse(a[i])


@pytest.mark.parametrize("least", [1.0, 1e-3, 1e-6])
def test_the_inverse_of_nearly_singular_matrices(least):
    s = np.array([2.0, 1.5, 1.0, least])
    u, v = rotations(30, 4), rotations(30, 4)
    given = u * s @ v.transpose(0, 2, 1)
    weights = RNG.normal(size=given.shape)
    inverse = v / s @ u.transpose(0, 2, 1)
    expected = -inverse.transpose(0, 2, 1) @ weights @ inverse.transpose(0, 2, 1)
    found = gradient(inverted, given, weights, wp.mat44d)
    size = np.linalg.norm(expected, axis=(1, 2))[:, None, None]
    assert (np.abs(found - expected) <= np.maximum(1e-6, 64e-16 / least) * size).all()


@wp.kernel
def between(a: wp.array[wp.quatd], b: wp.array[wp.quatd], t: wp.array[wp.float64], r: wp.array[wp.quatd]):
    i = wp.tid()
    r[i] = wp.quat_slerp(a[i], b[i], t[i])


@pytest.mark.parametrize("angle", [0.0, 1e-9, 1e-5, 1e-3, 0.1, 0.198, 0.202, 1.0])
def test_slerp_of_rotations_that_are_close(angle):
    """Along the sphere the weights of a turn of a and of b by the same small rotation are those of the result."""
    n = 20
    a = RNG.normal(size=(n, 4))
    a /= np.linalg.norm(a, axis=1, keepdims=True)
    side = RNG.normal(size=(n, 4))
    side -= a * np.sum(a * side, axis=1, keepdims=True)
    side /= np.linalg.norm(side, axis=1, keepdims=True)
    b = np.cos(angle) * a + np.sin(angle) * side
    t = RNG.uniform(0, 1, n)
    weights = RNG.normal(size=(n, 4))
    arguments = [wp.array(v, dtype=wp.quatd) for v in (a, b)] + [wp.array(t, dtype=wp.float64)]
    adjoints = [wp.zeros(n, dtype=wp.quatd), wp.zeros(n, dtype=wp.quatd), wp.zeros(n, dtype=wp.float64)]
    wp.launch(
        between,
        dim=n,
        inputs=[*arguments, wp.zeros(n, dtype=wp.quatd)],
        adj_inputs=[*adjoints, wp.array(weights, dtype=wp.quatd)],
        adjoint=True,
    )
    by_a, by_b, by_t = (x.numpy() for x in adjoints)
    # By t: the velocity along the arc.
    here = np.cos(t * angle)[:, None] * side - np.sin(t * angle)[:, None] * a
    np.testing.assert_allclose(by_t, angle * np.sum(weights * here, axis=1), rtol=1e-6, atol=1e-9)
    # By a and b, across the arc: there the result moves as the weights of the two say.
    across = RNG.normal(size=(n, 4))
    for v in (a, side):
        across -= v * np.sum(v * across, axis=1, keepdims=True)
    along = np.sum(weights * across, axis=1)
    ratio = np.array([1 - t, t]) if angle == 0 else np.sin(np.array([1 - t, t]) * angle) / np.sin(angle)
    np.testing.assert_allclose(np.sum(by_a * across, axis=1), ratio[0] * along, rtol=1e-6, atol=1e-9)
    np.testing.assert_allclose(np.sum(by_b * across, axis=1), ratio[1] * along, rtol=1e-6, atol=1e-9)
