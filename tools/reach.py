"""Which tests run which lines of src/, for tools/mutate.py: counted by a build of its own with `gcc --coverage`.

A change of a line can only be noticed by a test that runs the function around it. Counts are kept for each C++ program
and each file of Python tests, and looked at by gcov when a line of a file is asked for.
"""

import json
import os
import shutil
import subprocess
from pathlib import Path

MOST_OBJECTS = 12  # gcov reads the counts of each for each test


class Reach:
    """A build in `folder` of one commit, and what its tests reached.

    ``measure`` builds and runs what has not run yet, which takes long; stopped, it goes on where it was.
    """

    def __init__(self, folder, commit, ninja):
        self.folder, self.ninja = folder, ninja
        folder.mkdir(parents=True, exist_ok=True)
        known = folder / "commit"
        if not known.exists() or known.read_text() != commit:
            shutil.rmtree(folder / "counts", ignore_errors=True)
            known.write_text(commit)
        self.lines = {}  # path -> {unit: lines that it ran}, and where functions begin and end

    def measure(self, units, make, run):
        """Runs the units that have no counts yet: `make(build, options of cmake)` builds, and
        `run(unit, build, environment)` gives whether the unit passed. Counts belong to the build that they were made
        with: it is not touched afterwards.
        """
        left = [unit for unit in units if not (self._counts(unit) / "done").exists()]
        build = self.folder / "build"
        if left:
            flags = "--coverage -O1 -g0 -fprofile-update=atomic"
            linking = [f"-DCMAKE_{kind}_LINKER_FLAGS=--coverage" for kind in ("EXE", "MODULE", "SHARED")]
            make(build, ["-DCMAKE_BUILD_TYPE=Debug", f"-DCMAKE_CXX_FLAGS={flags}", *linking])
        for unit in left:
            counts = self._counts(unit)
            if not run(unit, build, {"GCOV_PREFIX": str(counts)}):
                raise SystemExit(f"mutate.py: {unit} fails in the build with coverage")
            counts.mkdir(parents=True, exist_ok=True)
            (counts / "done").write_text("")

    def units(self, path, line, units):
        """Those of `units` that ran something of the function around line `line` (from 1); all where that is unknown.

        Outside of functions, as for a constant, those that ran anything of the file.
        """
        if path.endswith(".py"):
            return list(units)
        if path not in self.lines:
            objects = self._objects(path)
            if len(objects) > MOST_OBJECTS:  # a header that is everywhere
                return list(units)
            self.lines[path] = {unit: self._read(path, objects, unit) for unit in units}
        known = self.lines[path]
        functions = set().union(*(functions for _, functions in known.values()))
        if not functions:
            return list(units)
        around = [(begin, end) for begin, end in functions if begin <= line <= end]
        ranges = around or [(0, 10**9)]
        return [unit for unit in units if any(begin <= ran <= end for ran in known[unit][0] for begin, end in ranges)]

    def _counts(self, unit):
        return self.folder / "counts" / unit.replace("/", "+")

    def _objects(self, path):
        """The object files, from the build folder on, that the file is a part of."""
        build = self.folder / "build"
        if path.endswith(".cpp"):
            return [object.relative_to(build) for object in build.glob(f"CMakeFiles/*.dir/{path}.o")]
        found, current = [], None
        deps = subprocess.run(
            [self.ninja, "-C", build, "-t", "deps"], check=True, capture_output=True, text=True
        ).stdout
        for line in deps.splitlines():
            if line and not line.startswith((" ", "ninja:")):
                current = Path(line.split(":")[0])
            elif line.endswith("/" + path):
                found.append(current)
        return found

    def _read(self, path, objects, unit):
        """(the lines of `path` that the unit ran, where its functions begin and end)."""
        root = Path(str(self._counts(unit)) + str(self.folder / "build"))
        ran, functions = set(), set()
        for object in objects:
            data = (root / object).with_suffix(".gcda")
            if not data.exists():
                continue
            notes = data.with_suffix(".gcno")
            if not notes.exists():
                os.symlink((self.folder / "build" / object).with_suffix(".gcno"), notes)
            command = ["gcov", "--json-format", "--stdout", str(data)]
            answer = subprocess.run(command, check=True, capture_output=True, text=True, cwd=root).stdout
            for file in json.loads(answer)["files"]:
                if not file["file"].endswith("/" + path):
                    continue
                ran |= {entry["line_number"] for entry in file["lines"] if entry["count"]}
                functions |= {(entry["start_line"], entry["end_line"]) for entry in file["functions"]}
        return ran, functions
