"""API-1.19, section 6: launching."""

import numpy as np
import warp as wp
from probing import differs, ints, still_open


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


@still_open("section 6")
def vector_as_none():
    return _launched(None, 2)


@still_open("section 6")
def vector_of_a_wrong_length():
    return _launched((1.0, 2.0), 2)


def too_few_arguments():
    wp.launch(_add, dim=1, inputs=[1])


def extent_of_zero():
    return _launched((1.0, 2.0, 3.0), 2, dim=(4, 0)), _launched((1.0, 2.0, 3.0), 2, dim=0)


@still_open("section 6")
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


@still_open("section 6")
def command_with_an_unknown_name():
    _command()[0].set_param_by_name("m", 3)


def command_with_an_index_too_large():
    _command()[0].set_param_at_index(9, 3)


@still_open("section 6")
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
