"""The cost of Paddle's tensors in launches, by the three ways to give them.

python -m warp.examples.benchmarks.benchmark_interop_paddle [--rounds 100000] [--device cpu]
"""

import warp as wp
from warp.examples.benchmarks._tensors import main

if __name__ == "__main__":
    import paddle

    main("paddle", lambda shape, device: paddle.zeros(shape).to(device=wp.device_to_paddle(device)), wp.from_paddle)
