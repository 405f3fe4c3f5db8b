"""Triangles from objects of trimesh and meshio, and from the files that they read. Neither is needed otherwise."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

import warp as wp


def triangles_of(shape: Any) -> tuple[np.ndarray, np.ndarray]:
    """Points (n, 3) float32 and triangles (m, 3) int32 of a `trimesh.Trimesh` or a `meshio.Mesh`."""
    if hasattr(shape, "vertices") and hasattr(shape, "faces"):  # trimesh
        points, faces = shape.vertices, shape.faces
    elif hasattr(shape, "points") and "triangle" in getattr(shape, "cells_dict", {}):  # meshio
        points, faces = shape.points, shape.cells_dict["triangle"]
    else:
        raise TypeError(
            f"{type(shape).__name__} has no triangles; expected a trimesh.Trimesh (vertices, faces) or a meshio.Mesh "
            "with cells of the type 'triangle'"
        )
    return np.asarray(points, dtype=np.float32).reshape(-1, 3), np.asarray(faces, dtype=np.int32).reshape(-1, 3)


def mesh_of(shape: Any, **options: Any) -> wp.Mesh:
    """A `wp.Mesh` of a `trimesh.Trimesh` or a `meshio.Mesh`; the options are those of `wp.Mesh`."""
    points, faces = triangles_of(shape)
    return wp.Mesh(wp.array(points, dtype=wp.vec3), wp.array(faces.reshape(-1), dtype=int), **options)


def read(path: Path) -> tuple[np.ndarray, np.ndarray]:
    """Points and triangles of a file, by trimesh or by meshio, whichever is installed."""
    try:
        import trimesh

        return triangles_of(trimesh.load(path, force="mesh"))
    except ImportError:
        pass
    try:
        import meshio
    except ImportError:
        raise SystemExit("files are read by trimesh or meshio: pip install trimesh") from None
    return triangles_of(meshio.read(path))
