"""docs/gradients.md defines the gradient at points without a derivative, in PyTorch and in JAX."""

import numpy as np
import pytest

pytestmark = pytest.mark.cpu_only("other frameworks are built for the CPU here; their GPUs come later")


def in_torch(name, values):
    import torch

    given = [torch.tensor(value, dtype=torch.float64, requires_grad=True) for value in values]
    {"norm": lambda x: torch.linalg.norm(torch.stack([x, 0.0 * x])), "clamp": lambda x: torch.clamp(x, 0.0, 1.0)}.get(
        name, getattr(torch, name, None)
    )(*given).backward()
    return [float(one.grad) for one in given]


def in_jax(name, values):
    import jax
    import jax.numpy as jnp

    function = {
        "norm": lambda x: jnp.linalg.norm(jnp.stack([x, 0.0 * x])),
        "clamp": lambda x: jnp.clip(x, 0.0, 1.0),
    }.get(name, getattr(jnp, {"atan2": "arctan2"}.get(name, name), None))
    return [float(one) for one in jax.grad(function, tuple(range(len(values))))(*values)]


NAN = float("nan")


@pytest.mark.needs("torch")
@pytest.mark.needs("jax")
@pytest.mark.parametrize(
    "name, values, torch, jax",
    [
        ("abs", [0.0], [0.0], [1.0]),
        ("norm", [0.0], [0.0], [NAN]),
        ("atan2", [0.0, 0.0], [0.0, 0.0], [NAN, NAN]),
        ("pow", [0.0, 0.0], [0.0, 0.0], [NAN, 0.0]),
        ("pow", [0.0, 1.0], [1.0, 0.0], [1.0, 0.0]),
        ("pow", [0.0, 2.0], [0.0, 0.0], [0.0, 0.0]),
        ("pow", [-2.0, 3.0], [12.0, NAN], [12.0, NAN]),
        ("minimum", [1.0, 1.0], [0.5, 0.5], [0.5, 0.5]),
        ("clamp", [0.0], [1.0], [0.5]),
        ("clamp", [1.0], [1.0], [0.5]),
    ],
)
def test_the_table_of_conventions_says_what_the_frameworks_do(name, values, torch, jax):
    np.testing.assert_array_equal(np.abs(in_torch(name, values)), np.abs(torch))
    np.testing.assert_array_equal(np.abs(in_jax(name, values)), np.abs(jax))
