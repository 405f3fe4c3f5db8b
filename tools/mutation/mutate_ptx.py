"""Changes single instructions in the kernels of CUDA devices and runs the tests: which changes does no test notice?

    python tools/mutation/mutate_ptx.py [--count 200] [--seed 1] [--files FILE ...] [--keep FOLDER]

The files run once on the emulated device, with `--other-numbers` (tests/support/other_numbers): the texts of their
kernels are kept, and which test compiled each. Then, for each mutant, one instruction of a text is changed, and the
file whose test compiled it runs with that text in place of the compiler's (WEFT_TAKE_PTX): first that test, and if it
passes, all of the file. A mutant is noticed if a test fails: by its numbers, or since the emulated device stops the
kernel. A mutant whose instruction no test executes does not count: with `trap` in its place the tests pass too.

Some changes are not made. Moves and conversions between registers of one size change names, not numbers. Two equal
operands cannot be exchanged, nor those of a difference that is only squared. An adjoint for arrays without gradients
writes nothing. Additions of 0 to a number in memory have no effect, nor have stores that are overwritten at once.
Functions of libdevice's own have tests of their own. The number that takes the place of a divisor is arbitrary if the
quotient does not count. If all threads do the same, it does not matter which of them run. And the steps of the loop
over the grid are left out, which a launch of few threads never repeats: tests of their own are about these
(tests/cuda/test_cuda.py, tests/launches/test_tid.py). A survivor that computes the same for every input that the
compiler allows is a line of equivalent_mutants.txt, with the reason, and does not count either.

Each run is a process that is forked from one that has imported everything, and takes a second or so.
"""

import argparse
import collections
import contextlib
import os
import random
import re
import resource
import shutil
import signal
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
from campaign import known_as_equivalent, one_of, replaced_line, summary

ROOT = Path(__file__).resolve().parents[2]
FILES = (
    "tests/arrays/test_arithmetic.py tests/language/test_control_flow.py tests/structs/test_structs.py"
    " tests/types/test_vectors.py tests/arrays/test_kernel_arrays.py tests/language/test_indexing.py"
    " tests/language/test_functions.py tests/language/test_statements.py tests/cuda/test_cuda.py tests/cuda/test_ptx.py"
    " tests/gradients/test_kernels.py tests/gradients/test_atomics.py tests/gradients/test_tape.py"
    " tests/gradients/test_hessians.py tests/gradients/test_tangents.py tests/builtins/test_geometry.py"
)
# Seconds of a processor, for a test and for a file; these need a third of them at most, as they are. A change that
# makes a kernel run for ever is noticed.
SECONDS_OF_TEST, SECONDS_OF_FILE = 90, 300
MOST_SECONDS = 3600  # of a run that waits for ever
# The bits that tell whether numbers of 64 bits are divided as such, or as numbers of 32 bits: more bits cost time only.
UPPER_HALF = ", -4294967296;"
LARGEST_TEXT = 100_000  # characters: larger ones are of kernels of thousands of calls


# ---- changes ----

INSTRUCTION = re.compile(r"^\s+(?P<guard>@!?%p\d+\s+)?(?P<opcode>[a-z][\w.:]*)\s+(?P<operands>[^;]*);\s*$")


def instruction(line):
    """(guard, opcode, operands) or None."""
    match = INSTRUCTION.match(line)
    if not match or match["opcode"].startswith("."):
        return None
    return match["guard"] or "", match["opcode"], [word.strip() for word in split(match["operands"])]


def split(operands):
    """By commas outside of brackets and braces."""
    return re.split(r",(?![^\[{(]*[\]})])", operands)


def line_of(guard, opcode, operands):
    return f"\t{guard}{opcode} \t{', '.join(operands)};"


def flipped_guard(guard):
    return guard.replace("@!", "@") if "@!" in guard else guard.replace("@", "@!")


OTHER_OPERATION = {"add": "sub", "sub": "add", "min": "max", "max": "min", "and": "or", "or": "and", "xor": "and"}
NEXT_COMPARISON = {"lt": "le", "le": "lt", "gt": "ge", "ge": "gt"}
NEXT_COMPARISON |= {"ltu": "leu", "leu": "ltu", "gtu": "geu", "geu": "gtu"}
OPPOSITE = {"lt": "ge", "le": "gt", "gt": "le", "ge": "lt", "eq": "ne", "ne": "eq"}
OPPOSITE |= {"ltu": "ge", "leu": "gt", "gtu": "le", "geu": "lt", "equ": "ne", "neu": "eq"}
NO_COMMUTING = ("sub", "div", "rem", "shl", "shr")


def changes(line):
    """(kind, changed line) for each change of an instruction."""
    found = instruction(line)
    if found is None:
        return
    guard, opcode, operands = found
    words = opcode.split(".")
    name = words[0]
    if guard:
        yield "guard", line_of(flipped_guard(guard), opcode, operands)
    if name in ("bra", "ret", "mov", "cvta", "exit", "trap") or name.startswith("."):
        return
    if name in OTHER_OPERATION and len(operands) == 3:
        yield "operation", line_of(guard, ".".join([OTHER_OPERATION[name], *words[1:]]), operands)
    if name == "mul" and words[1] in ("rn", "lo"):
        rest = words[1:] if words[1] == "rn" else words[2:]
        yield "operation", line_of(guard, ".".join(["add", *rest]), operands)
    if name in ("fma", "mad") and len(operands) == 4:
        yield "operands", line_of(guard, opcode, [operands[0], operands[1], operands[3], operands[2]])
    if name == "setp":
        for table in (NEXT_COMPARISON, OPPOSITE):
            if words[1] in table:
                yield "comparison", line_of(guard, ".".join([name, table[words[1]], *words[2:]]), operands)
    if name == "selp":
        yield "operands", line_of(guard, opcode, [operands[0], operands[2], operands[1], operands[3]])
    if name in NO_COMMUTING and len(operands) == 3 and all(word.startswith("%") for word in operands):
        yield "operands", line_of(guard, opcode, [operands[0], operands[2], operands[1]])
    if name in ("abs", "neg", "not") and len(words) > 1:
        kind = words[-1].replace("s", "b") if words[-1] in ("s32", "s64", "s16") else words[-1]
        yield "operation", line_of(guard, f"mov.{kind}", operands)
    if name in ("st", "red"):
        yield "left out", "\t// left out"
    if name == "atom" and ".add." in opcode:
        yield "operation", line_of(guard, opcode.replace(".add.", ".exch.").replace(".rn", ""), operands)
    if name in ("ld", "st") and "param" not in opcode:
        size = int(re.search(r"[bfsu](\d+)$", opcode)[1]) // 8
        for i, word in enumerate(operands):
            if match := re.fullmatch(r"\[(%rd\d+)(?:\+(-?\d+))?\]", word):
                moved = [*operands]
                moved[i] = f"[{match[1]}+{int(match[2] or 0) + size}]"
                yield "address", line_of(guard, opcode, moved)
    if name in ("bar", "barrier"):
        yield "left out", "\t// left out"
    if name not in ("ld", "st"):
        for i, word in enumerate(operands[1:], 1):
            if re.fullmatch(r"-?\d+", word) and not (name == "lop3" and i == len(operands) - 1):
                yield "constant", line_of(guard, opcode, [*operands[:i], str(int(word) + 1), *operands[i + 1 :]])
            elif match := re.fullmatch(r"0f([0-9A-F]{8})|0d([0-9A-F]{16})", word):
                # Half as large again, by the highest bit of the fraction; one in place of zero.
                digits, one = match[1] or match[2], (0x3F800000 if match[1] else 0x3FF0000000000000)
                changed = int(digits, 16) ^ (1 << (22 if match[1] else 51)) if int(digits, 16) else one
                other = f"{word[:2]}{changed:0{len(digits)}X}"
                yield "constant", line_of(guard, opcode, [*operands[:i], other, *operands[i + 1 :]])


def steps_of_the_grid(lines):
    """Numbers of the lines that compute how far a thread goes to its next point of the grid, that go there, or that ask
    then whether there is one."""
    steps, points, blocks, found = set(), set(), set(), set()
    for number, line in enumerate(lines):
        if (one := instruction(line)) is None:
            continue
        _, opcode, operands = one
        sources = {name for word in operands[1:] for name in re.findall(r"%\w+(?:\.x)?", word)}
        if "%nctaid.x" in sources or sources & steps:
            found.add(number)
            is_at_next = opcode.startswith("add.") and not sources <= steps
            (points if is_at_next else steps).add(operands[0])
        elif "%ctaid.x" in sources or (opcode.startswith("mul.") and sources & blocks):
            blocks.add(operands[0])
        elif opcode.startswith("add.") and sources & points and sources & blocks:
            points.add(operands[0])  # which counts from the first point of the block elsewhere
        elif opcode.startswith("setp.") and sources & points:
            found.add(number)
    return found


def functions(lines):
    """For each function of a text: the numbers of its lines; the instructions that define each register, as (number,
    guard, opcode, operands); and how often each is used."""
    start = 0
    for end, last in enumerate(lines):
        if last != "}":
            continue
        made, used = collections.defaultdict(list), collections.Counter()
        for number in range(start, end):
            # In any line: some instructions stand in braces, with a register of their own.
            used.update(re.findall(r"%\w+", lines[number]))
            if one := instruction(lines[number]):
                made[one[2][0]].append((number, *one))
        used.subtract({name: len(makers) for name, makers in made.items()})
        yield range(start, end), made, used
        start = end + 1


def places_in_the_grid_that_do_not_count(lines):
    """Numbers of the lines that compute which thread this is, in a function that only asks whether it belongs to the
    launch: all threads store the same, and it does not matter which of them do."""
    found = set()
    for numbers, _, _ in functions(lines):
        places, uses = {"%tid.x"}, set()
        if any(re.match(r"\s+(@!?%p\d+\s+)?(red|atom|call)\b", lines[number]) for number in numbers):
            continue  # which may count the threads
        for number in numbers:
            if one := instruction(lines[number]):
                guard, opcode, operands = one
                sources = operands if opcode.startswith("st.") else operands[1:]
                if places & {name for word in [guard, *sources] for name in re.findall(r"%\w+(?:\.x)?", word)}:
                    uses.add(number)
                    places.add(operands[0])
        stays = ("mov.", "cvt.", "add.", "mul.", "mad.", "setp.", "bra")
        if all(instruction(lines[number])[1].startswith(stays) for number in uses):
            found |= uses
    return found


NO_MAKER = None, "", "", []


def only_maker(made, name):
    """The instruction that defines a register, as functions() gives it; NO_MAKER unless there is exactly one."""
    return made[name][0] if len(made[name]) == 1 else NO_MAKER


def divisors_that_do_not_count(lines):
    """Numbers of the lines that put 1 in place of a divisor if the quotient is not taken either:

        selp.b32 %divisor, 1, %r1, %p1;
        div.s32 %quotient, %r2, %divisor;
        selp.b32 %result, 0, %quotient, %p1;

    If %p1 holds, the quotient goes nowhere else, so that any number that divides does as well as 1."""
    found = set()
    for _, made, used in functions(lines):

        def single(name, made=made, used=used):
            """The only instruction that defines this register, if only one other uses it; else NO_MAKER."""
            return only_maker(made, name) if used[name] == 1 else NO_MAKER

        for _, _, opcode, operands in [maker for makers in list(made.values()) for maker in makers]:
            if not opcode.startswith("selp.") or len(made[operands[-1]]) != 1:
                continue
            _, guard, division, of_division = single(operands[2])
            if guard or not division.startswith(("div.s", "div.u", "rem.s", "rem.u")):
                continue
            number, guard, choice, of_choice = single(of_division[2])
            if not guard and choice.startswith("selp.") and of_choice[1] == "1" and of_choice[-1] == operands[-1]:
                found.add(number)
    return found


def differences_that_are_squared(lines):
    """Numbers of the lines whose result only multiplies itself, so that its sign does not count:

    sub.rn.f32 %difference, %r1, %r2;
    mul.rn.f32 %r3, %difference, %difference;
    """
    found = set()
    for numbers, made, used in functions(lines):
        squared = collections.Counter()
        for number in numbers:
            one = instruction(lines[number])
            if one and one[1].startswith(("mul.rn", "fma.rn")) and one[2][1] == one[2][2]:
                squared[one[2][1]] += 2
        for name, makers in made.items():
            if len(makers) == 1 and makers[0][2].startswith(("sub.rn", "neg.f")) and used[name] == squared[name] > 0:
                found.add(makers[0][0])
    return found


def stores_of_what_was_read(lines):
    """Numbers of the lines that store the value that was read there, with a zero added to it:

    ld.b64 %r1, [%place+8];
    add.rn.f64 %r2, %r1, 0d0000000000000000;
    st.b64 [%place+8], %r2;
    """
    found = set()
    for numbers, made, _ in functions(lines):
        for number in numbers:
            _, opcode, operands = instruction(lines[number]) or ("", "", [])
            if not opcode.startswith("st."):
                continue
            place, stored = operands
            _, guard, sum_of, terms = only_maker(made, stored)
            if guard or not sum_of.startswith("add.rn.f") or not re.fullmatch(r"0[fd]0+", terms[2]):
                continue
            _, guard, load, loaded = only_maker(made, terms[1])
            if not guard and load == opcode.replace("st.", "ld.", 1) and loaded[1] == place:
                found.add(number)
    return found


COMPUTES = re.compile(r"(abs|add|and|cvt|div|fma|ld\.param|mad|max|min|mov|mul|neg|not|or|selp|setp|sh[lr]|sub|xor)\.")


def stores_that_are_overwritten(lines):
    """Numbers of the stores that another store overwrites, with nothing between that reads memory or leaves:

    st.global.b64 [%place+8], %r1;
    st.global.b64 [%place+8], %r2;
    """
    found, stores = set(), {}  # (opcode, address): number of the line
    for number, line in enumerate(lines):
        guard, opcode, operands = instruction(line) or ("", "", [""])
        if opcode.startswith("st.") and not guard:
            place = opcode, operands[0]
            if place in stores:
                found.add(stores[place])
            stores[place] = number
        elif COMPUTES.match(opcode):
            # The register may be part of another place from here on.
            stores = {key: store for key, store in stores.items() if operands[0] not in re.findall(r"%\w+", key[1])}
        elif line.strip() and not line.strip().startswith(".loc"):
            stores = {}
    return found


WRITES = re.compile(
    r"^\s+(@!?%p\d+\s+)?(st(?!\.local|\.param)|atom|red|call\S*\s+(\(\w+\),\s*)?(?!__)\w)", re.MULTILINE
)


def writes(text):
    """Whether a text may change memory that others see: functions of libdevice do not."""
    return WRITES.search(text) is not None


def functions_of_the_library(lines):
    """Numbers of the lines of functions that libdevice brings along, which are not ours; tests of their own are about
    the numbers that they give (tests/builtins/test_libraries_of_gpus.py)."""
    return {number for numbers, _, _ in functions(lines) for number in numbers if is_of_the_library(lines, numbers)}


def is_of_the_library(lines, numbers):
    return any(re.match(r"\.func\b.*\s__\w+\($", lines[number]) for number in numbers)


# ---- texts ----


@dataclass(frozen=True)
class Mutant:
    file: str  # of the text
    kernel: str
    number: int  # of the line
    kind: str
    before: str
    after: str
    test: str  # that compiled the text

    @property
    def key(self):
        return f"{self.kernel} | {' '.join(self.before.split())} | {' '.join(self.after.split())}"


def mutants_of(path, test):
    text = path.read_text()
    if len(text) > LARGEST_TEXT or not writes(text):
        return []
    lines = text.splitlines()
    left_out = steps_of_the_grid(lines) | places_in_the_grid_that_do_not_count(lines)
    left_out |= stores_of_what_was_read(lines) | functions_of_the_library(lines)
    overwritten = stores_that_are_overwritten(lines)
    divisors = divisors_that_do_not_count(lines)
    squared = differences_that_are_squared(lines)

    def counts(number, line, kind, changed):
        if number in squared and (kind == "operands" or instruction(line)[1].startswith("neg")):
            return False
        if kind == "left out" and number in overwritten:
            return False
        if kind == "constant" and (number in divisors or UPPER_HALF in line):
            return False
        if kind == "operation" and re.search(r"\b(add|sub)\.rn\.f\d\d\b.*, 0[fd]0+;", line):
            return False  # the sign of a zero
        return changed.split() != line.split()

    kernel = lines[0].removeprefix("// ")
    return [
        Mutant(path.name, kernel, number, kind, line, changed, test)
        for number, line in enumerate(lines)
        if number not in left_out
        for kind, changed in changes(line)
        if counts(number, line, kind, changed)
    ]


# ---- runs ----


class Witnesses:
    """A plugin of pytest: which test was the first to compile each text."""

    def __init__(self, folder):
        self.folder, self.known, self.tests = folder, set(), {}

    def pytest_runtest_teardown(self, item):
        for path in self.folder.glob("*.ptx"):
            if path.name not in self.known:
                self.known.add(path.name)
                self.tests[path.name] = item.nodeid


def run(tests, settings, plugins=(), then=None):
    """The exit code of pytest in a forked process, or another number but 0 if it took too long. Processor time counts,
    so that the load of the machine makes no difference. `then` runs there at the end."""
    child = os.fork()
    if child == 0:
        os.environ.update(settings)
        if settings.get("WEFT_TAKE_PTX"):
            seconds = SECONDS_OF_TEST if "::" in tests[0] else SECONDS_OF_FILE
            resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds))
        code = 70
        with tempfile.TemporaryDirectory() as cache, open(os.devnull, "w") as nothing:
            os.environ["WARP_CACHE_PATH"] = cache
            os.dup2(nothing.fileno(), 1)
            os.dup2(nothing.fileno(), 2)
            import pytest

            options = ["-q", "-x", "-p", "no:cacheprovider", "--device", "cuda:0", "--other-numbers"]
            code = int(pytest.main([*options, *tests], [*plugins]))
            if then:
                then()
        os._exit(code)
    end = time.monotonic() + MOST_SECONDS
    while time.monotonic() < end:
        done, status = os.waitpid(child, os.WNOHANG)
        if done:
            return os.waitstatus_to_exitcode(status)
        time.sleep(0.02)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return None


def record(files, texts):
    """{text: test}"""
    table = texts / "tests.txt"
    witnesses = Witnesses(texts)

    def write():
        table.write_text("".join(f"{name}\t{test}\n" for name, test in witnesses.tests.items()))

    code = run(files, {"WEFT_KEEP_PTX": str(texts)}, [witnesses], write)
    if code != 0:
        sys.exit(f"mutate_ptx.py: the tests have to pass first; pytest ended with {code}: {' '.join(files)}")
    return dict(line.split("\t") for line in table.read_text().splitlines())


def passes(mutant, line, texts, tests):
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, mutant.file).write_text(replaced_line((texts / mutant.file).read_text(), mutant.number, line))
        return run(tests, {"WEFT_TAKE_PTX": folder}) == 0


def judge(mutant, texts):
    """'noticed', 'not executed' or 'survived'."""
    file = mutant.test.split("::")[0]
    if not passes(mutant, mutant.after, texts, [mutant.test]):
        return "noticed"
    guard = (instruction(mutant.before) or ("",))[0]
    trap = f"\t{guard if mutant.kind != 'guard' else ''}trap;"
    if passes(mutant, trap, texts, [mutant.test]) and passes(mutant, trap, texts, [file]):
        return "not executed"
    return "survived" if passes(mutant, mutant.after, texts, [file]) else "noticed"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--count", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--files", nargs="+", default=FILES.split())
    parser.add_argument("--keep", type=Path, help="a folder in which the texts of the first run stay for the next")
    options = parser.parse_args()
    os.chdir(ROOT)
    os.environ["WARP_CUDA_DRIVER"] = "emulated"
    import hypothesis  # noqa: F401 - imported once, before the processes are forked
    import numpy  # noqa: F401
    import pytest  # noqa: F401
    import warp  # noqa: F401

    equivalent, results = known_as_equivalent(), []
    with contextlib.ExitStack() as stack:
        texts = options.keep or Path(stack.enter_context(tempfile.TemporaryDirectory()))
        texts.mkdir(exist_ok=True)
        kept = texts / "tests.txt"
        if kept.exists():
            tests = dict(line.split("\t") for line in kept.read_text().splitlines())
        else:
            shutil.rmtree(texts)
            texts.mkdir()
            tests = record(options.files, texts)
        rng = random.Random(options.seed)
        names = sorted(tests)
        counting = 0
        while counting < options.count:
            name = rng.choice(names)
            if not (possible := mutants_of(texts / name, tests[name])):
                continue
            mutant = one_of(rng, possible)
            outcome = "survived" if mutant.key in equivalent else judge(mutant, texts)
            counting += mutant.key not in equivalent and outcome in ("noticed", "survived")
            results.append({"key": mutant.key, "outcome": outcome, "path": mutant.file, "line": mutant.number + 1,
                            "before": mutant.before, "after": mutant.after, "text": mutant.test})  # fmt: skip
            print(f"{outcome:12} {mutant.kind:10} {mutant.key}   [{mutant.test}]", flush=True)
    print(*summary(results, equivalent), sep="\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
