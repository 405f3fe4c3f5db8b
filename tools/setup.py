"""`make setup`: from a bare machine to an importable Weft, its tests, and the frameworks that they use. With
--for interop: without the tests; with --for demo: without the frameworks too.

In this order: the Python that runs this is new enough; Debian packages (installed with apt-get if that is allowed, else
listed); .venv in the project's folder with the Python packages of pyproject.toml; the build in $BUILD; `warp`
importable from .venv. Each step first checks whether there is anything to do, so that a second run takes a moment.

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

# Build requirements from Debian 12; llvm-22-dev brings libxml2, libffi and libz3, which its CMake files look for.
REQUIRED_PACKAGES = {
    "llvm-22-dev": "LLVM 22, the compiler's back end",
    "clang-22": "compiles the device library (src/devlib), and in programs functions in C++ (@wp.func_native)",
    "zlib1g-dev": "LLVM is linked against zlib; files of volumes are compressed by it",
    "libzstd-dev": "LLVM is linked against zstd",
    "libtbb-dev": "oneTBB, the thread pool",
    "libsleef-dev": "SLEEF, SIMD mathematics",
    "libblis-serial-dev": "BLIS, products of matrices",
}
TEST_PACKAGES = {
    "libgtest-dev": "GoogleTest, for the C++ tests",
    "libnanovdb-dev": "NanoVDB, with which our volumes are compared",
    "libblosc-dev": "blosc, a codec of volumes' files; programs need libblosc1, and only for these",
    "openmpi-bin": "Open MPI, for the tests of several processes",
    "libopenmpi-dev": "Open MPI's library under the name that mpi4py looks for",
}
# Not needed, but worth having.
HELPFUL_PACKAGES = {
    "libclc-22": "libclc, which may take libdevice's place; its tests are skipped without it",
    "lld-22": "links several times as fast as GNU ld",
}


class SetupError(Exception):
    """A missing requirement and its remedy; shown without a traceback."""


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
    """Whether dpkg has the package, in any version."""
    answer = subprocess.run(["dpkg-query", "-W", "-f", "${Status}", package], capture_output=True, text=True)
    return answer.stdout.endswith(" installed")


def python_packages():
    """The missing ones of the parts of this Python that Debian ships separately."""
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


def install_system_packages(has_tests):
    if not shutil.which("dpkg-query"):
        print("not a Debian system: CMake will say what is missing (the list is in CONTRIBUTING.md)")
        return
    missing = python_packages()
    required = REQUIRED_PACKAGES | TEST_PACKAGES if has_tests else REQUIRED_PACKAGES
    missing |= {name: why for name, why in required.items() if not is_installed(name)}
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
    """(major, minor) of the Python in .venv; None if there is no working one."""
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
extras, groups = project["project"]["optional-dependencies"], project["dependency-groups"]
wanted = [*project["build-system"]["requires"], *project["project"]["dependencies"], *extras["examples"]]
wanted += groups["build"] + groups["cuda"]
if sys.argv[2] != "demo":
    wanted += groups["interop"]
if sys.argv[2] == "tests":
    wanted += [*extras["test"], *groups["dev"]]
print(*wanted, sep="\\n")
"""


def install_requirements(purpose):
    """Installs the requirements in pyproject.toml, and records them in .venv."""
    command = [VENV / "bin/python", "-c", REQUIREMENTS_SCRIPT, ROOT / "pyproject.toml", purpose]
    wanted = subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()
    note = VENV / "weft-requirements.txt"
    installed = note.read_text().splitlines() if note.exists() else []
    if not set(wanted) <= set(installed):
        print(f"installing {len(wanted)} Python packages and what they need", flush=True)
        run(VENV / "bin/python", "-m", "pip", "install", "--quiet", *wanted)
        note.write_text("\n".join(wanted) + "\n")


# ---- the build ----


def is_configured(purpose):
    """Whether the build folder is there, with all that this purpose asks for."""
    cache = BUILD / "CMakeCache.txt"
    if not (BUILD / "build.ninja").exists() or not cache.exists():
        return False
    options = cache.read_text()
    has_tests, is_quick = "WEFT_BUILD_TESTS:BOOL=OFF" not in options, "WEFT_QUICK:BOOL=ON" in options
    return purpose == "demo" or (not is_quick and (has_tests or purpose != "tests"))


def build(purpose):
    # By their full paths: elsewhere on PATH there may be an older cmake, or a wrapper for one that is not installed.
    ninja = VENV / "bin/ninja"
    has_tests = purpose == "tests"
    if not is_configured(purpose):
        tests = "ON" if has_tests else "OFF"
        options = {
            "CMAKE_MAKE_PROGRAM": ninja,
            "Python_EXECUTABLE": VENV / "bin/python",
            "WEFT_BUILD_TESTS": tests,
            "WEFT_BUILD_LIBRARY": tests,
            "WEFT_QUICK": "ON" if purpose == "demo" else "OFF",
        }
        settings = [f"-D{name}={value}" for name, value in options.items()]
        run(VENV / "bin/cmake", "-S", ROOT, "-B", BUILD, "-G", "Ninja", *settings)
    answer = subprocess.run([ninja, "-C", BUILD, *([] if has_tests else ["python_package"])])
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
    purposes = {(): "tests", ("--for", "demo"): "demo", ("--for", "interop"): "interop"}
    try:
        purpose = purposes.get(tuple(sys.argv[1:]))
        if purpose is None:
            raise SetupError(f"expected no arguments, --for demo or --for interop; found {' '.join(sys.argv[1:])}")
        check_python()
        install_system_packages(has_tests=purpose == "tests")
        create_venv()
        install_requirements(purpose)
        build(purpose)
        make_importable()
    except SetupError as error:
        print(f"\nsetup: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
