"""A CUDA driver that does nothing (`latency/idle_cuda.cpp`): times of programs on it are host time."""

from __future__ import annotations

import os
import subprocess

from measure import BUILT, ROOT

SOURCES = [ROOT / "bench" / "latency" / name for name in ("idle_cuda.cpp", "idle_cuda_rest.cpp")]
HEADERS = [ROOT / "src" / "runtime" / "cuda" / name for name in ("driver.h", "driver.def")]


def choose() -> None:
    """Makes it the driver of this process and of those that it starts. To be called before Weft asks for a device."""
    library = BUILT / "idle-cuda.so"
    if not library.exists() or library.stat().st_mtime < max(f.stat().st_mtime for f in SOURCES + HEADERS):
        BUILT.mkdir(parents=True, exist_ok=True)
        fresh = BUILT / f"idle-cuda-{os.getpid()}.so"
        compiler = os.environ.get("CXX", "g++")
        options = ["-std=c++20", "-O2", "-fPIC", "-shared", f"-I{ROOT / 'src'}"]
        subprocess.run([compiler, *options, *map(str, SOURCES), "-o", str(fresh)], check=True)
        fresh.replace(library)
    os.environ["WARP_CUDA_DRIVER"] = str(library)
