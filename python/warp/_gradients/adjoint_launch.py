"""``wp.launch(..., adjoint=True)``: the adjoint of one launch, without a tape."""

from __future__ import annotations

from typing import Any

import warp._weft as _weft
from warp._weft import array, usage_error

__all__ = ["launch_adjoint"]


def launch_adjoint(
    kernel: Any, dim: Any, inputs: Any, outputs: Any, adj_inputs: Any, adj_outputs: Any, device: Any
) -> None:
    """``wp.launch(..., adjoint=True)``: adds to the gradients of the inputs. Those of outputs are read only."""
    inputs, outputs = list(inputs or ()), list(outputs or ())
    values = inputs + outputs
    given = _padded("adj_inputs", adj_inputs, len(inputs)) + _padded("adj_outputs", adj_outputs, len(outputs))
    gradients: list[array | None] = []
    results: list[tuple[array, array]] = []
    for i, (value, gradient) in enumerate(zip(values, given, strict=True)):
        if gradient is None or not isinstance(value, array):
            gradients.append(None)
            continue
        if not isinstance(gradient, array):
            raise usage_error(
                f"launch(): a gradient is given for argument {i + 1} of kernel {kernel.__name__!r}, an array, as "
                f"{type(gradient).__name__}; expected an array like it, or None",
                TypeError,
            )
        if gradient.dtype is not value.dtype or gradient.shape != value.shape:
            raise usage_error(
                f"launch(): the gradient given for argument {i + 1} of kernel {kernel.__name__!r} is "
                f"{_weft.type_name(gradient.dtype)} of shape {gradient.shape}, expected "
                f"{_weft.type_name(value.dtype)} of shape {value.shape}",
                TypeError if gradient.dtype is not value.dtype else ValueError,
            )
        work = gradient
        is_output = i >= len(inputs)
        if is_output or gradient.strides != value.strides:
            work = _weft.keep(gradient if gradient.strides == value.strides else value)
            if gradient.strides != value.strides:
                work.assign(gradient)
            if not is_output:
                results.append((gradient, work))
        gradients.append(work)
    _weft.run_adjoint(kernel, dim, values, gradients, device)
    for gradient, work in results:
        gradient.assign(work)


def _padded(name: str, gradients: Any, count: int) -> list:
    gradients = list(gradients or ())
    if len(gradients) > count:
        raise usage_error(f"launch(): {name} has {len(gradients)} entries for {count} arguments", ValueError)
    return gradients + [None] * (count - len(gradients))
