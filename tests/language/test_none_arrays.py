"""Arrays that are None when a kernel indexes them: an exception in release mode too."""

import re

import numpy as np
import pytest
import warp as wp


@wp.struct
class Pair:
    values: wp.array[float]
    weight: float


@wp.struct
class Nested:
    pair: Pair


@wp.func
def through(values: wp.array[float], i: int):
    return values[i]


@wp.kernel
def read(a: wp.array[float], out: wp.array[float]):
    i = wp.tid()
    out[i] = a[i]


@wp.kernel
def write(a: wp.array[float], out: wp.array[float]):
    i = wp.tid()
    a[i] = out[i]


@wp.kernel
def add(a: wp.array[float], out: wp.array[float]):
    i = wp.tid()
    wp.atomic_add(a, 0, out[i])


@wp.kernel
def exchange(a: wp.array[float], out: wp.array[float]):
    i = wp.tid()
    out[i] = wp.atomic_exch(a, i, 1.0)


@wp.kernel
def in_a_function(a: wp.array[float], out: wp.array[float]):
    i = wp.tid()
    out[i] = through(a, i)


@wp.kernel
def in_a_loop(a: wp.array[float], out: wp.array[float]):
    i = wp.tid()
    for j in range(i + 1):
        out[i] = out[i] + a[j]


@wp.kernel
def of_a_slice(a: wp.array[float], out: wp.array[float]):
    i = wp.tid()
    rest = a[1:]
    rest[i] = 1.0


@wp.kernel
def of_a_branch(a: wp.array[float], out: wp.array[float]):
    i = wp.tid()
    chosen = out
    if i % 3 == 1:
        chosen = a
    out[i] = chosen[i]


KERNELS = [read, write, add, exchange, in_a_function, in_a_loop, of_a_slice, of_a_branch]


@pytest.mark.parametrize("n", [1, 3, 1000])
@pytest.mark.parametrize("kernel", KERNELS, ids=lambda kernel: kernel.key)
def test_an_array_passed_as_none(kernel, n):
    if kernel is of_a_branch and n == 1:
        pytest.skip("thread 0 uses the other array")
    with pytest.raises(ValueError, match=r"test_none_arrays.py:\d+.*the array '\w+(\[...\])?' is None"):
        wp.launch(kernel, dim=n, inputs=[None, wp.zeros(n)])
    a, out = wp.ones(n + 1), wp.zeros(n)
    wp.launch(kernel, dim=n, inputs=[a, out])  # and the others go on


@pytest.mark.parametrize("n", [1, 3, 1000])
@pytest.mark.parametrize("kernel", KERNELS, ids=lambda kernel: kernel.key)
def test_an_array_without_elements(kernel, n):
    if kernel is of_a_branch and n == 1:
        pytest.skip("thread 0 uses the other array")
    for empty in (wp.zeros(0), wp.array([], dtype=float), wp.ones(5)[3:3], wp.array(np.zeros(0, np.float32))):
        # Of an array that branches chose it is not known which of the two it is.
        kinds = (IndexError, ValueError) if kernel is of_a_branch else IndexError
        with pytest.raises(kinds, match=r"test_none_arrays.py:\d+.*the array '\w+(\[...\])?' is .*empty"):
            wp.launch(kernel, dim=n, inputs=[empty, wp.zeros(n)])
    a, out = wp.ones(n + 1), wp.zeros(n)
    wp.launch(kernel, dim=n, inputs=[a, out])


def test_arrays_without_elements_that_nobody_indexes():
    @wp.kernel
    def guarded(a: wp.array2d[float], indices: wp.array[int], out: wp.array[float]):
        i = wp.tid()
        out[i] = float(a.shape[1])
        for j in range(indices.shape[0]):
            out[i] += a[0, indices[j]]
        if a.shape[0] > 1:
            out[i] = a[1, i]

    out = wp.zeros(20)
    for empty in (wp.zeros((0, 3)), wp.zeros((4, 3))[2:2]):
        wp.launch(guarded, dim=20, inputs=[empty, wp.zeros(0, dtype=int), out])
        assert out.list() == [3.0] * 20
    with pytest.raises(IndexError, match="'a' is empty"):
        wp.launch(guarded, dim=20, inputs=[wp.zeros((3, 0)), wp.zeros(1, dtype=int), out])


def test_rows_and_components_of_none():
    @wp.kernel
    def row(a: wp.array2d[wp.vec3], out: wp.array[float]):
        i = wp.tid()
        of = a[i]
        out[i] = of[2][1]

    @wp.kernel
    def component(a: wp.array[wp.mat33], out: wp.array[float]):
        i = wp.tid()
        a[i][1, 2] = out[i]

    for kernel in (row, component):
        with pytest.raises(ValueError, match="is None"):
            wp.launch(kernel, dim=20, inputs=[None, wp.zeros(20)])


def test_an_array_that_is_asked_for_may_be_none():
    @wp.kernel
    def either(a: wp.array[float], count: wp.array[int], out: wp.array[float]):
        i = wp.tid()
        out[i] = -1.0
        if a:
            out[i] = a[i]
        if i > 7 and count:
            wp.atomic_add(count, 0, 1)

    a, count = wp.array(np.arange(20), dtype=float), wp.zeros(1, dtype=int)
    for given in (None, a):
        for counted in (None, count):
            out = wp.zeros(20)
            wp.launch(either, dim=20, inputs=[given, counted, out])
            assert out.numpy().tolist() == ([-1.0] * 20 if given is None else list(range(20)))
    assert count.numpy()[0] == 24


def test_arrays_left_out_in_structs():
    @wp.kernel
    def of_a_struct(pair: Pair, out: wp.array[float]):
        i = wp.tid()
        out[i] = pair.values[i] * pair.weight

    @wp.kernel
    def of_a_nested_struct(nested: Nested, out: wp.array[float]):
        i = wp.tid()
        out[i] = nested.pair.values[i]

    with pytest.raises(ValueError, match=re.escape("the array 'pair.values' is None")):
        wp.launch(of_a_struct, dim=9, inputs=[Pair(), wp.zeros(9)])
    with pytest.raises(ValueError, match=re.escape("the array 'nested.pair.values' is None")):
        wp.launch(of_a_nested_struct, dim=9, inputs=[Nested(), wp.zeros(9)])


def test_arrays_left_out_in_arrays_of_structs():
    @wp.kernel
    def of_memory(pairs: wp.array[Pair], out: wp.array[float]):
        i = wp.tid()
        out[i] = pairs[i].values[0]

    @wp.kernel
    def asked_for(pairs: wp.array[Pair], out: wp.array[float]):
        i = wp.tid()
        if pairs[i].values:
            out[i] = pairs[i].values[0]

    @wp.kernel
    def written(pairs: wp.array[Pair], out: wp.array[float]):
        i = wp.tid()
        if out[i] == 0.0:
            pairs[i].values[1] = 2.0

    all_of_them = [Pair() for _ in range(40)]
    for one in all_of_them[:30]:
        one.values = wp.full(2, 3.0)
    pairs, out = wp.array(all_of_them, dtype=Pair), wp.zeros(40)
    with pytest.raises(ValueError, match=r"'pairs\[...\].values' is None.*thread \(3\d,\)"):
        wp.launch(of_memory, dim=40, inputs=[pairs, out])
        wp.synchronize()
    out.zero_()
    wp.launch(asked_for, dim=40, inputs=[pairs, out])
    assert out.numpy().tolist() == [3.0] * 30 + [0.0] * 10
    with pytest.raises(ValueError, match=r"'pairs\[...\].values' is None.*thread \(30,\)"):
        wp.launch(written, dim=31, inputs=[pairs, wp.zeros(31)])
        wp.synchronize()
    wp.launch(written, dim=40, inputs=[pairs, out.numpy() + (np.arange(40) > 29)])


def test_the_gradient_of_an_array_without_one():
    @wp.kernel
    def seed(a: wp.array[float]):
        i = wp.tid()
        a.grad[i] = 1.0

    with pytest.raises(ValueError, match="the array 'a' has no gradient"):
        wp.launch(seed, dim=20, inputs=[wp.zeros(20)])
        wp.synchronize()
    a = wp.zeros(20, requires_grad=True)
    wp.launch(seed, dim=20, inputs=[a])
    assert (a.grad.numpy() == 1.0).all()


@wp.kernel
def weighted(a: wp.array[float], weights: wp.array[float], out: wp.array[float]):
    i = wp.tid()
    value = a[i] * a[i]
    if weights:
        value = value * weights[i]
    out[i] = value


def test_gradients_of_launches_with_none():
    a, out = wp.array(np.arange(20.0), dtype=float, requires_grad=True), wp.zeros(20, requires_grad=True)
    with wp.Tape() as tape:
        wp.launch(weighted, dim=20, inputs=[a, None, out])
    tape.backward(grads={out: wp.ones(20)})
    np.testing.assert_array_equal(a.grad.numpy(), 2.0 * np.arange(20))
    gradient = wp.zeros(20)
    adjoint = {"adj_inputs": [gradient, None], "adj_outputs": [wp.ones(20)], "adjoint": True}
    wp.launch(weighted, dim=20, inputs=[a, None], outputs=[out], **adjoint)
    np.testing.assert_array_equal(gradient.numpy(), 2.0 * np.arange(20))


def test_recorded_launches_follow_what_is_set():
    out = wp.zeros(20)
    command = wp.launch(read, dim=20, inputs=[wp.ones(20), out], record_cmd=True)
    command.set_param_at_index(0, None)
    with pytest.raises(ValueError, match="'a' is None"):
        command.launch()
    command.set_param_at_index(0, wp.ones(20))
    command.launch()
    assert (out.numpy() == 1.0).all()


def test_gradients_of_kernels_that_index_none():
    @wp.kernel
    def product(a: wp.array[float], weights: wp.array[float], out: wp.array[float]):
        i = wp.tid()
        out[i] = a[i] * weights[i]

    a, out = wp.ones(20, requires_grad=True), wp.zeros(20, requires_grad=True)
    with pytest.raises(ValueError, match="'weights' is None"), wp.Tape():
        wp.launch(product, dim=20, inputs=[a, None, out])
    adjoint = {"adj_inputs": [a.grad, None], "adj_outputs": [wp.ones(20)], "adjoint": True}
    with pytest.raises(ValueError, match="'weights' is None"):
        wp.launch(product, dim=20, inputs=[a, None], outputs=[out], **adjoint)
