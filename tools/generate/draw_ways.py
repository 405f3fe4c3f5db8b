"""Draws the pictures of docs/architecture.md: the way of a kernel to machine code, and the way of a launch.

    python tools/generate/draw_ways.py     writes docs/pictures/kernel.svg and docs/pictures/launch.svg

A box is a room of src/ with its job. An arrow is labelled with the value that goes from one to the next.
"""

from html import escape
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / "docs/pictures"
INK, COMPILER, RUNTIME, STORE = "#2b3440", "#dbe8f5", "#dff0e0", "#f5ead6"
WIDTH, BOX, PITCH = 964, (172, 62), (254, 118)

# A box: column and row (of a grid of boxes), colour, title, line below it. An arrow: from, to, label.
KERNEL = {
    "boxes": {
        "python": (0, 0, "#ffffff", "@wp.kernel", "Python function"),
        "frontend": (1, 0, COMPILER, "frontend", "ast to a C++ tree"),
        "sema": (2, 0, COMPILER, "sema", "types, overloads, builtins"),
        "transform": (3, 0, COMPILER, "transform", "inline, derive, simplify"),
        "runtime": (0, 1, RUNTIME, "runtime", "links code, runs launches"),
        "binary": (1, 1, STORE, "disk cache", "addressed by content"),
        "jit": (2, 1, COMPILER, "jit", "object code or PTX"),
        "codegen": (3, 1, COMPILER, "codegen", "LLVM IR for W lanes"),
    },
    "arrows": [
        ("python", "frontend", "source"),
        ("frontend", "sema", "syntax"),
        ("sema", "transform", "IR"),
        ("transform", "codegen", "IR + KernelPlan"),
        ("codegen", "jit", "LLVM IR"),
        ("jit", "binary", "Binary"),
        ("binary", "runtime", "Binary"),
        ("transform", "binary", "key: a hit skips codegen and jit"),
    ],
}
LAUNCH = {
    "boxes": {
        "python": (0, 0, "#ffffff", "wp.launch", "kernel, dim, arguments"),
        "bindings": (1, 0, RUNTIME, "bindings", "checks, packs arguments"),
        "first": (2, 0, STORE, "program: table 1", "Variant to Specialization"),
        "second": (3, 0, STORE, "program: table 2", "Arrangement to code"),
        "tape": (1, 1, RUNTIME, "program: tape", "records if one is active"),
        "run": (2, 1, RUNTIME, "program: run", "releases the GIL, reports"),
        "compiler": (3, 1, COMPILER, "a kernel's way", "only if code is missing"),
        "cpu": (1, 2, RUNTIME, "runtime/cpu", "chunks on the thread pool"),
        "cuda": (2, 2, RUNTIME, "runtime/cuda", "the driver's stream"),
    },
    "arrows": [
        ("python", "bindings", "objects"),
        ("bindings", "first", "grid, bytes"),
        ("first", "second", "KernelFacts"),
        ("second", "compiler", "missing"),
        ("bindings", "tape", "the same bytes"),
        ("compiler", "run", "code"),
        ("second", "run", "code"),
        ("tape", "run", "needs"),
        ("run", "cpu", ""),
        ("run", "cuda", "work of a stream"),
    ],
}


def corner(box):
    """The upper left corner of a box."""
    return 14 + box[0] * PITCH[0], 14 + box[1] * PITCH[1]


def ends(source, target):
    """The two ends of an arrow: sides of boxes that face each other."""
    (x, y), (u, v) = corner(source), corner(target)
    wide, high = BOX
    if source[1] == target[1]:
        return ((x + wide, y + high / 2), (u, v + high / 2)) if u > x else ((x, y + high / 2), (u + wide, v + high / 2))
    if source[0] == target[0]:
        return (x + wide / 2, y + high), (u + wide / 2, v)
    return (x + wide * (0.2 if u < x else 0.8), y + high), (u + wide * (0.8 if u < x else 0.2), v)


def svg(picture):
    """The picture as a text."""
    boxes = picture["boxes"]
    height = 28 + BOX[1] + PITCH[1] * max(box[1] for box in boxes.values())
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" font-family="sans-serif" '
        f'fill="{INK}">',
        '<defs><marker id="tip" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" orient="auto">'
        f'<path d="M0,0 L8,4 L0,8 z" fill="{INK}"/></marker></defs>',
        f'<rect width="{WIDTH}" height="{height}" fill="#ffffff"/>',
    ]
    for box in boxes.values():
        x, y = corner(box)
        lines += [
            f'<rect x="{x}" y="{y}" width="{BOX[0]}" height="{BOX[1]}" rx="6" fill="{box[2]}" stroke="{INK}"/>',
            f'<text x="{x + BOX[0] / 2:g}" y="{y + 26}" font-size="15" font-weight="bold" text-anchor="middle">'
            f"{escape(box[3])}</text>",
            f'<text x="{x + BOX[0] / 2:g}" y="{y + 46}" font-size="12" text-anchor="middle">{escape(box[4])}</text>',
        ]
    for source, target, label in picture["arrows"]:
        (x, y), (u, v) = ends(boxes[source], boxes[target])
        lines.append(
            f'<line x1="{x:g}" y1="{y:g}" x2="{u:g}" y2="{v:g}" stroke="{INK}" stroke-width="1.4" '
            'marker-end="url(#tip)"/>'
        )
        level, upright = y == v, x == u
        place = f'x="{(x + u) / 2 + 8 * upright:g}" y="{(y + v) / 2 + (-8 if level else 4):g}"'
        style = f'font-size="11" text-anchor="{"start" if upright else "middle"}"'
        if label:
            halo = 'stroke="#ffffff" stroke-width="4"'
            lines += [f"<text {place} {style}{more}>{escape(label)}</text>" for more in (f" {halo}", "")]
    return "\n".join([*lines, "</svg>", ""])


def main():
    for name, picture in (("kernel", KERNEL), ("launch", LAUNCH)):
        (FOLDER / f"{name}.svg").write_text(svg(picture))


if __name__ == "__main__":
    main()
