"""``wp.launch(..., adjoint=True)``: the adjoint of one launch, without a tape.

The adjoint needs gradients with the layout of their arguments. So it works on each given gradient itself, or on a
stand-in, whose result is copied back afterwards. Gradients of outputs are only read.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import warp._weft as _weft
from warp._weft import array, usage_error

__all__ = ["AdjointLaunch"]


class AdjointLaunch:
    """A launch of a kernel's adjoint: its arguments, and for each a gradient or None.

    ``blocks``: block_dim and max_blocks.
    """

    def __init__(
        self,
        kernel: Any,
        dim: Any,
        inputs: Any,
        outputs: Any,
        adj_inputs: Any,
        adj_outputs: Any,
        device: Any,
        blocks: tuple[int, int],
    ):
        inputs, outputs = list(inputs or ()), list(outputs or ())
        self.kernel = kernel
        self.dim = dim
        self.device = device
        self.values = inputs + outputs
        self.gradients = _padded("adj_inputs", adj_inputs, len(inputs))
        self.gradients += _padded("adj_outputs", adj_outputs, len(outputs))
        self._input_count = len(inputs)
        self._blocks = blocks

    def run(self) -> None:
        """Adds to the gradients of the inputs. Those of outputs are read only."""
        values, given = list(self.values), list(self.gradients)
        missing = self.kernel.func.__code__.co_argcount - len(values)
        defaults = self.kernel.func.__defaults__ or ()
        if 0 < missing <= len(defaults):
            values += defaults[-missing:]
            given += [None] * missing
        gradients: list[Any] = []
        work = _Work()
        for i, (value, gradient) in enumerate(zip(values, given, strict=True)):
            what = f"argument {i + 1} of kernel {self.kernel.__name__!r}"
            is_output = i >= self._input_count
            if gradient is None or (gradient is value and not isinstance(value, array)):
                gradients.append(None)
            elif isinstance(value, array):
                gradients.append(work.on_array(value, gradient, what, is_output))
                if _weft.holds_arrays(value):
                    values[i] = _weft.with_nested_gradients(value, gradient)
            elif value is not None and _weft.field_names(value):
                gradients.append(work.on_struct(value, gradient, what, is_output))
            else:
                gradients.append(None if is_output else work.on_number(gradient))
        _weft.run_adjoint(self.kernel, self.dim, values, gradients, self.device, *self._blocks)
        work.finish()


class _Work:
    """The arrays that the adjoint works on, in place of the gradients that are given."""

    def __init__(self) -> None:
        self._results: list[Callable[[], Any]] = []  # take the results, when it has run

    def finish(self) -> None:
        for take in self._results:
            take()

    def on_array(self, value: array, gradient: Any, what: str, is_output: bool) -> array:
        if not isinstance(gradient, array):
            raise usage_error(
                f"launch(): a gradient is given for {what}, an array, as {type(gradient).__name__}; expected an array "
                "like it, or None",
                TypeError,
            )
        if gradient.dtype is not value.dtype or gradient.shape != value.shape:
            raise usage_error(
                f"launch(): the gradient given for {what} is {_weft.type_name(gradient.dtype)} of shape "
                f"{gradient.shape}, expected {_weft.type_name(value.dtype)} of shape {value.shape}",
                TypeError if gradient.dtype is not value.dtype else ValueError,
            )
        work = gradient
        if is_output or gradient.strides != value.strides:
            work = _weft.keep(gradient if gradient.strides == value.strides else value)
            if gradient.strides != value.strides:
                work.assign(gradient)
            if not is_output:
                self._results.append(lambda: gradient.assign(work))
        return work

    def on_struct(self, value: Any, gradient: Any, what: str, is_output: bool) -> Any:
        if not _weft.field_names(gradient):
            return None
        if type(gradient) is not type(value):
            raise usage_error(
                f"launch(): the gradient given for {what}, a {type(value).__name__}, is a {type(gradient).__name__}; "
                f"expected a {type(value).__name__}, or None",
                TypeError,
            )
        work = self._stand_in(value, gradient, what, is_output)
        if not is_output:
            self._results.append(lambda: _take_numbers(work, gradient))
        return work

    def _stand_in(self, value: Any, gradient: Any, what: str, is_output: bool) -> Any:
        work = type(gradient)()
        for name in _weft.field_names(gradient):
            of, given = getattr(value, name), getattr(gradient, name)
            if isinstance(given, array):
                if isinstance(of, array):
                    setattr(work, name, self.on_array(of, given, f"{name!r} of {what}", is_output))
            elif given is not None:
                is_struct = bool(_weft.field_names(given))
                setattr(work, name, self._stand_in(of, given, f"{name!r} of {what}", is_output) if is_struct else given)
        return work

    def on_number(self, gradient: Any) -> Any:
        """A vector, matrix, quaternion or transform gets the result in place; so does an array of one element. Other
        values cannot be changed: None."""
        if isinstance(gradient, _weft.AggregateValue):
            return gradient
        if not isinstance(gradient, array) or gradient.size != 1 or _weft.type_info(gradient.dtype) is None:
            return None
        work = gradient.dtype(*gradient.numpy().reshape(-1).tolist())
        self._results.append(lambda: gradient.fill_(work))
        return work


def _take_numbers(work: Any, gradient: Any) -> None:
    for name in _weft.field_names(gradient):
        result = getattr(work, name)
        if result is None or isinstance(result, array):
            continue
        if _weft.field_names(result):
            _take_numbers(result, getattr(gradient, name))
        else:
            setattr(gradient, name, result)


def _padded(name: str, gradients: Any, count: int) -> list:
    gradients = list(gradients or ())
    if len(gradients) > count:
        raise usage_error(f"launch(): {name} has {len(gradients)} entries for {count} arguments", ValueError)
    return gradients + [None] * (count - len(gradients))
