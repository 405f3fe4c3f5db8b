"""Tables of results, in Markdown, with ratios and targets.

A ratio is Weft's time over the other's: below 1 Weft is quicker. `!` marks a figure that misses its target.
"""

from __future__ import annotations

import statistics
import sys
from pathlib import Path

Figures = list  # one (median, least) in ms per round, None for a round without one

# Throughput: Weft's time may be this multiple of the hand-written loop's, strict against strict and fast against fast.
# Without an entry there is no target.
AT_MOST = {
    "saxpy": 1 / 0.9,
    "laplacian": 1 / 0.9,
    "particles": 1 / 0.9,
    "chain": 1 / 0.6,
    "nbody": 1 / 0.6,
    "mandelbrot": 1 / 0.6,
}

# Compile times and latencies: milliseconds (MiB in rows about memory) on two cores of a server.
LIMITS = {
    ("compile trivial", "first"): 30.0,
    ("compile trivial", "later"): 15.0,
    ("compile trivial", "first cached"): 2.0,
    ("compile trivial", "later cached"): 2.0,
    ("compile medium", "first"): 60.0,
    ("compile medium", "later"): 60.0,
    ("compile medium", "first cached"): 2.0,
    ("compile medium", "later cached"): 2.0,
    ("compile gradient", "first"): 150.0,
    ("compile gradient", "later"): 150.0,
    ("compile trivial to PTX", "first"): 10.0,
    ("compile trivial to PTX", "later"): 10.0,
    ("compile medium to PTX", "first"): 60.0,
    ("compile medium to PTX", "later"): 60.0,
    ("cuda launch", "3"): 0.6e-3,
    ("gpu graph", "launch"): 3e-3,
    ("compile twenty", "first"): 300.0,
    ("compile twenty", "later"): 300.0,
    ("compile hundred", "first"): 1000.0,
    ("compile hundred", "later"): 1000.0,
    ("compile longest", "first"): 1000.0,
    ("compile longest", "later"): 1000.0,
    ("tape", "sin"): 1000 * 40_000 / 2**20,
    ("tape", "scale"): 0.0,
    ("tape", "two buffers"): 999 * 40_000 / 2**20,
    ("start", "import"): 60.0,
    ("start", "memory in all"): 60.0,
    ("launch", "1"): 0.7e-3,
    ("launch", "8"): 1.0e-3,
    ("launch", "30"): 1.88e-3,  # 40 ns more for each further argument
    ("launch", "recorded 0"): 0.2e-3,
    ("launch", "recorded 1"): 0.2e-3,
    ("launch", "recorded 8"): 0.2e-3,
    ("launch", "graph of 100"): 5e-3,
    ("arrays", "empty(1)"): 0.5e-3,
    ("arrays", "zeros(1000)"): 0.6e-3,
    ("arrays", "array(numpy 1000)"): 1.5e-3,
    ("arrays", "slice"): 0.4e-3,
    ("arrays", "numpy()"): 0.4e-3,
    ("torch", "loop converted"): 6e-3,
    ("torch", "loop direct"): 2.5e-3,
    ("torch", "loop structures"): 2.5e-3,
    ("torch", "launch 3 tensors"): 1.5e-3,
    ("torch", "from"): 0.5e-3,
    ("torch", "to"): 2e-3,
}

THROUGHPUT_COLUMNS = ("weft", "cpp", "weft fast", "cpp fast", "numba", "numba fast", "peer", "numpy")
THROUGHPUT_RATIOS = (
    ("/C++", "weft", "cpp"),
    ("/C++ fast", "weft fast", "cpp fast"),
    ("/Numba", "weft", "numba"),
    ("/Numba fast", "weft fast", "numba fast"),
    ("/peer", "weft", "peer"),
    ("/NumPy", "weft", "numpy"),
)
# Limits as multiples of the bare CUDA driver's time for as many bytes and for as many launches.
DRIVER_AT_MOST = {"gpu bandwidth": 1 / 0.92, "gpu graph": 1.1}
# Gradients: the forward run and the backward pass may need this many forward runs; then the limits of the others.
BOTH_AT_MOST = {"elementwise": 3.0, "stencil": 3.0, "rollout": 4.0, "recurrence": 4.0, "jacobi": 4.0, "pairs": 4.0}
GRADIENT_COLUMNS = ("weft", "cpp", "weft fast", "cpp fast", "jax", "torch", "peer")
GRADIENT_RATIOS = (
    ("/C++", "weft", "cpp", 1.5),
    ("/C++ fast", "weft fast", "cpp fast", 1.5),
    ("/JAX", "weft", "jax", 1.0),
    ("/PyTorch", "weft", "torch", 1.0),
    ("/peer", "weft", "peer", 1.0),
)
OTHER_COLUMNS = ("weft", "peer", "numba", "jax")
OTHER_RATIOS = (("/peer", "weft", "peer"), ("/Numba", "weft", "numba"), ("/JAX", "weft", "jax"))


def _value(figures: Figures | None, best: bool) -> float | None:
    present = [figure for figure in figures or [] if figure]
    if not present:
        return None
    return min(least for _, least in present) if best else statistics.median(median for median, _ in present)


def _ratio(one: Figures | None, other: Figures | None, best: bool) -> float | None:
    if best:
        a, b = _value(one, True), _value(other, True)
        return a / b if a and b else None
    ratios = [a[0] / b[0] for a, b in zip(one or [], other or []) if a and b]
    return statistics.median(ratios) if ratios else None


def _three_digits(value: float) -> str:
    digits = 0 if value >= 100 else 1 if value >= 10 else 2
    return f"{value:.{digits}f}" if value >= 1 else f"{value:.3g}"


def _aligned(rows: list[list[str]]) -> str:
    widths = [max(len(row[c]) for row in rows) for c in range(len(rows[0]))]

    def line(row: list[str]) -> str:
        cells = [cell.ljust(w) if c < 2 else cell.rjust(w) for c, (cell, w) in enumerate(zip(row, widths))]
        return "| " + " | ".join(cells) + " |"

    rule = "|" + "|".join("-" * (w + 1) + ("-" if c < 2 else ":") for c, w in enumerate(widths)) + "|"
    return "\n".join([line(rows[0]), rule] + [line(row) for row in rows[1:]])


def _throughput(rows: dict, best: bool) -> str:
    text = [["workload", "variant", *THROUGHPUT_COLUMNS, *(title for title, _, _ in THROUGHPUT_RATIOS)]]
    for (workload, variant), columns in rows.items():
        cells = [workload, variant]
        for column in THROUGHPUT_COLUMNS:
            value = _value(columns.get(column), best)
            cells.append("–" if value is None else _three_digits(value))
        for title, one, other in THROUGHPUT_RATIOS:
            ratio = _ratio(columns.get(one), columns.get(other), best)
            limit = AT_MOST.get(workload) if "C++" in title else None
            missed = ratio is not None and limit is not None and ratio > limit
            cells.append("–" if ratio is None else f"{ratio:.2f}{' !' if missed else '' if limit is None else '  '}")
        text.append(cells)
    return _aligned(text)


def _others(rows: dict, best: bool) -> str:
    text = [["what", "variant", *OTHER_COLUMNS, "target", *(title for title, _, _ in OTHER_RATIOS)]]
    for (workload, variant), columns in rows.items():
        # Latencies read better in microseconds.
        scale = 1e3 if workload in ("launch", "cuda launch", "arrays", "torch", "paddle") else 1.0
        unit = "µs" if scale == 1e3 else "MiB" if variant.startswith("memory") or workload == "tape" else "ms"
        limit = LIMITS.get((workload, variant))
        cells = [f"{workload}, {unit}", variant]
        for column in OTHER_COLUMNS:
            value = _value(columns.get(column), best)
            missed = column == "weft" and value is not None and limit is not None and value > limit
            cells.append("–" if value is None else _three_digits(value * scale) + (" !" if missed else ""))
        cells.append("–" if limit is None else _three_digits(limit * scale))
        for _, one, other in OTHER_RATIOS:
            ratio = _ratio(columns.get(one), columns.get(other), best)
            cells.append("–" if ratio is None else f"{ratio:.3f}")
        text.append(cells)
    return _aligned(text)


def _gradients(rows: dict, best: bool) -> str:
    """A row for each gradient: the forward run and both of Weft, their ratio, then the others' time for both."""
    text = [["gradient", "variant", "forward", *GRADIENT_COLUMNS, "both / forward", *(r[0] for r in GRADIENT_RATIOS)]]
    for (workload, variant), columns in rows.items():
        if not variant.endswith(" both"):
            continue
        name = variant.removesuffix(" both")
        forward = rows.get((workload, f"{name} forward"), {}).get("weft")
        value = _value(forward, best)
        cells = [workload, name, "–" if value is None else _three_digits(value)]
        for column in GRADIENT_COLUMNS:
            value = _value(columns.get(column), best)
            cells.append("–" if value is None else _three_digits(value))
        limits = [BOTH_AT_MOST[workload], *(limit for *_, limit in GRADIENT_RATIOS)]
        pairs = [(columns.get("weft"), forward)]
        pairs += [(columns.get(one), columns.get(other)) for _, one, other, _ in GRADIENT_RATIOS]
        for (one, other), limit in zip(pairs, limits):
            ratio = _ratio(one, other, best)
            cells.append("–" if ratio is None else f"{ratio:.2f}{' !' if ratio > limit else '  '}")
        text.append(cells)
    return _aligned(text)


def _gpu(rows: dict, best: bool) -> str:
    """Weft beside the bare driver, CUDA C++ and all peers that gave figures; or beside a limit, if there is one."""
    first = ["driver", "cpp"]
    others = first + sorted({title for columns in rows.values() for title in columns} - {"weft", *first})
    text = [["on a GPU", "variant", "weft", *others, "target", *(f"/{title}" for title in others)]]
    for (workload, variant), columns in rows.items():
        values = {title: _value(columns.get(title), best) for title in ("weft", *others)}
        weft, limit = values["weft"], LIMITS.get((workload, variant))
        cells = ["–" if value is None else _three_digits(value * 1e3) for value in (*values.values(), limit)]
        cells[0] += " !" if weft is not None and limit is not None and weft > limit else ""
        for title in others:
            ratio = _ratio(columns.get("weft"), columns.get(title), best)
            most = DRIVER_AT_MOST.get(workload) if title == "driver" and limit is None else None
            mark = "" if title != "driver" else " !" if ratio and most and ratio > most else "  "
            cells.append("–" if ratio is None else f"{ratio:.2f}{mark}")
        text.append([workload, variant, *cells])
    return _aligned(text)


def print_tables(rows: dict[tuple[str, str], dict[str, Figures]], best: bool = False) -> None:
    """Prints the tables of throughput, of gradients, and of compile times and latencies; empty ones are left out."""
    small = ("compile", "start", "launch", "cuda", "arrays", "tape", "torch", "paddle", "jax")
    others = {key: value for key, value in rows.items() if key[0].split()[0] in small}
    gradients = {key: value for key, value in rows.items() if key[0] in BOTH_AT_MOST}
    gpu = {key: value for key, value in rows.items() if key[0].startswith("gpu ")}
    throughput = {key: value for key, value in rows.items() if key not in {*others, *gradients, *gpu}}
    what = "least times" if best else "medians"
    if throughput:
        print(f"Throughput, ms ({what}); ratios are Weft's time over the other's\n\n{_throughput(throughput, best)}\n")
    if gradients:
        print(f"Gradients, ms ({what}): forward is Weft's, the other columns are forward and back\n")
        print(f"{_gradients(gradients, best)}\n")
    if gpu:
        print(f"GPU, µs ({what})\n\n{_gpu(gpu, best)}\n")
    if others:
        print(f"Compile times and latencies ({what})\n\n{_others(others, best)}\n")


def read_results(path: Path) -> dict[tuple[str, str], dict[str, Figures]]:
    """Rows of a `results.jsonl` that `run.py` wrote."""
    import json

    rows: dict[tuple[str, str], dict[str, Figures]] = {}
    for text in path.read_text().splitlines():
        line = json.loads(text)
        if "ms" in line:
            figures = rows.setdefault((line["workload"], line["variant"]), {}).setdefault(line["with"], [])
            figures += [None] * (line["round"] + 1 - len(figures))
            figures[line["round"]] = (line["ms"], line["ms_min"])
    return rows


if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit("usage: table.py RESULTS.jsonl [--best]")
    print_tables(read_results(Path(sys.argv[1])), best="--best" in sys.argv[2:])
