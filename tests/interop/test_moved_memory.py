"""Tensors of PyTorch that get other memory while arrays show the old one: an error at every use, never freed memory."""

from __future__ import annotations

import gc
import random

import numpy as np
import pytest
import torch
import warp as wp
from torch._subclasses.fake_tensor import FakeTensorMode
from warp._interop import torch_memory
from warp._interop.torch_memory import places_of_memory

pytestmark = pytest.mark.cpu_only("other frameworks are built for the CPU here; their GPUs come later")


@wp.kernel
def double(x: wp.array[float], y: wp.array[float]):
    i = wp.tid()
    y[i] = 2.0 * x[i]


@wp.struct
class Holder:
    x: wp.array[float]


@wp.kernel
def double_of(holder: Holder, y: wp.array[float]):
    i = wp.tid()
    y[i] = 2.0 * holder.x[i]


def test_the_experiment_succeeds_with_this_pytorch():
    places = places_of_memory()
    assert places is not None
    # Also if the first tensor comes in one of these.
    with torch.inference_mode(), FakeTensorMode(), torch.device("meta"):
        assert places_of_memory() == places


def test_the_experiment_does_not_depend_on_where_tensors_lie():
    expected, kept = places_of_memory(), []
    chance = random.Random(1)
    for _ in range(100):
        kept += [torch.zeros(chance.randrange(1, 300)) for _ in range(chance.randrange(60))]
        chance.shuffle(kept)
        del kept[: chance.randrange(50)]
        assert places_of_memory() == expected


def test_a_pytorch_that_hides_its_memory_is_named(monkeypatch, capsys):
    monkeypatch.setattr(torch_memory, "_find_places", lambda torch: None)
    assert places_of_memory() is None
    assert f"PyTorch {torch.__version__} does not show the memory of a tensor" in capsys.readouterr().err


def test_negated_views_are_known_of_every_kind_of_tensor():
    z = torch.randn(4, 3, dtype=torch.complex64)
    negated = [z.conj().imag, z.conj().imag[1], z.conj().imag.as_strided((4,), (1,)), torch.ones(3)._neg_view()]
    negated += [one.detach().requires_grad_(True) for one in negated]
    for t in negated:
        assert t.is_neg()
        with pytest.raises(TypeError, match="negated numbers"):
            wp.from_torch(t)
    for t in [
        z.real,
        z.imag,
        torch.view_as_real(z),
        negated[0].clone(),
        negated[0].resolve_neg(),
        -negated[0].detach(),
    ]:
        assert wp.from_torch(t).numpy().tolist() == t.tolist()


def structure(t):
    return wp.from_torch(t, return_ctype=True)


MOVES = {
    "resize_": lambda t: t.resize_(100_000),
    "resize_ of the storage": lambda t: t.untyped_storage().resize_(0),
    "set_": lambda t: t.set_(torch.ones(3)),
    "data": lambda t: setattr(t, "data", torch.ones(3)),
    "swap_tensors": lambda t: torch.utils.swap_tensors(t, torch.ones(3)),
    "twice": lambda t: (t.resize_(100_000), t.untyped_storage().resize_(4)),
}
USES = {
    "launch": lambda a: wp.launch(double, dim=10, inputs=[a, wp.zeros(10)]),
    "launch, written": lambda a: wp.launch(double, dim=10, inputs=[wp.zeros(10), a]),
    "numpy": lambda a: a.numpy(),
    "asarray": lambda a: np.asarray(a),
    "to_torch": wp.to_torch,
    "dlpack": torch.from_dlpack,
    "__array_interface__": lambda a: a.__array_interface__,
    "ptr": lambda a: a.ptr,
    "index": lambda a: a[3],
    "list": lambda a: a.list(),
    "text": str,
    "copy": lambda a: wp.copy(wp.zeros(10), a),
    "copy to it": lambda a: wp.copy(a, wp.zeros(10)),
    "clone": wp.clone,
    "fill_": lambda a: a.fill_(1.0),
    "assign": lambda a: a.assign(np.ones(10, np.float32)),
    "arithmetic": lambda a: a + a,
    "view": lambda a: a.reshape((2, 5)),
}


@pytest.mark.parametrize("move", MOVES)
@pytest.mark.parametrize("use", USES)
def test_every_use_of_an_array_whose_tensor_moved_is_an_error(move, use):
    t = torch.arange(10.0)
    a = wp.from_torch(t)
    part = a[2:5]
    USES[use](a)
    MOVES[move](t)
    with pytest.raises((RuntimeError, BufferError), match="memory of a tensor, which has other memory since"):
        USES[use](a)
    with pytest.raises(RuntimeError, match="has other memory since"):
        part.numpy()
    gc.collect()


@pytest.mark.parametrize("move", MOVES)
def test_structures_for_launches_are_watched(move):
    t, y = torch.arange(10.0), wp.zeros(10)
    a = structure(t)
    wp.launch(double, dim=10, inputs=[a, y])
    assert y.list()[9] == 18.0
    MOVES[move](t)
    for inputs in ([a, y], [y, a]):
        with pytest.raises(RuntimeError, match="of kernel 'double' has no memory any more"):
            wp.launch(double, dim=10, inputs=inputs)


@pytest.mark.parametrize("convert", [wp.from_torch, structure])
def test_the_error_of_a_launch_names_the_argument(convert):
    t = torch.arange(10.0)
    a = convert(t)
    t.resize_(100_000)
    with pytest.raises(RuntimeError, match=r"argument 1 'x' of kernel 'double' has no memory any more.*\(10,\).*help"):
        wp.launch(double, dim=10, inputs=[a, wp.zeros(10)])


def test_what_leaves_the_memory_in_place_is_no_error():
    t = torch.arange(10.0)
    a = wp.from_torch(t)
    t.resize_(4)
    t.add_(1.0)
    other = t.view(2, 2)
    t.requires_grad_(True)
    assert a.list() == [1.0, 2.0, 3.0, 4.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0]
    del t, other
    gc.collect()
    assert a.list()[0] == 1.0


def test_other_ways_to_an_array_are_watched_too():
    t = torch.arange(10.0)
    shown, copied = wp.array(t, copy=False), wp.array(t)
    t.set_(torch.ones(3))
    with pytest.raises(RuntimeError, match="has other memory since"):
        shown.numpy()
    assert copied.list() == list(range(10))

    holder = Holder()
    t = torch.arange(10.0)
    holder.x = t
    y = wp.zeros(10)
    wp.launch(double_of, dim=10, inputs=[holder, y])
    t.resize_(100_000)
    with pytest.raises(RuntimeError, match="argument 1 'holder' of kernel 'double_of' has no memory"):
        wp.launch(double_of, dim=10, inputs=[holder, y])


def test_views_of_tensors_are_watched_by_themselves():
    base = torch.arange(10.0)
    a = wp.from_torch(base.view(5, 2), dtype=wp.vec2)  # the view stays as it is, in the storage that moves
    base.resize_(100_000)
    with pytest.raises(RuntimeError, match="has other memory since"):
        a.numpy()
    base = torch.arange(10.0)
    a = wp.from_torch(base.view(5, 2), dtype=wp.vec2)
    base.set_(torch.ones(3))  # the view keeps the storage
    gc.collect()
    assert a.numpy().ravel().tolist() == list(range(10))


@pytest.mark.parametrize("convert", [wp.from_torch, structure, lambda t: t])
def test_recorded_launches_notice_it(convert):
    t, y = torch.arange(10.0), wp.zeros(10)
    command = wp.launch(double, dim=10, inputs=[convert(t), y], record_cmd=True)
    command.launch()
    assert y.list()[9] == 18.0
    t.resize_(100_000)
    with pytest.raises(RuntimeError, match="has other memory since"):
        command.launch()
    command.set_param_at_index(0, convert(torch.ones(10)))
    command.launch()
    assert y.list()[9] == 2.0


@pytest.mark.parametrize("convert", [wp.from_torch, structure, lambda t: t])
def test_a_tape_raises_for_a_tensor_whose_memory_moved(convert):
    @wp.kernel
    def product(x: wp.array[float], z: wp.array[float], y: wp.array[float]):
        i = wp.tid()
        y[i] = x[i] * z[i]

    t = torch.arange(10.0)
    z, y = wp.ones(10, requires_grad=True), wp.zeros(10, requires_grad=True)
    with wp.Tape() as tape:
        wp.launch(product, dim=10, inputs=[convert(t), z], outputs=[y])
    tape.backward(grads={y: wp.ones(10)})
    assert z.grad.list() == list(range(10))
    t.resize_(100_000)
    with pytest.raises(RuntimeError, match="has other memory since"):
        tape.backward(grads={y: wp.ones(10)})
