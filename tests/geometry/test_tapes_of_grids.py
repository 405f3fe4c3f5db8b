"""Tapes with BVHs, hash grids and volumes that change between launches."""

import numpy as np
import pytest
import warp as wp
from tape_values import check_against_differences, f64, gradients, vectors

pytestmark = pytest.mark.own_launches("a launch with other numbers has no object, or stores into it again")


# ---- BVHs and hash grids ----
@wp.kernel
def near_boxes(
    bvh: wp.uint64,
    place: wp.array(dtype=wp.vec3),
    weight: wp.array(dtype=float),
    out: wp.array(dtype=float),
):
    i = wp.tid()
    p = place[i]
    one = wp.vec3(0.3, 0.3, 0.3)
    for k in wp.bvh_query_aabb(bvh, p - one, p + one):
        wp.atomic_add(out, 0, weight[k] * wp.dot(p, p) * float(k + 1))


@pytest.mark.parametrize("change", ["refit", "rebuild"])
def test_a_bvh_that_changes(change):
    rng = np.random.default_rng(3)
    n, m, steps = 40, 60, 4
    place = rng.random((n, 3)).astype(np.float32)
    weight = rng.random(m).astype(np.float32)
    lower = [rng.random((m, 3)).astype(np.float32) for _ in range(steps)]
    places, weights = wp.array(place, dtype=wp.vec3, requires_grad=True), wp.array(weight, requires_grad=True)
    out = wp.zeros(1, requires_grad=True)
    lowers, uppers = wp.zeros(m, dtype=wp.vec3), wp.zeros(m, dtype=wp.vec3)
    with wp.Tape() as tape:
        bvh = wp.Bvh(lowers, uppers)
        for low in lower:
            lowers.assign(low)
            uppers.assign(low + np.float32(0.1))
            getattr(bvh, change)()
            wp.launch(near_boxes, dim=n, inputs=[bvh.id, places, weights, out])
    tape.backward(out)
    by_place, by_weight = np.zeros((n, 3)), np.zeros(m)
    for low in lower:
        meets = ((low[None] <= place[:, None] + 0.3) & (low[None] + np.float32(0.1) >= place[:, None] - 0.3)).all(2)
        by_place += 2 * place * (meets * weight * np.arange(1, m + 1)).sum(1)[:, None]
        by_weight += (meets * (place**2).sum(1)[:, None]).sum(0) * np.arange(1, m + 1)
    np.testing.assert_allclose(places.grad.numpy(), by_place, rtol=1e-4)
    np.testing.assert_allclose(weights.grad.numpy(), by_weight, rtol=1e-4)


@wp.kernel
def push_apart(grid: wp.uint64, x: wp.array(dtype=wp.vec3d), radius: wp.float64, force: wp.array(dtype=wp.vec3d)):
    i = wp.tid()
    f = wp.vec3d()
    for j in wp.hash_grid_query(grid, x[i], radius):
        d = x[i] - x[j]
        s = wp.dot(d, d)
        if s > wp.float64(0.0) and s < radius * radius:
            w = radius * radius - s
            f += d * w * w
    force[i] = f


@wp.kernel
def step_on(x: wp.array(dtype=wp.vec3d), v: wp.array(dtype=wp.vec3d), force: wp.array(dtype=wp.vec3d), dt: wp.float64):
    i = wp.tid()
    v[i] = v[i] + force[i] * dt
    x[i] = x[i] + v[i] * dt


@wp.kernel
def energy(x: wp.array(dtype=wp.vec3d), v: wp.array(dtype=wp.vec3d), out: wp.array(dtype=wp.float64)):
    i = wp.tid()
    wp.atomic_add(out, 0, wp.dot(v[i], v[i]) + wp.dot(x[i], x[i]) * x[i][0])


@pytest.mark.host_memory("has a grid, which is built in the host's memory only")
def test_a_hash_grid_that_is_built_in_each_step():
    rng = np.random.default_rng(4)
    values = {"x": rng.random((60, 3)), "v": rng.standard_normal((60, 3)) * 0.1}

    def program(values):
        start = {name: vectors(value) for name, value in values.items()}
        out = wp.zeros(1, dtype=f64, requires_grad=True)
        grid = wp.HashGrid(8, 8, 8, dtype=f64)
        with wp.Tape() as tape:
            x, v, force = (vectors(np.zeros((60, 3))) for _ in range(3))
            wp.copy(x, start["x"])
            wp.copy(v, start["v"])
            for _ in range(5):
                grid.build(x, 0.4)
                wp.launch(push_apart, dim=60, inputs=[grid.id, x, f64(0.4), force])
                wp.launch(step_on, dim=60, inputs=[x, v, force, f64(0.5)])
            wp.launch(energy, dim=60, inputs=[x, v, out])
        return start, out, tape

    start, out, tape = program(values)
    tape.backward(out)
    check_against_differences(lambda v: program(v)[1].numpy()[0], values, gradients(start))


# ---- volumes ----
@wp.kernel
def sample(volume: wp.uint64, place: wp.array(dtype=wp.vec3d), out: wp.array(dtype=wp.float64)):
    i = wp.tid()
    value = wp.volume_sample(volume, place[i], wp.Volume.LINEAR, dtype=wp.float64)
    wp.atomic_add(out, 0, value * value)


@wp.kernel
def fill(volume: wp.uint64, values: wp.array3d(dtype=wp.float64), factor: wp.float64):
    i, j, k = wp.tid()
    wp.volume_store(volume, i, j, k, values[i, j, k] * factor)


def trilinear(values, place):
    """The value at each place, and its derivative."""
    i = np.floor(place).astype(int)
    f = place - i
    value, slope = np.zeros(len(place)), np.zeros_like(place)
    for corner in np.ndindex(2, 2, 2):
        c = np.array(corner)
        w = np.where(c == 1, f, 1 - f)
        at = values[tuple((i + c).T)]
        value += w.prod(1) * at
        for axis in range(3):
            rest = np.delete(w, axis, 1).prod(1)
            slope[:, axis] += rest * np.where(c[axis] == 1, 1, -1) * at
    return value, slope


def new_volume():
    return wp.Volume.allocate([0, 0, 0], [7, 7, 7], 1.0, wp.float64(0.0))


@pytest.mark.host_memory("has a volume, which is the host's", on="cuda")
def test_a_volume_that_kernels_store_into_between_samples():
    rng = np.random.default_rng(5)
    places = rng.uniform(0.1, 6.9, (30, 3))
    values = wp.array(rng.standard_normal((8, 8, 8)), dtype=f64)
    volume, other = new_volume(), new_volume()
    place = vectors(places)
    out = wp.zeros(1, dtype=f64, requires_grad=True)
    expected = np.zeros_like(places)
    with wp.Tape() as tape:
        for step in range(4):
            wp.launch(fill, dim=(8, 8, 8), inputs=[volume.id, values, f64(1.0 + step)])
            wp.launch(fill, dim=(8, 8, 8), inputs=[other.id, values, f64(-1.0)])
            wp.launch(sample, dim=30, inputs=[volume.id, place, out])
            wp.launch(sample, dim=30, inputs=[volume.id, place, out])
            value, slope = trilinear(values.numpy() * (1.0 + step), places)
            expected += 4 * value[:, None] * slope
    tape.backward(out)
    np.testing.assert_allclose(place.grad.numpy(), expected, rtol=1e-10)
    # A store outside of the tape changes nothing of what was recorded, and neither does the volume's end.
    tape.zero()
    wp.launch(fill, dim=(8, 8, 8), inputs=[volume.id, values, f64(7.0)])
    del volume, other
    tape.backward(out)
    np.testing.assert_allclose(place.grad.numpy(), expected, rtol=1e-10)


@pytest.mark.host_memory("has a volume, which is the host's", on="cuda")
def test_a_volume_that_is_rebuilt():
    rng = np.random.default_rng(6)
    places = rng.uniform(0.1, 6.9, (30, 3))
    values = wp.array(rng.standard_normal((8, 8, 8)), dtype=f64)
    tiles = wp.array([[0, 0, 0]], dtype=wp.vec3i)
    volume = wp.Volume.allocate_by_tiles(tiles, 1.0, wp.float64(0.0), rebuildable=True)
    wp.launch(fill, dim=(8, 8, 8), inputs=[volume.id, values, f64(1.0)])
    place = vectors(places)
    out = wp.zeros(1, dtype=f64, requires_grad=True)
    with wp.Tape() as tape:
        wp.launch(sample, dim=30, inputs=[volume.id, place, out])
    volume.rebuild(wp.array([[64, 0, 0]], dtype=wp.vec3i))
    tape.backward(out)
    value, slope = trilinear(values.numpy(), places)
    np.testing.assert_allclose(place.grad.numpy(), 2 * value[:, None] * slope, rtol=1e-10)


@pytest.mark.host_memory("has a volume, which is the host's", on="cuda")
def test_a_write_to_the_bytes_of_a_volume_is_an_error():
    volume, place = new_volume(), vectors(np.ones((3, 3)))
    out = wp.zeros(1, dtype=f64, requires_grad=True)
    with wp.Tape() as tape:
        wp.launch(sample, dim=3, inputs=[volume.id, place, out])
    volume.array().fill_(0)
    with pytest.raises(RuntimeError, match="written outside of the tape"):
        tape.backward(out)


@wp.kernel
def add_near(mesh: wp.uint64, numbers: wp.array[float], out: wp.array[float]):
    for face in wp.bvh_query_aabb(wp.mesh_get_bvh(mesh), wp.vec3(-1.0), wp.vec3(1.0)):
        out[0] += numbers[face]


@wp.kernel
def add_near_in_tree(tree: wp.uint64, numbers: wp.array[float], out: wp.array[float]):
    for face in wp.bvh_query_aabb(tree, wp.vec3(-1.0), wp.vec3(1.0)):
        out[0] += numbers[face]


@wp.kernel
def tree_of(mesh: wp.uint64, tree: wp.array[wp.uint64]):
    tree[0] = wp.mesh_get_bvh(mesh)


@pytest.mark.parametrize("is_given", [False, True])
def test_the_tree_of_a_mesh_is_that_of_the_launch(is_given):
    """Two faces, of which the first is near; they change places behind the launch."""
    corners = np.array([[0, 0, 0], [1, 0, 0], [0, 1, 0]], dtype=np.float32)
    points = wp.array(np.concatenate([corners, corners + 50]), dtype=wp.vec3)
    mesh = wp.Mesh(points, wp.array(np.arange(6), dtype=int))
    numbers, out = wp.array([3.0, 4.0], dtype=float, requires_grad=True), wp.zeros(1, requires_grad=True)
    tree = wp.zeros(1, dtype=wp.uint64)
    wp.launch(tree_of, dim=1, inputs=[mesh.id, tree])
    with wp.Tape() as tape:
        if is_given:
            wp.launch(add_near_in_tree, dim=1, inputs=[int(tree.numpy()[0]), numbers, out])
        else:
            wp.launch(add_near, dim=1, inputs=[mesh.id, numbers, out])
        points.assign(np.concatenate([corners + 50, corners]))
        mesh.refit()
    assert out.numpy()[0] == 3
    out.grad.fill_(1.0)
    tape.backward()
    np.testing.assert_array_equal(numbers.grad.numpy(), [1, 0])
