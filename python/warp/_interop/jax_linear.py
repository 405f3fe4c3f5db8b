"""JAX: linear maps as a primitive of its own kind, with the rules that all of its transformations ask for.

JAX differentiates in three steps: tangents, which are linear in those of the arguments; partial evaluation, which
separates known from unknown values; and the transposition of the linear part. A custom_vjp has no first step and a
custom_jvp no last one. A primitive has all, so forward and reverse mode nest as the program has them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from warp._interop.jax_signature import alike
from warp._interop.library import import_library

__all__ = ["LinearMap", "apply"]


class LinearMap:
    """A function of residuals and of arguments in which it is linear. Equal ones do the same.

    Arrays that the rules get and give stand in this order: the `count` residuals, then the linear arguments.
    """

    count: int

    def run(self, *arguments: Any) -> list:
        """The results of the function; nothing differentiates this."""
        raise NotImplementedError

    def like(self, *arguments: Any) -> list:
        """Arrays like the results: JAX looks at the shapes, also of functions that it will only transpose."""
        return self.run(*arguments)

    def moved(self, arguments: Sequence[Any], tangents: Sequence[Any]) -> list | None:
        """How the results move with the residuals, whose tangents these are (None for those that stand still)."""
        raise NotImplementedError

    def transposed(self, residuals: Sequence[Any], gradients: Sequence[Any]) -> list:
        """One array for each linear argument."""
        raise NotImplementedError


class _Batched(LinearMap):
    """A map for each sample: `axes` are those of vmap, and results have the samples first."""

    def __init__(self, of: LinearMap, axes: tuple):
        self.of, self.axes, self.count = of, axes, of.count

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Batched) and (self.of, self.axes) == (other.of, other.axes)

    def __hash__(self) -> int:
        return hash((self.of, self.axes))

    def run(self, *arguments: Any) -> list:
        return import_library("jax").vmap(self.of.run, self.axes)(*arguments)

    def like(self, *arguments: Any) -> list:
        return import_library("jax").vmap(self.of.like, self.axes)(*arguments)

    def moved(self, arguments: Sequence[Any], tangents: Sequence[Any]) -> list | None:
        moving = [i for i, tangent in enumerate(tangents) if tangent is not None]

        def of_one(*given: Any) -> list | None:
            its_tangents: list = [None] * self.count
            for i, tangent in zip(moving, given[len(arguments) :], strict=True):
                its_tangents[i] = tangent
            return self.of.moved(given[: len(arguments)], its_tangents)

        axes = (*self.axes, *(self.axes[i] for i in moving))
        return import_library("jax").vmap(of_one, axes)(*arguments, *(tangents[i] for i in moving))

    def transposed(self, residuals: Sequence[Any], gradients: Sequence[Any]) -> list:
        jax = import_library("jax")

        def of_one(*given: Any) -> list:
            return self.of.transposed(given[: self.count], given[self.count :])

        found = jax.vmap(of_one, (*self.axes[: self.count], *(0 for _ in gradients)))(*residuals, *gradients)
        return [
            array.sum(0) if axis is None else jax.numpy.moveaxis(array, 0, axis)
            for array, axis in zip(found, self.axes[self.count :], strict=True)
        ]


def apply(map: LinearMap, residuals: Sequence[Any], linear: Sequence[Any]) -> list:
    return _primitive().bind(*alike([*residuals, *linear]), map=map)


_made: list = []  # the primitive, at its first use, as it needs JAX


def _primitive() -> Any:
    if _made:
        return _made[0]
    jax = import_library("jax")
    from jax.extend.core import Primitive
    from jax.interpreters import ad, batching, mlir

    primitive = Primitive("weft_linear")
    primitive.multiple_results = True

    def run(*arguments: Any, map: LinearMap) -> list:
        return map.run(*arguments)

    def results(*arguments: Any, map: LinearMap) -> list:
        return list(jax.make_jaxpr(map.like)(*arguments).out_avals)

    def present(tangent: Any) -> Any:
        return None if type(tangent) is ad.Zero else tangent

    def jvp(arguments: Sequence[Any], tangents: Sequence[Any], *, map: LinearMap) -> tuple[list, list]:
        values = primitive.bind(*arguments, map=map)
        residuals, linear = arguments[: map.count], tangents[map.count :]
        parts = []
        if any(present(tangent) is not None for tangent in linear):
            parts.append(apply(map, residuals, [ad.instantiate_zeros(tangent) for tangent in linear]))
        moving = [present(tangent) for tangent in tangents[: map.count]]
        if any(tangent is not None for tangent in moving):
            moved = map.moved(arguments, moving)
            if moved is not None:
                parts.append(moved)
        if not parts:
            return values, [ad.Zero.from_primal_value(value) for value in values]
        return values, [sum(each[1:], each[0]) for each in zip(*parts, strict=True)]

    def transpose(gradients: Sequence[Any], *arguments: Any, map: LinearMap) -> list:
        given = alike([ad.instantiate_zeros(gradient) for gradient in gradients])
        found = map.transposed(arguments[: map.count], given)
        return [None] * map.count + [
            array if ad.is_undefined_primal(argument) else None
            for array, argument in zip(found, arguments[map.count :], strict=True)
        ]

    def batch(arguments: Sequence[Any], axes: Sequence[Any], *, map: LinearMap) -> tuple[list, list]:
        found = primitive.bind(*arguments, map=_Batched(map, tuple(axes)))
        return found, [0] * len(found)

    primitive.def_impl(run)
    primitive.def_abstract_eval(results)
    ad.primitive_jvps[primitive] = jvp
    ad.primitive_transposes[primitive] = transpose
    batching.primitive_batchers[primitive] = batch
    mlir.register_lowering(primitive, mlir.lower_fun(run, multiple_results=True))
    _made.append(primitive)
    return primitive
