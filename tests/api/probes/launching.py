"""API-1.19, section 6: launching."""

import numpy as np
import warp as wp
from probing import differs, floats, ints


@wp.kernel
def _add(v: wp.vec3, n: int, out: wp.array(dtype=wp.vec3)):
    out[wp.tid()] += v * float(n)


def _launched(*arguments, dim=1):
    out = wp.zeros(1, dtype=wp.vec3)
    wp.launch(_add, dim=dim, inputs=[*arguments, out])
    return out.numpy().tolist()


def vectors_as_sequences():
    return _launched((1.0, 2.0, 3.0), 2), _launched([1.0, 2.0, 3.0], 2), _launched(np.array([1.0, 2.0, 3.0]), 2)


def vector_as_a_number():
    return _launched(1.0, 2)


def vector_as_none():
    return _launched(None, 2)


def vector_of_a_wrong_length():
    return _launched((1.0, 2.0), 2)


def too_few_arguments():
    wp.launch(_add, dim=1, inputs=[1])


def extent_of_zero():
    return _launched((1.0, 2.0, 3.0), 2, dim=(4, 0)), _launched((1.0, 2.0, 3.0), 2, dim=0)


def arguments_of_a_launch_of_no_threads():
    wp.launch(_add, dim=0, inputs=["text", None, 3])


def accepted_without_effect():
    out = wp.zeros(1, dtype=wp.vec3)
    wp.launch(_add, dim=1, inputs=[(1.0, 0.0, 0.0), 1, out], stream=None, max_blocks=0, block_dim=None)
    return out.numpy().tolist()


def _command():
    out = wp.zeros(1, dtype=wp.vec3)
    return wp.launch(_add, dim=1, inputs=[(1.0, 2.0, 3.0), 1, out], record_cmd=True), out


def recorded_command():
    command, out = _command()
    before = out.numpy().tolist()
    command.set_param_by_name("n", 3)
    command.launch()
    return before, out.numpy().tolist()


def command_with_another_size():
    command, out = _command()
    command.set_dim(2)
    command.set_param_at_index(2, out := wp.zeros(2, dtype=wp.vec3))
    command.launch()
    return out.numpy().tolist()


def command_with_a_vector_as_tuple():
    command, out = _command()
    command.set_param_at_index(0, (2.0, 3.0, 4.0))
    command.launch()
    return out.numpy().tolist()


def command_with_an_unknown_name():
    _command()[0].set_param_by_name("m", 3)


def command_with_an_index_too_large():
    _command()[0].set_param_at_index(9, 3)


def members_of_a_command():
    command = _command()[0]
    return command.kernel is _add, str(command.device), len(command.params), command.max_blocks, command.block_dim


@differs("list(list(1.0, 0.0, 0.0), list(1.0, 0.0, 0.0), list(1.0, 0.0, 0.0))")
def grid_of_the_first_array():
    out = wp.zeros(3, dtype=wp.vec3)
    wp.launch(_add, inputs=[(1.0, 0.0, 0.0), 1, out])
    return out.numpy().tolist()


def array_of_another_type():
    wp.launch(_add, dim=1, inputs=[(1.0, 2.0, 3.0), 1, ints(0)])


def array_of_another_dimension():
    wp.launch(_add, dim=1, inputs=[(1.0, 2.0, 3.0), 1, wp.zeros((1, 1), dtype=wp.vec3)])


def sequence_with_text_for_a_vector():
    return _launched(("a", "b", "c"), 2)


def float_for_an_int():
    return _launched((1.0, 2.0, 3.0), 1.5)


def text_for_an_int():
    return _launched((1.0, 2.0, 3.0), "1")


def none_for_an_int():
    return _launched((1.0, 2.0, 3.0), None)


def numpy_number_for_an_int():
    return _launched((1.0, 2.0, 3.0), np.int64(2))


def typed_number_for_an_int():
    return _launched((1.0, 2.0, 3.0), wp.int64(2))


def vector_of_another_size():
    return _launched(wp.vec2(1.0, 2.0), 1)


def vector_of_another_scalar_type():
    return _launched(wp.vec3d(1.0, 2.0, 3.0), 1)


def numpy_array_for_an_array():
    a = np.zeros((1, 3), dtype=np.float32)
    wp.launch(_add, dim=1, inputs=[(1.0, 2.0, 3.0), 2, a])
    return a


def list_for_an_array():
    wp.launch(_add, dim=1, inputs=[(1.0, 2.0, 3.0), 2, [1.0, 2.0, 3.0]])


def too_many_arguments():
    return _launched((1.0, 2.0, 3.0), 1, 2)


def outputs_follow_inputs():
    out = wp.zeros(1, dtype=wp.vec3)
    wp.launch(_add, dim=1, inputs=[(1.0, 2.0, 3.0), 2], outputs=[out])
    return out.numpy().tolist()


def tuple_of_arguments():
    out = wp.zeros(1, dtype=wp.vec3)
    wp.launch(_add, dim=1, inputs=((1.0, 2.0, 3.0), 2, out))
    return out.numpy().tolist()


def negative_extent():
    return _launched((1.0, 2.0, 3.0), 1, dim=-1)


def five_extents():
    return _launched((1.0, 2.0, 3.0), 1, dim=(1, 1, 1, 1, 1))


def extent_as_a_float():
    return _launched((1.0, 2.0, 3.0), 1, dim=1.5)


def extent_as_text():
    return _launched((1.0, 2.0, 3.0), 1, dim="x")


def extent_as_numpy():
    return _launched((1.0, 2.0, 3.0), 1, dim=np.int64(1))


def extents_as_a_list():
    return _launched((1.0, 2.0, 3.0), 1, dim=[1, 1])


def unknown_device():
    wp.launch(_add, dim=1, inputs=[(1.0, 2.0, 3.0), 1, wp.zeros(1, dtype=wp.vec3)], device="cuda:0")


def number_as_a_kernel():
    wp.launch(3, dim=1)


def empty_command_that_is_filled():
    out = wp.zeros(1, dtype=wp.vec3)
    command = wp.Launch(_add, wp.get_device("cpu"))
    command.launch()
    command.set_dim(1)
    command.set_params([(1.0, 2.0, 3.0), 2, out])
    command.launch()
    return out.numpy().tolist()


def command_with_a_wrong_number():
    _command()[0].set_param_at_index(1, "x")


def command_with_a_wrong_array():
    _command()[0].set_param_at_index(2, ints(0))


def command_with_none_for_a_vector():
    _command()[0].set_param_at_index(0, None)


def command_with_five_extents():
    _command()[0].set_dim((1, 1, 1, 1, 1))


def command_in_two_dimensions():
    command, out = _command()
    command.set_dim((1, 2))
    command.launch()
    return out.numpy().tolist()


def gradient_of_a_plain_command():
    command, out = _command()
    command.set_param_at_index(2, out, adjoint=True)


def command_of_an_adjoint():
    @wp.kernel(module="unique")
    def square(x: wp.array(dtype=float), y: wp.array(dtype=float)):
        y[0] = x[0] * x[0]

    x, y = floats(3.0), floats(0.0)
    adj_x, adj_y = floats(0.0), floats(1.0)
    command = wp.launch(
        square, dim=1, inputs=[x], outputs=[y], adj_inputs=[adj_x], adj_outputs=[adj_y], adjoint=True, record_cmd=True
    )
    before = float(adj_x.numpy()[0])
    command.launch()
    return before, float(adj_x.numpy()[0])


def launch_of_a_corrected_definition():
    @wp.kernel(module="launching_corrected")
    def kernel(a: wp.array(dtype=float)):
        a[0] = not_there  # noqa: F821

    a = floats(0.0)
    try:
        wp.launch(kernel, dim=1, inputs=[a])
    except Exception:
        pass

    @wp.kernel(module="launching_corrected")
    def kernel(a: wp.array(dtype=float)):
        a[0] = 2.0

    wp.launch(kernel, dim=1, inputs=[a])
    return a


def members_of_the_bounds():
    command = _command()[0]
    command.set_dim(5)
    return command.bounds.size


def block_dim_of_the_cpu():
    @wp.kernel(module="unique")
    def kernel(a: wp.array(dtype=int)):
        a[0] = wp.block_dim()

    wp.launch(kernel, dim=1, inputs=[a := ints(0)], block_dim=64)
    return a
