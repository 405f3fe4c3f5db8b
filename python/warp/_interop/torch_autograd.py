"""Operators of PyTorch (torch_op.py) in a program that runs as it is written: functions of torch.autograd."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from warp._interop.library import import_library

__all__ = ["by_argument", "functions", "no_third"]

_made: list = []  # the functions, made at the first use, as they need torch


def _each_sample(function: Any, info: Any, in_dims: tuple, call: Any, tensors: tuple) -> tuple:
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


def _adjoint(torch: Any) -> Any:
    """The adjoint of the launch as a function of autograd, whose own adjoint is the second derivative."""

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
            return (None, *by_argument(op, found))

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
            raise no_third(ctx.call.op)

        @staticmethod
        def vmap(info, in_dims, call, *tensors):
            return _each_sample(Second, info, in_dims, call, tensors)

    return Adjoint


def functions(torch: Any) -> tuple:
    """The launch as functions of autograd: one for programs without transforms, whose calls cost less, and one for
    those of torch.func, which want forward() and setup_context() apart and a rule for vmap."""
    if _made:
        return tuple(_made)
    Adjoint = _adjoint(torch)

    def launch_backward(ctx, adjoint, gradients):
        call = ctx.call
        op = call.op
        if not torch.is_grad_enabled():
            return (None, *op.gradients(call, ctx.saved_tensors, gradients, ctx.needs_input_grad[1:]))
        found = adjoint.apply(call, *ctx.saved_tensors, *(gradients[i] for i in op.smooth_outputs))  # create_graph
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

    _made.extend((Launch, TransformedLaunch))
    return tuple(_made)


def by_argument(op: Any, found: Sequence[Any]) -> list:
    """The results of `second` as gradients of the arguments of the adjoint: the tensors, then the gradients."""
    split = len(op.smooth_tensors)
    results = dict(zip(op.smooth_tensors, found[:split], strict=True))
    return [*(results.get(i) for i in range(len(op.tensors))), *found[split:]]


def _three(op: Any, tensors: Sequence[Any]) -> tuple:
    """The flat arguments of `second` in three groups: inputs, gradients of smooth outputs, and the rest."""
    first = len(op.tensors)
    second = first + len(op.smooth_outputs)
    return tensors[:first], tensors[first:second], tensors[second:]


def no_third(op: Any) -> Exception:
    return op.error(
        "it has first and second derivatives as an operator, and a third was asked for", NotImplementedError
    )
