"""A kernel inside shard_map, each process with its own part; the lines of the documents of 2024."""

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

        result = warp_multiply(a_in)[0]

        return result

    return shard_map(
        _sharded_operator,
        mesh=jax.sharding.Mesh(np.array(jax.devices()), "x"),
        in_specs=(P("x"),),
        out_specs=P("x"),
        check_rep=False,
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

print_on_process_0(f"Input array: {allgather(sharded_array)}")

warp_result = warp_distributed_operator(sharded_array)

print_on_process_0("Warp Output:", allgather(warp_result))
