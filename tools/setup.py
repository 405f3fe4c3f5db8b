"""`make setup`: from a bare machine to an importable Weft.

In this order: the Python that runs this is new enough; Debian packages (installed with apt-get where that is allowed,
else listed); .venv in the project's folder with the Python packages of pyproject.toml; the build in $BUILD; `warp`
importable from .venv. Each step looks first whether there is anything to do, so that a second run takes a moment.

Uses the standard library only: nothing is installed when it starts.
"""

import importlib.util
import os
import re
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
VENV = ROOT / ".venv"
BUILD = ROOT / os.environ.get("BUILD", "build")

# What the build needs from Debian 12; llvm-22-dev brings libxml2, libffi and libz3, which its CMake files look for.
REQUIRED_PACKAGES = {
    "llvm-22-dev": "LLVM 22, the compiler's back end",
    "zlib1g-dev": "LLVM is linked against zlib",
    "libzstd-dev": "LLVM is linked against zstd",
    "libtbb-dev": "oneTBB, the thread pool",
    "libsleef-dev": "SLEEF, SIMD mathematics",
    "libblis-serial-dev": "BLIS, products of matrices",
    "libgtest-dev": "GoogleTest, for the C++ tests",
}
# Not needed, but worth having.
HELPFUL_PACKAGES = {
    "lld-22": "links several times as fast as GNU ld",
    "clang-22": "compiles functions in C++ (@wp.func_native), which some tests have",
}


class SetupError(Exception):
    """What is missing, and what to do about it; shown without a traceback."""


def run(*command, **options):
    """Runs a command, and shows it and its output."""
    print("+", " ".join(str(part) for part in command), flush=True)
    if subprocess.run([str(part) for part in command], **options).returncode != 0:
        raise SetupError(f"this command failed: {' '.join(str(part) for part in command)}")


# ---- the machine ----


def check_python():
    if sys.version_info < (3, 10):  # noqa: UP036 - this file is started by whatever `python3` is
        found = ".".join(map(str, sys.version_info[:3]))
        raise SetupError(
            f"Weft needs Python 3.10 or newer; {sys.executable} is {found}.\n"
            "Name another one: make setup PYTHON=python3.12"
        )


def is_installed(package):
    """Whether dpkg has the package, in whatever version."""
    answer = subprocess.run(["dpkg-query", "-W", "-f", "${Status}", package], capture_output=True, text=True)
    return answer.stdout.endswith(" installed")


def python_packages():
    """The parts of this Python that Debian ships separately, where they are missing."""
    python = f"python{sys.version_info.major}.{sys.version_info.minor}"
    missing = {}
    if importlib.util.find_spec("ensurepip") is None and not (VENV / "bin/pip").exists():
        missing[f"{python}-venv"] = "virtual environments"
    if not Path(sysconfig.get_path("include"), "Python.h").exists():
        missing[f"{python}-dev"] = "Python's headers"
    if missing and not sys.executable.startswith("/usr/bin/"):
        raise SetupError(
            f"{sys.executable} lacks {' and '.join(missing.values())}, and did not come from Debian: install them the"
            " way this Python was installed, or name another one: make setup PYTHON=/usr/bin/python3"
        )
    return missing


def apt_command():
    """How this user may call apt-get: directly, through sudo without a password, or (None) not at all."""
    if os.geteuid() == 0:
        return ["apt-get"]
    if shutil.which("sudo") and subprocess.run(["sudo", "-n", "true"], capture_output=True).returncode == 0:
        return ["sudo", "-n", "apt-get"]
    return None


def install_system_packages():
    if not shutil.which("dpkg-query"):
        print("not a Debian system: CMake will say what is missing (the list is in CONTRIBUTING.md)")
        return
    missing = python_packages()
    missing |= {name: why for name, why in REQUIRED_PACKAGES.items() if not is_installed(name)}
    if not any(shutil.which(compiler) for compiler in (os.environ.get("CXX", "c++"), "g++", "clang++")):
        missing["g++"] = "a C++ compiler"
    helpful = {name: why for name, why in HELPFUL_PACKAGES.items() if not is_installed(name)}
    apt = apt_command()
    if missing and apt is None:
        listing = "\n".join(f"    {name:16} {why}" for name, why in missing.items())
        raise SetupError(
            f"these Debian packages are missing, and this user may not install them:\n{listing}\n"
            f"Ask an administrator for:\n    apt-get update && apt-get install {' '.join([*missing, *helpful])}"
        )
    if apt and (missing or helpful):
        environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
        run(*apt, "update", "-q", env=environment)
        install_command = [*apt, "install", "-y", "-q", "--no-install-recommends"]
        run(*install_command, *missing, *helpful, env=environment)


# ---- the virtual environment ----


def venv_version():
    """(major, minor) of the Python in .venv; None where there is no working one."""
    python = VENV / "bin/python"
    if not python.exists() or not (VENV / "bin/pip").exists():
        return None
    config = (VENV / "pyvenv.cfg").read_text()
    found = re.search(r"^version(?:_info)?\s*=\s*(\d+)\.(\d+)", config, re.MULTILINE)
    return (int(found[1]), int(found[2])) if found else None


def create_venv():
    if venv_version() != sys.version_info[:2]:
        run(sys.executable, "-m", "venv", "--clear", VENV)
        # CMake remembers the headers and the version of the Python before.
        (BUILD / "CMakeCache.txt").unlink(missing_ok=True)
        (BUILD / "build.ninja").unlink(missing_ok=True)


REQUIREMENTS_SCRIPT = """
import sys
try:
    import tomllib
except ModuleNotFoundError:  # Python 3.10
    from pip._vendor import tomli as tomllib
with open(sys.argv[1], "rb") as file:
    project = tomllib.load(file)
extras = project["project"]["optional-dependencies"]
print(*project["build-system"]["requires"], *project["project"]["dependencies"], *extras["examples"], *extras["test"],
      *project["dependency-groups"]["dev"], sep="\\n")
"""


def install_requirements():
    """Installs what pyproject.toml lists, and notes in .venv for which text of it that was done."""
    project_file = ROOT / "pyproject.toml"
    note = VENV / "weft-requirements.txt"
    if note.exists() and note.stat().st_mtime > project_file.stat().st_mtime:
        return
    answer = subprocess.run(
        [VENV / "bin/python", "-c", REQUIREMENTS_SCRIPT, project_file], capture_output=True, text=True, check=True
    )
    if not note.exists() or note.read_text() != answer.stdout:
        run(VENV / "bin/python", "-m", "pip", "install", "--quiet", *answer.stdout.split("\n")[:-1])
    note.write_text(answer.stdout)


# ---- the build ----


def build():
    # By their full paths: elsewhere on PATH there may be an older cmake, or a wrapper for one that is not installed.
    ninja = VENV / "bin/ninja"
    if not (BUILD / "build.ninja").exists():
        python = VENV / "bin/python"
        tools = [f"-DCMAKE_MAKE_PROGRAM={ninja}", f"-DPython_EXECUTABLE={python}"]
        run(VENV / "bin/cmake", "-S", ROOT, "-B", BUILD, "-G", "Ninja", *tools)
    answer = subprocess.run([ninja, "-C", BUILD])
    if answer.returncode != 0:
        raise SetupError(f"the build in {BUILD} failed; the messages are above. After a change of tools: make clean")


def make_importable():
    """Puts the build's package folder on .venv's path and registers the distribution, as an editable install does."""
    version = re.search(r"project\(weft VERSION ([0-9.]+)", (ROOT / "CMakeLists.txt").read_text())[1]
    site = next((VENV / "lib").glob("python3.*/site-packages"))
    path_file = site / "weft_lang.pth"
    metadata = site / f"weft_lang-{version}.dist-info"
    contents = {
        path_file: f"{BUILD / 'py'}\n",
        metadata / "METADATA": f"Metadata-Version: 2.1\nName: weft-lang\nVersion: {version}\n",
        metadata / "INSTALLER": "make setup\n",
    }
    record = metadata / "RECORD"
    contents[record] = "".join(f"{file.relative_to(site)},,\n" for file in [*contents, record])
    if all(file.exists() and file.read_text() == text for file, text in contents.items()):
        return
    for old in site.glob("weft_lang-*.dist-info"):
        shutil.rmtree(old)
    metadata.mkdir()
    for file, text in contents.items():
        file.write_text(text)


def main():
    try:
        check_python()
        install_system_packages()
        create_venv()
        install_requirements()
        build()
        make_importable()
    except SetupError as error:
        print(f"\nsetup: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
