"""PyTorch: kernels as operators, with autograd, torch.func and torch.compile.

Three functions of plain tensors implement a call: the launch, its adjoint, and the adjoint of that. In eager mode,
functions of torch.autograd (torch_autograd.py) call them, at the least cost. Under torch.compile or torch.export, which
trace, operators of torch.library (torch_library.py) call them: a call is a node there.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import warp._weft as _weft
from warp._devices.streams import ScopedStream
from warp._gradients.hessians import hvp
from warp._gradients.tangents import jvp
from warp._interop.library import import_library
from warp._interop.parameters import Parameter, parameters_of
from warp._interop.torch import device_from_torch, stream_from_torch
from warp._interop.torch_autograd import functions
from warp._interop.torch_library import define_operators, flat
from warp._weft import from_torch, to_torch, usage_error, zeros

__all__ = ["TorchOp", "torch_op"]


@dataclass(slots=True)
class _Call:
    """The parts of a call besides tensors."""

    op: TorchOp
    values: tuple  # of the parameters that are no arrays, in order
    dims: tuple[int, ...]
    shapes: tuple[tuple[int, ...], ...]  # of the outputs that are no inputs, without their elements'


class TorchOp:
    """A kernel as an operator of PyTorch; made by :func:`warp.torch_op`."""

    def __init__(
        self,
        kernel: Any,
        num_outputs: int = 1,
        launch_dims: Any = None,
        output_dims: Any = None,
        in_out_argnames: Sequence[str] = (),
    ):
        self.parameters = parameters_of(kernel, "torch_op()", "PyTorch")
        self.kernel = kernel
        self.name = kernel.key
        self._in_out = (in_out_argnames,) if isinstance(in_out_argnames, str) else tuple(in_out_argnames)
        self._launch_dims, self._output_dims = launch_dims, output_dims
        self._torch = torch = import_library("torch")
        self._plain_types = (torch.Tensor, torch.nn.Parameter)
        self._functions = functions(torch)
        self._split(num_outputs)
        self.number = len(_operators)
        _operators.append(self)

    def _split(self, num_outputs: int) -> None:
        """The parameters by their parts in a call."""
        names = [parameter.name for parameter in self.parameters]
        for name in self._in_out:
            if name not in names:
                raise self.error(f"in_out_argnames has {name!r}; the parameters are {', '.join(map(repr, names))}")
        pure = num_outputs - len(self._in_out)
        count = len(self.parameters) - pure
        if pure < 0 or not 1 <= count <= len(self.parameters) or num_outputs < 1:
            raise self.error(
                f"num_outputs is {num_outputs} and in_out_argnames has {len(self._in_out)} names, of "
                f"{len(self.parameters)} parameters; expected at least one input and one output, and the outputs last",
                TypeError,
            )
        self.inputs, self.pure = self.parameters[:count], self.parameters[count:]
        self.tensors = [parameter for parameter in self.inputs if parameter.is_array]
        self.in_out = [parameter for parameter in self.tensors if parameter.name in self._in_out]
        self.outputs = self.in_out + self.pure
        if len(self.in_out) != len(self._in_out):
            raise self.error("in_out_argnames has a name that is no array among the inputs", TypeError)
        if not self.tensors:
            raise self.error("expected at least one array among the inputs", TypeError)
        for parameter in self.parameters:
            if not parameter.is_array and (parameter in self.pure or parameter.dtype is None):
                raise self.error(f"'{parameter.name}' is {parameter.type}, expected an array or a number", TypeError)
            if parameter.is_written and parameter not in self.outputs:
                raise self.error(
                    f"the kernel writes to '{parameter.name}', which is an input: operators leave their inputs as they "
                    "are. help: make it an output (num_outputs), or name it in in_out_argnames",
                    ValueError,
                )
        # Of the other inputs: the dtype, and of vectors and matrices the number of components.
        facts = [(p.dtype, _weft.type_info(p.dtype)) for p in self.inputs if not p.is_array]
        self.values = [(dtype, None if info["kind"] == "scalar" else info["components"]) for dtype, info in facts]
        self._has_one_output = len(self.outputs) == 1
        # By number among the tensors, or the outputs: those that may have gradients.
        self.smooth_tensors = [i for i, parameter in enumerate(self.tensors) if parameter.is_smooth]
        self.smooth_outputs = [i for i, parameter in enumerate(self.outputs) if parameter.is_smooth]
        changed = [i for i, parameter in enumerate(self.parameters) if parameter in self.in_out]
        self._core = _weft.TorchOperator(self.kernel, count, changed, self._plain_types)

    def error(self, text: str, kind: type = RuntimeError) -> Exception:
        return usage_error(f"torch_op(): kernel '{self.name}': {text}", kind)

    def __repr__(self) -> str:
        return f"<torch_op of {self.name}>"

    def __call__(self, *args: Any, launch_dims: Any = None, output_dims: Any = None) -> Any:
        """The output of the kernel, or a tuple of its outputs if there are several: those of in_out_argnames first.

        Args:
            args: its inputs in order: tensors; numbers, vectors and matrices for parameters that are no arrays, which
                have no gradients. Under torch.compile vectors and matrices are tuples of numbers.
            launch_dims, output_dims: for this call, in place of those of torch_op().
        Raises:
            UsageError: tensors do not fit, or the shape of an output is unknown.
        """
        torch = self._torch
        launch_dims = self._launch_dims if launch_dims is None else launch_dims
        output_dims = self._output_dims if output_dims is None else output_dims
        ready = None if torch.compiler.is_compiling() else self._core.prepare(args, launch_dims, output_dims)
        if ready is None:
            found = self._general_call(args, launch_dims, output_dims)
        else:
            dims, shapes, values, tensors = ready
            function = self._functions[torch._C._are_functorch_transforms_active()]
            found = function.apply(_Call(self, values, dims, shapes), *tensors)
        return found[0] if self._has_one_output else tuple(found)

    def _general_call(self, args: tuple, launch_dims: Any, output_dims: Any) -> Sequence[Any]:
        """A call with any tensors, also of a program that is traced, or the error of one that does not fit."""
        torch = self._torch
        if len(args) != len(self.inputs):
            names = ", ".join(f"'{parameter.name}'" for parameter in self.inputs)
            raise self.error(f"got {len(args)} arguments, expected {len(self.inputs)}: {names}", TypeError)
        tensors, values = [], []
        for parameter, value in zip(self.inputs, args, strict=True):
            is_tensor = isinstance(value, torch.Tensor)
            if is_tensor is not parameter.is_array:
                expected = "a torch.Tensor" if parameter.is_array else "a number"
                raise self.error(
                    f"argument '{parameter.name}' is {type(value).__name__}, expected {expected} for {parameter.type}",
                    TypeError,
                )
            if is_tensor:
                self._check(parameter, value)
            (tensors if is_tensor else values).append(value)
        first = tuple(tensors[0].shape[: self.tensors[0].ndim])
        dims = first if launch_dims is None else self._sizes(launch_dims, "launch_dims")
        shapes = self._shapes(output_dims, dims)
        is_plain = all(type(tensor) in self._plain_types for tensor in tensors)
        if is_plain and not torch.compiler.is_compiling():
            function = self._functions[torch._C._are_functorch_transforms_active()]
            return function.apply(_Call(self, tuple(values), dims, shapes), *tensors)
        sizes = [*dims, *(n for shape in shapes for n in shape)]
        return torch.ops.weft.launch(self.number, tensors, flat(self, values), sizes)

    def _check(self, parameter: Parameter, tensor: Any) -> None:
        shape, inner = tensor.shape, parameter.inner
        if len(shape) != parameter.ndim + len(inner) or (inner and tuple(shape[parameter.ndim :]) != inner):
            of_element = f", then {inner} of the element" if inner else ""
            raise self.error(
                f"argument '{parameter.name}' has the shape {tuple(shape)}, expected {parameter.type}: "
                f"{parameter.ndim} dimensions{of_element}. help: torch.func.vmap for batches",
                TypeError,
            )

    def _sizes(self, value: Any, what: str) -> tuple:
        """Extents that a caller gives; in a program that is traced they may be symbols."""
        found = tuple(value) if isinstance(value, (tuple, list)) else (value,)
        if not found or not all(isinstance(one, (int, self._torch.SymInt)) for one in found):
            raise self.error(f"{what} is {value!r}, expected an int or a tuple of ints")
        return found

    def _shapes(self, output_dims: Any, dims: tuple[int, ...]) -> tuple[tuple[int, ...], ...]:
        shapes = []
        for parameter in self.pure:
            wanted = output_dims.get(parameter.name) if isinstance(output_dims, Mapping) else output_dims
            shape = dims if wanted is None else self._sizes(wanted, f"output_dims of '{parameter.name}'")
            if len(shape) != parameter.ndim:
                raise self.error(
                    f"output '{parameter.name}' is {parameter.type} and would have the shape {shape}. help: give "
                    "output_dims",
                    TypeError,
                )
            shapes.append(shape)
        return tuple(shapes)

    # ---- the launches; without autograd ----

    def launch(self, call: _Call, tensors: Sequence[Any]) -> tuple:
        """The outputs, from plain tensors."""
        return self._core.launch(call.dims, call.shapes, call.values, tensors)

    def adjoint(self, call: _Call, tensors: Sequence[Any], gradients: Sequence[Any]) -> tuple:
        """The gradients of the tensors that may have one, from those of the outputs that may have one."""
        given: list = [None] * len(self.outputs)
        for i, gradient in zip(self.smooth_outputs, gradients, strict=True):
            given[i] = gradient
        found = self._core.adjoint(call.dims, call.shapes, call.values, tensors, given)
        return tuple([found[i] for i in self.smooth_tensors])

    def gradients(self, call: _Call, tensors: Sequence[Any], gradients: Sequence[Any], wanted: Sequence[bool]) -> tuple:
        """The gradients of the tensors that are wanted, and None of the others, from those of all outputs."""
        return self._core.adjoint(call.dims, call.shapes, call.values, tensors, gradients, wanted)

    def second(self, call: _Call, tensors: Sequence[Any], gradients: Sequence[Any], vectors: Sequence[Any]) -> tuple:
        """The derivatives of the adjoint's results, summed with `vectors`, by the tensors and by the gradients."""
        if self.in_out:
            raise self.error(
                "it has no second derivative as an operator, because of in_out_argnames. help: give it an input and an "
                "output in place of an argument that is both",
                NotImplementedError,
            )

        if _weft.has_own_gradients(self.kernel):
            raise self.error(
                "it has no second derivative as an operator, because it calls a function whose gradient is a user's "
                "own (@wp.func_grad), which need not have a symmetric derivative. help: wp.autograd.hvp()",
                NotImplementedError,
            )

        def arrays(parameters: Sequence[Parameter], found: Sequence[Any]) -> dict[str, Any]:
            return {
                p.name: from_torch(_contiguous(tensor), p.dtype, False)
                for p, tensor in zip(parameters, found, strict=True)
            }

        device = device_from_torch(tensors[0].device)
        stream = None if device.is_cpu else stream_from_torch(tensors[0].device)
        with _Unrecorded(), ScopedStream(stream, sync_enter=False):
            outputs = [zeros(shape, p.dtype, device) for p, shape in zip(self.pure, call.shapes, strict=True)]
            given, values = arrays(self.tensors, tensors), iter(call.values)
            inputs = [given[p.name] if p.is_array else next(values) for p in self.inputs]
            moves = arrays([self.tensors[i] for i in self.smooth_tensors], vectors)
            weights = arrays([self.outputs[i] for i in self.smooth_outputs], gradients)
            along = [moves.get(p.name) for p in self.inputs]
            slopes = [
                zeros(one.shape, p.dtype, device) if p.is_smooth else None
                for p, one in zip(self.pure, outputs, strict=True)
            ]
            weighted = [weights.get(p.name) for p in self.pure]
            bent = hvp(self.kernel, call.dims, inputs, outputs, along, weighted, device=device)
            jvp(self.kernel, call.dims, inputs, outputs, along, slopes, device=device)
            found = [bent[self.inputs.index(self.tensors[i])] for i in self.smooth_tensors]
            results = [to_torch(one, False) for one in [*found, *(slope for slope in slopes if slope is not None)]]
            # On a GPU results are in memory of PyTorch (bindings/interop/torch_tensors.h).
            return tuple(results if stream is None else (one.clone() for one in results))


_operators: list[TorchOp] = []  # by their numbers; compiled programs have these


def torch_op(
    kernel: Any,
    num_outputs: int = 1,
    launch_dims: Any = None,
    output_dims: Any = None,
    in_out_argnames: Sequence[str] = (),
) -> TorchOp:
    """A kernel as an operator of PyTorch: a function of tensors that gives new tensors.

    ::

        saxpy = wp.torch_op(saxpy_kernel)
        y = saxpy(2.0, x)
        y.sum().backward()

    It has gradients from the kernel's own adjoint, exact also for elements that the kernel overwrites after reading or
    adds to atomically. It has second derivatives if the kernel has them. It works under
    ``torch.compile(fullgraph=True)`` and ``torch.func``. Under ``vmap`` each sample is a launch.

    Args:
        kernel: its first parameters are the inputs, the last ones the outputs. Make an operator once: it lives as long
            as the process.
        num_outputs: how many outputs it has, those of in_out_argnames among them.
        launch_dims: the grid; the shape of the first array if None.
        output_dims: the shape of the outputs without the components of their elements, or such shapes by name; the grid
            if None. Outputs start as zeros.
        in_out_argnames: inputs that the kernel changes: the operator works on copies, which are its first outputs.
    Raises:
        UsageError: the kernel is generic or has parameters that are no arrays or numbers, it writes to an input, the
            numbers of inputs and outputs do not fit.
        ModuleNotFoundError: PyTorch is not installed.
    """
    define_operators(import_library("torch"), _operators, _call)
    return TorchOp(kernel, num_outputs, launch_dims, output_dims, in_out_argnames)


# ---- tensors ----


class _Unrecorded:
    """``with``: launches inside of an operator are not on a tape that happens to record."""

    def __enter__(self) -> None:
        self._tape = _weft.active_tape()
        if self._tape is not None:
            _weft.set_active_tape(None)

    def __exit__(self, *exception: Any) -> None:
        if self._tape is not None:
            _weft.set_active_tape(self._tape)


def _contiguous(tensor: Any) -> Any:
    """The tensor as arrays can have gradients that are laid out as they are."""
    return tensor.resolve_neg().contiguous()


def _call(number: int, flat: Sequence[Any], sizes: Sequence[int]) -> _Call:
    """The call that these numbers stand for."""
    op = _operators[number]
    values, shapes, at = [], [], 1
    for dtype, count in op.values:
        values.append(flat[at] if count is None else dtype(*flat[at : at + count]))
        at += count or 1
    first = at = len(sizes) - sum(parameter.ndim for parameter in op.pure)
    for parameter in op.pure:
        shapes.append(tuple(sizes[at : at + parameter.ndim]))
        at += parameter.ndim
    return _Call(op, tuple(values), tuple(sizes[:first]), tuple(shapes))
