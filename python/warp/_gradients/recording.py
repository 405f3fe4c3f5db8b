"""Operations on whole arrays, for tapes: what is recorded is in C++, and this says how gradients go through it.

Each entry of a tape knows its backward pass. A launch runs the adjoint of its kernel, a copy adds the gradient of what
it wrote to that of what it read, and what comes from elsewhere takes the gradient away. Whole-array operations bring
theirs, as parts, each of which says how one array that is read enters one that is written:

    d = a @ b:    Part("a", d, forward: into += tangent @ b, backward: into += gradient @ b.T, factors=("b",))
                  Part("b", d, forward: into += a @ tangent, backward: into += a.T @ gradient, factors=("a",))

All are linear in the array and in each of the factors. So they are all that anybody needs: the tape goes back by them,
and products with Hessians (hessians.py) go forward and back with tangents, by the product rule.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import warp._weft as _weft
from warp._weft import array

__all__ = ["Part", "is_smooth", "recorded"]


def is_smooth(value: array) -> bool:
    """Whether it has a gradient that is more than zeros."""
    info = _weft.type_info(value.dtype)
    return value.requires_grad and info is not None and info["scalar_kind"] == "float"


class Part(NamedTuple):
    """How an array that an operation reads enters one that it writes: linearly, with other arrays that it reads as
    factors. Both functions add: ``forward(tangent, into, *factors)`` to the tangent of what is written,
    ``backward(gradient, into, *factors)`` to the gradient of what is read."""

    read: str
    written: array
    forward: Callable[..., None]
    backward: Callable[..., None]
    factors: tuple[str, ...] = ()


def recorded(
    name: str,
    run: Callable[[], Any],
    *,
    reads: Mapping[str, array],
    writes: Mapping[str, array],
    needs: Mapping[str, array] | None = None,
    parts: Callable[[Any], Sequence[Part]],
) -> Any:
    """Runs an operation; a tape that records has it as an entry. What fails is not on the tape.

    Args:
        name: how messages and pictures of the tape call it.
        run: does it, and counts one write for each of ``writes``.
        reads, writes: the arrays, by the names that messages call them.
        needs: those whose contents are factors of a part.
        parts: its parts, given what ``run`` returned. No tape records while their functions run.
    Returns:
        What ``run`` returned.
    """
    return _weft.recorded(name, run, reads, writes, needs or {}, parts)
