"""Writes the wheel of weft-lang-cpp: libweft, its headers and its CMake package, for programs in C++.

    python tools/release/library_wheel.py [folder]      # of the build in $BUILD; default: dist/

It is the same for every Python, and the extra `cpp` of weft-lang installs it. `python -m warp --cmake-dir` gives CMake
its folder. `make wheel-cpp` then puts TBB and SLEEF into it under private names.
"""

import base64
import hashlib
import importlib.metadata
import os
import re
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
NAME, PACKAGE = "weft_lang_cpp", "weft_cpp"
DATE = (2020, 1, 1, 0, 0, 0)  # the same bytes each time
MODULE = '''"""libweft, its headers and its CMake package: what `python -m warp --cmake-dir` finds."""

from pathlib import Path


def cmake_dir() -> Path:
    """The folder for -Dweft_DIR= of CMake."""
    return Path(__file__).parent / "lib/cmake/weft"
'''


def version():
    return re.search(r"project\(weft VERSION ([0-9.]+)", (ROOT / "CMakeLists.txt").read_text())[1]


def installed(build, prefix):
    """{path in the package: bytes} of the files that `make install` installs. Wheels have no links: the library has one
    name, its SONAME, in the CMake package, too."""
    cmake = Path(sys.executable).with_name("cmake")
    command = [cmake if cmake.exists() else "cmake", "--install", build, "--component", "library", "--strip"]
    subprocess.run([*command, "--prefix", prefix], check=True, stdout=subprocess.DEVNULL)
    files, full = {}, f"libweft.so.{version()}"
    for path in sorted(prefix.rglob("*")):
        name = path.relative_to(prefix).as_posix().replace("lib64/", "lib/")
        if path.is_symlink() or path.is_dir():
            continue
        content = path.read_bytes()
        if path.name == full:
            name = name.replace(full, soname())
        elif path.suffix == ".cmake":
            content = content.replace(full.encode(), soname().encode())
        files[f"{PACKAGE}/{name}"] = content
    assert f"{PACKAGE}/lib/{soname()}" in files, f"the build in {build} has no libweft: make setup"
    return files


def licenses():
    """(library, text) of the other libraries in the wheel, from the packages of the build (cmake/licenses.cmake)."""
    packages = {"LLVM": "llvm-22-dev", "oneTBB": "libtbb-dev", "SLEEF": "libsleef-dev", "BLIS": "libblis-serial-dev"}
    for library, package in {**packages, "zstd": "libzstd-dev"}.items():
        yield library, Path(f"/usr/share/doc/{package}/copyright").read_bytes()
    for distribution in importlib.metadata.distributions(name="nvidia-cuda-nvcc-cu12"):
        yield "libdevice", next(f for f in distribution.files if f.name == "License.txt").locate().read_bytes()


def soname():
    return f"libweft.so.{version().partition('.')[0]}"


def write(folder, build):
    """The wheel's path."""
    info = f"{NAME}-{version()}.dist-info"
    with tempfile.TemporaryDirectory() as prefix:
        files = installed(build, Path(prefix))
    files[f"{PACKAGE}/__init__.py"] = MODULE.encode()
    metadata = (
        f"Metadata-Version: 2.1\nName: weft-lang-cpp\nVersion: {version()}\n"
        "Summary: Kernels of Weft in C++ programs: libweft, its headers and its CMake package\n"
        "License: Apache-2.0\nRequires-Python: >=3.10\n"
    )
    tag = "py3-none-linux_x86_64"
    files[f"{info}/METADATA"] = metadata.encode()
    files[f"{info}/WHEEL"] = f"Wheel-Version: 1.0\nGenerator: weft\nRoot-Is-Purelib: false\nTag: {tag}\n".encode()
    files[f"{info}/licenses/LICENSE"] = (ROOT / "LICENSE").read_bytes()
    for library, text in licenses():
        files[f"{info}/licenses/third_party/{library}.txt"] = text
    record = ""
    for name, content in files.items():
        digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
        record += f"{name},sha256={digest},{len(content)}\n"
    files[f"{info}/RECORD"] = (record + f"{info}/RECORD,,\n").encode()
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{NAME}-{version()}-{tag}.whl"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as wheel:
        for name, content in files.items():
            entry = zipfile.ZipInfo(name, DATE)
            entry.compress_type = zipfile.ZIP_DEFLATED
            entry.external_attr = (0o755 if ".so" in name else 0o644) << 16
            wheel.writestr(entry, content)
    return path


if __name__ == "__main__":
    print(write(Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT / "dist", ROOT / os.environ.get("BUILD", "build")))
