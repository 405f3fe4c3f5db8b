"""A matrix product whose left factor is cut by rows; the lines of the documents of 2024."""

import warp as wp
import jax
import jax.numpy as jnp
from jax.sharding import PartitionSpec as P
from jax.experimental.multihost_utils import process_allgather as allgather
from jax.experimental.shard_map import shard_map
from warp.jax_experimental import jax_kernel
import numpy as np

jax.distributed.initialize()
num_gpus = jax.device_count()

def print_on_process_0(*args, **kwargs):
    if jax.process_index() == 0:
        print(*args, **kwargs)

print_on_process_0(f"Running on {num_gpus} GPU(s)")

@wp.kernel
def matmul_kernel(
    a: wp.array2d(dtype=wp.float32),
    b: wp.array2d(dtype=wp.float32),
    c: wp.array2d(dtype=wp.float32),
):
    i, j = wp.tid()
    M = a.shape[0]
    K = a.shape[1]
    N = b.shape[1]
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
        check_rep=False,
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

print_on_process_0(f"Input matrix A:\n{allgather(sharded_a)}")
print_on_process_0(f"Input matrix B:\n{allgather(replicated_b)}")

warp_result = warp_distributed_matmul(sharded_a, replicated_b)
print_on_process_0("Warp Output:")
print_on_process_0(allgather(warp_result))

jax_result = jnp.matmul(a, b)
print_on_process_0("JAX Output:")
print_on_process_0(jax_result)

expected_shape = (M, N)
print_on_process_0(f"Expected shape: {expected_shape}")
print_on_process_0(f"Warp output shape: {warp_result.shape}")
print_on_process_0(f"JAX output shape: {jax_result.shape}")

allclose = jnp.allclose(allgather(warp_result), jax_result, atol=1e-5)
print_on_process_0(f"Allclose: {allclose}")
