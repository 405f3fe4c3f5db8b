"""Names that programs written for release 1.19 use around queries of meshes and BVHs."""

from __future__ import annotations

import warp._weft as _weft

__all__ = ["BvhQuery", "MeshQuery", "is_cubql_available"]

# Annotations of functions that take a query: those of boxes, as they were when there were no others.
BvhQuery = _weft.BvhQueryAabb
MeshQuery = _weft.MeshQueryAABB


def is_cubql_available() -> bool:
    """Whether meshes and BVHs may be made with the constructor 'cubql': always; it is 'sah' here."""
    return True
