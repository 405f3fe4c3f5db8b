"""PyTorch: kernels as operators, with autograd, torch.func and torch.compile.

What a call does stands in three functions of plain tensors: the launch, its adjoint, and the adjoint of that. Functions
of torch.autograd lead to them in a program that runs as it is written, which cost least, and operators of torch.library
in one that is traced (torch.compile, torch.export), where a call is a node that is run later.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from warp import _weft
from warp._gradients.hessians import hvp
from warp._gradients.tangents import jvp
from warp._interop.library import import_library
from warp._interop.parameters import Parameter, parameters_of
from warp._weft import clone, from_torch, to_torch, usage_error, zeros

__all__ = ["TorchOp", "torch_op"]


@dataclass(slots=True)
class _Call:
    """What there is besides tensors."""

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
        self._split(num_outputs)
        self._functions = _functions(import_library("torch"))
        self.number = len(_operators)
        _operators.append(self)

    def _split(self, num_outputs: int) -> None:
        """The parameters by their parts in a call."""
        names = [parameter.name for parameter in self.parameters]
        for name in self._in_out:
            if name not in names:
                raise self._error(f"in_out_argnames has {name!r}; the parameters are {', '.join(map(repr, names))}")
        pure = num_outputs - len(self._in_out)
        count = len(self.parameters) - pure
        if pure < 0 or not 1 <= count <= len(self.parameters) or num_outputs < 1:
            raise self._error(
                f"num_outputs is {num_outputs} and in_out_argnames has {len(self._in_out)} names, of "
                f"{len(self.parameters)} parameters; expected at least one input and one output, and the outputs last",
                TypeError,
            )
        self.inputs, self.pure = self.parameters[:count], self.parameters[count:]
        self.tensors = [parameter for parameter in self.inputs if parameter.is_array]
        self.in_out = [parameter for parameter in self.tensors if parameter.name in self._in_out]
        self.outputs = self.in_out + self.pure
        if len(self.in_out) != len(self._in_out):
            raise self._error("in_out_argnames has a name that is no array among the inputs", TypeError)
        if not self.tensors:
            raise self._error("expected at least one array among the inputs", TypeError)
        for parameter in self.parameters:
            if not parameter.is_array and (parameter in self.pure or parameter.dtype is None):
                raise self._error(f"'{parameter.name}' is {parameter.type}, expected an array or a number", TypeError)
            if parameter.is_written and parameter not in self.outputs:
                raise self._error(
                    f"the kernel writes to '{parameter.name}', which is an input: operators leave their inputs as they "
                    "are. help: make it an output (num_outputs), or name it in in_out_argnames",
                    ValueError,
                )
        # Of the other inputs: the dtype, and of vectors and matrices the number of components.
        facts = [(p.dtype, _weft.type_info(p.dtype)) for p in self.inputs if not p.is_array]
        self.values = [(dtype, None if info["kind"] == "scalar" else info["components"]) for dtype, info in facts]
        # By number among the tensors, or the outputs: those that may have gradients.
        self.smooth_tensors = [i for i, parameter in enumerate(self.tensors) if parameter.is_smooth]
        self.smooth_outputs = [i for i, parameter in enumerate(self.outputs) if parameter.is_smooth]

    def _error(self, text: str, kind: type = RuntimeError) -> Exception:
        return usage_error(f"torch_op(): kernel '{self.name}': {text}", kind)

    def __repr__(self) -> str:
        return f"<torch_op of {self.name}>"

    def __call__(self, *args: Any, launch_dims: Any = None, output_dims: Any = None) -> Any:
        """The output of the kernel, or a tuple of its outputs where there are several: those of in_out_argnames first.

        Args:
            args: its inputs in order: tensors; numbers, vectors and matrices for parameters that are no arrays, which
                have no gradients. Under torch.compile vectors and matrices are tuples of numbers.
            launch_dims, output_dims: for this call, in place of those of torch_op().
        Raises:
            UsageError: tensors that do not fit, an output whose shape nothing tells.
        """
        torch = import_library("torch")
        if len(args) != len(self.inputs):
            names = ", ".join(f"'{parameter.name}'" for parameter in self.inputs)
            raise self._error(f"got {len(args)} arguments, expected {len(self.inputs)}: {names}", TypeError)
        tensors, values = [], []
        for parameter, value in zip(self.inputs, args, strict=True):
            is_tensor = isinstance(value, torch.Tensor)
            if is_tensor is not parameter.is_array:
                expected = "a torch.Tensor" if parameter.is_array else "a number"
                raise self._error(
                    f"argument '{parameter.name}' is {type(value).__name__}, expected {expected} for {parameter.type}",
                    TypeError,
                )
            if is_tensor:
                self._check(parameter, value)
                tensors.append(value)
            else:
                values.append(value)
        launch_dims = self._launch_dims if launch_dims is None else launch_dims
        if launch_dims is None:
            dims = tuple(tensors[0].shape[: self.tensors[0].ndim])
        else:
            dims = self._sizes(launch_dims, "launch_dims")
        shapes = self._shapes(self._output_dims if output_dims is None else output_dims, dims)
        is_traced = torch.compiler.is_compiling()
        if is_traced or any(type(tensor) not in _plain_types(torch) for tensor in tensors):
            sizes = [*dims, *(n for shape in shapes for n in shape)]
            found = torch.ops.weft.launch(self.number, tensors, _flat(self, values), sizes)
        else:
            function = self._functions[torch._C._are_functorch_transforms_active()]
            found = function.apply(_Call(self, tuple(values), dims, shapes), *tensors)
        return found[0] if len(self.outputs) == 1 else tuple(found)

    def _check(self, parameter: Parameter, tensor: Any) -> None:
        shape, inner = tensor.shape, parameter.inner
        if len(shape) != parameter.ndim + len(inner) or (inner and tuple(shape[parameter.ndim :]) != inner):
            of_element = f", then {inner} of the element" if inner else ""
            raise self._error(
                f"argument '{parameter.name}' has the shape {tuple(shape)}, expected {parameter.type}: "
                f"{parameter.ndim} dimensions{of_element}. help: torch.func.vmap for batches",
                TypeError,
            )

    def _sizes(self, value: Any, what: str) -> tuple:
        """Extents that a caller gives; in a program that is traced they may be symbols."""
        found = tuple(value) if isinstance(value, (tuple, list)) else (value,)
        if not found or not all(isinstance(one, (int, import_library("torch").SymInt)) for one in found):
            raise self._error(f"{what} is {value!r}, expected an int or a tuple of ints")
        return found

    def _shapes(self, output_dims: Any, dims: tuple[int, ...]) -> tuple[tuple[int, ...], ...]:
        shapes = []
        for parameter in self.pure:
            wanted = output_dims.get(parameter.name) if isinstance(output_dims, Mapping) else output_dims
            shape = dims if wanted is None else self._sizes(wanted, f"output_dims of '{parameter.name}'")
            if len(shape) != parameter.ndim:
                raise self._error(
                    f"output '{parameter.name}' is {parameter.type} and would have the shape {shape}. help: give "
                    "output_dims",
                    TypeError,
                )
            shapes.append(shape)
        return tuple(shapes)

    # ---- what runs; without autograd ----

    def _arguments(self, call: _Call, arrays: Mapping[str, Any]) -> list:
        values = iter(call.values)
        return [arrays[p.name] if p.is_array else next(values) for p in self.parameters]

    def launch(self, call: _Call, tensors: Sequence[Any]) -> tuple:
        """The outputs, from plain tensors."""
        given = {p.name: _plain(p, tensor) for p, tensor in zip(self.tensors, tensors, strict=True)}
        outputs = {p.name: clone(from_torch(given[p.name], p.dtype, False)) for p in self.in_out}
        outputs |= {p.name: zeros(shape, p.dtype) for p, shape in zip(self.pure, call.shapes, strict=True)}
        with _Unrecorded():
            _weft.launch(self.kernel, call.dims, self._arguments(call, given | outputs))
        return tuple(to_torch(outputs[p.name]) for p in self.outputs)

    def adjoint(self, call: _Call, tensors: Sequence[Any], gradients: Sequence[Any]) -> tuple:
        """The gradients of the tensors that may have one, from those of the outputs that may have one."""
        arrays = {
            p.name: from_torch(_contiguous(tensor), p.dtype, p.is_smooth)
            for p, tensor in zip(self.tensors, tensors, strict=True)
        }
        arrays |= {p.name: clone(arrays[p.name]) for p in self.in_out}
        arrays |= {p.name: zeros(shape, p.dtype) for p, shape in zip(self.pure, call.shapes, strict=True)}
        for i, gradient in zip(self.smooth_outputs, gradients, strict=True):
            p = self.outputs[i]  # its gradient is used up where it is overwritten, so that of torch is copied
            arrays[p.name].grad = clone(from_torch(_plain(p, gradient), p.dtype, False))
        arguments = self._arguments(call, arrays)
        with _Unrecorded():
            tape = _weft.TapeRecorder()
            records = tape._record_launch(self.kernel, call.dims, arguments, None, True)
            entry = tape._entry(0)
            if entry.is_left_out:
                raise self._error("it has no gradients, because the kernel has enable_backward=False")
            if records or entry.after:  # the adjoint reads what the launch leaves
                tape = _weft.TapeRecorder()
                _weft.set_active_tape(tape)
                try:
                    _weft.launch(self.kernel, call.dims, arguments)
                finally:
                    _weft.set_active_tape(None)
            tape._reverse_many(1, {})
        return tuple(to_torch(arrays[self.tensors[i].name].grad) for i in self.smooth_tensors)

    def second(self, call: _Call, tensors: Sequence[Any], gradients: Sequence[Any], vectors: Sequence[Any]) -> tuple:
        """The derivatives of the adjoint's results, summed with `vectors`, by the tensors and by the gradients."""
        if self.in_out:
            raise self._error(
                "it has no second derivative as an operator, because of in_out_argnames. help: give it an input and an "
                "output in place of what is both",
                NotImplementedError,
            )

        def arrays(parameters: Sequence[Parameter], found: Sequence[Any]) -> dict[str, Any]:
            return {
                p.name: from_torch(_contiguous(tensor), p.dtype, False)
                for p, tensor in zip(parameters, found, strict=True)
            }

        outputs = [zeros(shape, p.dtype) for p, shape in zip(self.pure, call.shapes, strict=True)]
        named = arrays(self.tensors, tensors) | {p.name: one for p, one in zip(self.pure, outputs, strict=True)}
        inputs = self._arguments(call, named)[: len(self.inputs)]
        moves = arrays([self.tensors[i] for i in self.smooth_tensors], vectors)
        weights = arrays([self.outputs[i] for i in self.smooth_outputs], gradients)
        along = [moves.get(p.name) for p in self.inputs]
        slopes = [zeros(one.shape, p.dtype) if p.is_smooth else None for p, one in zip(self.pure, outputs, strict=True)]
        with _Unrecorded():
            bent = hvp(self.kernel, call.dims, inputs, outputs, along, [weights.get(p.name) for p in self.pure])
            jvp(self.kernel, call.dims, inputs, outputs, along, slopes)
        by_name = {p.name: one for p, one in zip(self.inputs, bent, strict=True)}
        found = [by_name[self.tensors[i].name] for i in self.smooth_tensors]
        return tuple(to_torch(one, False) for one in [*found, *(slope for slope in slopes if slope is not None)])


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

    It has gradients from the kernel's own adjoint, exact also where the kernel overwrites what it read and adds
    atomically, and second derivatives where the kernel has them; it goes through ``torch.compile(fullgraph=True)``
    and ``torch.func``. Under ``vmap`` each sample is a launch.

    Args:
        kernel: its first parameters are the inputs, the last ones the outputs. Make an operator once: it lives as long
            as the process.
        num_outputs: how many outputs it has, those of in_out_argnames among them.
        launch_dims: the grid; the shape of the first array where it is None.
        output_dims: the shape of the outputs without the components of their elements, or such shapes by name; the grid
            where it is None. Outputs start as zeros.
        in_out_argnames: inputs that the kernel changes: the operator works on copies, which are its first outputs.
    Raises:
        UsageError: the kernel is generic or has parameters that are no arrays or numbers, it writes to an input, the
            numbers of inputs and outputs do not fit.
        ModuleNotFoundError: PyTorch is not installed.
    """
    _define_operators(import_library("torch"))
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


def _plain(parameter: Parameter, tensor: Any) -> Any:
    """The tensor as kernels can read it: the components of its elements side by side."""
    if tensor.is_neg():
        tensor = tensor.resolve_neg()
    return tensor.contiguous() if parameter.inner and not tensor.is_contiguous() else tensor


def _contiguous(tensor: Any) -> Any:
    """The tensor as arrays can have gradients that are laid out as they are."""
    return tensor.resolve_neg().contiguous()


def _torch_scalar(parameter: Parameter) -> str:
    return _weft.tensor_scalar(_weft.type_info(parameter.dtype)["scalar"], "torch_op()")


def _flat(op: TorchOp, values: Sequence[Any]) -> list:
    """Numbers, vectors and matrices as numbers one after the other. The first stands for nothing: torch takes an empty
    list for one of tensors."""
    flat: list = [0]
    for (_, count), value in zip(op.values, values, strict=True):
        if count is None:
            flat.append(value)
            continue
        for row in value:
            if isinstance(row, (int, float)):
                flat.append(row)
            else:
                flat.extend(row)
    return flat


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


_made: dict[str, Any] = {}  # what is made at the first use, as it needs torch


def _plain_types(torch: Any) -> tuple[type, ...]:
    return (torch.Tensor, torch.nn.Parameter)


# ---- in a program that runs as it is written ----


def _each_sample(function: Any, info: Any, in_dims: tuple, call: _Call, tensors: tuple) -> tuple:
    """The rule of vmap: a call for each sample. They are seen by the transforms around it."""
    torch = import_library("torch")
    batched = in_dims[1:]
    results = [
        function.apply(call, *(t if d is None else t.select(d, i) for t, d in zip(tensors, batched, strict=True)))
        for i in range(info.batch_size)
    ]
    if not results:
        shapes = [[n for i, n in enumerate(t.shape) if i != d] for t, d in zip(tensors, batched, strict=True)]
        empty = [t.new_zeros(shape) for t, shape in zip(tensors, shapes, strict=True)]
        return tuple(one.new_zeros(0, *one.shape) for one in function.apply(call, *empty)), 0
    return tuple(torch.stack(samples) for samples in zip(*results, strict=True)), 0


def _functions(torch: Any) -> tuple:
    """The launch as functions of autograd: one for programs without transforms, whose calls cost less, and one for
    those of torch.func, which want forward() and setup_context() apart and a rule for vmap."""
    if "functions" in _made:
        return _made["functions"]

    def launch_backward(ctx, adjoint, gradients):
        op = ctx.call.op
        given = [gradients[i] for i in op.smooth_outputs]
        if torch.is_grad_enabled():  # create_graph
            found = adjoint.apply(ctx.call, *ctx.saved_tensors, *given)
        else:
            found = op.adjoint(ctx.call, ctx.saved_tensors, given)
        results = dict(zip(op.smooth_tensors, found, strict=True))
        return (None, *(results.get(i) for i in range(len(op.tensors))))

    def keep(ctx, call, tensors, output):
        ctx.call = call
        ctx.save_for_backward(*tensors)
        if len(call.op.smooth_outputs) < len(output):
            ctx.mark_non_differentiable(*(one for i, one in enumerate(output) if i not in call.op.smooth_outputs))

    class Launch(torch.autograd.Function):
        @staticmethod
        def forward(ctx, call, *tensors):
            output = call.op.launch(call, tensors)
            keep(ctx, call, tensors, output)
            return output

        @staticmethod
        def backward(ctx, *gradients):
            return launch_backward(ctx, Adjoint, gradients)

    class TransformedLaunch(torch.autograd.Function):
        @staticmethod
        def forward(call, *tensors):
            return call.op.launch(call, tensors)

        @staticmethod
        def setup_context(ctx, inputs, output):
            keep(ctx, inputs[0], inputs[1:], output)

        @staticmethod
        def backward(ctx, *gradients):
            return launch_backward(ctx, Adjoint, gradients)

        @staticmethod
        def vmap(info, in_dims, call, *tensors):
            return _each_sample(TransformedLaunch, info, in_dims, call, tensors)

    class Adjoint(torch.autograd.Function):
        @staticmethod
        def forward(call, *tensors):
            count = len(call.op.tensors)
            return call.op.adjoint(call, tensors[:count], tensors[count:])

        @staticmethod
        def setup_context(ctx, inputs, output):
            ctx.call = inputs[0]
            ctx.save_for_backward(*inputs[1:])

        @staticmethod
        def backward(ctx, *vectors):
            op = ctx.call.op
            found = Second.apply(ctx.call, *ctx.saved_tensors, *vectors)
            return (None, *_by_argument(op, found))

        @staticmethod
        def vmap(info, in_dims, call, *tensors):
            return _each_sample(Adjoint, info, in_dims, call, tensors)

    class Second(torch.autograd.Function):
        @staticmethod
        def forward(call, *tensors):
            return call.op.second(call, *_three(call.op, tensors))

        @staticmethod
        def setup_context(ctx, inputs, output):
            ctx.call = inputs[0]

        @staticmethod
        def backward(ctx, *vectors):
            raise _no_third(ctx.call.op)

        @staticmethod
        def vmap(info, in_dims, call, *tensors):
            return _each_sample(Second, info, in_dims, call, tensors)

    _made["functions"] = Launch, TransformedLaunch
    return _made["functions"]


def _by_argument(op: TorchOp, found: Sequence[Any]) -> list:
    """What `second` gives, as gradients of the arguments of the adjoint: the tensors, then the gradients."""
    split = len(op.smooth_tensors)
    results = dict(zip(op.smooth_tensors, found[:split], strict=True))
    return [*(results.get(i) for i in range(len(op.tensors))), *found[split:]]


def _three(op: TorchOp, tensors: Sequence[Any]) -> tuple:
    """The arguments of `second` one after the other, as what they are."""
    first = len(op.tensors)
    second = first + len(op.smooth_outputs)
    return tensors[:first], tensors[first:second], tensors[second:]


def _no_third(op: TorchOp) -> Exception:
    return op._error(
        "it has first and second derivatives as an operator, and a third was asked for", NotImplementedError
    )


# ---- in a program that is traced ----


def _define_operators(torch: Any) -> None:
    """Makes the operators of torch.library, torch.ops.weft, where they are not there yet."""
    if "library" in _made:
        return
    library = torch.library.Library("weft", "DEF")
    common = "Scalar[] values, SymInt[] sizes) -> Tensor[]"
    library.define(f"launch(int op, Tensor[] tensors, {common}")
    library.define(f"adjoint(int op, Tensor[] tensors, Tensor[] gradients, {common}")
    library.define(f"second(int op, Tensor[] tensors, Tensor[] gradients, Tensor[] vectors, {common}")

    @torch.no_grad()
    def launch(number, tensors, values, sizes):
        call = _call(number, values, sizes)
        return list(call.op.launch(call, tensors))

    @torch.no_grad()
    def adjoint(number, tensors, gradients, values, sizes):
        call = _call(number, values, sizes)
        return list(call.op.adjoint(call, tensors, gradients))

    @torch.no_grad()
    def second(number, tensors, gradients, vectors, values, sizes):
        call = _call(number, values, sizes)
        return list(call.op.second(call, tensors, gradients, vectors))

    def outputs_like(number, tensors, values, sizes):
        op = _operators[number]
        made = [
            torch.empty_like(tensors[op.tensors.index(p)], memory_format=torch.contiguous_format) for p in op.in_out
        ]
        at = len(sizes) - sum(parameter.ndim for parameter in op.pure)
        for parameter in op.pure:
            shape = (*sizes[at : at + parameter.ndim], *parameter.inner)
            made.append(tensors[0].new_empty(shape, dtype=getattr(torch, _torch_scalar(parameter))))
            at += parameter.ndim
        return made

    def smooth_like(op, tensors):
        return [torch.empty_like(tensors[i], memory_format=torch.contiguous_format) for i in op.smooth_tensors]

    def adjoint_like(number, tensors, gradients, values, sizes):
        return smooth_like(_operators[number], tensors)

    def second_like(number, tensors, gradients, vectors, values, sizes):
        made = smooth_like(_operators[number], tensors)
        return made + [torch.empty_like(one, memory_format=torch.contiguous_format) for one in gradients]

    def keep_inputs(ctx, inputs, output):
        ctx.number, *lists, ctx.values, ctx.sizes = inputs
        ctx.counts = [len(one) for one in lists]
        ctx.save_for_backward(*(tensor for one in lists for tensor in one))

    def lists(ctx):
        saved = iter(ctx.saved_tensors)
        return [[next(saved) for _ in range(count)] for count in ctx.counts]

    def launch_backward(ctx, gradients):
        op = _operators[ctx.number]
        (tensors,) = lists(ctx)
        given = [gradients[i] for i in op.smooth_outputs]
        shaped = outputs_like(ctx.number, tensors, ctx.values, ctx.sizes)
        given = [
            torch.zeros_like(shaped[i]) if one is None else one for i, one in zip(op.smooth_outputs, given, strict=True)
        ]
        found = torch.ops.weft.adjoint(ctx.number, tensors, given, ctx.values, ctx.sizes)
        results = dict(zip(op.smooth_tensors, found, strict=True))
        return None, [results.get(i) for i in range(len(tensors))], None, None

    def adjoint_backward(ctx, vectors):
        op = _operators[ctx.number]
        tensors, gradients = lists(ctx)
        given = [
            torch.zeros_like(tensors[i]) if one is None else one
            for i, one in zip(op.smooth_tensors, vectors, strict=True)
        ]
        found = torch.ops.weft.second(ctx.number, tensors, gradients, given, ctx.values, ctx.sizes)
        results = _by_argument(op, found)
        return None, results[: len(tensors)], results[len(tensors) :], None, None

    def second_backward(ctx, vectors):
        raise _no_third(_operators[ctx.number])

    rows = (
        ("launch", launch, outputs_like, launch_backward),
        ("adjoint", adjoint, adjoint_like, adjoint_backward),
        ("second", second, second_like, second_backward),
    )
    for name, run, like, backward in rows:
        library.impl(name, run, "CompositeExplicitAutograd")
        torch.library.register_fake(f"weft::{name}", like, lib=library)
        torch.library.register_autograd(f"weft::{name}", backward, setup_context=keep_inputs, lib=library)
    _made["library"] = library  # which the operators live as long as
