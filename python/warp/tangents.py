"""Forward mode: a kernel run with the tangents of its arguments."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from warp import _weft
from warp._weft import array, usage_error

__all__ = ["jvp", "tangents_like"]


def tangents_like(api: str, what: str, values: list, tangents: Sequence[Any] | None) -> list:
    """One for each value, None where none is given. Raises UsageError where an array is not like its value."""
    tangents = list(tangents or ())
    if len(tangents) > len(values):
        raise usage_error(f"{api}: {len(tangents)} {what} for {len(values)} arguments", ValueError)
    tangents += [None] * (len(values) - len(tangents))
    for i, (value, tangent) in enumerate(zip(values, tangents, strict=True)):
        if tangent is None or not isinstance(value, array):
            continue
        if not isinstance(tangent, array) or tangent.dtype is not value.dtype or tangent.shape != value.shape:
            found = f"{_weft.type_name(tangent.dtype)} {tangent.shape}" if isinstance(tangent, array) else repr(tangent)
            raise usage_error(
                f"{api}: entry {i} of {what} is {found}, expected an array of {_weft.type_name(value.dtype)} "
                f"{value.shape}, as its argument",
                TypeError,
            )
    return tangents


def jvp(
    kernel: Any,
    dim: Any = None,
    inputs: Sequence[Any] = (),
    outputs: Sequence[Any] = (),
    input_tangents: Sequence[Any] | None = None,
    output_tangents: Sequence[Any] | None = None,
    device: Any = None,
) -> None:
    """Launches a kernel with the tangents of its arguments: forward mode, the Jacobian times a vector.

    The kernel does what ``wp.launch`` would make it do. Besides, what it writes to an array has its tangent written to
    the array's tangent: the derivative along the direction in which the inputs move.

    ::

        wp.jvp(kernel, dim=n, inputs=[x], outputs=[y], input_tangents=[dx], output_tangents=[dy])

    Args:
        kernel, dim, inputs, outputs, device: as for ``wp.launch``.
        input_tangents: one for each input: an array like the input, a number for a number, a struct for a struct; None
            for an input that does not move.
        output_tangents: arrays like the outputs, which are written; None where nobody asks.
    Raises:
        UsageError: a tangent is not like its argument.
        CompileError: the kernel has no derivative that could be computed, at its line.
    """
    inputs, outputs = list(inputs), list(outputs)
    tangents = tangents_like("jvp()", "input_tangents", inputs, input_tangents)
    tangents += tangents_like("jvp()", "output_tangents", outputs, output_tangents)
    nothing = [None] * len(tangents)
    _weft.run_jvp(kernel, dim, inputs + outputs, tangents, False, nothing, nothing, [], device)
