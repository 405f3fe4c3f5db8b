"""Kernels on several devices of JAX, in processes with two host devices; the fields that XLA's structures must have."""

import os
import socket
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

pytestmark = pytest.mark.cpu_only("other frameworks are built for the CPU here; their GPUs come later")

HEAD = """
import warp as wp
import jax
import jax.numpy as jnp
from jax.sharding import PartitionSpec as P
from jax.experimental.multihost_utils import process_allgather as allgather
from jax import shard_map
from warp.jax_experimental import jax_kernel
import numpy as np

jax.distributed.initialize(COORDINATOR, num_processes=1, process_id=0)
num_gpus = jax.device_count()

def print_on_process_0(*args, **kwargs):
    if jax.process_index() == 0:
        print(*args, **kwargs)

print_on_process_0(f"Running on {num_gpus} GPU(s)")
"""

MULTIPLY = """
@wp.kernel
def multiply_by_two_kernel(
    a_in: wp.array(dtype=wp.float32),
    a_out: wp.array(dtype=wp.float32),
):
    index = wp.tid()
    a_out[index] = a_in[index] * 2.0

jax_warp_multiply = jax_kernel(multiply_by_two_kernel)

def warp_multiply(x):
    result = jax_warp_multiply(x)
    return result

def warp_distributed_operator(a_in):
    def _sharded_operator(a_in):
        assert a_in.shape == (5,), a_in.shape  # the shard's
        result = warp_multiply(a_in)[0]
        return result

    return shard_map(
        _sharded_operator,
        mesh=jax.sharding.Mesh(np.array(jax.devices()), "x"),
        in_specs=(P("x"),),
        out_specs=P("x"),
        check_vma=CHECKED,
    )(a_in)

print_on_process_0("Test distributed multiplication using JAX + Warp")

devices = jax.devices()
mesh = jax.sharding.Mesh(np.array(devices), "x")
sharding_spec = jax.sharding.NamedSharding(mesh, P("x"))

input_size = num_gpus * 5
single_device_arrays = jnp.arange(input_size, dtype=jnp.float32)
shape = (input_size,)
arrays = [
    jax.device_put(single_device_arrays[index], d)
    for d, index in sharding_spec.addressable_devices_indices_map(shape).items()
]
sharded_array = jax.make_array_from_single_device_arrays(shape, sharding_spec, arrays)
print_on_process_0(f"Input array: {allgather(sharded_array, tiled=True)}")
warp_result = warp_distributed_operator(sharded_array)
assert warp_result.sharding.is_equivalent_to(sharding_spec, 1)
print_on_process_0("Warp Output:", allgather(warp_result, tiled=True))
"""

PRODUCT = """
@wp.kernel
def matmul_kernel(
    a: wp.array2d(dtype=wp.float32),
    b: wp.array2d(dtype=wp.float32),
    c: wp.array2d(dtype=wp.float32),
):
    # a: (M/num_gpus, K), b: (K, N), c: (M/num_gpus, N)
    i, j = wp.tid()
    M = a.shape[0]  # M/num_gpus
    K = a.shape[1]  # K
    N = b.shape[1]  # N
    if i < M and j < N:
        s = wp.float32(0.0)
        for k in range(K):
            s += a[i, k] * b[k, j]
        c[i, j] = s

def create_jax_warp_matmul(M, N):
    block_size_m = M // num_gpus
    block_size_n = N
    return jax_kernel(matmul_kernel, launch_dims=(block_size_m, block_size_n))

def warp_distributed_matmul(a, b):
    M, K = a.shape
    _, N = b.shape
    jax_warp_matmul = create_jax_warp_matmul(M, N)

    def _sharded_operator(a_shard, b):
        return jax_warp_matmul(a_shard, b)[0]

    return shard_map(
        _sharded_operator,
        mesh=jax.sharding.Mesh(np.array(jax.devices()), "x"),
        in_specs=(P("x", None), P(None, None)),
        out_specs=P("x", None),
        check_vma=CHECKED,
    )(a, b)

print_on_process_0("Test distributed matrix multiplication using JAX + Warp")

M = 8 * num_gpus
K, N = 4, 6
a = jnp.arange(M * K, dtype=jnp.float32).reshape(M, K)
b = jnp.arange(K * N, dtype=jnp.float32).reshape(K, N)

devices = jax.devices()
mesh = jax.sharding.Mesh(np.array(devices), "x")
sharding_spec_a = jax.sharding.NamedSharding(mesh, P("x", None))
sharding_spec_b = jax.sharding.NamedSharding(mesh, P(None, None))
sharded_a = jax.device_put(a, sharding_spec_a)
replicated_b = jax.device_put(b, sharding_spec_b)

print_on_process_0(f"Input matrix A:\\n{allgather(sharded_a, tiled=True)}")
print_on_process_0(f"Input matrix B:\\n{allgather(replicated_b, tiled=True)}")

warp_result = warp_distributed_matmul(sharded_a, replicated_b)
print_on_process_0("Warp Output:")
print_on_process_0(allgather(warp_result, tiled=True))

jax_result = jnp.matmul(a, b)
print_on_process_0("JAX Output:")
print_on_process_0(jax_result)

expected_shape = (M, N)
print_on_process_0(f"Expected shape: {expected_shape}")
print_on_process_0(f"Warp output shape: {warp_result.shape}")
print_on_process_0(f"JAX output shape: {jax_result.shape}")

allclose = jnp.allclose(allgather(warp_result, tiled=True), jax_result, atol=1e-5)
print_on_process_0(f"Allclose: {allclose}")
"""


def run(program: str, folder: Path, devices: int = 2) -> str:
    """The output of the program, in a process in which JAX makes so many devices of the CPU."""
    with socket.socket() as free:
        free.bind(("localhost", 0))
        port = free.getsockname()[1]
    path = folder / "program.py"
    path.write_text(f'COORDINATOR = "localhost:{port}"\n' + textwrap.dedent(program))
    environment = {
        **os.environ,
        "XLA_FLAGS": f"--xla_force_host_platform_device_count={devices}",
        "PYTHONPATH": str(Path(__file__).parent),
    }
    done = subprocess.run([sys.executable, str(path)], env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.seed("P-25", "P-24", "S-DST-001", "S-DST-002", "S-DST-004")
@pytest.mark.parametrize("devices, is_checked", [(1, False), (2, False), (2, True)])
def test_the_distributed_product_by_two(devices, is_checked, tmp_path):
    lines = run(f"CHECKED = {is_checked}\n" + HEAD + MULTIPLY, tmp_path, devices).splitlines()
    texts = ["Input array: ", "Warp Output: "]
    assert lines[:2] == [f"Running on {devices} GPU(s)", "Test distributed multiplication using JAX + Warp"]
    assert len(lines) == 4 and all(line.startswith(text) for line, text in zip(lines[2:], texts, strict=True))
    found = [
        [float(number) for number in line.removeprefix(text).strip("[]").split()]
        for line, text in zip(lines[2:], texts, strict=True)
    ]
    assert found == [[factor * n for n in range(5 * devices)] for factor in (1.0, 2.0)]
    if devices == 1:
        assert lines[2:] == ["Input array: [0. 1. 2. 3. 4.]", "Warp Output: [0. 2. 4. 6. 8.]"]


@pytest.mark.seed("P-27", "S-DST-004", "S-DST-005", "S-DST-006")
@pytest.mark.parametrize("devices, is_checked", [(1, False), (2, False), (2, True)])
def test_the_distributed_matrix_product(devices, is_checked, tmp_path):
    output = run(f"CHECKED = {is_checked}\n" + HEAD + PRODUCT, tmp_path, devices)
    places = [
        output.index(text)
        for text in (
            f"Running on {devices} GPU(s)\nTest distributed matrix multiplication using JAX + Warp\nInput matrix A:\n",
            "Input matrix B:\n",
            "Warp Output:\n",
            "JAX Output:\n",
            f"Expected shape: ({8 * devices}, 6)\nWarp output shape: ({8 * devices}, 6)\n",
            f"JAX output shape: ({8 * devices}, 6)\nAllclose: True\n",
        )
    ]
    assert places == sorted(places)
    warp_output = output[output.index("Warp Output:\n") + 13 : output.index("JAX Output:")]
    jax_output = output[output.index("JAX Output:\n") + 12 : output.index("Expected shape")]
    assert warp_output == jax_output


def test_each_case_on_two_devices(tmp_path):
    run(
        """
        import jax, jax.numpy as jnp, numpy as np
        import warp as wp
        from jax.sharding import Mesh, NamedSharding, PartitionSpec as P
        from jax_programs import CASES, agree, loss

        assert jax.device_count() == 2
        mesh = Mesh(np.array(jax.devices()), "x")
        for case in CASES:
            x, y = case.arguments(4)

            def sharded(function, specs=P("x")):
                each = jax.vmap(function)
                return jax.shard_map(lambda *a: tuple(each(*a)), mesh=mesh, in_specs=specs, out_specs=P("x"))

            function = case.function()
            agree(jax.jit(sharded(function))(x, y), jax.vmap(case.formula)(x, y))
            found = jax.jit(jax.grad(loss(sharded(function)), (0, 1)))(x, y)
            agree(found, jax.grad(loss(jax.vmap(case.formula)), (0, 1))(x, y))

            def shared(function):
                each = jax.vmap(function, (0, None))
                return jax.shard_map(
                    lambda *a: tuple(each(*a)), mesh=mesh, in_specs=(P("x"), P()), out_specs=P("x")
                )

            found = jax.jit(jax.grad(loss(shared(function)), (0, 1)))(x, y[0])
            agree(found, jax.grad(loss(jax.vmap(case.formula, (0, None))), (0, 1))(x, y[0]))

            # Sharded arguments of a jitted function without shard_map: JAX gathers what the call needs.
            places = NamedSharding(mesh, P("x"))
            given = jax.device_put(x, places), jax.device_put(y, places)
            agree(jax.jit(jax.vmap(function))(*given), jax.vmap(case.formula)(x, y))
            # An array that lives on the second device.
            second = jax.devices()[1]
            there = jax.jit(function)(jax.device_put(x[0], second), jax.device_put(y[0], second))
            assert all(output.devices() == {second} for output in there)
            agree(there, case.formula(x[0], y[0]))

        second = jax.device_put(jnp.arange(4.0), jax.devices()[1])
        assert wp.from_jax(second).list() == [0, 1, 2, 3]
        assert wp.device_from_jax(jax.devices()[1]) == wp.get_device("cpu")
        try:
            wp.from_jax(jax.device_put(jnp.arange(4.0), NamedSharding(mesh, P("x"))))
        except (TypeError, RuntimeError) as error:
            assert "jax_array" in str(error), error
        else:
            raise AssertionError("an array on two devices became one in place")
        """,
        tmp_path,
    )


def test_the_structures_are_those_of_xla(tmp_path):
    """Offsets, sizes and constants against the header that jaxlib ships."""
    import jax

    structures = {
        "Extension_Base=Extension": "struct_size type next",
        "Api_Version=ApiVersion": "struct_size extension_start=extension major_version=major minor_version=minor",
        "Metadata_Extension=MetadataExtension": "extension_base=base metadata",
        "Error_Create_Args=ErrorArguments": "struct_size extension_start=extension message errc=code",
        "Error_GetMessage_Args=ErrorText": "struct_size extension_start=extension error message",
        "Error_Destroy_Args=ErrorEnd": "struct_size extension_start=extension error",
        "Stream_Get_Args=StreamArguments": "struct_size extension_start=extension ctx=context stream",
        "Buffer=Buffer": "struct_size extension_start=extension dtype data rank dims=extents",
        "Args=Buffers": "struct_size extension_start=extension size=count types=kinds args=items",
        "Rets=Buffers": "struct_size extension_start=extension size=count types=kinds rets=items",
        "Attrs=Attributes": "struct_size extension_start=extension size=count types=kinds names attrs=items",
        "ByteSpan=Text": "ptr=data len=size",
        "Scalar=Number": "dtype value",
        # These grow at their ends from version to version.
        "CallFrame=CallFrame+": "struct_size extension_start=extension api ctx=context stage args=arguments"
        " rets=results attrs=attributes",
        "Metadata=Metadata+": "struct_size api_version traits",
        "Api=Api+": "struct_size extension_start=extension api_version=version internal_api=internal"
        " XLA_FFI_Error_Create=create_error XLA_FFI_Error_GetMessage=message_of_error"
        " XLA_FFI_Error_Destroy=destroy_error XLA_FFI_Stream_Get=get_stream",
    }
    header = Path(jax.ffi.include_dir()) / "xla/ffi/api/c_api.h"
    if "XLA_FFI_DeviceOrdinal_Get" in header.read_text():  # which older versions lack
        structures["DeviceOrdinal_Get_Args=OrdinalArguments"] = (
            "struct_size extension_start=extension ctx=context device_ordinal=ordinal"
        )
        structures["Api=Api+"] += " XLA_FFI_DeviceOrdinal_Get=get_ordinal"
    checks = [
        "static_assert(XLA_FFI_API_MAJOR == weft::xla::kMajor);",
        "static_assert(XLA_FFI_Extension_Metadata == weft::xla::kMetadataExtension);",
        "static_assert(XLA_FFI_Error_Code_INVALID_ARGUMENT == weft::xla::kInvalidArgument);",
        "static_assert(XLA_FFI_Error_Code_INTERNAL == weft::xla::kInternal);",
        "static_assert(XLA_FFI_AttrType_SCALAR == weft::xla::kNumber);",
        "static_assert(XLA_FFI_ExecutionStage_INITIALIZE == weft::xla::kInitialize);",
        "static_assert(XLA_FFI_HANDLER_TRAITS_COMMAND_BUFFER_COMPATIBLE == weft::xla::kCommandBufferCompatible);",
    ]
    for pair, fields in structures.items():
        theirs, _, ours = pair.partition("=")
        if not ours.endswith("+"):
            checks.append(f"static_assert(sizeof(XLA_FFI_{theirs}) == sizeof(weft::xla::{ours}));")
        ours = ours.rstrip("+")
        for field in fields.split():
            a, _, b = field.partition("=")
            one, other = f"offsetof(XLA_FFI_{theirs}, {a})", f"offsetof(weft::xla::{ours}, {b or a})"
            checks.append(f"static_assert({one} == {other});")
    source = tmp_path / "check.cpp"
    source.write_text(
        '#include <cstddef>\n#include "xla/ffi/api/c_api.h"\n#include "bindings/interop/xla.h"\n' + "\n".join(checks)
    )
    folders = [jax.ffi.include_dir(), str(Path(__file__).parents[2] / "src")]
    command = [os.environ.get("CXX", "c++"), "-std=c++20", "-fsyntax-only", *(f"-I{f}" for f in folders), str(source)]
    subprocess.run(command, check=True)
