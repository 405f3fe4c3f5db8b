"""Weft: kernels written as Python functions, compiled for the CPU, differentiated exactly, on n-d arrays.

    import warp as wp

    @wp.kernel
    def saxpy(a: float, x: wp.array[float], y: wp.array[float]):
        i = wp.tid()
        y[i] = a * x[i] + y[i]

    x, y = wp.ones(1000), wp.zeros(1000)
    wp.launch(saxpy, dim=1000, inputs=[2.0, x, y])

Everything starts by itself at its first use; wp.init() is optional.
"""

from warp import _conflict

_conflict.check()

from typing import Any

import warp._weft as _weft
from warp._weft import (
    CompileError,
    Bvh,
    BvhQueryAabb,
    BvhQueryAabbd,
    BvhQueryCapsule,
    BvhQueryCapsuled,
    BvhQueryRay,
    BvhQueryRayd,
    BvhQuerySphere,
    BvhQuerySphered,
    Device,
    Function,
    HashGrid,
    HashGridQuery,
    InternalError,
    Kernel,
    Launch,
    Mesh,
    MeshQueryAABB,
    MeshQueryAABBd,
    MeshQueryPoint,
    MeshQueryPointd,
    MeshQueryRay,
    MeshQueryRayd,
    MeshQuerySphere,
    MeshQuerySphered,
    UsageError,
    WarpCodegenAttributeError,
    WarpCodegenError,
    WarpCodegenIndexError,
    WarpCodegenKeyError,
    WarpCodegenTypeError,
    WarpCodegenValueError,
    array,
    array1d,
    array2d,
    array3d,
    array4d,
    clear_kernel_cache,
    clone,
    copy,
    empty,
    empty_like,
    from_dlpack,
    from_jax,
    from_numpy,
    from_paddle,
    from_torch,
    full,
    full_like,
    get_cuda_device,
    get_cuda_device_count,
    get_cuda_devices,
    get_device,
    get_devices,
    get_preferred_device,
    is_cpu_available,
    is_cuda_available,
    is_device_available,
    launch,
    launch_tiled,
    ones,
    ones_like,
    set_device,
    synchronize,
    synchronize_device,
    to_dlpack,
    to_paddle,
    to_torch,
    zeros,
    zeros_like,
)
from warp import config, types
from warp.builtins import print_builtins
from warp.constants import *
from warp._kernels.decorators import constant, func, func_grad, func_native, func_replay, kernel, overload
from warp._devices.devices import DeviceLike, ScopedDevice
from warp._kernels.inspection import inspect
import warp._kernels.source as _source
from warp._kernels.modules import (
    Module,
    ModuleBuildOptions,
    clear_lto_cache,
    compile_aot_module,
    force_load,
    get_cpu_kernel_cache_key,
    get_module,
    get_module_options,
    load_module,
    set_module_options,
)
from warp._kernels.structs import struct
from warp._support import signatures as _signatures
from warp._support.byref import accept_values as _accept_values
from warp._support.timer import ScopedTimer
from warp.types import dtype_from_numpy, dtype_to_numpy

_accept_values()

# The release of the API, which programs ask for; Weft's own is beside it.
__version__ = config.version
__weft_version__ = config.weft_version
_signatures.install()


def init() -> None:
    """Starts the runtime. Optional: the first use of anything starts it too. May be called any number of times."""


# Python's own: kernels read them as int32 and float32.
_PYTHON_TYPES = {"float": float, "int": int}

# Names of earlier releases, which make types.
_EARLIER = {"vec": types.vector, "mat": types.matrix}

# Modules that are imported when first asked for.
_MODULES = (
    "_src",
    "autograd",
    "context",
    "dlpack",
    "fem",
    "geometry",
    "jax",
    "jax_experimental",
    "optim",
    "paddle",
    "render",
    "sparse",
    "torch",
    "utils",
)

# Found in these modules when first asked for.
_LATER = {
    name: module
    for module, names in {
        "warp._devices.cuda": """ScopedMempool ScopedMempoolAccess ScopedPeerAccess can_access get_cuda_driver_version
            get_cuda_kernel_properties get_cuda_max_cluster_dim get_cuda_supported_archs get_cuda_toolkit_version
            get_mempool_release_threshold
            get_mempool_used_mem_current get_mempool_used_mem_high get_suggested_block_size
            is_conditional_graph_supported is_mempool_access_enabled is_mempool_access_supported is_mempool_enabled
            is_mempool_supported is_peer_access_enabled is_peer_access_supported map_cuda_device
            set_mempool_access_enabled set_mempool_enabled set_mempool_release_threshold set_peer_access_enabled
            unmap_cuda_device""",
        "warp._devices.allocators": """Allocator CudaManagedAllocator ScopedAllocator get_device_allocator
            set_cuda_allocator set_device_allocator""",
        "warp._support.diagnostics": "print_diagnostics",
        "warp._support.memory_tracker": "ScopedMemoryTracker print_memory_report",
        "warp._support.profiler": "ScopedCudaProfiler cuda_profiler_start cuda_profiler_stop",
        "warp._devices.enums": """CaptureMode DeterministicMode MemoryKind TextureAddressMode TextureFilterMode
            TextureResourceFlags""",
        "warp.errors": "WarpDeterminismError",
        "warp._interop.paddle": """device_from_paddle device_to_paddle dtype_from_paddle dtype_to_paddle
            stream_from_paddle stream_to_paddle""",
        "warp._interop.torch_op": "torch_op",
        "warp._interop.torch": """device_from_torch device_to_torch dtype_from_torch dtype_to_torch stream_from_torch
            stream_to_torch""",
        "warp._devices.graphs": """Graph ScopedCapture capture_begin capture_debug_dot_print capture_end capture_if
            capture_launch capture_while""",
        "warp._arrays.arrays": "fixedarray from_ptr transform_expand",
        "warp._arrays.making": "arange concatenate linspace",
        "warp._arrays.indexed": "indexedarray indexedarray1d indexedarray2d indexedarray3d indexedarray4d",
        "warp._arrays.pickling": "from_ipc_handle",
        "warp._interop.jax_arrays": "device_from_jax device_to_jax dtype_from_jax dtype_to_jax to_jax",
        "warp._interop.jax_callables": "JaxCallableGraphMode clear_jax_callable_graph_cache jax_callable",
        "warp._interop.jax_kernels": "JaxModulePreloadMode jax_kernel",
        "warp._support.log_level": "ScopedLogLevel",
        "warp._logger": "Logger ScopedLogger get_logger set_logger",
        "warp._arrays.mapping": "map",
        "warp._arrays.products": "adj_batched_matmul adj_matmul batched_matmul matmul",
        "warp._devices.streams": """Event ScopedStream Stream event_from_ipc_handle get_event_elapsed_time get_stream
            record_event set_stream
            synchronize_event synchronize_stream wait_event wait_stream""",
        "warp._gradients.tangents": "jvp",
        "warp._kernels.references": "ref",
        "warp._kernels.tiles": "BvhQueryTiled MeshQueryAABBTiled tile tile_stack",
        "warp._gradients.tape": "Tape",
        "warp._spatial.marching_cubes": "MarchingCubes",
        "warp._spatial.queries": "BvhQuery MeshQuery is_cubql_available",
        "warp._spatial.texture": "GLTextureResource Texture Texture1D Texture2D Texture3D",
        "warp._spatial.volume": "Volume",
        "warp._support.timer": "TimingResult timing_begin timing_end timing_print",
        "warp.types": "Float Int Scalar",
    }.items()
    for name in names.split()
}


def __getattr__(name: str):
    # Types (wp.vec3) and builtins (wp.dot) are made when first asked for, so that the import stays quick.
    if name in _MODULES:
        import importlib

        return importlib.import_module(f"warp.{name}")
    if name in _LATER:
        import importlib

        value = getattr(importlib.import_module(_LATER[name]), name)
        globals()[name] = value
        return value
    value = _PYTHON_TYPES.get(name) or _EARLIER.get(name)
    if value is None:
        value = types.named_type(name)
    if value is None:
        value = _weft.builtin(name)
    if value is None:
        import importlib

        waiting = importlib.import_module("warp._unimplemented").name_of_warp(name)
        if waiting is not None:
            return waiting  # not a global: dir() shows names with something behind them
    if value is None:
        import difflib

        near = difflib.get_close_matches(name, __dir__(), n=3)
        hint = f". Did you mean {' or '.join(repr(n) for n in near)}?" if near else ""
        raise AttributeError(f"module 'warp' has no attribute {name!r}{hint}")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    from types import ModuleType

    # The modules that the package is made of are found here once they are imported; these are meant for programs.
    own = {name for name, value in globals().items() if not isinstance(value, ModuleType)}
    modules = {"config", "constants", "types", *_MODULES}
    return sorted({*own, *modules, *_LATER, *_PYTHON_TYPES, *types.type_names(), *_weft.builtin_names()})
