"""Forward mode: a kernel run with the tangents of its arguments, and products with Hessians, forward over reverse."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from warp import _weft
from warp._weft import array, usage_error

__all__ = ["hvp", "jvp"]


def _tangents(api: str, what: str, values: list, tangents: Sequence[Any] | None) -> list:
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
    tangents = _tangents("jvp()", "input_tangents", inputs, input_tangents)
    tangents += _tangents("jvp()", "output_tangents", outputs, output_tangents)
    nothing = [None] * len(tangents)
    _weft.run_jvp(kernel, dim, inputs + outputs, tangents, False, nothing, nothing, nothing, [], device)


def hvp(
    kernel: Any,
    dim: Any = None,
    inputs: Sequence[Any] = (),
    outputs: Sequence[Any] = (),
    vectors: Sequence[Any] = (),
    weights: Sequence[Any] | None = None,
    device: Any = None,
) -> list[array | None]:
    """The Hessian of a kernel's outputs, summed with weights, times a vector: forward mode over reverse mode.

    Args:
        kernel, dim, inputs, outputs, device: as for ``wp.launch``. What the outputs hold is where the kernel starts
            from; nothing is written to them.
        vectors: one for each input, an array like it; None for zero.
        weights: one for each output, an array like it; ones where it is None.
    Returns:
        One array for each input that is an array of floats, None for the others: the derivative of its gradient along
        the vectors.
    Raises:
        UsageError: a vector or weight is not like its argument.
        CompileError: the kernel has no second derivative that could be computed here, at its line.
    """
    inputs, outputs = list(inputs), list(outputs)
    vectors = _tangents("hvp()", "vectors", inputs, vectors)
    weights = _tangents("hvp()", "weights", outputs, weights)
    values, tangents = [], []
    for i, value in enumerate(inputs + outputs):
        if not isinstance(value, array):
            values.append(value)
            tangents.append(vectors[i] if i < len(inputs) else None)
            continue
        twin = _weft.keep(value)
        twin.zero_()
        value = _weft.keep(value)
        value.requires_grad = True
        if i < len(inputs):
            if vectors[i] is not None:
                twin.assign(vectors[i])
        else:
            given = weights[i - len(inputs)]
            value.grad.fill_(1) if given is None else value.grad.assign(given)
        twin.requires_grad = True
        values.append(value)
        tangents.append(twin)
    nothing = [None] * len(values)
    _weft.run_jvp(kernel, dim, values, tangents, True, nothing, nothing, nothing, [], device)
    results = tangents[: len(inputs)]
    return [twin.grad if isinstance(twin, array) and _is_smooth(twin) else None for twin in results]


def _is_smooth(of: array) -> bool:
    info = _weft.type_info(of.dtype)  # None for structs
    return info is None or info["scalar_kind"] == "float"
