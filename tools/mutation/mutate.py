"""Changes single lines of src/, emulator/src/ and python/ and runs the tests: a change unnoticed shows a gap in them.

    mutate.py                     100 mutants, about two thirds of them in rooms whose mistakes are silent
    mutate.py --count 10 --seed 3 --only src/runtime --tests test_array,test_runtime
    mutate.py --list src/program/launch/launch.cpp       the possible changes there; changes nothing
    mutate.py --show KEY                          the change of a result, as a diff

It works in a worktree of its own (build/mutants/tree, of the last commit), never on your files. First all tests run
there without a change: they have to pass, and how long each takes is kept. Then for each mutant: one line is changed,
the tree is built, the tests run until one fails, and the line is restored. By itself a mutant meets a few seconds of
tests: those that noticed earlier changes near this line and those named like its file, then the fastest. Mutants that
survive these meet all tests together, a few at a time; if a test fails, bisection finds the mutant. A mutant that does
not compile is replaced by another. A test that uses much more of the processors than it should, or none for minutes,
has noticed the mutant too; the load of the machine makes no difference.

The outcome is written to build/mutants/results.jsonl after each mutant: a run that was stopped can be continued, and
--seed draws the same mutants again. Survivors are printed at the end. Each either needs a test or changes nothing;
then its key and the reason are a line in equivalent_mutants.txt, and it no longer counts. With --survivors, the
mutants that survived at earlier commits meet the tests of this one.
"""

import argparse
import difflib
import json
import math
import os
import random
import re
import signal
import subprocess
import sys
import time
import xml.etree.ElementTree
from collections import Counter
from itertools import groupby
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
from campaign import known_as_equivalent, one_of, run, summary
from mutations import mutations

ROOT = Path(__file__).resolve().parents[2]
# Rooms whose mistakes give wrong numbers and no error: two thirds of the mutants.
SILENT = ("src/transform/", "src/codegen/", "src/runtime/", "src/program/")
SOURCES = ("src/**/*.cpp", "src/**/*.h", "emulator/src/**/*.cpp", "emulator/src/**/*.h", "python/warp/*.py")
# Looks at the lines of all sources, so that it fails for any change of a line that it knows.
NO_WITNESS = "tests/tools/test_mutate.py"
# Words in paths of sources and the words in names of tests that go with them, besides equal ones.
KIN = {
    "transform": {"gradients"}, "adjoint": {"gradients"}, "tape": {"gradients"}, "analysis": {"lanes"},
    "builtins": {"table"}, "codegen": {"lanes", "table", "builtins"}, "sema": {"errors"},
}  # fmt: skip


# ---- drawing ----


def candidates(root, only):
    """{path: [Mutation, ...]} of the files below `root` whose paths begin with one of `only`."""
    found = {}
    for pattern in SOURCES:
        for file in sorted(root.glob(pattern)):
            path = file.relative_to(root).as_posix()
            if not only or path.startswith(tuple(only)):
                found[path] = mutations(path, file.read_text())
    return found


def draws(found, seed):
    """Mutants without end, each at most once: two of three from SILENT, and every kind as often as the others."""
    rng = random.Random(seed)
    pools = {True: [], False: []}
    for path, changes in found.items():
        pools[path.startswith(SILENT)] += changes
    while any(pools.values()):
        pool = pools[rng.random() < 2 / 3 if all(pools.values()) else bool(pools[True])]
        mutant = one_of(rng, pool)
        yield mutant
        pool.remove(mutant)


# ---- running ----


BUILD = 3600.0  # seconds of the processors for one build


class Tree:
    """The worktree: its build and its tests."""

    def __init__(self, folder, jobs):
        self.folder, self.jobs = folder, jobs
        self.python = ROOT / ".venv/bin/python"
        self.report = folder.parent / "report.xml"

    def prepare(self):
        commit = self._git(ROOT, "rev-parse", "HEAD").strip()
        if not (self.folder / ".git").exists():
            self._git(ROOT, "worktree", "prune")
            self._git(ROOT, "worktree", "add", "--detach", str(self.folder), commit)
        self._git(self.folder, "checkout", "--force", "--detach", commit)
        if not (self.folder / "build/build.ninja").exists():
            ninja = (ROOT / ".venv/bin/ninja").resolve()
            tools = [f"-DCMAKE_MAKE_PROGRAM={ninja}", f"-DPython_EXECUTABLE={self.python}"]
            folders = ["-S", self.folder, "-B", self.folder / "build"]
            self._must([ROOT / ".venv/bin/cmake", *folders, "-G", "Ninja", *tools])
        self._must([ROOT / ".venv/bin/ninja", "-C", self.folder / "build", f"-j{self.jobs}"])
        return commit

    def build(self):
        """Whether the tree compiles. Python files are linked into the build, but the mutant before has to leave it."""
        code, _ = run([ROOT / ".venv/bin/ninja", "-C", self.folder / "build", f"-j{self.jobs}"], BUILD)
        return code == 0

    def units(self, chosen):
        """The tests whose names contain one of `chosen`: C++ programs, folders of IR, and files of Python tests."""
        programs = sorted(p for p in (self.folder / "build").glob("test_*") if os.access(p, os.X_OK) and p.is_file())
        names = [f"build/{p.name}" for p in programs]
        names += sorted({p.parent.relative_to(self.folder).as_posix() for p in self.folder.glob("tests/ir/*/*.ir")})
        names += sorted(p.relative_to(self.folder).as_posix() for p in (self.folder / "tests").rglob("test_*.py"))
        names.remove(NO_WITNESS)
        return [name for name in names if not chosen or any(word in name for word in chosen)]

    def test(self, units, limit):
        """Runs C++ programs and folders of IR, or files of Python tests in one process, until one fails: (exit code,
        test that ran last, output).
        """
        build = self.folder / "build"
        environment = {k: v for k, v in os.environ.items() if k != "WARP_CACHE_PATH"}
        environment |= {"PYTHONPATH": str(build / "py"), "PYTHONUNBUFFERED": "1"}
        if units[0].endswith(".py"):
            command = [self.python, "-m", "pytest", "-x", "-v", "-p", "no:cacheprovider"]
            command += ["-o", "junit_family=xunit1", f"--junitxml={self.report}"]
            code, output = run([*command, *units], limit, cwd=self.folder, env=environment)
            ran = re.findall(r"^(?:FAILED |ERROR )?(tests/\S+?\.py(?:::\S+)?)(?= |$)", output, re.MULTILINE)
            return code, ran[-1] if ran else units[0], output
        for unit in units:
            if unit.startswith("tests/ir/"):
                command = [build / "tools/weft-opt", "--check", *sorted((self.folder / unit).glob("*.ir"))]
            else:
                command = [build / Path(unit).name, "--gtest_brief=1"]
            code, output = run(command, limit, cwd=self.folder, env=environment)
            if code != 0:
                break
        return code, unit, output

    def seconds(self):
        """{file of Python tests: how long it took when `test` ran last}."""
        taken = Counter()
        for case in xml.etree.ElementTree.parse(self.report).iter("testcase"):
            taken[case.attrib["file"]] += float(case.attrib["time"])
        return taken

    def _git(self, folder, *arguments):
        return subprocess.run(["git", "-C", folder, *arguments], check=True, capture_output=True, text=True).stdout

    def _must(self, command):
        if subprocess.run(command, stdout=subprocess.DEVNULL).returncode != 0:
            raise SystemExit(f"mutate.py: the unchanged tree does not build: {' '.join(map(str, command))}")


PASSED = (0, 5)  # pytest gives 5 if every test of a file was left out
BATCH = 12.0  # seconds of tests that share a process
LIKELY = 15.0  # seconds of tests that a mutant meets by itself
TOGETHER = 8  # mutants that meet all tests together


def unit_of(test):
    """The program or file of a test that failed."""
    return re.split("::| ", test)[0]


def words(path):
    """The subjects of a path: the words of its folders and of its name."""
    return set(re.split(r"[/_.]", path)) - {"src", "tests", "build", "test", "python", "warp", "cpp", "h", "py"}


def ordered(units, path, noticed):
    """The units of [(seconds, unit), ...] in the order in which they meet a change of the file `path`.

    `noticed` has (path, unit) for each change that was noticed before: of the same file, folder or room.
    """
    here = Path(path).parts
    chance = Counter()
    for other, unit in noticed:
        common = len(Path(os.path.commonpath([path, other])).parts)
        chance[unit] += 4.0 ** (common - len(here)) if common >= 2 else 0.0
    topics = words(path)
    topics |= set().union(*(KIN.get(word, set()) for word in topics))
    for _, unit in units:
        chance[unit] += 0.1 * len(topics & words(unit))
    return sorted(units, key=lambda entry: (-chance[entry[1]] / (entry[0] + 0.3), entry[0], entry[1]))


def batches(units):
    """Units in order, in lists that share a process: one kind, together about BATCH seconds long."""
    for _, group in groupby(units, key=lambda entry: entry[1].endswith(".py")):
        batch = []
        for entry in group:
            batch.append(entry)
            if sum(seconds for seconds, _ in batch) >= BATCH:
                yield batch
                batch = []
        if batch:
            yield batch


def likely(units):
    """The first of the units, in their order, about LIKELY seconds of them."""
    total = 0.0
    for number, (seconds, _) in enumerate(units):
        total += seconds
        if total >= LIKELY:
            return units[: number + 1]
    return units


class Campaign:
    """Mutants and their outcomes.

    `tree` builds and tests (class Tree); `folder` keeps results.jsonl and baseline.json.
    """

    def __init__(self, tree, folder):
        self.tree, self.folder = tree, folder
        self.results = {}  # of this commit
        self.noticed = []  # (path, unit) of all commits
        self.survivors = set()  # keys of mutants that survived when they were judged last, at any commit
        folder.mkdir(parents=True, exist_ok=True)

    def load(self, commit):
        """Reads the results of earlier runs."""
        path = self.folder / "results.jsonl"
        for line in path.read_text().splitlines() if path.exists() else []:
            result = json.loads(line)
            (self.survivors.add if result["outcome"] == "survived" else self.survivors.discard)(result["key"])
            self.learn(result)
            if result["commit"] == commit:
                self.results[result["key"]] = result

    def learn(self, result):
        if result["outcome"] == "noticed":
            self.noticed.append((result["path"], unit_of(result["by"])))

    def measure(self, commit, chosen):
        """How long each unit takes without a change, in [(seconds, unit), ...], the fastest first; all must pass."""
        path = self.folder / "baseline.json"
        known = json.loads(path.read_text()) if path.exists() else {}
        if known.get("commit") != commit:
            known = {"commit": commit, "seconds": {}}
        wanted = self.tree.units(chosen)
        new = [unit for unit in wanted if unit not in known["seconds"]]
        scripts = [unit for unit in new if unit.endswith(".py")]
        for group in [*([unit] for unit in new if unit not in scripts), *([scripts] if scripts else [])]:
            begin = time.monotonic()
            code, who, output = self.tree.test(group, math.inf)
            if code not in PASSED:
                raise SystemExit(f"mutate.py: {who} fails without a change:\n{output[-2000:]}")
            taken = self.tree.seconds() if group is scripts else {group[0]: time.monotonic() - begin}
            known["seconds"] |= {unit: round(taken.get(unit, 0.0), 2) for unit in group}
            path.write_text(json.dumps(known, indent=1))
        return sorted((known["seconds"][unit], unit) for unit in wanted)

    def judge(self, mutants, units):
        """The outcome of mutants that are in the tree at once, none of them in the line of another: ("refused", ""),
        ("noticed", the test) or ("survived", "").
        """
        originals = {path: (self.tree.folder / path).read_text() for path in {mutant.path for mutant in mutants}}
        changed = dict(originals)
        for mutant in mutants:
            changed[mutant.path] = mutant.apply(changed[mutant.path])
        try:
            for path, text in changed.items():
                (self.tree.folder / path).write_text(text)
            if not self.tree.build():
                return "refused", ""
            for batch in batches(units):
                limit = 60.0 + 5.0 * sum(seconds for seconds, _ in batch)
                code, who, _ = self.tree.test([unit for _, unit in batch], limit)
                if code is None:
                    return "noticed", f"{who} (it hangs)"
                if code not in PASSED:
                    return "noticed", who
            return "survived", ""
        finally:
            for path, text in originals.items():
                (self.tree.folder / path).write_text(text)

    def judge_together(self, mutants, units):
        """The outcomes of mutants that are likely to survive, [(mutant, (outcome, test)), ...]: with all in the tree at
        once, the tests run once for all of them.
        """
        found = []
        while mutants:
            outcome, by = self.judge(mutants, units)
            if outcome == "survived":
                return [*found, *((mutant, (outcome, by)) for mutant in mutants)]
            (failed,) = [entry for entry in units if entry[1] == unit_of(by)] or [None]
            guilty = failed and self.guilty(mutants, failed)
            if not guilty:  # they do not compile together, or only together they make a test fail
                return [*found, *((mutant, self.judge([mutant], units)) for mutant in mutants)]
            found.append((guilty, (outcome, by)))
            mutants = [mutant for mutant in mutants if mutant != guilty]
            units = units[units.index(failed) :]  # the others have passed already
        return found

    def guilty(self, mutants, unit):
        """The one of the mutants that makes a unit fail by itself, or None."""
        while len(mutants) > 1:
            half = mutants[: len(mutants) // 2]
            mutants = half if self.judge(half, [unit])[0] == "noticed" else mutants[len(half) :]
        return mutants[0] if self.judge(mutants, [unit])[0] == "noticed" else None

    def run(self, mutants, count, units, commit, report=print):
        """Judges mutants until `count` compiled; gives their results."""
        names = sorted(unit for _, unit in units)
        done, waiting = [], []

        def tell(result):
            done.append(result)
            where = f"{result['path']}:{result['line']}: {result['kind']}: {result['before']!r} -> {result['after']!r}"
            report(f"{len(done):3d} {result['outcome']:10s} {where} {result['by']}")

        def keep(mutant, outcome, by):
            result = {
                "key": mutant.key, "commit": commit, "outcome": outcome, "by": by, "path": mutant.path,
                "line": mutant.line + 1, "kind": mutant.kind, "before": mutant.before, "after": mutant.after,
                "text": mutant.text.strip(), "tests": names if outcome == "survived" else [],
            }  # fmt: skip
            self.results[mutant.key] = result
            self.learn(result)
            with (self.folder / "results.jsonl").open("a") as out:
                out.write(json.dumps(result) + "\n")
            if outcome != "refused":
                tell(result)

        def decide():
            for mutant, (outcome, by) in self.judge_together(waiting, units):
                keep(mutant, outcome, by)
            waiting.clear()

        for mutant in mutants:
            if len(done) + len(waiting) == count:
                break
            result = self.results.get(mutant.key)
            # Other tests may notice mutants that those of an earlier run did not.
            if result and (result["outcome"] != "survived" or result["tests"] == names):
                if result["outcome"] != "refused":
                    tell(result)
                continue
            first = likely(ordered(units, mutant.path, self.noticed))
            outcome, by = self.judge([mutant], first)
            if outcome != "survived" or len(first) == len(units):
                keep(mutant, outcome, by)
                continue
            if any((mutant.path, mutant.line) == (other.path, other.line) for other in waiting):
                decide()
            waiting.append(mutant)
            if len(waiting) == TOGETHER:
                decide()
        decide()
        return done


# ---- output ----


def difference(mutant, text):
    """The change as a diff."""
    changed = mutant.apply(text)
    lines = difflib.unified_diff(text.split("\n"), changed.split("\n"), mutant.path, mutant.path, n=2, lineterm="")
    return "\n".join(lines)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=100, help="how many mutants that compile (100)")
    parser.add_argument("--seed", type=int, default=1, help="which ones are drawn (1)")
    parser.add_argument("--only", action="append", default=[], metavar="PATH", help="files whose path begins so")
    parser.add_argument(
        "--tests", default="", metavar="WORDS", help="tests whose name contains one of these, by commas"
    )
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="of the build")
    parser.add_argument("--folder", type=Path, default=ROOT / "build/mutants", help="the worktree and the results")
    parser.add_argument("--survivors", action="store_true", help="only what survived earlier commits, again")
    parser.add_argument("--list", metavar="PATH", help="print what could be changed in a file")
    parser.add_argument("--show", metavar="KEY", help="print a change as a diff")
    options = parser.parse_args()

    if options.list:
        for mutant in mutations(options.list, (ROOT / options.list).read_text()):
            print(mutant.key, mutant)
        return 0
    found = candidates(ROOT, options.only)
    if options.show:
        mutant = next((m for changes in found.values() for m in changes if m.key == options.show), None)
        if mutant is None:
            raise SystemExit(f"mutate.py: no line of src/, emulator/ or python/ has a change {options.show}")
        print(difference(mutant, (ROOT / mutant.path).read_text()))
        return 0

    # A shell starts jobs behind '&' with Ctrl-C ignored, and the tests would inherit that; some of them send it.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    tree = Tree(options.folder / "tree", options.jobs)
    commit = tree.prepare()
    campaign = Campaign(tree, options.folder)
    campaign.load(commit)
    units = campaign.measure(commit, [word for word in options.tests.split(",") if word])
    mutants = draws(candidates(tree.folder, options.only), options.seed)
    if options.survivors:
        mutants = (mutant for mutant in mutants if mutant.key in campaign.survivors)
    results = campaign.run(mutants, options.count, units, commit, lambda text: print(text, flush=True))
    print(*summary(results, known_as_equivalent()), sep="\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
