"""The programs of the CUDA toolkit, for the scripts of this folder: where they are, and what they say of kernels."""

import re
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import machine_code


class ToolError(Exception):
    pass


def find(name):
    """The path of a program: on PATH, of the toolkit, or of a package of NVIDIA from PyPI."""
    packages = (str(path) for folder in sys.path for path in Path(folder).glob(f"nvidia/*/bin/{name}"))
    found = shutil.which(name) or shutil.which(name, path="/usr/local/cuda/bin") or next(packages, None)
    if not found:
        package = "nvcc" if name == "ptxas" else name
        raise ToolError(
            f"there is no {name}, on PATH, in /usr/local/cuda/bin or in a package. help: the CUDA toolkit, or "
            f"pip install nvidia-cuda-{package}"
        )
    return found


def run(*command):
    """What the command says, to both outputs."""
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True)
    if done.returncode:
        raise ToolError(f"{' '.join(map(str, command))} failed:\n{done.stdout}{done.stderr}")
    return done.stdout + done.stderr


@dataclass
class Needs:
    """What a kernel takes: registers and bytes of memory of a thread, shared memory of a block."""

    registers: int
    spilled: int
    stack: int
    shared: int

    def threads_at_once(self, block):
        """Threads that a multiprocessor holds, in blocks of so many."""
        return machine_code.occupancy(self.registers, self.shared, block)


def needs_of(said):
    """{kernel: Needs} from what `ptxas -v` says."""
    found = {}
    for part in said.split("Compiling entry function '")[1:]:
        memory = re.search(r"(\d+) bytes stack frame, (\d+) bytes spill stores, (\d+) bytes spill loads", part)
        shared = re.search(r"(\d+) bytes smem", part)
        found[part.split("'")[0]] = Needs(
            int(re.search(r"Used (\d+) registers", part)[1]),
            int(memory[2]) + int(memory[3]),
            int(memory[1]),
            int(shared[1]) if shared else 0,
        )
    return found


def kernels_of(image, said):
    """{kernel: (its machine_code.Function, Needs)} of a cubin; leaves the machine code beside it."""
    text = run(find("nvdisasm"), "-c", image)
    image.with_suffix(".sass").write_text(text)
    functions = machine_code.parse(text)
    return {name: (functions[name], needs) for name, needs in needs_of(said).items()}


def of_ptx(text, image, arch):
    """The kernels of a PTX file, by `ptxas`."""
    return kernels_of(image, run(find("ptxas"), "-v", f"-arch={arch}", text, "-o", image))


def of_cuda(source, image, arch, *options):
    """The kernels of a file in CUDA C++, by `nvcc -O3`."""
    flags = ("-O3", f"-arch={arch}", "-cubin", "-Xptxas", "-v")
    return kernels_of(image, run(find("nvcc"), *flags, *options, source, "-o", image))
