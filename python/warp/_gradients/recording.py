"""Operations on whole arrays, for tapes: C++ records them; this file defines how gradients go through them.

Each entry of a tape knows its backward pass. A launch runs the adjoint of its kernel. A copy adds the gradient of the
array that it wrote to that of the array that it read. A write of other values clears the gradient. Whole-array
operations bring their own backward passes as parts: each describes how one array that is read enters one that is
written:

    d = a @ b:    Part("a", d, forward: into += tangent @ b, backward: into += gradient @ b.T, factors=("b",))
                  Part("b", d, forward: into += a @ tangent, backward: into += a.T @ gradient, factors=("a",))

All are linear in the array and in each of the factors. So the parts suffice: the tape goes back by them, and products
with Hessians (hessians.py) go forward and back with tangents, by the product rule.
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
    factors. Both functions add: ``forward(tangent, into, *factors)`` to the tangent of the written array,
    ``backward(gradient, into, *factors)`` to the gradient of the read one."""

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
    """Runs an operation; a tape that records has it as an entry, unless it fails.

    Args:
        name: its name in messages and pictures of the tape.
        run: does it, and counts one write for each of ``writes``.
        reads, writes: the arrays, by the names that messages call them.
        needs: those whose contents are factors of a part.
        parts: its parts, as a function of the result of ``run``. No tape records while their functions run.
    Returns:
        The result of ``run``.
    """
    return _weft.recorded(name, run, reads, writes, needs or {}, parts)
