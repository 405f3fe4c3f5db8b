"""Writes docs/reference/functions.md (the builtin table) and docs/reference/runtime.md (all other public names of
`warp`, with their docstrings).

python tools/generate/gen_reference.py            writes the pages
python tools/generate/gen_reference.py --check    fails if they are out of date
"""

import ast
import inspect
import operator
import re
import sys
from pathlib import Path

import warp as wp
from warp.builtins import reference_page

FOLDER = Path(__file__).resolve().parents[2] / "docs/reference"

# Heading -> (sentence, names). "name." stands for the public members of a class or module, each an entry of its own.
SECTIONS = {
    "Start and options": (
        "Nothing has to be started; options may be set at any time.",
        "init config config. clear_kernel_cache print_builtins print_diagnostics",
    ),
    "Devices": (
        "See [devices](../guide/devices.md).",
        """Device Device. DeviceLike get_device get_devices set_device get_preferred_device ScopedDevice
        is_device_available is_cpu_available is_cuda_available get_cuda_device get_cuda_devices get_cuda_device_count
        synchronize synchronize_device""",
    ),
    "CUDA devices": (
        "What programs ask about CUDA, and what the CPU answers. See [devices](../guide/devices.md).",
        """get_cuda_driver_version get_cuda_toolkit_version get_cuda_supported_archs get_cuda_max_cluster_dim
        get_cuda_kernel_properties get_suggested_block_size
        can_access map_cuda_device unmap_cuda_device is_mempool_supported is_mempool_enabled
        set_mempool_enabled get_mempool_release_threshold set_mempool_release_threshold get_mempool_used_mem_current
        get_mempool_used_mem_high is_mempool_access_supported is_mempool_access_enabled set_mempool_access_enabled
        is_peer_access_supported is_peer_access_enabled set_peer_access_enabled ScopedMempool ScopedMempoolAccess
        ScopedPeerAccess Allocator Allocator. set_cuda_allocator set_device_allocator get_device_allocator
        ScopedAllocator CudaManagedAllocator""",
    ),
    "Streams, events and graphs": (
        "Order and repetition of work. See [devices](../guide/devices.md), [graphs](../guide/graphs.md).",
        """Stream Event get_stream set_stream ScopedStream synchronize_stream synchronize_event record_event wait_event
        wait_stream get_event_elapsed_time event_from_ipc_handle Graph ScopedCapture capture_begin capture_end
        capture_launch capture_if capture_while capture_debug_dot_print is_conditional_graph_supported""",
    ),
    "Kernels and functions": (
        "See [kernels](../guide/kernels.md).",
        """kernel func struct constant overload inspect func_grad func_native func_replay ref Kernel Kernel. Function
        Function. launch launch_tiled Launch Launch.""",
    ),
    "Modules": (
        "See [kernels](../guide/kernels.md).",
        """Module Module. get_module load_module compile_aot_module force_load set_module_options get_module_options
        ModuleBuildOptions get_cpu_kernel_cache_key clear_lto_cache""",
    ),
    "Arrays": (
        "See [arrays](../guide/arrays.md).",
        """array array. array1d array2d array3d array4d indexedarray indexedarray1d
        indexedarray2d indexedarray3d indexedarray4d fixedarray empty zeros ones full empty_like zeros_like
        ones_like full_like arange linspace concatenate from_numpy from_ptr from_ipc_handle clone copy
        map""",
    ),
    "Sums, scans and sorts": ("Functions of whole arrays. See [arrays](../guide/arrays.md).", "utils."),
    "Other libraries": (
        "Arrays of PyTorch, JAX, Paddle and whatever has DLPack. See [interoperability](../interop.md). The same"
        " functions are in the modules `warp.torch`, `warp.jax`, `warp.paddle` and `warp.dlpack`;"
        " `warp.jax_experimental` has the `jax_kernel` of 2024.",
        """from_torch to_torch device_from_torch device_to_torch dtype_from_torch dtype_to_torch stream_from_torch
        stream_to_torch torch_op
        from_paddle to_paddle device_from_paddle device_to_paddle dtype_from_paddle dtype_to_paddle
        stream_from_paddle stream_to_paddle from_jax to_jax device_from_jax device_to_jax dtype_from_jax dtype_to_jax
        jax_kernel JaxModulePreloadMode jax_callable JaxCallableGraphMode
        clear_jax_callable_graph_cache from_dlpack to_dlpack dlpack.""",
    ),
    "Geometry": (
        "What kernels search in. See [geometry](../guide/geometry.md).",
        """Mesh Mesh. MeshQueryPoint MeshQueryPointd MeshQueryRay MeshQueryRayd MeshQueryAABB MeshQueryAABBd
        MeshQuerySphere MeshQuerySphered Bvh Bvh. BvhQueryAabb BvhQueryAabbd BvhQueryRay BvhQueryRayd BvhQuerySphere
        BvhQuerySphered BvhQueryCapsule BvhQueryCapsuled HashGrid HashGrid. HashGridQuery
        Volume Volume. Texture Texture1D Texture1D. Texture2D Texture2D. Texture3D Texture3D. GLTextureResource
        MarchingCubes MarchingCubes. BvhQuery MeshQuery BvhQueryTiled MeshQueryAABBTiled is_cubql_available""",
    ),
    "Matrix products": (
        "Products of whole arrays. See [arrays](../guide/arrays.md). `warp.fem.linalg` has eigenvalues in kernels.",
        "matmul batched_matmul adj_matmul adj_batched_matmul fem.linalg.",
    ),
    "Gradients": ("See [gradients](../guide/gradients.md).", "jvp Tape Tape. autograd."),
    "Types": (
        "See [values](../guide/values.md).",
        "types. tile tile_stack dtype_from_numpy dtype_to_numpy int float Any Int Float Scalar transform_expand",
    ),
    "Profiling": (
        "See [profiling](../guide/profiling.md).",
        """ScopedTimer timing_begin timing_end timing_print TimingResult ScopedMemoryTracker ScopedMemoryTracker.
        print_memory_report cuda_profiler_start cuda_profiler_stop ScopedCudaProfiler""",
    ),
    "Logging": (
        "See [profiling](../guide/profiling.md).",
        "Logger Logger. get_logger set_logger ScopedLogger ScopedLogLevel",
    ),
    "Enumerations": (
        "What arguments and attributes take.",
        "CaptureMode DeterministicMode MemoryKind TextureAddressMode TextureFilterMode TextureResourceFlags",
    ),
    "Errors": (
        "What Weft raises. The names of 1.19 are those of compile errors that are also a class of Python.",
        """UsageError CompileError InternalError WarpCodegenError WarpCodegenAttributeError WarpCodegenIndexError
        WarpCodegenKeyError WarpCodegenTypeError WarpCodegenValueError WarpDeterminismError""",
    ),
}

# Objects that are not ours and cannot carry a docstring.
DOCSTRINGS = {
    "Any": "`typing.Any`: annotates a parameter of a generic kernel or function, which takes the argument's type.",
    "int": "Python's `int`, which kernels read as `int32`: `wp.int(x)` converts.",
    "float": "Python's `float`, which kernels read as `float32`: `wp.float(x)` converts.",
    "Int": "Annotates a parameter that takes any integer type.",
    "Float": "Annotates a parameter that takes any floating-point type.",
    "Scalar": "Annotates a parameter that takes any scalar type.",
    "DeviceLike": "Annotation of what names a device: a `Device`, its name, or None for the default one.",
}

SCALARS = {
    "bool": "truth value",
    "int8 int16 int32 int64": "integers; `int` is `int32`",
    "uint8 uint16 uint32 uint64": "integers without a sign",
    "float16 float32 float64": "floats of IEEE 754; `float` is `float32`",
    "bfloat16": "float with the range of `float32` and 8 bits of precision",
    "float8_e4m3fn": "float of 8 bits, 4 of precision, up to 448 and without an infinity: what is larger is NaN",
    "float8_e5m2": "float of 8 bits, 3 of precision, with the range of `float16`",
}


def scalar_rows():
    return [(" ".join(f"`{name}`" for name in names.split()), meaning) for names, meaning in SCALARS.items()]


def aggregate_rows():
    """(names of one type, its description), each type once."""
    found = {}
    for name in wp.types.type_names():
        if not any(name in names.split() for names in SCALARS):
            found.setdefault(wp.types.named_type(name), []).append(name)
    for kind, names in found.items():
        yield " ".join(f"`{name}`" for name in names), kind.__doc__.partition(".")[0]


def constant_rows():
    for name in sorted(wp.constants.__all__, key=str.lower):
        yield f"`{name}`", repr(getattr(wp, name))


def table(heading, rows):
    return [heading, "|---|---|", *(f"| {left} | {right} |" for left, right in rows), ""]


def signature(name, value):
    """`(a, b=1)`; nothing for objects that are not called."""
    text = getattr(value, "__text_signature__", None)
    first = (inspect.getdoc(value) or "").partition("\n")[0]
    if text is None and first.startswith(f"{name}("):  # from nanobind
        text = first.removeprefix(name).partition(" -> ")[0]
    if text is None and (inspect.isfunction(value) or inspect.isfunction(getattr(value, "__init__", None))):
        called = inspect.signature(value)
        plain = [parameter.replace(annotation=parameter.empty) for parameter in called.parameters.values()]
        text = str(called.replace(parameters=plain, return_annotation=called.empty))
    return re.sub(r"^\((\$?(self|module)(: object)?(, /)?(, )?)", "(", text or "")


def sentences(name, value):
    """The docstring, without the signature that nanobind puts first."""
    if isinstance(value, int):
        return f"The number {value}."
    lines = (inspect.getdoc(value) or "").splitlines()
    if lines and lines[0].startswith("(self) -> "):
        lines.pop(0)
    while lines and lines[0].startswith(f"{name.rpartition('.')[2]}("):
        lines.pop(0)
    return "\n".join(lines).strip()


def option_sentences():
    """{option: its docstring}: Python keeps those of variables in the source only."""
    body = ast.parse(inspect.getsource(wp.config)).body
    documented = {}
    waiting = []
    for node in body:
        if isinstance(node, ast.AnnAssign):
            waiting.append(node.target.id)
        elif isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            documented.update(dict.fromkeys(waiting, inspect.cleandoc(node.value.value)))
            waiting = []
        else:
            waiting = []
    return documented


def members(owner_name):
    """Public names of a class or module that are its own."""
    owner = operator.attrgetter(owner_name)(wp)
    names = getattr(owner, "__all__", None) or [name for name in dir(owner) if not name.startswith("_")]
    if owner is wp.config:
        return sorted(option_sentences())
    types = set(wp.types.type_names())
    return [name for name in sorted(names) if owner is not wp.types or name not in types]


def entries(names):
    """(full name, value, docstring) of every name of a section."""
    for name in names.split():
        if not name.endswith("."):
            value = getattr(wp, name)
            yield name, value, DOCSTRINGS.get(name) or sentences(name, value)
            continue
        owner = operator.attrgetter(name[:-1])(wp)
        options = option_sentences() if owner is wp.config else {}
        for member in members(name[:-1]):
            value = getattr(owner, member)
            yield name + member, value, options.get(member) or sentences(member, value)


def markdown(text):
    """A docstring as Markdown: code in single backticks, arguments as a list, names without their roles."""
    text = re.sub(r"``([^`]*)``", r"`\1`", text)
    text = re.sub(r":(?:func|meth):`([\w.]+)`", r"`\1()`", text)
    text = re.sub(r":class:(`[\w.]+`)", r"\1", text)
    lines = []
    in_list = False
    for line in text.splitlines():
        argument = re.match(r"    (\*{0,2}\w+(?:, \*{0,2}\w+)*): (.*)", line)
        if line in ("Args:", "Returns:", "Raises:"):
            lines += ["", f"**{line[:-1]}**", ""]
            in_list = True
        elif in_list and argument:
            lines.append("* " + ", ".join(f"`{name}`" for name in argument[1].split(", ")) + f": {argument[2]}")
        elif in_list and line.startswith("    "):
            lines.append("  " + line.strip())
        else:
            in_list = in_list and not line.strip()
            lines.append(line)
    return "\n".join(lines)


def runtime_page():
    """The reference of all that programs call outside kernels."""
    lines = [
        "# Runtime",
        "",
        "Every public name of `warp` but the [functions](functions.md) that kernels call, made from the docstrings by",
        "`make docs`. How they work together: [the guide](../guide/runtime.md).",
        "",
        *(f"* [{heading}](#{heading.lower().replace(' ', '-').replace(',', '')})" for heading in SECTIONS),
        "* [Names of types](#names-of-types)",
        "* [Names of constants](#names-of-constants)",
    ]
    for heading, (sentence, names) in SECTIONS.items():
        lines += ["", f"## {heading}", "", sentence]
        for name, value, doc in entries(names):
            lines += ["", f"### {name}", ""]
            call = signature(name.rpartition(".")[2], value)
            lines += [f"`wp.{name}{call}`", ""] if call else []
            lines += [markdown(doc)]
    lines += ["", "## Names of types", "", *table("| scalar | |", scalar_rows())]
    lines += table("| name | type |", aggregate_rows())
    lines += ["## Names of constants", "", *table("| constant | value |", constant_rows())]
    return "\n".join(lines)


def main():
    pages = {FOLDER / "functions.md": reference_page(), FOLDER / "runtime.md": runtime_page()}
    if sys.argv[1:] == ["--check"]:
        stale = [page for page, text in pages.items() if not page.exists() or page.read_text() != text]
        for page in stale:
            print(f"docs/reference/{page.name} is not what the sources say: python tools/generate/gen_reference.py")
        return 1 if stale else 0
    for page, text in pages.items():
        page.write_text(text)
        print(f"docs/reference/{page.name}: written")
    return 0


if __name__ == "__main__":
    sys.exit(main())
