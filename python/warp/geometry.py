"""Surfaces from fields, adjacency of triangles. Of most only the names are there: they can be imported, and say so when
used."""

from warp._spatial.marching_cubes import MarchingCubes as IsoSurfaceMarchingCubes
from warp._unimplemented import names_of

__all__ = ["IsoSurfaceMarchingCubes"]

globals().update(
    names_of(
        __name__,
        "functions of surfaces and fields",
        "IsoSurfaceBase IsoSurfaceNets SweptVolumeSignMode",
        """delaunay_edge_flip find_triangle_neighbor_edge_index lipschitz_octree sparse_marching_cubes
        sparse_marching_cubes_from_cells swept_volume_bounds swept_volume_field swept_volume_mesh swept_volume_sdf
        tri_tri_adjacency""",
    )
)
