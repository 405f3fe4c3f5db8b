"""The cost of PyTorch's tensors in launches, by the three ways to give them.

python -m warp.examples.benchmarks.benchmark_interop_torch [--rounds 100000] [--device cpu]
"""

import warp as wp
from warp.examples.benchmarks._tensors import main

if __name__ == "__main__":
    import torch

    main("torch", lambda shape, device: torch.zeros(shape, device=wp.device_to_torch(device)), wp.from_torch)
