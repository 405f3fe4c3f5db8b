"""Where a tape starts from in its backward pass: a loss, given gradients, gradients that are there already."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from warp import _weft
from warp._gradients.recording import Entry, Function
from warp._weft import RecordedLaunch, array, primitives, usage_error

__all__ = ["check_gradient", "check_loss", "give_gradient", "implied_loss", "reader_of"]


def check_loss(loss: Any) -> None:
    if not isinstance(loss, array):
        raise usage_error(f"Tape.backward(): the loss is {loss!r}, expected an array of one element", TypeError)
    if loss.size != 1:
        raise usage_error(
            f"Tape.backward(): the loss has the shape {loss.shape}, expected one element. help: "
            "backward(grads={array: gradient}) starts from any array",
            ValueError,
        )
    if not loss.requires_grad:
        raise usage_error(
            "Tape.backward(): the loss has no gradient. help: make it with requires_grad=True", ValueError
        )


def check_gradient(of: Any, gradient: Any) -> None:
    if not isinstance(of, array) or not isinstance(gradient, array):
        raise usage_error(
            f"Tape.backward(): grads has a {type(of).__name__} with a {type(gradient).__name__}, expected arrays "
            "with arrays: {array: gradient}",
            TypeError,
        )
    info = _weft.type_info(of.dtype)  # None for structs
    if of.grad is None and info is not None and info["scalar_kind"] != "float":
        raise usage_error(
            f"Tape.backward(): grads has a gradient for an array of {_weft.type_name(of.dtype)}, which has no "
            "derivative",
            TypeError,
        )
    if gradient.dtype is not of.dtype or gradient.shape != of.shape:
        name = _weft.type_name
        raise usage_error(
            f"Tape.backward(): a gradient is {name(gradient.dtype)} of shape {gradient.shape}, its array "
            f"{name(of.dtype)} of shape {of.shape}; expected the same",
            TypeError if gradient.dtype is not of.dtype else ValueError,
        )


def give_gradient(of: array, arrays: Sequence[array]) -> None:
    """An array without a gradient gets one, and with it all of these, those on the tape, that stand for it."""
    if of.grad is not None:
        return
    of.requires_grad = True
    begin_and_end = _weft.memory_of(of)[1:3]
    for one in arrays:
        if one is of or one.grad is not None or not primitives.overlap(one, of):
            continue
        if _weft.memory_of(one)[1:3] != begin_and_end or not _same_layout(one, of):
            raise usage_error(
                f"Tape.backward(): an array of shape {of.shape} got its gradient only now, and the tape knows it "
                f"as part of another array, or by a part of shape {one.shape}, which has none. help: make it with "
                "requires_grad=True before it is recorded",
                ValueError,
            )
        one.grad = of.grad


def implied_loss(entries: Sequence[Entry]) -> array | None:
    """What to start with where the caller says nothing; None where gradients are there already, where a function of the
    user may bring some, and of a tape that has recorded nothing."""
    arrays = [one for entry in entries for one in entry.may_start()]
    if not entries or any(one.grad is not None and _has_numbers(one.grad) for one in arrays):
        return None
    if any(isinstance(entry, Function) for entry in entries):
        return None  # which may start from anything
    last = next((entry for entry in reversed(entries) if isinstance(entry, RecordedLaunch)), None)
    written = {id(one): one for together in (last.written() if last else ()) for one in together}
    candidates = [one for one in written.values() if one.size == 1 and _is_number(one)]
    if len(candidates) != 1:
        found = "no array of one floating-point number" if not candidates else f"{len(candidates)} of them"
        raise usage_error(
            "Tape.backward(): no gradient to start with is given, none has been set in the arrays that were "
            "written, and what is to be differentiated is not clear: expected one array of one floating-point "
            f"number that the last launch writes, found {found}. help: backward(loss=array), or "
            "backward(grads={array: gradient})",
            RuntimeError,
        )
    return candidates[0]


def reader_of(
    of: array, gradient: array, grads: dict[array, array], entries: Sequence[Entry]
) -> tuple[int, int] | None:
    """The launch that may read a gradient from where the caller has it, and its argument, by number: the last entry
    that has to do with the array, if all it does is to overwrite the whole array."""
    overlap = primitives.overlap
    if of.retain_grad or any(overlap(other.grad, of.grad) for other in grads if other is not of):
        return None
    for index, entry in reversed(list(enumerate(entries))):
        arrays = list(entry.arrays())
        gradients = [one.grad for one in arrays if one.grad is not None]
        if isinstance(entry, Function) or any(overlap(one, gradient) for one in gradients):
            return None
        concerned = [one for one in arrays if overlap(one, of)]
        if not concerned:
            if any(overlap(one, of.grad) for one in gradients):
                return None
            continue
        at = entry.overwritten(concerned[0]) if isinstance(entry, RecordedLaunch) else None
        if len(concerned) > 1 or at is None or not _is_like(concerned[0], of, gradient):
            return None
        return index, at
    return None


def _is_number(one: array) -> bool:
    info = _weft.type_info(one.dtype)
    return info is not None and info["kind"] == "scalar" and info["scalar_kind"] == "float"


def _has_numbers(gradient: array) -> bool:
    """Whether it has something else than zeros."""
    numbers = gradient.numpy()
    return bool(np.ascontiguousarray(numbers).view(np.uint8).any() if numbers.dtype.fields else np.any(numbers))


def _same_layout(one: array, other: array) -> bool:
    return one.dtype is other.dtype and one.shape == other.shape and one.strides == other.strides


def _is_like(one: array, of: array, gradient: array) -> bool:
    """Whether both show the same elements and the same gradients, with the gradient laid out as they are."""
    if one.grad is None:
        return False
    same = all(_weft.memory_of(a)[1:3] == _weft.memory_of(b)[1:3] for a, b in ((one, of), (one.grad, of.grad)))
    return same and one.dtype is of.dtype and one.shape == of.shape and one.strides == of.strides == gradient.strides
