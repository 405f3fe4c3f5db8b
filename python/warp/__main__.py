"""`python -m warp`: the version and build of Weft, and the devices of this machine. With `--cmake-dir`: the folder of
libweft's CMake package."""

import platform
import sys

import warp as wp

# The features worth printing, of the dozens that LLVM lists.
NOTABLE = ("sse4.2", "avx", "avx2", "fma", "f16c", "avx512f", "avx512vl", "avx512fp16", "neon", "sve", "fullfp16")


def named(device):
    """A CUDA device's own name and architecture, with a note if it is emulated."""
    note = ": an emulated device, which executes GPU code on the CPU (WARP_CUDA_DRIVER)" if device.is_emulated else ""
    return f"{device.name}, sm_{device.arch}{note}"


def lines():
    """The report, as (label, text) pairs."""
    info = wp._weft.build_info()
    bits = info["vector_bits"]
    api = f"for programs of release {wp.config.version}"
    yield "Weft", f"{info['version']} ({api}, LLVM {info['llvm']}, Python {platform.python_version()})"
    for device in wp.get_devices():
        yield f"Device {device}", info["cpu"] if device.is_cpu else named(device)
    enabled = {feature[1:] for feature in info["features"].split(",") if feature.startswith("+")}
    yield "Instructions", ", ".join(name for name in NOTABLE if name in enabled) or "the baseline"
    yield "Vector lanes", f"{bits // 32} of 32 bits, {bits // 64} of 64 bits ({bits}-bit registers)"
    yield "CPU threads", f"{info['threads']} (WARP_CPU_THREADS changes it)"
    yield "Kernel cache", f"{info['cache_folder']} (WARP_CACHE_PATH changes it)"
    count = wp.get_cuda_device_count()
    yield "CUDA", f"{count} device{'s' if count > 1 else ''}" if count else "no device: kernels run on the CPU"


def cmake_dir():
    """The folder of the CMake package that weft-lang-cpp has installed."""
    try:
        import weft_cpp
    except ModuleNotFoundError:
        raise SystemExit(
            "libweft for C++ programs is not installed in this Python. help: pip install 'weft-lang[cpp]', or "
            "make install in a clone, which CMake finds in its PREFIX"
        ) from None
    return weft_cpp.cmake_dir()


def main():
    if sys.argv[1:] == ["--cmake-dir"]:
        print(cmake_dir())
        return
    if sys.argv[1:]:
        raise SystemExit(f"python -m warp takes no arguments or --cmake-dir; found {' '.join(sys.argv[1:])}")
    wp.init()
    for label, text in lines():
        print(f"{label + ':':14} {text}".rstrip())


if __name__ == "__main__":
    main()
