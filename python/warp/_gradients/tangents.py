"""Forward mode: a kernel or a function run with the tangents of its arguments."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import warp._weft as _weft
from warp._weft import Kernel, array, primitives, usage_error

__all__ = ["check_moving", "jvp", "tangents_like"]


def tangents_like(api: str, what: str, values: list, tangents: Sequence[Any] | None) -> list:
    """One for each value, None if none is given. Raises UsageError if an array is not like its value."""
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
) -> Any:
    """Launches a kernel with the tangents of its arguments: forward mode, the Jacobian times a vector.

    The kernel runs as under ``wp.launch``. Besides, each value that it writes to an array has its tangent written to
    the array's tangent: the derivative along the direction in which the inputs move.

    ::

        wp.jvp(kernel, dim=n, inputs=[x], outputs=[y], input_tangents=[dx], output_tangents=[dy])

    A Python function takes the place of the kernel too. It is called with copies of the inputs. Its launches and array
    operations run in forward mode, and as on a tape the arrays that have gradients take part. It returns an array or a
    list of arrays::

        y, dy = wp.jvp(function, inputs=[x], input_tangents=[dx])

    Args:
        kernel, dim, inputs, outputs, device: as for ``wp.launch``; of a function, the inputs only.
        input_tangents: one for each input: an array like the input, a number for a number, a struct for a struct; None
            for an input that does not move. A mesh moves with its points and velocities, if these are inputs with
            tangents, or arrays that the function has moved.
        output_tangents: arrays like the outputs, which are written; None for those that are not needed.
    Returns:
        Nothing for a kernel. For a function its results, and their tangents in the same form; None for arrays of
        integers.
    Raises:
        UsageError: a tangent is not like its argument; a tape is recording, which does not record forward mode.
        CompileError: the kernel has no derivative that could be computed, at its line.
    """
    if _weft.active_tape() is not None:
        raise usage_error(
            "jvp(): a tape is recording, and what forward mode does is not recorded. help: call it outside of "
            "'with tape:', or wp.autograd.hvp() for second derivatives",
            RuntimeError,
        )
    inputs, outputs = list(inputs), list(outputs)
    tangents = tangents_like("jvp()", "input_tangents", inputs, input_tangents)
    if not isinstance(kernel, Kernel) and callable(kernel):
        if dim is not None or outputs or output_tangents or device is not None:
            raise usage_error(
                "jvp(): dim, outputs, output_tangents and device are those of a kernel, and this is the function "
                f"{getattr(kernel, '__name__', kernel)!r}, which takes inputs and returns arrays",
                TypeError,
            )
        return _of_function(kernel, inputs, tangents)
    tangents += tangents_like("jvp()", "output_tangents", outputs, output_tangents)
    nothing, values = [None] * len(tangents), inputs + outputs
    meshes = _moving_meshes(kernel, values, tangents, device)
    _weft.run_jvp(kernel, dim, values, tangents, False, nothing, nothing, [], device, meshes)
    return None


def _moving_meshes(kernel: Kernel, values: list, tangents: list, device: Any) -> list[tuple[array, array]]:
    """Arrays of meshes that are inputs too move with these: pairs of them and their tangents."""
    moving: list[tuple[array, array]] = []
    given = [(value, tangent) for value, tangent in zip(values, tangents, strict=True) if isinstance(tangent, array)]
    for one in _weft.arrays_of_objects(kernel, values, device) if given else []:
        for value, tangent in given:
            if not primitives.overlap(one, value):
                continue
            if value.ptr != one.ptr or value.shape != one.shape or value.strides != one.strides:
                raise usage_error(
                    f"jvp(): kernel {kernel.__name__!r} looks into a mesh, one of whose arrays is a part of an input "
                    "that moves, or the other way round. help: pass the mesh's array itself",
                    ValueError,
                )
            moving.append((one, tangent))
            break
    return moving


def _of_function(function: Callable, inputs: list, tangents: list) -> tuple[Any, Any]:
    from warp._gradients.tangent_arrays import (
        ForwardTape,
        TangentArrays,
        check_gradient,
        copies,
        has_tangent,
        results,
        set_vectors,
    )

    api = "jvp()"
    check_moving(api, "input_tangents", inputs, tangents)
    values, tangent_arrays = copies(api, inputs), TangentArrays(api)
    its_tangents = [tangent_arrays.of(value) for value in values]
    set_vectors(api, "input_tangents", inputs, its_tangents, tangents)
    with ForwardTape(api, tangent_arrays):
        result = function(*values)
    moved: list[array | None] = []
    for i, output in enumerate(results(api, function, result)):
        if has_tangent(output):
            check_gradient(api, i, output)
        tangent_array = tangent_arrays.of_array(output)
        moved.append(None if tangent_array is None else _weft.keep(tangent_array))
    if isinstance(result, (list, tuple)):
        return result, tuple(moved) if isinstance(result, tuple) else moved
    return result, moved[0]


def check_moving(api: str, what: str, inputs: list, tangents: list) -> None:
    """Checks that only array inputs of a function have tangents: its arithmetic on numbers cannot be followed."""
    for i, tangent in enumerate(tangents):
        if tangent is not None and not isinstance(inputs[i], array):
            raise usage_error(
                f"{api}: entry {i} of {what} is {tangent!r} for an input that is no array, which only kernels take",
                TypeError,
            )
