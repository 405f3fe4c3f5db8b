"""JAX: kernels as functions of arrays, under jit, grad, vmap, scan and shard_map, through the FFI of XLA.

A call is worked out when JAX traces it: shapes, the grid, the machine code. What runs then is C++
(bindings/interop/xla_call), which XLA calls with addresses.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from warp import _weft
from warp._interop.library import import_library
from warp._interop.parameters import Parameter, extents, parameters_of

__all__ = ["CountingJaxKernel", "JaxKernel"]

UsageError = _weft.UsageError


class _Registration:
    done = False

    @classmethod
    def ensure(cls) -> None:
        """Tells XLA of the functions that run kernels. Starts no backend of JAX."""
        if not cls.done:
            jax = import_library("jax")
            for name, capsule in _weft.xla_handlers().items():
                jax.ffi.register_ffi_target(name, capsule, platform="cpu")
            cls.done = True


class JaxKernel:
    """A kernel as a function of arrays of JAX; made by :func:`warp.jax_kernel`."""

    def __init__(
        self,
        kernel: Any,
        num_outputs: int | None,
        launch_dims: Any = None,
        output_dims: Any = None,
        in_out_argnames: Sequence[str] = (),
        vmap_method: str = "expand_dims",
        enable_backward: bool = True,
    ):
        self.kernel = kernel
        self.name = kernel.key if hasattr(kernel, "key") else str(kernel)
        self._parameters = parameters_of(kernel, "jax_kernel()", "JAX")
        names = [parameter.name for parameter in self._parameters]
        self._in_out = tuple(in_out_argnames or ())
        for name in self._in_out:
            if name not in names:
                raise self._error(f"in_out_argnames has {name!r}; the parameters are {', '.join(map(repr, names))}")
        self._num_outputs = num_outputs
        self._launch_dims, self._output_dims = launch_dims, output_dims
        self._vmap_method = vmap_method
        self._enable_backward = enable_backward

    def _error(self, text: str, kind: type = UsageError) -> Exception:
        return kind(f"jax_kernel(): kernel '{self.name}': {text}")

    def __repr__(self) -> str:
        return f"<jax_kernel of {self.name}>"

    def __call__(
        self, *args: Any, output_dims: Any = None, launch_dims: Any = None, vmap_method: str | None = None
    ) -> list:
        """The outputs of the kernel, a list also where there is one.

        Args:
            args: its inputs in order: arrays of JAX, or what becomes one; numbers, vectors and matrices for parameters
                that are no arrays, which are part of the compiled program.
            output_dims, launch_dims, vmap_method: for this call, in place of those of jax_kernel().
        """
        _Registration.ensure()
        inputs, outputs = self._split(len(args))
        launch_dims = self._launch_dims if launch_dims is None else launch_dims
        output_dims = self._output_dims if output_dims is None else output_dims
        arrays, values, leading = self._read_inputs(inputs, args)
        dims = self._grid(launch_dims, inputs, arrays)
        shapes = self._output_shapes(outputs, output_dims, launch_dims, dims, arrays, leading)
        call = _Call(self, inputs, outputs, arrays, values, dims, shapes, vmap_method or self._vmap_method)
        return call.run()

    def _split(self, given: int) -> tuple[list[Parameter], list[Parameter]]:
        """The parameters that are inputs and those that are outputs; some may be both."""
        count = len(self._parameters)
        num_outputs = count - given if self._num_outputs is None else self._num_outputs
        both = [p for p in self._parameters if p.name in self._in_out]
        num_inputs = count - num_outputs + len(both)
        if num_outputs < 1 or num_inputs < 1 or num_inputs > count:
            raise self._error(
                f"{given} of its {count} arguments are given, so that {count - given} are outputs; expected at "
                "least one input and one output",
                TypeError,
            )
        if given != num_inputs:
            raise self._error(
                f"got {given} arguments, expected its first {num_inputs}: {self._names(num_inputs)}", TypeError
            )
        inputs, pure = self._parameters[:num_inputs], self._parameters[num_inputs:]
        for parameter in both:
            if parameter not in inputs:
                raise self._error(
                    f"'{parameter.name}' of in_out_argnames is not among the inputs, {self._names(num_inputs)}"
                )
        outputs = both + pure
        for parameter in outputs:
            if not parameter.is_array:
                raise self._error(f"output '{parameter.name}' is {parameter.type}, expected an array", TypeError)
        return inputs, outputs

    def _names(self, count: int) -> str:
        return ", ".join(f"'{parameter.name}'" for parameter in self._parameters[:count])

    def _read_inputs(self, inputs: list[Parameter], args: Sequence[Any]) -> tuple[dict, dict, tuple[int, ...]]:
        """Arrays and other values by name, and the shape of the first array as it was given, without its elements'.

        Dimensions before those that a parameter has become its first.
        """
        jax = import_library("jax")
        arrays: dict[str, Any] = {}
        values: dict[str, Any] = {}
        leading: tuple[int, ...] | None = None
        for position, (parameter, value) in enumerate(zip(inputs, args, strict=True)):
            subject = f"argument {position + 1} '{parameter.name}'"
            if not parameter.is_array:
                if isinstance(value, jax.core.Tracer):
                    raise self._error(
                        f"{subject} is {parameter.type}, which is a part of the compiled program, and got a traced "
                        "value. help: pass a Python number (static_argnums), or make it an array of one element",
                        TypeError,
                    )
                values[parameter.name] = value.item() if isinstance(value, jax.Array) else value
                continue
            array = value if isinstance(value, jax.Array) else jax.numpy.asarray(value)
            if array.dtype.name != parameter.scalar:
                raise self._error(
                    f"{subject} has numbers of {array.dtype.name}, expected {parameter.type}. help: "
                    f".astype('{parameter.scalar}')",
                    TypeError,
                )
            inner, shape = len(parameter.inner), tuple(array.shape)
            own = shape[: len(shape) - inner]
            if shape[len(own) :] != parameter.inner or len(own) < parameter.ndim:
                expected = f"{parameter.ndim} dimensions" + (f" and {parameter.inner} of the element" if inner else "")
                raise self._error(f"{subject} has the shape {shape}, expected {parameter.type}: {expected}", TypeError)
            if leading is None:
                leading = own
            if len(own) > parameter.ndim:
                extra = len(own) - parameter.ndim + 1
                array = array.reshape(math.prod(own[:extra]), *own[extra:], *parameter.inner)
            arrays[parameter.name] = array
        if not arrays:
            raise self._error("expected at least one array among the inputs", TypeError)
        return arrays, values, leading or ()

    def _grid(self, launch_dims: Any, inputs: list[Parameter], arrays: dict) -> tuple[int, ...]:
        if launch_dims is not None:
            return extents(launch_dims, "jax_kernel(): launch_dims")
        first = next(parameter for parameter in inputs if parameter.is_array)
        return tuple(arrays[first.name].shape[: first.ndim])

    def _output_shapes(
        self, outputs: list[Parameter], output_dims: Any, launch_dims: Any, dims: tuple, arrays: dict, leading: tuple
    ) -> list[tuple[tuple[int, ...], tuple[int, ...]]]:
        """Of each output the shape that the kernel sees and the one that the caller gets, both without elements'."""
        shapes = []
        for parameter in outputs:
            if parameter.name in self._in_out:
                own = tuple(arrays[parameter.name].shape[: parameter.ndim])
                shapes.append((own, own))
                continue
            wanted = output_dims.get(parameter.name) if isinstance(output_dims, Mapping) else output_dims
            if wanted is not None:
                shown = extents(wanted, f"jax_kernel(): output_dims of '{parameter.name}'")
            else:
                shown = dims if launch_dims is not None else leading
            extra = len(shown) - parameter.ndim + 1
            if extra < 1:
                raise self._error(
                    f"output '{parameter.name}' is {parameter.type} and would have the shape {shown}. help: give "
                    "output_dims",
                    TypeError,
                )
            shapes.append(((math.prod(shown[:extra]), *shown[extra:]), shown))
        return shapes


class _Call:
    """One traced call."""

    def __init__(self, of: JaxKernel, inputs, outputs, arrays, values, dims, shapes, vmap_method):
        jax = import_library("jax")
        self.of, self.vmap_method = of, vmap_method
        self.inputs = [parameter for parameter in inputs if parameter.is_array]
        # The outputs in the kernel's order, in which XLA has the buffers, and the place of each in what is returned.
        names = [parameter.name for parameter in of._parameters]
        self.order = sorted(range(len(outputs)), key=lambda i: names.index(outputs[i].name))
        self.outputs = [outputs[i] for i in self.order]
        self.shown = [(*shapes[i][1], *outputs[i].inner) for i in range(len(outputs))]
        self.arrays = [arrays[parameter.name] for parameter in self.inputs]
        described, numbers = [], []
        by_name = {outputs[i].name: shapes[i][0] for i in range(len(outputs))}
        for parameter in of._parameters:
            numbers.append(values.get(parameter.name))
            if not parameter.is_array:
                described.append(None)
                continue
            is_input = parameter.name in arrays
            shape = arrays[parameter.name].shape[: parameter.ndim] if is_input else by_name[parameter.name]
            described.append((list(shape), is_input, parameter.name in by_name))
        self.id = _weft.make_xla_call(of.kernel, dims, numbers, described)
        self.results = [
            jax.ShapeDtypeStruct((*by_name[parameter.name], *parameter.inner), parameter.scalar)
            for parameter in self.outputs
        ]

    def launch(self, *arrays: Any) -> list:
        jax, numpy = import_library("jax"), import_library("numpy")
        call = jax.ffi.ffi_call("weft_launch", self.results, vmap_method=self.vmap_method)
        return list(call(*arrays, call=numpy.int64(self.id)))

    def adjoint(self, arrays: Sequence[Any], gradients: Sequence[Any]) -> tuple:
        """The gradients of the inputs, with JAX's own zeros for those that have none."""
        jax, numpy = import_library("jax"), import_library("numpy")
        wanted = [
            jax.ShapeDtypeStruct(array.shape, array.dtype)
            for parameter, array in zip(self.inputs, arrays, strict=True)
            if parameter.is_smooth
        ]
        given = [gradient for parameter, gradient in zip(self.outputs, gradients, strict=True) if parameter.is_smooth]
        found = iter(())
        if wanted and given:
            call = jax.ffi.ffi_call("weft_adjoint", wanted, vmap_method=self.vmap_method)
            found = iter(call(*arrays, *given, call=numpy.int64(self.id)))
        return tuple(
            next(found, jax.numpy.zeros_like(array))
            if parameter.is_smooth
            else numpy.zeros(array.shape, jax.dtypes.float0)
            for parameter, array in zip(self.inputs, arrays, strict=True)
        )

    def run(self) -> list:
        jax = import_library("jax")
        function = self.launch
        if self.of._enable_backward:
            function = jax.custom_vjp(self.launch)
            function.defvjp(lambda *arrays: (self.launch(*arrays), arrays), self.adjoint)
        found = function(*self.arrays)
        by_place = dict(zip(self.order, found, strict=True))
        return [by_place[i].reshape(shape) for i, shape in enumerate(self.shown)]


class CountingJaxKernel(JaxKernel):
    """As programs of 2024 have it: the outputs are the arguments that a call does not give."""

    def __init__(self, kernel: Any, launch_dims: Any = None):
        super().__init__(kernel, num_outputs=None, launch_dims=launch_dims)
