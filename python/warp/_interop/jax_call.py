"""JAX: one traced call of a kernel, and the calls of XLA's FFI that run it and its derivatives."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import warp._weft as _weft
from warp._interop.jax_signature import Arguments, Output, aliases, alike
from warp._interop.library import import_library
from warp._interop.parameters import Parameter

__all__ = ["Call"]


class Call:
    """One traced call of a JaxKernel, ``of``: its description for XLA, and the launches that it becomes."""

    def __init__(self, of: Any, arguments: Arguments, dims: tuple, outputs: list[Output], vmap_method: str | None):
        self.of, self.dims, self.values = of, dims, arguments.values
        self.vmap_method = of.signature.vmap_method(vmap_method)
        self.outputs = outputs
        self.inputs = [parameter for parameter in of.signature.parameters if parameter.name in arguments.arrays]
        self.output_names = {output.parameter.name for output in outputs}
        self.smooth_inputs = [parameter for parameter in self.inputs if parameter.is_smooth]
        self.smooth_outputs = [output.parameter for output in outputs if output.parameter.is_smooth]
        self.shapes = {p.name: tuple(arguments.arrays[p.name].shape[: p.ndim]) for p in self.inputs}
        self.shapes |= {output.parameter.name: output.own for output in outputs}
        described: list = []
        for parameter in of.signature.parameters:
            name = parameter.name
            is_input, is_output = name in arguments.arrays, name in self.output_names
            described.append((list(self.shapes[name]), is_input, is_output) if parameter.is_array else None)
        numbers = [arguments.values.get(parameter.name) for parameter in of.signature.parameters]
        self.id = _weft.make_xla_call(of.kernel, dims, numbers, described)

    def _ffi(self, name: str, number: int, results: Sequence[Parameter], arrays: Sequence[Any], **options: Any) -> list:
        """A call of XLA whose results are like these parameters."""
        jax, numpy = import_library("jax"), import_library("numpy")
        like = [jax.ShapeDtypeStruct((*self.shapes[p.name], *p.inner), p.scalar) for p in results]
        call = jax.ffi.ffi_call(name, like, vmap_method=self.vmap_method, **options)
        return alike(call(*arrays, call=numpy.int64(number)), arrays)

    def launch(self, *arrays: Any) -> list:
        results = [output.parameter for output in self.outputs]
        # XLA may capture the first into its graphs.
        name = "weft_captured_launch" if _weft.is_xla_call_capturable(self.id) else "weft_launch"
        return self._ffi(
            name,
            self.id,
            results,
            arrays,
            has_side_effect=self.of.has_side_effect,
            input_output_aliases=aliases(self.inputs, results),
        )

    def require_adjoint(self) -> None:
        """Raises if the kernel has no gradient, while the program is traced."""
        if not self.of.enable_backward:
            raise _weft.usage_error(
                f"jax_kernel(): kernel '{self.of.name}' has no gradient: it was made with enable_backward=False",
                RuntimeError,
            )
        _weft.require_xla_adjoint(self.id)

    def adjoint(self, *arrays: Any) -> list:
        """The gradients of the smooth inputs, from the inputs and the gradients of the smooth outputs."""
        return self._ffi("weft_adjoint", self.id, self.smooth_inputs, arrays)

    def python(self, kind: str, function: Callable, groups: Sequence[Sequence[Parameter]], arrays: Sequence) -> list:
        """A derivative that a Python function computes when the program comes to it, as function(self, *arrays): of the
        inputs, of the groups of parameters that further arguments are like, and of the last group, the results."""
        *further, results = groups
        given = [parameter for group in (self.inputs, *further) for parameter in group]
        rows = [(p.name, p.dtype, self.shapes[p.name], True, False) for p in given]
        rows += [(p.name, p.dtype, self.shapes[p.name], False, True) for p in results]
        number = _weft.make_xla_function(
            partial(function, self), "jax_kernel()", self.of.signature.subject, rows, f"{kind} of {self.id}"
        )
        return self._ffi("weft_call", number, results, arrays)
