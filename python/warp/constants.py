"""Mathematical constants: plain Python floats, which kernels fold into their code. Levels of wp.config.log_level,
kinds of timed activities."""

import math

E = e = math.e
INF = inf = math.inf
LN10 = ln10 = math.log(10.0)
LN2 = ln2 = math.log(2.0)
LOG10E = log10e = math.log10(math.e)
LOG2E = log2e = math.log2(math.e)
NAN = nan = math.nan
PHI = phi = (1.0 + math.sqrt(5.0)) / 2.0
PI = pi = math.pi
HALF_PI = half_pi = math.pi / 2.0
TAU = tau = math.tau

LOG_DEBUG, LOG_INFO, LOG_WARNING, LOG_ERROR = 10, 20, 30, 40

# Which activities of CUDA devices are timed: cuda_filter of wp.ScopedTimer.
TIMING_KERNEL, TIMING_KERNEL_BUILTIN, TIMING_MEMCPY, TIMING_MEMSET, TIMING_GRAPH = 1, 2, 4, 8, 16
TIMING_ALL = 0xFFFFFFFF

__all__ = [name for name, value in list(globals().items()) if isinstance(value, (float, int))]
