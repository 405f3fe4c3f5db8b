"""Launches on a CUDA device with other numbers, beside the CPU in debug mode: ``--other-numbers``.

Tests choose numbers that show their subject. An instruction that is wrong for others passes them: integers from 0
to 4, factors of 1, branches that go one way, arrays of fewer elements than a block has threads. So each launch of a
test is done with other numbers before it takes place, on copies of its arguments: on the device, and on the CPU, one
thread after the other and with every index checked. All arrays have to agree afterwards, their gradients and tangents
too if the launch has them. If the CPU raises, or the emulated device stops the code for debug mode too, as threads race
or a loop does not end, the numbers mean nothing to the kernel.
"""

from other_numbers.launches import Comparison, summary

__all__ = ["Comparison", "summary"]
