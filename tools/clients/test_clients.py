"""`make test-clients`: programs of others, written for this API, against the Weft of this tree.

Installs mujoco-warp, and with --newton newton, into .venv-clients; they never become a dependency. Compiles all their
kernels, compares step() of mujoco-warp with mujoco, times it, with --tests runs the tests of the packages on the CPU,
and writes docs/clients.md. Needs the package index, and a built Weft. A kernel that needs a feature that Weft does not
have is no failure: the page lists it. A step that differs from mujoco's is one.
"""

import argparse
import collections
import json
import os
import platform
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
VENV = ROOT / ".venv-clients"
PYTHON = VENV / "bin" / "python"
BUILD = ROOT / os.environ.get("BUILD", "build")
PAGE = ROOT / "docs" / "clients.md"
SCRIPTS = ROOT / "tools" / "clients"

VERSIONS = {"mujoco-warp": "4.0.0", "mujoco": "4.0.0", "newton": "1.8.0"}
# Without the dependencies that the packages name: one of them installs a package `warp` of its own.
PACKAGES = {
    "mujoco_warp": [
        f"mujoco-warp=={VERSIONS['mujoco-warp']}",
        f"mujoco=={VERSIONS['mujoco']}",
        f"mujoco-core=={VERSIONS['mujoco']}",
        "absl-py",
        "etils",
        "numpy",
        "importlib_resources",
        "typing_extensions",
        "zipp",
        "fsspec",
        *("pytest", "iniconfig", "packaging", "pluggy", "pygments"),
    ],
    "newton": [f"newton=={VERSIONS['newton']}"],
}
SLOWEST = 10
MOST_DIFFERENCE = 1e-4  # of a coordinate, in metres or radians, after the steps of compare_step.py
WORLDS = (1, 256)
PEER = ROOT / ".venv-peer" / "bin" / "python"  # bench/run.py makes it


def install(packages):
    if not PYTHON.exists():
        subprocess.run([sys.executable, "-m", "venv", VENV], check=True)
    wanted = [requirement for package in packages for requirement in PACKAGES[package]]
    subprocess.run([PYTHON, "-m", "pip", "install", "--quiet", "--no-deps", *wanted], check=True)
    site = subprocess.run(
        [PYTHON, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))"],
        check=True,
        capture_output=True,
        text=True,
    ).stdout.strip()
    Path(site, "weft_lang.pth").write_text(f"{BUILD / 'py'}\n")


def lines_of(script, *arguments, python=PYTHON, **variables):
    """The lines of JSON that a script prints; if the process failed, a last one with its exit status and error."""
    command = [python, SCRIPTS / script, *arguments]
    environment = {**os.environ, **variables}
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment
    ) as process:
        output, errors = process.communicate()
    lines = [json.loads(line) for line in output.splitlines() if line.startswith("{")]
    if process.returncode != 0:
        last = (errors.strip().splitlines() or [""])[-1]
        lines.append({"ended": f"the process ended with {process.returncode}: {last}"})
    return lines


def compile_all(package):
    """The outcome of each kernel. A kernel that ends the process is left out the next time."""
    found, about, crashed = {}, {}, {}
    while True:
        begun = None
        for line in lines_of("compile_kernels.py", package, *crashed):
            if "missing" in line:
                about = line
            elif "begins" in line:
                begun = line["begins"]
            elif "kernel" in line:
                found[line["kernel"]] = line
                begun = None
            elif begun is None:
                raise SystemExit(f"test_clients: {package}: {line['ended']}")
            else:
                crashed[begun] = {"kernel": begun, "seconds": 0.0, "reason": line["ended"]}
        if begun is None:
            return about, list({**found, **crashed}.values())


def short_reason(reason):
    """One name for a feature that many kernels lack."""
    text = re.sub(r"^.*?: error: ", "", reason)
    name = re.search(r"the module 'warp' has no attribute '(\w+)'", text)
    if name:
        kind = name[1].split("_")[0]
        return "tiles" if kind == "tile" else f"`wp.{name[1]}`"
    text = re.sub(r"^<C\+\+ of .*?>:\d+:\d+: error: ", "C++ snippet: ", reason) if "<C++ of" in reason else text
    return re.sub(r"'[^']*'", "'…'", text)[:120].replace("|", "\\|")


def table(title, rows):
    header = ["| " + " | ".join(title) + " |", "|" + " --- |" * len(title)]
    return [*header, *("| " + " | ".join(str(cell) for cell in row) + " |" for row in rows), ""]


def package_page(package, about, kernels):
    good = [kernel for kernel in kernels if kernel["reason"] is None]
    reasons = collections.Counter(short_reason(kernel["reason"]) for kernel in kernels if kernel["reason"] is not None)
    seconds = sum(kernel["seconds"] for kernel in good)
    page = [f"## {package.replace('_', '-')} {VERSIONS[package.replace('_', '-')]}", ""]
    if package in about["not_imported"]:
        return [*page, f"Cannot be imported: {about['not_imported'][package]}", ""]
    page += [f"{len(good)} of {len(kernels)} kernels compile, in {seconds:.1f} s of CPU time.", ""]
    page += ["Needs of the others, by the first feature that the compiler missed:", ""]
    page += table(["reason", "kernels"], reasons.most_common())
    slowest = sorted(good, key=lambda kernel: -kernel["seconds"])[:SLOWEST]
    page += [f"The slowest {SLOWEST}:", ""]
    page += table(["kernel", "CPU seconds"], [(f"`{k['kernel']}`", f"{k['seconds']:.2f}") for k in slowest])
    if about["missing"]:
        names = ", ".join(f"`wp.{name}`" for name in about["missing"])
        page += [f"Names that the import asks for and Weft does not have; stand-ins were given: {names}.", ""]
    for key, title in (
        ("not_imported", "Modules that cannot be imported here"),
        ("not_made", "Functions that make kernels, and were not called or failed"),
    ):
        if about[key]:
            rows = [(f"`{name}`", reason[:140].replace("|", "\\|")) for name, reason in about[key].items()]
            page += [f"{title}:", "", *table(["name", "reason"], rows)]
    return page


def step_page(results):
    """The table, and the errors in it."""
    wrong = [result["ended"] for result in results if "ended" in result]
    results = [result for result in results if "model" in result] or [{"model": "–", "stages": {}, **results[0]}]
    rows = []
    for result in results:
        if "errors" in result:
            step = " / ".join(f"{error:.1e}" for error in result["errors"])
            cells = [step, f"{result['moved']:.2g}", result["constraints"]]
            if not all(error <= MOST_DIFFERENCE for error in result["errors"]):
                wrong.append(f"{result['model']}: step() differs from mujoco's by {step}")
        else:
            reason = (result.get("reason") or result["ended"])[:120]
            cells = ["stops: " + reason.replace("|", "\\|"), "", ""]
            if "reason" in result:
                wrong.append(f"{result['model']}: step() stops: {reason}")
        rows.append((result["model"], *result["stages"].values(), *cells))
    page = [
        "## mujoco-warp beside mujoco",
        "",
        "The largest difference of the results of each stage of a step, f32 against f64 there, and of `qpos` after 50",
        f"steps, in one world / in any of 16. {MOST_DIFFERENCE:g} is allowed. Then the distance that `qpos` moved, and",
        "the most constraints at a time.",
        "",
    ]
    titles = ["model", *results[0]["stages"], "step()", "moved", "constraints"]
    return page + table(titles, rows), wrong


def time_page():
    """How long a step of the humanoid takes, here and in release 1.19."""
    site = next(VENV.glob("lib/python*/site-packages"))
    runs = [("Weft", PYTHON, {"WARP_CPU_THREADS": "1"}), ("Weft", PYTHON, {})]
    runs += [("release 1.19", PEER, {"PYTHONPATH": str(site)})] if PEER.exists() else []
    rows = []
    for name, python, variables in runs:
        threads = variables.get("WARP_CPU_THREADS", os.cpu_count() if name == "Weft" else 1)
        for worlds in WORLDS:
            lines = lines_of("time_step.py", str(worlds), python=python, **variables)
            if "ended" in lines[-1]:
                raise SystemExit(f"test_clients: a step of {name} with {worlds} worlds: {lines[-1]['ended']}")
            found = lines[-1]
            times = [f"{found[key] * 1e3:.2f}" for key in ("step", "processors", "outside")]
            rows.append((name, threads, worlds, *times, round(found["launches"])))
    page = [
        "## A step of a humanoid",
        "",
        "mujoco-warp's `test_data/humanoid`, from its squat on: milliseconds of a step as a program calls it. They are",
        "means of 20 steps, the least of 12 rounds, of the clock and of all processors, which others used, too.",
        "*Outside* is the time between launches.",
        "",
    ]
    return page + table(["implementation", "threads", "worlds", "ms", "CPU ms", "outside", "launches"], rows)


def tests_page(package, results):
    """The numbers of a package's tests, the files in which some fail, and the reasons."""
    total = {key: sum(result[key] for result in results) for key in ("passed", "failed", "skipped", "seconds")}
    reasons = collections.Counter(short_reason(reason) for result in results for reason in result["reasons"])
    page = [
        f"## Tests of {package.replace('_', '-')}",
        "",
        f"{len(results)} files on the CPU: {total['passed']} tests pass, {total['failed']} fail, {total['skipped']} are"
        f" skipped, in {total['seconds'] / 60:.1f} minutes.",
        "",
    ]
    failing = [result for result in results if result["failed"] or result["ended"]]
    if failing:
        cells = [(f"`{r['file']}`", r["passed"], r["failed"], r["ended"] or "") for r in failing]
        page += table(["file", "pass", "fail", "end"], cells)
        page += table(["reason", "tests"], reasons.most_common(SLOWEST))
    return page


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--newton", action="store_true", help="newton's kernels too")
    parser.add_argument("--tests", action="store_true", help="run the tests of the packages too, which takes long")
    parser.add_argument("--only", choices=sorted(PACKAGES), help="print the figures of one package, write no page")
    arguments = parser.parse_args()
    packages = [arguments.only] if arguments.only else ["mujoco_warp"] + (["newton"] if arguments.newton else [])
    install(packages)
    page = [
        "# Programs of others",
        "",
        "Written by `make test-clients`, which compiles the kernels of packages that were written for this API and",
        "runs them beside their models. Nothing of theirs is part of Weft.",
        "",
        f"Python {platform.python_version()}, one process, no cache. Times are CPU seconds of the process.",
        "",
    ]
    for package in packages:
        page += package_page(package, *compile_all(package))
        if arguments.tests:
            results = lines_of("run_tests.py", package)
            if not results or "file" not in results[-1]:
                raise SystemExit(f"test_clients: the tests of {package}: {results[-1:]}")
            page += tests_page(package, results)
    if arguments.only:
        print("\n".join(page))
        return
    compared, wrong = step_page(lines_of("compare_step.py"))
    page += compared + time_page()
    PAGE.write_text("\n".join(page).rstrip() + "\n")
    print(f"test_clients: wrote {PAGE.relative_to(ROOT)}")
    if wrong:
        raise SystemExit("\n".join(wrong))


if __name__ == "__main__":
    main()
