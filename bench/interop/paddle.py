"""The cost of Paddle's tensors: converting them, and giving them to launches.

The loop is that of the seeds: five tensors of 10 elements and one launch.
"""

import sys
from pathlib import Path

# In place of this folder, whose files have the names of the frameworks.
sys.path.insert(0, str(Path(sys.path.pop(0)).resolve().parent))
import measure
import tensors

if __name__ == "__main__":
    import paddle

    def make(wp):
        return tensors.statements(wp, lambda: paddle.zeros([10]), wp.from_paddle, wp.to_paddle)

    sys.exit(tensors.main("paddle", __doc__, tensors.VARIANTS, make, measure))
