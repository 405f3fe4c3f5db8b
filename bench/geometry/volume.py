"""1 M trilinear samples of a float32 volume: `random` places in a dense block of 128^3 voxels, `ordered` the same by
tiles, `band` places in the narrow band of a sphere's distance, of radius 200. The C++ is NanoVDB's own sampler."""

import sys
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
import measure

N = 1_000_000
EDGE, RADIUS, BAND = 128, 200.0, 4.0


def band_tiles():
    """The first voxels of the tiles that the band meets."""
    reach = int(RADIUS + BAND) // 8 + 1
    corner = np.stack(np.meshgrid(*[np.arange(-reach, reach + 1) * 8] * 3, indexing="ij"), -1).reshape(-1, 3)
    distance = np.linalg.norm(corner + 3.5, axis=1) - RADIUS
    return corner[np.abs(distance) < BAND + 7].astype(np.int32)


def problem(variant):
    random = np.random.default_rng(3)
    if variant == "band":
        direction = random.standard_normal((N, 3))
        place = (
            direction
            / np.linalg.norm(direction, axis=1, keepdims=True)
            * random.uniform(RADIUS - BAND / 2, RADIUS + BAND / 2, (N, 1))
        )
        return {"tiles": band_tiles(), "place": place.astype(np.float32)}
    place = random.uniform(0, EDGE - 1, (N, 3)).astype(np.float32)
    if variant == "ordered":
        tile = place.astype(int) // 8
        place = place[np.lexsort(tile.T[::-1])]
    return {"values": random.standard_normal((EDGE,) * 3, dtype=np.float32), "place": place}


def expected(variant, data):
    place = data["place"].astype(np.float64)
    low = np.floor(place).astype(int)
    t = place - low
    result = np.zeros(N)
    for corner in np.ndindex(2, 2, 2):
        at = low + corner
        if variant == "band":
            value = np.linalg.norm(at, axis=1) - RADIUS
        else:
            value = data["values"][tuple(np.minimum(at, EDGE - 1).T)]
        result += value * np.prod(np.where(corner, t, 1 - t), axis=1)
    return result


def volume_of(wp, variant, data):
    if variant != "band":
        return wp.Volume.load_from_numpy(data["values"], device="cpu")
    tiles = wp.array(data["tiles"], dtype=wp.int32, device="cpu")
    volume = wp.Volume.allocate_by_tiles(tiles, 1.0, bg_value=BAND, device="cpu")

    @wp.kernel
    def fill(id: wp.uint64, tiles: wp.array2d(dtype=wp.int32), radius: float):
        tile, voxel = wp.tid()
        i = tiles[tile, 0] + voxel // 64
        j = tiles[tile, 1] + voxel // 8 % 8
        k = tiles[tile, 2] + voxel % 8
        x = wp.vec3(float(i), float(j), float(k))
        wp.volume_store_f(id, i, j, k, wp.length(x) - radius)

    wp.launch(fill, dim=(len(data["tiles"]), 512), inputs=[volume.id, tiles, RADIUS], device="cpu")
    return volume


def with_warp(wp, variant, data, options):
    @wp.kernel
    def sample(id: wp.uint64, place: wp.array(dtype=wp.vec3), result: wp.array(dtype=float)):
        i = wp.tid()
        result[i] = wp.volume_sample_f(id, place[i], wp.Volume.LINEAR)

    volume = volume_of(wp, variant, data)
    place = wp.array(data["place"], dtype=wp.vec3, device="cpu")
    result = wp.zeros(N, dtype=float, device="cpu")

    def run():
        wp.launch(sample, dim=N, inputs=[volume.id, place, result], device="cpu")

    return measure.Job(run, result.numpy)


def with_cpp(library, variant, data, options):
    import warp as wp

    # The same bytes: NanoVDB reads the grids that Weft builds.
    grid = measure.aligned(volume_of(wp, variant, data).array().numpy())
    place, result = measure.aligned(data["place"]), np.zeros(N, np.float32)
    return measure.Job(measure.call_cpp(library.sample, N, grid, place, result), lambda: result)


if __name__ == "__main__":
    measure.throughput(
        "volume",
        __doc__,
        ("random", "ordered", "band"),
        problem,
        expected,
        {"weft": with_warp, "peer": with_warp, "cpp": with_cpp},
        lambda variant: {"rtol": 1e-3, "atol": 1e-3},
    )
