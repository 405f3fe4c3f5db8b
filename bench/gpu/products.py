"""Products of matrices of 4096², on a GPU: Weft's own kernels beside cuBLAS, through PyTorch.

`--small` takes matrices of 160², to show that the program runs: on the emulated device, say.
"""

import sys
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
import measure

# variant: type, wp.config.matmul_precision, relative error that one product may have (to the sum of magnitudes)
WORK = {
    "f32": ("float32", "exact", 1e-5),
    "f32, transposed": ("float32", "exact", 1e-5),
    "f64": ("float64", "exact", 1e-13),
    "tf32": ("float32", "tf32", 2e-3),
    "f32 by 3 tf32": ("float32", "fast", 1e-5),
    "f16": ("float16", "fast", 2e-3),
    "bf16": ("bfloat16", "fast", 1e-2),
}
BATCH = 10  # runs between two waits
SIDE = 4096


def factors():
    """Numbers that bfloat16 has."""
    random = np.random.default_rng(1)
    return [random.integers(-64, 65, (SIDE, SIDE)).astype(np.float32) / 64 for _ in range(2)]


def check_rows(variant, a, b, rows):
    """Of some rows of the result."""
    places = np.arange(0, SIDE, max(1, SIDE // 8))
    left = a.T if variant.endswith("transposed") else a
    exact = left[places].astype(np.float64) @ b.astype(np.float64)
    size = np.abs(left[places]).astype(np.float64) @ np.abs(b).astype(np.float64)
    error = np.max(np.abs(rows(places) - exact) / size)
    if not error <= WORK[variant][2]:
        raise AssertionError(f"an error of {error}, expected at most {WORK[variant][2]}")


def with_weft(wp, variant):
    name, precision, _ = WORK[variant]
    dtype = getattr(wp, name)
    a, b = factors()
    A, B = (wp.array(x, dtype=dtype, device="cuda:0") for x in (a, b))
    left = A.transpose() if variant.endswith("transposed") else A
    D = wp.zeros((SIDE, SIDE), dtype=dtype, device="cuda:0")
    wp.config.matmul_precision, wp.config.use_cublas = precision, False

    def rows(places):
        return D.astype(wp.float64).numpy()[places]

    return measure.Queued(
        lambda: wp.matmul(left, B, D, D),
        lambda: wp.synchronize_device("cuda:0"),
        lambda: check_rows(variant, a, b, rows),
        BATCH,
    )


def with_torch(torch, variant):
    name, precision, _ = WORK[variant]
    a, b = factors()
    A, B = (torch.from_numpy(x).to("cuda", getattr(torch, name)) for x in (a, b))
    left = A.T if variant.endswith("transposed") else A
    D = torch.empty_like(A)
    torch.backends.cuda.matmul.allow_tf32 = precision == "tf32"

    def rows(places):
        return D.double().cpu().numpy()[places]

    return measure.Queued(
        lambda: torch.matmul(left, B, out=D),
        torch.cuda.synchronize,
        lambda: check_rows(variant, a, b, rows),
        BATCH,
    )


if __name__ == "__main__":
    parser = measure.arguments(__doc__, tuple(WORK), ("weft", "torch"))
    parser.add_argument("--small", action="store_true", help="matrices of 160²")
    options = parser.parse_args()
    if options.small:
        SIDE = 160
    if options.implementation == "weft":
        library, prepare = measure.import_warp("weft", options.fast), with_weft
    else:
        import torch as library

        prepare = with_torch
    measure.queued("gpu products", options, tuple(WORK), lambda variant: prepare(library, variant))
