"""The cost of PyTorch's tensors: converting them, giving them to launches, and kernels as operators.

The loop is that of the seeds: five tensors of 10 elements and one launch. An operator's forward and backward pass, of
10 and of 1 M numbers, is beside the same by a torch.autograd.Function that is written by hand.
"""

import sys
from pathlib import Path

# In place of this folder, whose files have the names of the frameworks.
sys.path.insert(0, str(Path(sys.path.pop(0)).resolve().parent))
import measure
import tensors

VARIANTS = (
    *tensors.VARIANTS,
    "from_torch of a leaf",
    "operator 10",
    "by hand 10",
    "operator 1M",
    "by hand 1M",
)


def operators(wp, torch):
    """Statements and their names: forward and back through sin(x) * x."""

    @wp.kernel(enable_backward=True)
    def wave(x: wp.array(dtype=float), y: wp.array(dtype=float)):
        i = wp.tid()
        y[i] = wp.sin(x[i]) * x[i]

    class ByHand(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.x = wp.from_torch(x, requires_grad=True)
            ctx.y = wp.zeros(len(x), requires_grad=True)
            wp.launch(wave, dim=len(x), inputs=[ctx.x], outputs=[ctx.y])
            return wp.to_torch(ctx.y, requires_grad=False)

        @staticmethod
        def backward(ctx, gradient):
            wp.launch(
                wave,
                dim=len(gradient),
                inputs=[ctx.x],
                outputs=[ctx.y],
                adj_inputs=[ctx.x.grad],
                adj_outputs=[wp.from_torch(gradient)],
                adjoint=True,
            )
            return wp.to_torch(ctx.x.grad, requires_grad=False)

    names, operator = {}, wp.torch_op(wave)
    for size, count in (("10", 10), ("1M", 1_000_000)):
        x, seed = torch.randn(count, requires_grad=True), torch.ones(count)
        exact = torch.sin(x) * x
        (expected,) = torch.autograd.grad(exact, x, seed)
        for title, function in (("operator", operator), ("by hand", ByHand.apply)):
            (slope,) = torch.autograd.grad(function(x), x, seed)
            assert torch.allclose(slope, expected, atol=1e-5), title
            names[f"{title} {size}"] = lambda f=function, x=x, seed=seed: torch.autograd.grad(f(x), x, seed)
    return names


if __name__ == "__main__":
    import torch

    def make(wp):
        names, statements = tensors.statements(wp, lambda: torch.zeros(10), wp.from_torch, wp.to_torch)
        names["leaf"] = torch.zeros(10, requires_grad=True)
        statements["from_torch of a leaf"] = "convert(leaf)"
        for title, run in operators(wp, torch).items():
            names["run_" + title.replace(" ", "_")] = run
            statements[title] = "run_" + title.replace(" ", "_") + "()"
        return names, statements

    sys.exit(tensors.main("torch", __doc__, VARIANTS, make, measure))
