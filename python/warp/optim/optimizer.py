"""The common part of optimizers: parameters, the state of each parameter, and steps in as few launches as possible.

Kernels see all arrays as rows of numbers, and take several parameters at once (``TOGETHER``): a thread does the same
for element i of each that has one.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import warp as wp
import warp._weft as _weft
from warp._gradients.jacobians import Unrecorded
from warp._weft import array, usage_error
from warp.types import _with_scalar

TOGETHER = 4  # parameters of one launch


def _as_numbers(one: array) -> array:
    """The same memory as one row of numbers. The array has no gaps."""
    info = _weft.type_info(one.dtype)
    count = one.size * info["components"]
    return array(ptr=one.ptr, dtype=info["scalar"], shape=(count,), device=one.device, copy=False)


def _kept_scalar(dtype: Any) -> Any:
    """The type of the numbers that are kept of parameters with elements of this type."""
    return wp.float64 if _weft.type_info(dtype)["scalar"] is wp.float64 else wp.float32


def _packed(one: array) -> array:
    return one if one.is_contiguous else one.contiguous()


class Optimizer:
    """A list of parameters and their state: by name, arrays like the parameters, of float32 at least."""

    kept: tuple[str, ...] = ()

    def __init__(self, params: Sequence[array] | None):
        self._name = type(self).__name__
        self.params: list[array] | None = None
        self.t = 0
        """The steps so far."""
        for name in self.kept:
            setattr(self, name, [])
        self.set_params(params)

    def set_params(self, params: Sequence[array] | None) -> None:
        """Sets the arrays that the steps change. A parameter's state stays if the next one at its place has the same
        dtype and shape, and moves with it to another device. For others it starts at zero.

        Args:
            params: arrays of floats, or of vectors, matrices, quaternions or transforms of them, of any shape. None:
                there are none yet.
        Raises:
            UsageError (a RuntimeError): an array has another dtype; (a TypeError) this is no list of arrays.
        """
        if params is None:
            self.params = None
            return
        if isinstance(params, array) or not isinstance(params, Sequence):
            raise self._error("set_params", f"the parameters are {params!r}, expected a list of arrays", TypeError)
        for i, one in enumerate(params):
            if not isinstance(one, array):
                raise self._error("set_params", f"parameter {i} is {one!r}, expected an array", TypeError)
            info = _weft.type_info(one.dtype)
            if info is None or info["scalar_kind"] != "float":
                raise self._error(
                    "set_params",
                    f"parameter {i} is an array of {_weft.type_name(one.dtype)}, expected floats, or vectors, "
                    "matrices, quaternions or transforms of them",
                    RuntimeError,
                )
        self.params = list(params)
        for name in self.kept:
            before = getattr(self, name)
            now = [self._kept_for(one, before[i] if i < len(before) else None) for i, one in enumerate(self.params)]
            setattr(self, name, now)

    @staticmethod
    def _kept_for(param: array, before: array | None) -> array:
        dtype = _with_scalar(param.dtype, _kept_scalar(param.dtype))
        if before is None or before.dtype is not dtype or before.shape != param.shape:
            return wp.zeros(param.shape, dtype=dtype, device=param.device)
        return before if before.device == param.device else before.to(param.device)

    def reset_internal_state(self) -> None:
        """Starts over: as if no step had been made."""
        self.t = 0
        for name in self.kept:
            for one in getattr(self, name):
                one.zero_()

    def step(self, gradients: Sequence[array]) -> None:
        """Changes each parameter in place, by its gradient.

        Args:
            gradients: one for each parameter, with its dtype, shape and device. They are not changed.
        Raises:
            UsageError: there are no parameters (a RuntimeError); a gradient does not fit its parameter (a ValueError,
                or a TypeError).
        """
        if self.params is None:
            raise self._error("step", "there are no parameters yet. help: set_params([...])", RuntimeError)
        self._check(gradients)
        with Unrecorded():
            for params, arguments in self._groups(gradients):
                longest = max(value.size for value in arguments)
                is_wide = _kept_scalar(params[0].dtype) is wp.float64
                self._launch(longest, arguments, is_wide, params[0].device)
                for one in params:
                    _weft.count_write(one)
        self.t += 1

    def _check(self, gradients: Any) -> None:
        if isinstance(gradients, array) or not isinstance(gradients, Sequence) or len(gradients) != len(self.params):
            count = len(gradients) if isinstance(gradients, Sequence) else type(gradients).__name__
            raise self._error(
                "step", f"got {count} as gradients, expected a list of {len(self.params)}: one a parameter", ValueError
            )
        for i, (param, gradient) in enumerate(zip(self.params, gradients, strict=True)):
            if not isinstance(gradient, array) or gradient.dtype is not param.dtype:
                found = _weft.type_name(gradient.dtype) if isinstance(gradient, array) else repr(gradient)
                raise self._error(
                    "step", f"gradient {i} is {found}, expected an array of {_weft.type_name(param.dtype)}", TypeError
                )
            if gradient.shape != param.shape:
                raise self._error(
                    "step", f"gradient {i} has the shape {gradient.shape}, its parameter {param.shape}", ValueError
                )

    def _groups(self, gradients: Sequence[array]) -> Iterator[tuple[list[array], list[Any]]]:
        """Parameters of one kind of number and one device, and the arguments of a launch for them: of each place the
        parameter, the gradient, and the state. Arrays with gaps are copied first."""
        by_kind: dict[Any, list[int]] = {}
        for i, one in enumerate(self.params):
            if one.size > 0:
                by_kind.setdefault((_weft.type_info(one.dtype)["scalar"], str(one.device)), []).append(i)
        for (scalar, _), numbers in by_kind.items():
            device = self.params[numbers[0]].device
            empty = wp.empty(0, dtype=scalar, device=device)
            nothing = wp.empty(0, dtype=_kept_scalar(scalar), device=device)
            for first in range(0, len(numbers), TOGETHER):
                chosen = numbers[first : first + TOGETHER]
                packed = [_packed(self.params[i]) for i in chosen]
                slopes = [_packed(gradients[i]) for i in chosen]  # rows of numbers do not keep their memory
                arguments: list[Any] = []
                for i, param, slope in zip(chosen, packed, slopes, strict=True):
                    kept = [_as_numbers(getattr(self, name)[i]) for name in self.kept]
                    arguments += [_as_numbers(param), _as_numbers(slope), *kept]
                for _ in range(TOGETHER - len(chosen)):
                    arguments += [empty, empty, *[nothing] * len(self.kept)]
                yield packed, arguments
                for i, param in zip(chosen, packed, strict=True):
                    if param is not self.params[i]:
                        self.params[i].assign(param)

    def _launch(self, size: int, arguments: list[Any], is_wide: bool, device: Any) -> None:
        raise NotImplementedError

    def _error(self, method: str, text: str, kind: type[Exception]) -> Exception:
        return usage_error(f"{self._name}.{method}(): {text}", kind)
