"""Probes in a process of their own, and their comparison with what release 1.19 answers: for tests and tools."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

HERE = Path(__file__).resolve().parent
FILES = sorted((HERE / "probes").glob("*.py"))


def expected_answers(path):
    """The answers of 1.19 to the probes of a file, by their names."""
    stored = HERE / "expected" / f"{Path(path).stem}.json"
    return json.loads(stored.read_text()) if stored.exists() else {}


def answers(python, path, names=(), timeout=300):
    """The answers to the probes of a file under the interpreter ``python``, by name and in the file's order.

    A probe that ends the process answers ``{"value": "crash"}``; the others are asked nevertheless.
    """
    found, asked = {}, list(names)
    while True:
        command = [str(python), str(HERE / "probing.py"), str(path), *asked]
        try:
            done = subprocess.run(command, capture_output=True, text=True, timeout=timeout)
            output, errors = done.stdout, done.stderr
        except subprocess.TimeoutExpired as error:
            output, errors = ((text or b"").decode() for text in (error.stdout, error.stderr))
        begun = None
        for line in output.splitlines():
            answer = json.loads(line)
            if "begin" in answer:
                begun = answer["begin"]
            else:
                found[answer.pop("probe")] = answer
        if begun is None and not found:
            raise RuntimeError(f"{' '.join(command)} said nothing:\n{errors[-4000:]}")
        if begun is None or begun in found:
            return found
        # The process ended within this probe.
        found[begun] = {"value": "crash"}
        rest = names_in(path)
        asked = [name for name in rest[rest.index(begun) + 1 :] if not names or name in names]
        if not asked:
            return found


def names_in(path):
    """The names of the probes of a file, without running it."""
    import ast

    def is_mark(decorator):
        return isinstance(decorator, ast.Call) and isinstance(decorator.func, ast.Name)

    functions = [node for node in ast.parse(Path(path).read_text()).body if isinstance(node, ast.FunctionDef)]
    return [f.name for f in functions if not f.name.startswith("_") and all(map(is_mark, f.decorator_list))]


def as_text(answer):
    """An answer as it is stored: the value, or ``raises`` and the nearest class of Python."""
    return f"raises {answer['raises'][0]}" if "raises" in answer else answer["value"]


def agrees(answer, expected):
    """Whether an answer is the expected one. An exception agrees when it derives from the expected class."""
    if "raises" in answer:
        return expected.removeprefix("raises ") in answer["raises"] if expected.startswith("raises ") else False
    return answer["value"] == expected


def public_names(python):
    """The names of the package under the interpreter ``python``, by module or class: see list_names.py."""
    done = subprocess.run([str(python), str(HERE / "list_names.py")], capture_output=True, text=True, timeout=120)
    if done.returncode:
        raise RuntimeError(done.stderr[-4000:])
    return json.loads(done.stdout)


def missing_names(ours):
    """Names of 1.19 that are not there, and callables that lack parameters: name -> (theirs, ours)."""
    missing, other = [], {}
    for owner, names in json.loads((HERE / "names.json").read_text()).items():
        for name, theirs in names.items():
            if name not in ours.get(owner, {}):
                missing.append(f"{owner}.{name}")
            elif theirs and ours[owner][name] is not None and set(theirs) - set(ours[owner][name]):
                other[f"{owner}.{name}"] = (theirs, ours[owner][name])
    return missing, other
