"""Kernels that store structs with array fields: the memory that these point to lives as long as they do."""

import copy
import ctypes
import gc
import pickle

import numpy as np
import pytest
import warp as wp

pytestmark = pytest.mark.protected


@wp.struct
class Item:
    data: wp.array(dtype=float)
    weight: float


@wp.struct
class Outer:
    item: Item


@wp.kernel
def copy_items(source: wp.array(dtype=Item), target: wp.array(dtype=Item)):
    i = wp.tid()
    target[i] = source[i]


@wp.kernel
def store_argument(item: Item, target: wp.array(dtype=Item)):
    target[wp.tid()] = item


@wp.kernel
def store_nested(source: wp.array(dtype=Item), target: wp.array(dtype=Outer)):
    i = wp.tid()
    outer = target[i]
    outer.item = source[i]
    target[i] = outer


@wp.kernel
def weigh(numbers: wp.array(dtype=float), target: wp.array(dtype=Item)):
    i = wp.tid()
    target[i].weight = numbers[i]


class Watched:
    """Arrays over memory of our own, which say when they are let go."""

    def __init__(self):
        self.freed = []
        self.memory = []

    def array(self, numbers):
        memory = (ctypes.c_float * len(numbers))(*numbers)
        self.memory.append(memory)
        number = len(self.memory) - 1
        return wp.array(
            ptr=ctypes.addressof(memory),
            shape=len(numbers),
            dtype=float,
            deleter=lambda address, size: self.freed.append(number),
        )


def items(*arrays):
    made = wp.zeros(len(arrays), dtype=Item)
    for i, array in enumerate(arrays):
        item = Item()
        item.data = array
        made[i] = item
    return made


@pytest.mark.host_memory("wraps memory of the host", on="cuda")
@pytest.mark.parametrize("recorded", [False, True])
def test_copied_structs_keep_their_arrays(recorded):
    watched = Watched()
    source, target = items(watched.array([1, 2]), watched.array([3])), wp.zeros(2, dtype=Item)
    command = wp.launch(copy_items, dim=2, inputs=[source, target], record_cmd=recorded)
    if recorded:
        command.launch()
        del command
    del source
    gc.collect()
    assert watched.freed == []
    assert target[0].data.list() == [1.0, 2.0] and target[1].data.list() == [3.0]
    del target
    gc.collect()
    assert sorted(watched.freed) == [0, 1]


@pytest.mark.host_memory("wraps memory of the host", on="cuda")
def test_a_stored_argument_keeps_its_array():
    watched = Watched()
    item, target = Item(), wp.zeros(3, dtype=Item)
    item.data = watched.array([4, 5])
    wp.launch(store_argument, dim=3, inputs=[item, target])
    del item
    gc.collect()
    assert watched.freed == [] and target[2].data.list() == [4.0, 5.0]
    del target
    gc.collect()
    assert watched.freed == [0]


@pytest.mark.host_memory("wraps memory of the host", on="cuda")
def test_structs_inside_structs_keep_their_arrays():
    watched = Watched()
    source, target = items(watched.array([6])), wp.zeros(1, dtype=Outer)
    wp.launch(store_nested, dim=1, inputs=[source, target])
    del source
    gc.collect()
    assert watched.freed == [] and target[0].item.data.list() == [6.0]


@pytest.mark.host_memory("wraps memory of the host", on="cuda")
def test_arrays_that_no_struct_can_point_to_are_let_go():
    watched = Watched()
    target = items(watched.array([1]))
    wp.launch(weigh, dim=1, inputs=[watched.array([7]), target])
    gc.collect()
    assert watched.freed == [1] and target[0].weight == 7.0


def test_structs_can_be_copied_and_pickled():
    outer = Outer()
    outer.item.data = wp.array([1.0, 2.0], dtype=float)
    outer.item.weight = 3.0
    shallow, deep = copy.copy(outer), copy.deepcopy(outer)
    outer.item.data.fill_(9.0)
    outer.item.weight = 4.0
    assert shallow.item.weight == deep.item.weight == 3.0
    assert shallow.item.data.list() == [9.0, 9.0] and deep.item.data.list() == [1.0, 2.0]
    again = pickle.loads(pickle.dumps(outer))
    assert type(again) is type(outer) and again.item.weight == 4.0
    assert np.array_equal(again.item.data.numpy(), [9.0, 9.0])
    assert pickle.loads(pickle.dumps(Item())).data is None
