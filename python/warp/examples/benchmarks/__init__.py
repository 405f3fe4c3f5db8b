"""Benchmarks as programs to run: ``python -m warp.examples.benchmarks.benchmark_interop_torch``."""
