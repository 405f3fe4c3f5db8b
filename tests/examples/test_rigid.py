"""Rigid bodies: their invariants in flight, contacts, rest, sliding and bounces."""

import itertools

import numpy as np
import pytest
from warp.examples import rigid
from warp.examples.rigid import BALL, BRICK

pytestmark = pytest.mark.own_launches("its numbers keep threads apart")

NO_TURN = (0.0, 0.0, 0.0, 1.0)


def run(scene, seconds):
    for _ in range(round(seconds * 120)):
        scene.step()


def random_turn(rng):
    q = rng.standard_normal(4)
    return q / np.linalg.norm(q)


def matrix(q):
    x, y, z, w = q
    return np.array(
        [
            [1 - 2 * (y * y + z * z), 2 * (x * y - z * w), 2 * (x * z + y * w)],
            [2 * (x * y + z * w), 1 - 2 * (x * x + z * z), 2 * (y * z - x * w)],
            [2 * (x * z - y * w), 2 * (y * z + x * w), 1 - 2 * (x * x + y * y)],
        ]
    )


def test_a_tumbling_brick_keeps_its_angular_momentum_and_energy():
    scene = rigid.Scene([(BRICK, (0.3, 0.2, 0.1), 500.0, (0, 0, 0), NO_TURN)], gravity=(0, 0, 0), ground=False)
    scene.bodies.velocity[1] = (0.5, -0.2, 0.1)
    scene.bodies.spin[1] = (0.4, 6.0, 0.2)  # about the middle axis, which is unstable
    before = scene.measure()
    along = []
    for _ in range(300):
        scene.step()
        along.append(scene.bodies.spin.numpy()[1] @ matrix(scene.bodies.pose.numpy()[1][3:])[:, 1])
    after = scene.measure()
    np.testing.assert_allclose(after["momentum"], before["momentum"], rtol=1e-5)
    np.testing.assert_allclose(after["angular momentum"], before["angular momentum"], atol=2e-3 * 40)
    assert abs(after["kinetic"] / before["kinetic"] - 1.0) < 0.01
    assert min(along) < -4.0  # it has turned over, and back


def test_bodies_fall_as_everything_falls():
    scene = rigid.Scene([(BALL, 0.1, 1000.0, (0, 50, 0), NO_TURN)])
    run(scene, 1.0)
    dt = 1.0 / 120.0 / scene.substeps
    assert abs(50.0 - scene.bodies.pose.numpy()[1][1] - 0.5 * 9.81 * (1.0 + dt)) < 1e-3


def test_pairs_are_those_of_a_full_search():
    rng = np.random.default_rng(2)
    bodies = [
        (
            BRICK if n % 3 else BALL,
            rng.uniform(0.05, 0.3, 3) if n % 3 else 0.2,
            1.0,
            rng.uniform(0, 2, 3),
            random_turn(rng),
        )
        for n in range(60)
    ]
    scene = rigid.Scene(bodies)
    scene.look_for_contacts()
    lower, upper = scene.lower.numpy(), scene.upper.numpy()
    expected = set()
    for i, j in itertools.combinations(range(1, scene.count), 2):
        if (lower[i] <= upper[j]).all() and (lower[j] <= upper[i]).all():
            expected.add((i, j))
    expected |= {(0, i) for i in range(1, scene.count) if lower[i][1] < 0.0}
    pairs = [tuple(p) for p in scene.contacts.pair.numpy()[: scene.found].tolist()]
    assert len(pairs) == len(set(pairs)) and set(pairs) == expected
    assert len(expected) > scene.count


def gap_along_axes(a, b):
    """Greatest gap between two bricks along the 15 axes that can part them; negative if they overlap."""
    (ha, pa, ra), (hb, pb, rb) = a, b
    axes = [*ra.T, *rb.T, *(np.cross(u, v) for u in ra.T for v in rb.T)]
    axes = [n / np.linalg.norm(n) for n in axes if np.linalg.norm(n) > 1e-3]
    return max(abs((pb - pa) @ n) - abs(n @ ra) @ ha - abs(n @ rb) @ hb for n in axes)


def test_points_where_bricks_touch():
    rng = np.random.default_rng(6)
    touching = 0
    for _ in range(150):
        sizes, turns = rng.uniform(0.2, 0.6, (2, 3)), [random_turn(rng), random_turn(rng)]
        direction = rng.standard_normal(3)
        places = [np.zeros(3), rng.uniform(0.5, 1.1) * direction / np.linalg.norm(direction)]
        bricks = [(h, p, matrix(q)) for h, p, q in zip(sizes, places, turns)]
        scene = rigid.Scene([(BRICK, h, 1.0, p, q) for h, p, q in zip(sizes, places, turns)], ground=False)
        scene.look_for_contacts()
        gap = gap_along_axes(*bricks)
        count = scene.contacts.count.numpy()[0] if scene.found else 0
        if gap > rigid.MARGIN + 1e-3:
            assert count == 0
        elif gap < 0.0:
            touching += 1
            assert 1 <= count <= 4
            n = scene.contacts.normal.numpy()[0]
            assert abs(np.linalg.norm(n) - 1.0) < 1e-5 and n @ (places[1] - places[0]) > 0.0
            overlaps = []
            first = scene.contacts.pair.numpy()[0][0] - 1
            assert first == 0
            for local_p, local_q in zip(
                scene.contacts.on_first.numpy()[0][:count], scene.contacts.on_second.numpy()[0]
            ):
                # each lies on its brick, and they are apart along the normal only
                assert (abs(local_p) < sizes[0] + 1e-4).all() or (abs(local_q) < sizes[1] + 1e-4).all()
                p, q = places[0] + bricks[0][2] @ local_p, places[1] + bricks[1][2] @ local_q
                between = p - q
                overlaps.append(between @ n)
                assert np.linalg.norm(between - overlaps[-1] * n) < 1e-4
            # the deepest point overlaps by the least that would part the bricks; deeper down it may lie beside the face
            assert max(overlaps) < -1.06 * gap + 2e-3
            if gap > -0.06:
                assert max(overlaps) > -0.94 * gap - 2e-3
    assert touching > 40


def test_no_two_contacts_of_a_colour_share_a_body():
    scene = rigid.Tower(4, 12)
    scene.look_for_contacts()
    pairs = scene.contacts.pair.numpy()
    seen = []
    for colour in scene.colours:
        moving = [b for c in colour.numpy() for b in pairs[c] if b != 0]
        assert len(moving) == len(set(moving))
        seen += colour.numpy().tolist()
    assert sorted(seen) == np.flatnonzero(scene.contacts.count.numpy()[: scene.found]).tolist()


@pytest.mark.parametrize("rebound", [0.0, 0.6, 1.0])
def test_balls_bounce_with_their_share_of_speed(rebound):
    scene = rigid.Scene(
        [(BALL, 0.2, 1000.0, (-0.5, 1, 0), NO_TURN), (BALL, 0.3, 400.0, (0.5, 1, 0), NO_TURN)],
        gravity=(0, 0, 0), ground=False, friction=0.0, rebound=rebound,
    )  # fmt: skip
    scene.bodies.velocity[1:] = np.array([(3, 0, 0), (-2, 0, 0)], dtype=np.float32)
    before = scene.measure()
    run(scene, 0.4)
    v = scene.bodies.velocity.numpy()
    np.testing.assert_allclose(scene.measure()["momentum"], before["momentum"], rtol=1e-5, atol=1e-4)
    assert abs(v[2, 0] - v[1, 0] - rebound * 5.0) < 0.02


@pytest.mark.parametrize(("friction", "slides"), [(0.8, False), (0.3, True)])
def test_a_brick_on_a_slope_holds_or_slides(friction, slides):
    angle = np.radians(28.0)
    scene = rigid.Scene(
        [(BRICK, (0.2, 0.1, 0.2), 700.0, (0, 0.1, 0), NO_TURN)],
        gravity=(9.81 * np.sin(angle), -9.81 * np.cos(angle), 0), friction=friction,
    )  # fmt: skip
    run(scene, 1.0)
    speed = scene.bodies.velocity.numpy()[1][0]
    expected = 9.81 * (np.sin(angle) - friction * np.cos(angle)) if slides else 0.0
    assert abs(speed - expected) < 0.02
    assert abs(scene.bodies.velocity.numpy()[1][1]) < 0.01


def test_a_pile_of_bricks_stands():
    bodies = [(BRICK, (0.2, 0.1, 0.15), 900.0, (0.01 * (n % 2), 0.1 + 0.2 * n, 0), NO_TURN) for n in range(8)]
    scene = rigid.Scene(bodies)
    run(scene, 2.0)
    pose = scene.bodies.pose.numpy()[1:]
    np.testing.assert_allclose(pose[:, 1], [b[3][1] for b in bodies], atol=8e-3)
    np.testing.assert_allclose(pose[:, 0], [b[3][0] for b in bodies], atol=8e-3)
    found = scene.measure()
    assert found["kinetic"] < 1e-3 and found["depth"] < 2e-3


@pytest.mark.minutes_on_cuda
def test_a_dropped_brick_comes_to_lie_on_a_face():
    rng = np.random.default_rng(11)
    for _ in range(3):
        half = np.array([0.3, 0.2, 0.1])
        scene = rigid.Scene([(BRICK, half, 600.0, (0, 0.8, 0), random_turn(rng))])
        run(scene, 2.5)
        up = abs(matrix(scene.bodies.pose.numpy()[1][3:])[1])
        assert up.max() > 0.9999
        assert abs(scene.bodies.pose.numpy()[1][1] - half[up.argmax()]) < 2e-3
        assert scene.measure()["kinetic"] < 1e-4


def test_the_ball_flies_at_the_tower():
    velocity = rigid.Tower(2, 4).bodies.velocity.numpy()
    np.testing.assert_array_equal(velocity[-1], np.float32([-9.0, 1.5, 0.0]))
    assert not velocity[:-1].any()


@pytest.mark.minutes_on_cuda
def test_the_tower_stands_until_it_is_hit():
    scene = rigid.Tower(5, 12)
    scene.bodies.velocity[-1] = (0.0, 0.0, 0.0)
    before = scene.bodies.pose.numpy()[1:-1].copy()
    run(scene, 0.5)
    np.testing.assert_allclose(scene.bodies.pose.numpy()[1:-1, :3], before[:, :3], atol=5e-3)
    scene.bodies.velocity[-1] = (-9.0, 1.5, 0.0)
    energy = scene.measure()["kinetic"] + scene.measure()["potential"]
    for _ in range(90):
        scene.step()
        now = scene.measure()
        assert now["kinetic"] + now["potential"] < energy * 1.001
        assert now["depth"] < 9.0 / 120  # contacts are looked for once in a step: so far the ball comes in one
    moved = np.linalg.norm(scene.bodies.pose.numpy()[1:-1, :3] - before[:, :3], axis=1)
    assert (moved > 0.1).sum() > 4


def test_points_of_contacts_lie_on_the_bodies():
    """Bricks turned a little against each other: also edges that are parallel but for rounding."""
    rng = np.random.default_rng(7)
    half = np.array([0.13, 0.1, 0.3])
    bodies = []
    for n in range(3000):
        turn = 10.0 ** rng.uniform(-4.0, -0.5) * rng.standard_normal(3)
        away = 2.0 * half * (1.0, rng.uniform(-0.5, 0.5), 1.0) + rng.uniform(-0.01, 0.01, 3)
        middle = np.array([10.0 * n, 50.0, 0.0])
        q = np.append(0.5 * turn, 1.0)
        bodies += [(BRICK, half, 1.0, middle, NO_TURN), (BRICK, half, 1.0, middle + away, q / np.linalg.norm(q))]
    scene = rigid.Scene(bodies, ground=False)
    scene.look_for_contacts()
    contacts = scene.contacts
    counts = contacts.count.numpy()[: scene.found]
    assert (counts > 0).sum() > 1000 and (counts == 1).sum() > 20  # one point: two edges
    for c, count in enumerate(counts):
        for points in (contacts.on_first.numpy()[c, :count], contacts.on_second.numpy()[c, :count]):
            assert (np.abs(points) <= half + 0.05).all()


def test_meshes_of_bodies_are_closed_and_fill_them():
    for points, _, triangles in (rigid.ball_mesh(40), rigid.brick_mesh((0.3, 0.2, 0.1), bevel=0.02)):
        edges = np.concatenate([triangles[:, [0, 1]], triangles[:, [1, 2]], triangles[:, [2, 0]]])
        assert {tuple(e) for e in edges} == {tuple(e) for e in edges[:, ::-1]}
        a, b, c = (points[triangles[:, n]] for n in range(3))
        volume = np.einsum("ij,ij->i", a, np.cross(b, c)).sum() / 6.0
        expected = 4 / 3 * np.pi if abs(points).max() > 0.9 else 8 * 0.3 * 0.2 * 0.1
        assert abs(volume / expected - 1.0) < 0.02
