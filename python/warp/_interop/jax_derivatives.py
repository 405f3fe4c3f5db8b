"""JAX: the derivatives of a kernel as linear maps (jax_linear.py), and how Weft computes them.

With x the inputs, F the outputs, J the Jacobian and H_k the Hessian of output k:

    Tangent(x; dx)        J dx               forward mode; its transpose is Adjoint
    Adjoint(x; g)         J^T g              the kernel's adjoint; its transpose is Tangent
    Second(x, g; v)       sum_k g_k H_k v    forward over reverse; its own transpose, as Hessians are symmetric
    Bilinear(x, v; w)     (v H_k w)_k        only its transpose is computed, which is Second

Parameters without floats take no part: tangents and gradients stand for the parameters of floats.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import warp._weft as _weft
from warp._gradients.hessians import hvp
from warp._gradients.tangents import jvp
from warp._interop.jax_call import Call
from warp._interop.jax_linear import LinearMap, apply
from warp._interop.library import import_library

__all__ = ["Tangent", "smooth"]


def smooth(parameters: Sequence[Any], values: Sequence[Any]) -> list:
    """Those of the values whose parameter has a derivative."""
    return [value for parameter, value in zip(parameters, values, strict=True) if parameter.is_smooth]


class _Derivative(LinearMap):
    """One of a call; equal ones come from calls that do the same."""

    def __init__(self, call: Call):
        self.call = call
        self.count = len(call.inputs) + self._further()

    def _further(self) -> int:
        """How many residuals there are besides the inputs."""
        return 0

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and (self.call.id, self.call.vmap_method) == (
            other.call.id,
            other.call.vmap_method,
        )

    def __hash__(self) -> int:
        return hash((type(self), self.call.id))

    def _split(self, arguments: Sequence[Any]) -> tuple[Sequence[Any], Sequence[Any], Sequence[Any]]:
        """The inputs, the other residuals, the linear arguments."""
        inputs = len(self.call.inputs)
        return arguments[:inputs], arguments[inputs : self.count], arguments[self.count :]

    def _moving(self, arguments: Sequence[Any], tangents: Sequence[Any]) -> list | None:
        """The tangents of the smooth inputs, zeros for one without a tangent; None if none has one."""
        zeros_like = import_library("jax").numpy.zeros_like
        found = smooth(self.call.inputs, list(zip(arguments, tangents, strict=False))[: len(self.call.inputs)])
        if all(tangent is None for _, tangent in found):
            return None
        return [zeros_like(array) if tangent is None else tangent for array, tangent in found]

    def _require_symmetry(self) -> None:
        if _weft.has_own_gradients(self.call.of.kernel):
            raise self.call.of.signature.error(
                "it calls a function whose gradient is a user's own (@wp.func_grad), which need not have a symmetric "
                "derivative; so reverse mode does not go through its gradient. help: forward mode does (jax.hessian, "
                "jax.jvp of jax.grad)",
                NotImplementedError,
            )

    def _no_third(self) -> Exception:
        return self.call.of.signature.error(
            "it has first and second derivatives, and a third was asked for", NotImplementedError
        )


class Tangent(_Derivative):
    def run(self, *arguments: Any) -> list:
        _weft.require_xla_tangent(self.call.id, False)
        return self.like(*arguments)

    def like(self, *arguments: Any) -> list:
        call = self.call
        return call.python("tangent", _run_tangent, (call.smooth_inputs, call.smooth_outputs), arguments)

    def moved(self, arguments: Sequence[Any], tangents: Sequence[Any]) -> list | None:
        inputs, _, vectors = self._split(arguments)
        moving = self._moving(inputs, tangents)
        return None if moving is None else apply(_Bilinear(self.call), [*inputs, *vectors], moving)

    def transposed(self, residuals: Sequence[Any], gradients: Sequence[Any]) -> list:
        self.call.require_adjoint()
        return apply(_Adjoint(self.call), residuals, gradients)


class _Adjoint(_Derivative):
    def run(self, *arguments: Any) -> list:
        return self.call.adjoint(*arguments)

    def moved(self, arguments: Sequence[Any], tangents: Sequence[Any]) -> list | None:
        inputs, _, gradients = self._split(arguments)
        moving = self._moving(inputs, tangents)
        return None if moving is None else apply(_Second(self.call), [*inputs, *gradients], moving)

    def transposed(self, residuals: Sequence[Any], gradients: Sequence[Any]) -> list:
        return apply(Tangent(self.call), residuals, gradients)


class _Second(_Derivative):
    def _further(self) -> int:
        return len(self.call.smooth_outputs)

    def run(self, *arguments: Any) -> list:
        self.call.require_adjoint()
        _weft.require_xla_tangent(self.call.id, True)
        return self.like(*arguments)

    def like(self, *arguments: Any) -> list:
        call = self.call
        groups = call.smooth_outputs, call.smooth_inputs, call.smooth_inputs
        return call.python("second", _run_second, groups, arguments)

    def moved(self, arguments: Sequence[Any], tangents: Sequence[Any]) -> list | None:
        inputs, gradients, vectors = self._split(arguments)
        if self._moving(inputs, tangents) is not None:
            raise self._no_third()
        zeros_like = import_library("jax").numpy.zeros_like
        found = [
            zeros_like(gradient) if tangent is None else tangent
            for gradient, tangent in zip(gradients, tangents[len(inputs) :], strict=True)
        ]
        return apply(self, [*inputs, *found], vectors)

    def transposed(self, residuals: Sequence[Any], gradients: Sequence[Any]) -> list:
        self._require_symmetry()
        return apply(self, residuals, gradients)


class _Bilinear(_Derivative):
    def _further(self) -> int:
        return len(self.call.smooth_inputs)

    def run(self, *arguments: Any) -> list:
        raise self.call.of.signature.error(
            "forward mode of its forward mode is not computed here. help: jax.hessian, or jax.jvp of jax.grad",
            NotImplementedError,
        )

    def like(self, *arguments: Any) -> list:
        inputs, _, vectors = self._split(arguments)
        return Tangent(self.call).like(*inputs, *vectors)

    def moved(self, arguments: Sequence[Any], tangents: Sequence[Any]) -> list | None:
        raise self._no_third()

    def transposed(self, residuals: Sequence[Any], gradients: Sequence[Any]) -> list:
        self._require_symmetry()
        inputs, vectors, _ = self._split(residuals)
        return apply(_Second(self.call), [*inputs, *gradients], vectors)


# ---- in the program that runs: arrays over memory of XLA, in the order of the map's, then the results ----


class _Places:
    """The array of each parameter among the arrays of such a call."""

    def __init__(self, call: Call, arrays: Sequence[Any], *groups: Sequence[Any]):
        """Each group has the parameters for which the next arrays stand."""
        rest = iter(arrays)
        self.call = call
        self.groups = [{parameter.name: next(rest) for parameter in group} for group in (call.inputs, *groups)]

    def output(self, parameter: Any, requires_grad: bool = False) -> Any:
        from warp import zeros

        return zeros(self.call.shapes[parameter.name], dtype=parameter.dtype, requires_grad=requires_grad)


def _run_tangent(call: Call, *arrays: Any) -> None:
    from warp import clone, copy

    _weft.require_xla_unchanged(call.id)
    places = _Places(call, arrays, call.smooth_inputs, call.smooth_outputs)
    inputs, tangents, results = places.groups
    values, moving = [], []
    for parameter in call.of.signature.parameters:
        name = parameter.name
        if not parameter.is_array:
            values.append(call.values[name])
            moving.append(None)
        elif name not in call.output_names:
            values.append(inputs[name])
            moving.append(tangents.get(name))
        else:
            values.append(clone(inputs[name]) if name in inputs else places.output(parameter))
            moving.append(results.get(name))
            if name in tangents:
                copy(results[name], tangents[name])
    jvp(call.of.kernel, call.dims, values, (), moving)


def _run_second(call: Call, *arrays: Any) -> None:
    from warp import clone, copy, launch

    _weft.require_xla_unchanged(call.id)
    places = _Places(call, arrays, call.smooth_outputs, call.smooth_inputs, call.smooth_inputs)
    inputs, gradients, vectors, results = places.groups

    def outputs(*given: Any) -> list:
        its_inputs, found, values = dict(zip(inputs, given, strict=True)), {}, []
        for parameter in call.of.signature.parameters:
            name = parameter.name
            if not parameter.is_array:
                values.append(call.values[name])
            elif name not in call.output_names:
                values.append(its_inputs[name])
            else:
                is_smooth = parameter.is_smooth
                found[name] = clone(its_inputs[name]) if name in inputs else places.output(parameter, is_smooth)
                values.append(found[name])
        launch(call.of.kernel, call.dims, values)
        return [found[name] for name in gradients]

    found = hvp(
        outputs, inputs=[*inputs.values()], vectors=[vectors.get(n) for n in inputs], weights=[*gradients.values()]
    )
    for name, bent in zip(inputs, found, strict=True):
        if name in results:
            copy(results[name], bent)
