"""JAX: the common part of kernels and Python functions as functions of its arrays.

It tells which parameters are inputs and outputs, checks the arguments of a call, and computes the shapes of its
outputs. All this happens when JAX traces a call.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import warp._weft as _weft
from warp._interop.library import import_library
from warp._interop.parameters import Parameter, extents

__all__ = ["VMAP_METHODS", "Arguments", "Output", "Signature", "alike", "aliases", "known_vmap_method"]

UsageError = _weft.UsageError

VMAP_METHODS = ("broadcast_all", "expand_dims", "legacy_vectorized", "sequential", "sequential_unrolled", None)


def known_vmap_method(api: str, given: str | None) -> str | None:
    if given not in VMAP_METHODS:
        raise _weft.usage_error(f"{api}(): vmap_method is {given!r}, expected one of {VMAP_METHODS}", ValueError)
    return given


def aliases(inputs: Sequence[Parameter], outputs: Sequence[Parameter]) -> dict[int, int]:
    """Positions of inputs with those of the outputs that take over their memory, if JAX may donate it."""
    return {inputs.index(parameter): place for place, parameter in enumerate(outputs) if parameter in inputs}


@dataclass(frozen=True)
class Output:
    """The shape that the kernel sees, and the one that the caller gets, both without the elements'."""

    parameter: Parameter
    own: tuple[int, ...]
    shown: tuple[int, ...]


@dataclass(frozen=True)
class Arguments:
    arrays: dict[str, Any]
    values: dict[str, Any]
    leading: tuple[int, ...]  # the shape of the first array as it was given, without its elements'
    first: tuple[int, ...]  # as the kernel sees it


def _varying(array: Any) -> frozenset[str]:
    """The axes of a mesh along which the devices have other numbers, in a shard_map that checks that."""
    kind = import_library("jax").typeof(array)
    axes = getattr(kind, "manual_axis_type", None)
    return getattr(kind, "vma", frozenset()) if axes is None else axes.varying


def alike(arrays: Sequence[Any], others: Sequence[Any] = ()) -> list[Any]:
    """The arrays, varying over the devices over which one of them or of the others does."""
    jax = import_library("jax")
    axes = frozenset().union(*map(_varying, (*arrays, *others)))
    missing = [tuple(sorted(axes - _varying(array))) for array in arrays]
    return [jax.lax.pcast(a, more, to="varying") if more else a for a, more in zip(arrays, missing, strict=True)]


class Signature:
    """The parameters of `subject`, inputs first, then outputs; those named `in_out` are both.

    `num_outputs` counts these too; if it is None, parameters that a call does not give are outputs. With `collapses`,
    leading dimensions in excess of a parameter's are merged into its first one.
    """

    def __init__(
        self,
        api: str,
        subject: str,
        parameters: Sequence[Parameter],
        num_outputs: int | None,
        in_out: Sequence[str] | None,
        collapses: bool,
    ):
        self.api, self.subject, self.collapses = api, subject, collapses
        self.parameters = list(parameters)
        self.num_outputs = num_outputs
        in_out = (in_out,) if isinstance(in_out, str) else tuple(in_out or ())
        names = [parameter.name for parameter in self.parameters]
        for name in in_out:
            if name not in names:
                raise self.error(f"in_out_argnames has {name!r}; the parameters are {self._names(len(names))}")
        self.both = [parameter for parameter in self.parameters if parameter.name in in_out]
        if num_outputs is not None:
            if not hasattr(num_outputs, "__index__") or not 1 <= num_outputs <= len(names):
                raise self.error(
                    f"num_outputs is {num_outputs!r}, expected 1 to {len(names)}; arguments of in_out_argnames count"
                )
            self.split(len(names) - num_outputs + len(self.both))

    def error(self, text: str, kind: type = ValueError) -> Exception:
        return _weft.usage_error(f"{self.api}(): {self.subject}: {text}", kind)

    def _names(self, count: int) -> str:
        return ", ".join(f"'{parameter.name}'" for parameter in self.parameters[:count])

    def vmap_method(self, given: str | None) -> str | None:
        """As jax.ffi.ffi_call takes it. Samples are read in place, so that none is copied for others, except those
        whose memory becomes an output's."""
        if given in ("broadcast_all", "expand_dims", "legacy_vectorized"):
            return "broadcast_all" if self.both else "expand_dims"
        return given

    def split(self, given: int) -> tuple[list[Parameter], list[Parameter]]:
        """The inputs and the outputs of a call with so many arguments."""
        count = len(self.parameters)
        num_outputs = count - given if self.num_outputs is None else self.num_outputs
        num_inputs = count - num_outputs + len(self.both)
        if num_outputs < 1 or num_inputs < 1 or num_inputs > count:
            raise self.error(
                f"{given} of its {count} arguments are given, so that {count - given} are outputs; expected at least "
                "one input and one output",
                TypeError,
            )
        if given != num_inputs:
            raise self.error(
                f"got {given} arguments, expected its first {num_inputs}: {self._names(num_inputs)}", TypeError
            )
        inputs, pure = self.parameters[:num_inputs], self.parameters[num_inputs:]
        for parameter in self.both:
            if parameter not in inputs:
                raise self.error(
                    f"'{parameter.name}' of in_out_argnames is not among the inputs, {self._names(num_inputs)}"
                )
        outputs = self.both + pure
        for parameter in outputs:
            if not parameter.is_array:
                raise self.error(f"output '{parameter.name}' is {parameter.type}, expected an array", TypeError)
        return inputs, outputs

    def read(self, inputs: list[Parameter], args: Sequence[Any]) -> Arguments:
        """The arguments of a call, which have to fit the parameters."""
        jax = import_library("jax")
        arrays: dict[str, Any] = {}
        values: dict[str, Any] = {}
        leading: tuple[int, ...] | None = None
        first: tuple[int, ...] = ()
        for position, (parameter, value) in enumerate(zip(inputs, args, strict=True)):
            subject = f"argument {position + 1} '{parameter.name}'"
            if not parameter.is_array:
                if isinstance(value, jax.core.Tracer):
                    raise self.error(
                        f"{subject} is {parameter.type}, which is a part of the compiled program, and got a traced "
                        "value. help: pass a Python number (static_argnums), or make it an array of one element",
                        TypeError,
                    )
                values[parameter.name] = value.item() if isinstance(value, jax.Array) else value
                continue
            array = value if isinstance(value, jax.Array) else jax.numpy.asarray(value)
            own = self._own_shape(subject, parameter, array)
            leading = own if leading is None else leading
            if len(own) > parameter.ndim:
                extra = len(own) - parameter.ndim + 1
                array = array.reshape(math.prod(own[:extra]), *own[extra:], *parameter.inner)
            first = first or tuple(array.shape[: parameter.ndim])
            arrays[parameter.name] = array
        if leading is None:
            raise self.error("expected at least one array among the inputs", TypeError)
        return Arguments(arrays, values, leading, first)

    def _own_shape(self, subject: str, parameter: Parameter, array: Any) -> tuple[int, ...]:
        """The array's shape without its elements'."""
        if array.dtype.name != parameter.scalar:
            raise self.error(
                f"{subject} has numbers of {array.dtype.name}, expected {parameter.type}. help: "
                f".astype('{parameter.scalar}')",
                TypeError,
            )
        inner, shape = len(parameter.inner), tuple(array.shape)
        own = shape[: max(len(shape) - inner, 0)]
        fits = len(own) == parameter.ndim or (self.collapses and len(own) > parameter.ndim)
        if not fits or shape[len(own) :] != parameter.inner:
            expected = f"{parameter.ndim} dimensions" + (f" and {parameter.inner} of the element" if inner else "")
            raise self.error(f"{subject} has the shape {shape}, expected {parameter.type}: {expected}", TypeError)
        return own

    def outputs(
        self, outputs: list[Parameter], output_dims: Any, otherwise: tuple[int, ...], arrays: Mapping[str, Any]
    ) -> list[Output]:
        """The shapes of the outputs: those of `output_dims`, one for all or by name, and `otherwise` of the rest."""
        if isinstance(output_dims, Mapping):
            names = [parameter.name for parameter in outputs]
            for name in output_dims:
                if name not in names:
                    raise self.error(f"output_dims has {name!r}; the outputs are {', '.join(map(repr, names))}")
        found = []
        for parameter in outputs:
            if parameter.name in arrays:
                own = tuple(arrays[parameter.name].shape[: parameter.ndim])
                found.append(Output(parameter, own, own))
                continue
            wanted = output_dims.get(parameter.name) if isinstance(output_dims, Mapping) else output_dims
            shown = otherwise if wanted is None else extents(wanted, f"{self.api}(): output_dims of '{parameter.name}'")
            extra = len(shown) - parameter.ndim + 1
            if extra < 1 or (extra > 1 and not self.collapses):
                raise self.error(
                    f"output '{parameter.name}' is {parameter.type}, of {parameter.ndim} dimensions, and would have "
                    f"the shape {shown}. help: give output_dims",
                )
            found.append(Output(parameter, (math.prod(shown[:extra]), *shown[extra:]), shown))
        return found
