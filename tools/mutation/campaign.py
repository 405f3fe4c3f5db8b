"""The parts of mutation tests that mutate.py and mutate_ptx.py share: drawing, running with limits, and the outcome.

A mutant has a `kind`, and a `key` that names it in results and in equivalent_mutants.txt. That file has a
line for each mutant that no test can notice: the key, ` | `, and the reason. They do not count.
"""

import os
import signal
import subprocess
import time
from collections import Counter
from pathlib import Path

EQUIVALENT = Path(__file__).with_name("equivalent_mutants.txt")
IDLE = 300.0  # seconds without any work of the processors after which something hangs


def one_of(rng, mutants):
    """A mutant out of several, with each kind as often as the others."""
    kind = rng.choice(sorted({mutant.kind for mutant in mutants}))
    return rng.choice([mutant for mutant in mutants if mutant.kind == kind])


def known_as_equivalent():
    """{key: reason} of EQUIVALENT."""
    lines = (line.rsplit(" | ", 1) for line in EQUIVALENT.read_text().splitlines() if not line.startswith("#"))
    return {key: reason for key, reason in lines}


def replaced_line(text, number, line):
    """The text with another line `number`, counted from 0."""
    lines = text.split("\n")
    lines[number] = line
    return "\n".join(lines)


def summary(results, equivalent):
    """The lines at the end of a run, of results with a key, an outcome, a place and the text there."""
    outcomes = Counter(
        "equivalent" if result["outcome"] == "survived" and result["key"] in equivalent else result["outcome"]
        for result in results
    )
    alive = [r for r in results if r["outcome"] == "survived" and r["key"] not in equivalent]
    lines = [f"{r['key']}  {r['path']}:{r['line']}  {r['before']!r} -> {r['after']!r}\n    {r['text']}" for r in alive]
    share = 100 * outcomes["noticed"] / max(outcomes["noticed"] + outcomes["survived"], 1)
    lines.append(
        f"{len(results)} mutants: {outcomes['noticed']} noticed ({share:.0f} % of those that count), "
        f"{outcomes['equivalent']} that change nothing, {outcomes['not executed']} not executed, "
        f"{outcomes['survived']} survived"
    )
    return lines


def processor_seconds(session):
    """The processor seconds of a session's processes and of the children that they waited for."""
    ticks = 0
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = stat.read_text().rpartition(")")[2].split()
        except OSError:  # it has ended meanwhile
            continue
        if int(fields[3]) == session:
            ticks += sum(map(int, fields[11:15]))
    return ticks / os.sysconf("SC_CLK_TCK")


def run(command, limit, idle=IDLE, **options):
    """(exit code, output). The exit code is None if the command hangs: it uses more than `limit` seconds of the
    processors, or none of them for `idle` seconds. Ends the processes that it started.
    """
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace",
        start_new_session=True, **options
    )  # fmt: skip
    used, since = 0.0, time.monotonic()
    try:
        while True:
            try:
                output, _ = process.communicate(timeout=min(1.0, idle))
                return process.returncode, output
            except subprocess.TimeoutExpired:
                now = processor_seconds(process.pid)
                if now != used:
                    used, since = now, time.monotonic()
                if used > limit or time.monotonic() - since > idle:
                    break
    finally:
        if process.returncode is None:
            os.killpg(process.pid, signal.SIGKILL)
            output, _ = process.communicate()
    return None, output
