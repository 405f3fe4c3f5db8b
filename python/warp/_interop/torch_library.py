"""Operators of PyTorch (torch_op.py) in a program that is traced: three operators of torch.library, torch.ops.weft, for
the kernels of all; the number of a kernel and all that is no tensor are numbers of the call."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import warp._weft as _weft
from warp._interop.parameters import Parameter
from warp._interop.torch_autograd import by_argument, no_third

__all__ = ["define_operators", "flat"]

_made: list = []  # the library, which its operators live as long as


def flat(op: Any, values: Sequence[Any]) -> list:
    """Numbers, vectors and matrices as numbers one after the other. The first stands for nothing: torch takes an empty
    list for one of tensors."""
    numbers: list = [0]
    for (_, count), value in zip(op.values, values, strict=True):
        if count is None:
            numbers.append(value)
            continue
        for row in value:
            if isinstance(row, (int, float)):
                numbers.append(row)
            else:
                numbers.extend(row)
    return numbers


def torch_scalar(parameter: Parameter) -> str:
    return _weft.tensor_scalar(_weft.type_info(parameter.dtype)["scalar"], "torch_op()")


def _runs(torch: Any, call_of: Callable) -> tuple:
    """The implementations of the operators: launch, adjoint, second."""

    @torch.no_grad()
    def launch(number, tensors, values, sizes):
        call = call_of(number, values, sizes)
        return list(call.op.launch(call, tensors))

    @torch.no_grad()
    def adjoint(number, tensors, gradients, values, sizes):
        call = call_of(number, values, sizes)
        return list(call.op.adjoint(call, tensors, gradients))

    @torch.no_grad()
    def second(number, tensors, gradients, vectors, values, sizes):
        call = call_of(number, values, sizes)
        return list(call.op.second(call, tensors, gradients, vectors))

    return launch, adjoint, second


def _shapes(torch: Any, operators: list) -> tuple:
    """Tensors like the results of launch, adjoint, second, for a program that is traced."""

    def outputs_like(number, tensors, values, sizes):
        op = operators[number]
        made = [
            torch.empty_like(tensors[op.tensors.index(p)], memory_format=torch.contiguous_format) for p in op.in_out
        ]
        at = len(sizes) - sum(parameter.ndim for parameter in op.pure)
        for parameter in op.pure:
            shape = (*sizes[at : at + parameter.ndim], *parameter.inner)
            made.append(tensors[0].new_empty(shape, dtype=getattr(torch, torch_scalar(parameter))))
            at += parameter.ndim
        return made

    def smooth_like(op, tensors):
        return [torch.empty_like(tensors[i], memory_format=torch.contiguous_format) for i in op.smooth_tensors]

    def adjoint_like(number, tensors, gradients, values, sizes):
        return smooth_like(operators[number], tensors)

    def second_like(number, tensors, gradients, vectors, values, sizes):
        made = smooth_like(operators[number], tensors)
        return made + [torch.empty_like(one, memory_format=torch.contiguous_format) for one in gradients]

    return outputs_like, adjoint_like, second_like


def _backwards(torch: Any, operators: list, outputs_like: Callable) -> tuple:
    """The functions that save values for the backward passes of launch, adjoint, second, and these passes."""

    def keep_inputs(ctx, inputs, output):
        ctx.number, *lists, ctx.values, ctx.sizes = inputs
        ctx.counts = [len(one) for one in lists]
        ctx.save_for_backward(*(tensor for one in lists for tensor in one))

    def lists(ctx):
        saved = iter(ctx.saved_tensors)
        return [[next(saved) for _ in range(count)] for count in ctx.counts]

    def launch_backward(ctx, gradients):
        op = operators[ctx.number]
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
        op = operators[ctx.number]
        tensors, gradients = lists(ctx)
        given = [
            torch.zeros_like(tensors[i]) if one is None else one
            for i, one in zip(op.smooth_tensors, vectors, strict=True)
        ]
        found = torch.ops.weft.second(ctx.number, tensors, gradients, given, ctx.values, ctx.sizes)
        results = by_argument(op, found)
        return None, results[: len(tensors)], results[len(tensors) :], None, None

    def second_backward(ctx, vectors):
        raise no_third(operators[ctx.number])

    return keep_inputs, (launch_backward, adjoint_backward, second_backward)


def define_operators(torch: Any, operators: list, call_of: Callable) -> None:
    """Makes the operators of torch.library, torch.ops.weft, if they are not there yet."""
    if _made:
        return
    library = torch.library.Library("weft", "DEF")
    common = "Scalar[] values, SymInt[] sizes) -> Tensor[]"
    library.define(f"launch(int op, Tensor[] tensors, {common}")
    library.define(f"adjoint(int op, Tensor[] tensors, Tensor[] gradients, {common}")
    library.define(f"second(int op, Tensor[] tensors, Tensor[] gradients, Tensor[] vectors, {common}")
    shapes = _shapes(torch, operators)
    keep_inputs, backwards = _backwards(torch, operators, shapes[0])
    for name, run, like, backward in zip(
        ("launch", "adjoint", "second"), _runs(torch, call_of), shapes, backwards, strict=True
    ):
        library.impl(name, run, "CompositeExplicitAutograd")
        torch.library.register_fake(f"weft::{name}", like, lib=library)
        torch.library.register_autograd(f"weft::{name}", backward, setup_context=keep_inputs, lib=library)
    _made.append(library)  # which the operators live as long as
