"""Machine code of NVIDIA GPUs (SASS), as `nvdisasm -c` writes it: counts of the path that most threads take.

The path is chosen by a unit, an instruction that each element executes a known number of times (a store, say). Among
all ways through the code without back edges, it is the one with the most units, and of these the shortest. So slow
paths of functions are left out, and of loops that are unrolled the main part counts.
"""

import re
from dataclasses import dataclass, field

REGISTERS, THREADS, WARPS, BLOCKS, SHARED = 65536, 2048, 64, 32, 228 * 1024  # of a multiprocessor of sm_90


@dataclass
class Instruction:
    opcode: str
    operands: str
    is_predicated: bool
    target: int | None = None  # of a branch

    def falls_through(self):
        if self.opcode.split(".")[0] in ("EXIT", "RET"):
            return self.is_predicated
        if not self.opcode.startswith("BRA"):
            return True
        # A branch may have its condition among the operands.
        return self.is_predicated or not self.operands.lstrip().startswith("`(")

    def branches(self):
        return self.target is not None and self.opcode.startswith("BRA")

    def width(self):
        """Bytes of a load or store."""
        sizes = {"U8": 1, "S8": 1, "U16": 2, "S16": 2, "64": 8, "128": 16}
        return next((sizes[part] for part in self.opcode.split(".")[1:] if part in sizes), 4)

    def registers(self):
        return [int(number) for number in re.findall(r"\bR(\d+)\b", self.operands)]


@dataclass
class Path:
    """A way through the code, and the elements that it handles."""

    instructions: list
    elements: float

    def count(self, opcode):
        return sum(bool(re.match(opcode, i.opcode)) for i in self.instructions)

    def per_element(self, opcode="."):
        return self.count(opcode) / self.elements

    def widths(self, opcode):
        return sorted({i.width() for i in self.instructions if re.match(opcode, i.opcode)})

    def loads_before_wait(self):
        """Loads from global memory before the first instruction that needs one of them."""
        loaded, count = set(), 0
        for instruction in self.instructions:
            registers = instruction.registers()
            is_load = instruction.opcode.startswith(("LDG", "LD."))
            if loaded.intersection(registers[1:] if is_load else registers):
                break
            if is_load:
                count += 1
                loaded.update(range(registers[0], registers[0] + max(1, instruction.width() // 4)))
        return count


@dataclass
class Function:
    instructions: list = field(default_factory=list)
    labels: dict = field(default_factory=dict)

    def path(self, unit, per_element, first=0, last=None):
        """The path between two instructions; to any end of the function without `last`."""
        code = self.instructions
        end = len(code) - 1 if last is None else last
        best = [None] * (end + 1)  # (units, -instructions, next)
        for at in range(end, first - 1, -1):
            here = code[at]
            following = []
            if here.falls_through():
                following.append(at + 1)
            if here.branches() and here.target > at:
                following.append(here.target)
            ways = [(*best[to][:2], to) for to in following if to <= end and best[to]]
            is_end = at == last if last is not None else here.opcode.split(".")[0] in ("EXIT", "RET")
            if is_end:
                ways.append((0, 0, None))
            if not ways:
                continue
            units, instructions, to = max(ways, key=lambda way: way[:2])
            best[at] = (units + bool(re.match(unit, here.opcode)), instructions - 1, to)
        if best[first] is None or best[first][0] == 0:
            return None
        taken, at = [], first
        while at is not None:
            taken.append(code[at])
            at = best[at][2]
        return Path([i for i in taken if i.opcode != "NOP"], best[first][0] / per_element)

    def loops(self, unit, per_element):
        """Paths of loops that hold no other loop with the unit, those with the most units first."""
        found = []
        for at, instruction in enumerate(self.instructions):
            if instruction.branches() and instruction.target < at:
                path = self.path(unit, per_element, instruction.target, at)
                if path:
                    found.append((instruction.target, at, path))

        def holds(outer, inner):
            return outer is not inner and outer[0] <= inner[0] and inner[1] <= outer[1]

        innermost = [loop for loop in found if not any(holds(loop, other) for other in found)]
        return [path for _, _, path in sorted(innermost, key=lambda loop: -loop[2].elements)]


def parse(text):
    """{name: Function} of the output of `nvdisasm -c`."""
    functions, current = {}, None
    for line in text.splitlines():
        if section := re.match(r"\s*\.section\s+\.text\.([\w$]+)", line):
            current = functions.setdefault(section[1], Function())
        elif label := re.match(r"(\.L_x_\d+|\$[\w$]+):", line):
            if current:
                current.labels[label[1]] = len(current.instructions)
        elif match := re.match(r"\s*/\*[0-9a-f]+\*/\s+(@!?U?P\w+ )?\s*([A-Z][\w.]*)\s*([^;]*);", line):
            current.instructions.append(Instruction(match[2], match[3], match[1] is not None))
    for function in functions.values():
        for instruction in function.instructions:
            if target := re.search(r"`\((\.L_x_\d+|\$[\w$]+)\)", instruction.operands):
                instruction.target = function.labels.get(target[1])
    return functions


def occupancy(registers, shared, threads):
    """Threads that a multiprocessor holds at once."""
    warps = -(-threads // 32)
    of_warp = -(-registers * 32 // 256) * 256
    blocks = min(BLOCKS, THREADS // threads, REGISTERS // of_warp // warps, WARPS // warps)
    if shared:
        blocks = min(blocks, SHARED // (shared + 1024))
    return blocks * threads
