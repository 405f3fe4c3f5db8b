"""Articulated bodies in 1024 worlds, as simulations of robots step them: small loops, rows of a few threads, elements
that are found through index arrays. 17 bodies in a tree, 27 degrees of freedom, 20 to 60 constraints a world.

* `tree`: a level of the tree, 3 bodies a world: frames of the bodies from those of their parents
* `search`: a thread for each world: Newton's method along a line over the world's constraints
* `inertia`: a thread for each degree of freedom: products with those of its ancestors, up to the root
* `solve`: a thread for each world: a sparse triangular system in place
* `pairs`: a thread for each pair of bodies: their spheres, and if these meet, as few do, their boxes too
"""

import sys
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
import measure

WORLDS, BODIES, DOFS, ROWS, STEPS = 1024, 17, 27, 60, 6
VARIANTS = ("tree", "search", "inertia", "solve", "pairs")


def problem(variant):
    random = np.random.default_rng(9)
    uniform = lambda *shape: random.uniform(-1.0, 1.0, shape).astype(np.float32)  # noqa: E731
    if variant == "tree":
        turn = uniform(WORLDS, BODIES, 4)
        turn /= np.linalg.norm(turn, axis=2, keepdims=True)
        parent = np.maximum(np.arange(BODIES) - 3, 0).astype(np.int32)
        level = np.array([5, 6, 7], np.int32)
        return {"level": level, "parent": parent, "place": uniform(WORLDS, BODIES, 3), "turn": turn,
                "offset": uniform(BODIES, 3), "rest": turn[0].copy()}  # fmt: skip
    if variant == "search":
        weight = random.uniform(0.1, 1.0, (WORLDS, ROWS)).astype(np.float32)
        # In the order of their kinds, and nine of ten active, as contacts that were found are.
        kind = np.sort(random.integers(0, 3, (WORLDS, ROWS), dtype=np.int32), axis=1)
        gap = np.where(random.random((WORLDS, ROWS)) < 0.9, -1.0, 1.0).astype(np.float32) + 0.5 * uniform(WORLDS, ROWS)
        return {"count": random.integers(20, ROWS, WORLDS, dtype=np.int32), "kind": kind, "weight": weight,
                "speed": 0.1 * uniform(WORLDS, ROWS), "gap": gap}  # fmt: skip
    if variant == "inertia":
        # Chains of three: each degree of freedom hangs on the one before, every third on one further up.
        ancestor = np.array([i - (3 if i % 3 == 0 else 1) for i in range(DOFS)]).clip(-1).astype(np.int32)
        return {"ancestor": ancestor, "axis": uniform(WORLDS, DOFS, 6), "force": uniform(WORLDS, DOFS, 6)}
    if variant == "pairs":
        pair = np.argwhere(np.tri(BODIES, k=-1)).astype(np.int32)
        turn = uniform(WORLDS, BODIES, 4)
        turn /= np.linalg.norm(turn, axis=2, keepdims=True)
        size = random.uniform(0.1, 0.2, (BODIES, 3)).astype(np.float32)
        return {"pair": pair, "place": uniform(WORLDS, BODIES, 3), "turn": turn, "size": size}
    lengths = [1 + 7 * i % 9 for i in range(DOFS)]
    start = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int32)
    columns = np.concatenate([random.integers(0, max(i, 1), n) for i, n in enumerate(lengths)]).astype(np.int32)
    values = 0.1 * uniform(WORLDS, int(start[-1]))
    return {"start": start, "columns": columns, "values": values, "right": uniform(WORLDS, DOFS)}


def rotated(q, v):
    """Vectors v turned by unit quaternions q."""
    twice = 2.0 * np.cross(q[..., :3], v)
    return v + q[..., 3:] * twice + np.cross(q[..., :3], twice)


def expected(variant, data):
    data = {k: v.astype(np.float64) if v.dtype == np.float32 else v for k, v in data.items()}
    if variant == "tree":
        place = data["place"].copy()
        for body in data["level"]:
            up = data["parent"][body]
            place[:, body] = data["place"][:, up] + rotated(data["turn"][:, up], data["offset"][body])
        return place
    if variant == "search":
        at = np.zeros(WORLDS)
        inside = np.arange(ROWS) < data["count"][:, None]
        for _ in range(STEPS):
            x = data["gap"] + at[:, None] * data["speed"]
            active = inside & ((data["kind"] == 0) | (x < 0.0))
            slope = 0.01 + (data["speed"] * data["weight"] * x * active).sum(axis=1)
            at = at - slope / (1.0 + (data["speed"] ** 2 * data["weight"] * active).sum(axis=1))
        return at
    if variant == "inertia":
        matrix = np.zeros((WORLDS, DOFS, DOFS))
        for i in range(DOFS):
            j = i
            while j >= 0:
                matrix[:, i, j] = (data["force"][:, i] * data["axis"][:, j]).sum(axis=1)
                j = data["ancestor"][j]
        return matrix
    if variant == "pairs":
        first, second = data["pair"].T
        between = data["place"][:, second] - data["place"][:, first]
        radius = np.linalg.norm(data["size"], axis=1)
        room = (radius[first] + radius[second]) ** 2 - (between**2).sum(axis=2)
        axes = lambda body: np.stack(  # noqa: E731
            [rotated(data["turn"][:, body], np.broadcast_to(e, between.shape)) for e in np.eye(3)], axis=2
        )
        one, two = axes(first), axes(second)
        cosines = np.abs(one @ two.swapaxes(2, 3))
        gaps = np.abs(np.einsum("wpai,wpi->wpa", one, between)) - data["size"][first]
        gaps -= np.einsum("wpab,pb->wpa", cosines, data["size"][second])
        return np.where(room > 0.0, room * gaps.max(axis=2), 0.0)
    x = data["right"].copy()
    for i in reversed(range(DOFS)):
        for k in range(data["start"][i], data["start"][i + 1]):
            if data["columns"][k] < i:
                x[:, data["columns"][k]] -= data["values"][:, k] * x[:, i]
    return x


def with_warp(wp, variant, data, options):
    @wp.kernel
    def tree(
        level: wp.array(dtype=int),
        parent: wp.array(dtype=int),
        turn: wp.array2d(dtype=wp.quat),
        offset: wp.array(dtype=wp.vec3),
        rest: wp.array(dtype=wp.quat),
        place: wp.array2d(dtype=wp.vec3),
        out: wp.array2d(dtype=wp.quat),
    ):
        world, number = wp.tid()
        body = level[number]
        up = parent[body]
        q = turn[world, up]
        place[world, body] = place[world, up] + wp.quat_rotate(q, offset[body])
        out[world, body] = wp.normalize(q * rest[body])

    @wp.kernel
    def search(
        count: wp.array(dtype=int),
        kind: wp.array2d(dtype=int),
        weight: wp.array2d(dtype=float),
        speed: wp.array2d(dtype=float),
        gap: wp.array2d(dtype=float),
        out: wp.array(dtype=float),
    ):
        world = wp.tid()
        at = wp.float32(0.0)
        for _step in range(STEPS):
            slope = wp.float32(0.01)
            bend = wp.float32(1.0)
            for i in range(count[world]):
                x = gap[world, i] + at * speed[world, i]
                if kind[world, i] == 0 or x < 0.0:
                    slope += speed[world, i] * weight[world, i] * x
                    bend += speed[world, i] * speed[world, i] * weight[world, i]
            at -= slope / bend
        out[world] = at

    @wp.kernel
    def inertia(
        ancestor: wp.array(dtype=int),
        axis: wp.array2d(dtype=wp.spatial_vector),
        force: wp.array2d(dtype=wp.spatial_vector),
        out: wp.array3d(dtype=float),
    ):
        world, i = wp.tid()
        f = force[world, i]
        j = int(i)
        while j >= 0:
            out[world, i, j] = wp.dot(f, axis[world, j])
            j = ancestor[j]

    @wp.kernel
    def solve(
        start: wp.array(dtype=int),
        columns: wp.array(dtype=int),
        values: wp.array2d(dtype=float),
        right: wp.array2d(dtype=float),
        x: wp.array2d(dtype=float),
    ):
        world = wp.tid()
        for i in range(DOFS):
            x[world, i] = right[world, i]
        for back in range(DOFS):
            i = DOFS - 1 - back
            s = x[world, i]
            for k in range(start[i], start[i + 1]):
                if columns[k] < i:
                    x[world, columns[k]] = x[world, columns[k]] - values[world, k] * s

    @wp.kernel
    def pairs(
        pair: wp.array(dtype=wp.vec2i),
        place: wp.array2d(dtype=wp.vec3),
        turn: wp.array2d(dtype=wp.quat),
        size: wp.array(dtype=wp.vec3),
        out: wp.array2d(dtype=float),
    ):
        world, number = wp.tid()
        first = pair[number][0]
        second = pair[number][1]
        one = wp.quat_to_matrix(turn[world, first])
        two = wp.quat_to_matrix(turn[world, second])
        size1 = size[first]
        size2 = size[second]
        between = place[world, second] - place[world, first]
        reach = wp.length(size1) + wp.length(size2)
        room = reach * reach - wp.dot(between, between)
        if room <= 0.0:
            out[world, number] = 0.0
            return
        cosines = wp.transpose(one) * two
        along = wp.transpose(one) * between
        gap = wp.float32(-1.0e6)
        for axis in range(3):
            cover = size1[axis]
            for other in range(3):
                cover += wp.abs(cosines[axis, other]) * size2[other]
            gap = wp.max(gap, wp.abs(along[axis]) - cover)
        out[world, number] = room * gap

    types = {"pair": wp.vec2i, "size": wp.vec3, "place": wp.vec3, "offset": wp.vec3, "turn": wp.quat, "rest": wp.quat}
    types |= {"axis": wp.spatial_vector, "force": wp.spatial_vector}
    arrays = {}
    for name, value in data.items():
        dtype = types.get(name, int if value.dtype.kind == "i" else float)
        arrays[name] = wp.array(value, dtype=dtype, device="cpu")
    if variant == "tree":
        place = arrays["place"]
        inputs = [arrays[name] for name in ("level", "parent", "turn", "offset", "rest")]
        inputs += [place, wp.zeros((WORLDS, BODIES), dtype=wp.quat, device="cpu")]
        dim = (WORLDS, len(data["level"]))
        return measure.Job(lambda: wp.launch(tree, dim=dim, inputs=inputs, device="cpu"), place.numpy)
    kernel, dim, out = {
        "search": (search, WORLDS, (WORLDS,)),
        "inertia": (inertia, (WORLDS, DOFS), (WORLDS, DOFS, DOFS)),
        "solve": (solve, WORLDS, (WORLDS, DOFS)),
        "pairs": (pairs, (WORLDS, len(data.get("pair", ()))), (WORLDS, len(data.get("pair", ())))),
    }[variant]
    result = wp.zeros(out, dtype=float, device="cpu")
    inputs = [*arrays.values(), result]
    return measure.Job(lambda: wp.launch(kernel, dim=dim, inputs=inputs, device="cpu"), result.numpy)


if __name__ == "__main__":
    measure.throughput(
        "bodies",
        __doc__,
        VARIANTS,
        problem,
        expected,
        {"weft": with_warp, "peer": with_warp},
        lambda variant: {"rtol": 1e-3, "atol": 1e-4},
    )
