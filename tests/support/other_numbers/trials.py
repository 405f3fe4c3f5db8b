"""One launch with other numbers: the numbers, a run on each of the two devices, and the comparison."""

import functools
from dataclasses import dataclass

import emulated_driver
import numpy as np
import warp as wp

from other_numbers.agreement import NUDGES, agree, largest
from other_numbers.arguments import (
    Memory,
    NotComparable,
    Region,
    arrays_in,
    extent,
    has_integers,
    inner_steps,
    is_in_rows,
    layout,
    places,
    rebuilt,
)
from other_numbers.kernels import (
    debugged,
    floats_in,
    has_loops,
    says_more,
    source,
    uses_addresses,
    uses_of_tickets,
)

KINDS = ("other floats", "floats of any size", "integers in another order", "integers near those", "small integers",
         "any integers")  # fmt: skip


@dataclass(frozen=True)
class Change:
    """The changes of a trial."""

    kind: str  # of the numbers: one of KINDS, infinite floats, or zero floats
    longer: int = 0  # the first dimension of arrays and launches
    wider: int = 0  # the last one of those that have several
    width: int = 0  # the new extent of that one, if not 0
    gap: int = 0  # numbers between the rows
    spread: int = 1  # how far an element of a row is from the one before
    extents: tuple[int, ...] = ()  # of all dimensions, in turn
    integer: int | None = None  # the new value of integer arguments

    @property
    def keeps_places(self):
        return not (self.longer or self.wider or self.width or self.gap or self.spread > 1 or self.extents)


# With it a second block of threads begins.
LONGER = 261
# By how much arrays are (longer, wider): loops over rows that are unrolled have rests of other lengths, and adjoints do
# not keep all states of the longest.
WIDER = (0, 10), (LONGER, 11), (0, 75)
WITH_GAPS = (0, 0), (LONGER, 0), (0, 75)
SHORT = ((2,), (1, 2), (2, 1))
TRIALS = [Change(kind) for kind in KINDS] + [Change(kind, longer=LONGER) for kind in KINDS]
TRIALS += [Change("other floats", longer=longer, wider=wider) for longer, wider in WIDER]
TRIALS += [Change("other floats", longer=longer, wider=wider, gap=3) for longer, wider in WITH_GAPS]
TRIALS += [Change("other floats", width=width, gap=3) for width in (1, 2)]
TRIALS += [Change("other floats", gap=gap, extents=extents) for gap in (0, 3) for extents in SHORT]
TRIALS += [Change("other floats", gap=3, spread=2, extents=extents) for extents in ((), *SHORT)]
TRIALS += [Change("other floats", integer=integer) for integer in (-1, 0, 1, 2, 75)]
TRIALS += [Change("infinite floats", longer=longer) for longer in (0, LONGER)]
TRIALS += [Change(kind, gap=3, spread=2) for kind in ("infinite floats", "any integers")]
TRIALS += [Change("zero floats")]
# Arrays that are larger in all take too long on the CPU in debug mode.
MOST_BYTES = 1 << 19
# Limit for a warp in one block: loops over any integers may never end.
MOST_INSTRUCTIONS = 300_000
SMALL = -9, 70
LANES = 32  # of a warp
PROBLEMS = RuntimeError, TypeError, ValueError, IndexError, ZeroDivisionError, NotImplementedError, AssertionError


class Trial:
    """One launch with other numbers."""

    def __init__(self, kernel, device, dim, lists, run, change, seed):
        self.kernel, self.device, self.dim, self.run, self.change = kernel, device, dim, run, change
        self.rng = np.random.default_rng(seed)
        self.arrays = {}  # id -> array, with the gradients
        for array in arrays_in(lists):
            while array is not None and id(array) not in self.arrays:
                self.arrays[id(array)] = array
                array = array.grad
        is_there = all(type(array) is wp.array and array.device == device for array in self.arrays.values())
        has_ties = self.change.kind in ("any integers", "infinite floats", "zero floats") and (
            "atomic_min" in source(kernel) or "atomic_max" in source(kernel)
        )
        # The indices of an indexed array were checked when it was made, and it has its shape from them.
        changes_indices = "integers" in self.change.kind or not self.change.keeps_places
        has_indices = changes_indices and any(hasattr(one, "indices") for values in lists for one in values)
        has_addresses = uses_addresses(kernel) and any(one.dtype is wp.uint64 for one in self.arrays.values())
        lacks_integers = self.change.integer is not None and not has_integers(lists)
        if not hasattr(kernel, "options") or kernel.options.get("fast_math"):
            raise NotComparable  # one of Weft's own; or one whose errors have bounds for some numbers only
        if not is_there or has_ties or has_indices or has_addresses or lacks_integers or says_more(kernel):
            raise NotComparable
        if not self.change.keeps_places:
            self.require_rows()
        if tickets := uses_of_tickets(kernel):
            # One atomic of a warp takes place thread by thread, as on the CPU, if no thread has several.
            most = LANES if tickets == 1 and not has_loops(kernel) else 1
            extents = np.atleast_1d(1 if dim is None else dim)
            self.dim = min(int(extents[0]), most) if len(extents) == 1 else (1,) * len(extents)
        elif dim is not None and "tid(" in source(kernel):  # else all threads do the same, and one is enough
            self.dim = self.longer(dim) if isinstance(dim, (tuple, list)) else self.longer([dim])[0]
        self.layouts = {key: layout(array.dtype) for key, array in self.arrays.items()}
        self.regions = self.regions_of()
        if sum(region.size for region in self.regions) > MOST_BYTES:
            raise NotComparable
        self.contents = [
            region.contents(self.device) if self.change.keeps_places else np.zeros(region.size, np.uint8)
            for region in self.regions
        ]
        self.fill()
        self.lists = rebuilt(lists, lambda array: array, self.other_number)

    def require_rows(self):
        """Arrays change their shape only if no two share a part of their memory, and there are rows to be changed."""
        extents = sorted({places(array): extent(array) for array in self.arrays.values()}.values())
        is_apart = all(before[1] <= after[0] for before, after in zip(extents, extents[1:]))
        needs_rows = self.change.gap or self.change.wider or self.change.width
        has_rows = not needs_rows or self.change.spread > 1 or any(array.ndim > 1 for array in self.arrays.values())
        # Code for arrays without gaps is not that for arrays with gaps.
        are_dense = self.change.gap or all(is_in_rows(array) for array in self.arrays.values())
        if not is_apart or not has_rows or not are_dense:
            raise NotComparable

    def longer(self, shape):
        if extents := self.change.extents:
            return tuple(extents[axis % len(extents)] for axis in range(len(shape)))
        first, *rest = shape
        if rest:
            rest[-1] = self.change.width or rest[-1] + self.change.wider
        return (first + self.change.longer, *rest)

    def shape_of(self, array):
        return self.longer(array.shape)

    def strides_of(self, array):
        """A gap follows each row of the last dimension, if there are rows, each plane of rows, and so on."""
        if self.change.keeps_places:
            return array.strides
        lengths = [*(n + self.change.gap for n in self.shape_of(array)[1:]), self.change.spread]
        size = wp.types.type_size_in_bytes(array.dtype)
        return tuple(size * int(np.prod(lengths[axis:])) for axis in range(array.ndim))

    def regions_of(self):
        if not self.change.keeps_places:
            groups = {}
            for key, array in self.arrays.items():
                groups.setdefault(places(array), []).append(key)
            return [Region(keys, 0, self.bytes_of(self.arrays[keys[0]])) for keys in groups.values()]
        found = []
        for key, (first, last) in sorted(((key, extent(a)) for key, a in self.arrays.items()), key=lambda one: one[1]):
            if found and first < found[-1].last:
                found[-1].keys.append(key)
                found[-1].last = max(found[-1].last, last)
            else:
                found.append(Region([key], first, last))
        return found

    def bytes_of(self, array):
        return self.shape_of(array)[0] * self.strides_of(array)[0]

    def views(self, index, contents):
        """(key, NumPy's view) of all numbers of a region's arrays."""
        region = self.regions[index]
        for key in region.keys:
            array = self.arrays[key]
            start = (array.ptr or 0) - region.first if self.change.keeps_places else 0
            strides = self.strides_of(array)
            for byte, dtype, inner in self.layouts[key]:
                shape = self.shape_of(array) + inner
                if 0 in shape:
                    continue
                yield key, np.ndarray(shape, dtype, contents, start + byte, (*strides, *inner_steps(dtype, inner)))

    # ---- numbers ----

    def fill(self):
        for index, contents in enumerate(self.contents):
            if not self.change.keeps_places:
                self.copy_rows(index, contents)
            for _, view in self.views(index, contents):
                view[...] = self.other_values(view)

    def copy_rows(self, index, contents):
        """The numbers of a region's array, and again from the first if it is longer."""
        key = self.regions[index].keys[0]
        array = self.arrays[key]
        if array.size == 0:
            return
        region = Region([key], *extent(array))
        old, start = region.contents(self.device), array.ptr - region.first
        views = [view for of, view in self.views(index, contents) if of == key]
        for to, (byte, dtype, inner) in zip(views, self.layouts[key], strict=True):
            steps = inner_steps(dtype, inner)
            rows = np.ndarray(array.shape + inner, dtype, old, start + byte, (*array.strides, *steps))
            for axis in range(array.ndim):
                rows = np.take(rows, np.arange(to.shape[axis]) % rows.shape[axis], axis)
            to[...] = rows

    def other_values(self, values):
        if values.dtype.kind == "f":
            largest, made = float(np.finfo(values.dtype).max), self.floats(values.shape)
            return np.where(np.isinf(made), made, np.clip(made, -largest, largest))
        if "integers" not in self.change.kind or values.size == 0:
            return values
        if values.dtype.kind == "b":
            return self.rng.integers(0, 2, values.shape).astype(bool)
        if self.change.kind == "integers in another order":
            return self.rng.permutation(values.ravel()).reshape(values.shape)
        limits = np.iinfo(values.dtype)
        is_near = self.change.kind == "integers near those"
        first, last = (int(values.min()) - 1, int(values.max()) + 2) if is_near else SMALL
        first, last = max(first, limits.min), min(last, limits.max)
        made = self.rng.integers(first, last, values.shape, values.dtype, endpoint=True)
        if self.change.kind == "any integers":
            any_at_all = self.rng.integers(limits.min, limits.max, values.shape, values.dtype, endpoint=True)
            ends = np.array([limits.max, limits.max - 1, limits.min, limits.min + 1], values.dtype)
            small = np.array([max(-1, limits.min), 1, 2], values.dtype)
            near_limits, near_zero = self.rng.choice(ends, values.shape), self.rng.choice(small, values.shape)
            rare = self.rng.random(values.shape)
            made = np.select([rare < 0.15, rare < 0.3, rare < 0.4], [near_limits, near_zero, any_at_all], made)
            made = np.where(made == 0, values.dtype.type(1), made)  # any integers that are divided by
        return made

    def floats(self, shape):
        made = self.rng.normal(0.0, 1.5, shape)
        if self.change.kind == "floats of any size":
            return made * 10.0 ** self.rng.integers(-6, 7)
        if self.change.kind == "zero floats":
            return np.copysign(0.0, made)
        if self.change.kind == "infinite floats":
            return np.where(self.rng.random(shape) < 0.3, self.rng.choice([np.inf, -np.inf, np.nan], shape), made)
        if self.change.kind == "any integers":
            kinds = self.rng.random(shape)
            made = np.where(kinds < 0.1, 0.0, np.where(kinds < 0.3, np.round(made), made * np.exp(2 * made)))
            if literals := floats_in(self.kernel):  # which numbers may be compared with
                made = np.where(kinds > 0.85, self.rng.choice(literals, shape), made)
        return made

    def other_number(self, value):
        if isinstance(value, (bool, np.bool_)) or value is None:
            return value
        if type(value) is int:
            if self.change.integer is not None:
                return self.change.integer
            if self.change.kind == "small integers":
                return int(self.rng.choice([value, self.rng.integers(*SMALL)])) if abs(value) < 1 << 31 else value
            if self.change.kind == "any integers":
                options = [value, self.rng.integers(*SMALL), self.rng.integers(-(1 << 31), 1 << 31)]
                return int(options[self.rng.integers(len(options))])
            is_near = self.change.kind == "integers near those" and 0 <= value < 1 << 20
            return max(0, value + int(self.rng.integers(-2, 3))) if is_near else value
        if type(value) is float:
            return float(self.floats(()))
        if isinstance(value, (wp.float16, wp.float32, wp.float64)):
            return type(value)(float(self.floats(())))
        if getattr(type(value), "_wp_scalar_type_", None) in (wp.float16, wp.float32, wp.float64):
            size = int(np.prod(type(value)._shape_))
            return type(value)(*(float(number) for number in self.floats(size)))
        return value

    # ---- runs ----

    def on(self, device, contents, kernel):
        """The contents of all regions behind a run on this device."""
        held = [Memory(part, device, region.first % 256) for part, region in zip(contents, self.regions, strict=True)]
        at = {key: i for i, region in enumerate(self.regions) for key in region.keys}
        made = {}

        def array_of(array):
            if id(array) in made:
                return made[id(array)]
            i = at[id(array)]
            copy = wp.array(
                ptr=held[i].ptr + ((array.ptr or 0) - self.regions[i].first if self.change.keeps_places else 0),
                shape=self.shape_of(array), strides=self.strides_of(array), dtype=array.dtype, device=device,
            )  # fmt: skip
            made[id(array)] = copy
            if array.grad is not None:
                copy.grad = array_of(array.grad)
            return copy

        self.run(kernel, self.dim, rebuilt(self.lists, array_of, lambda value: value), wp.get_device(device))
        wp.synchronize_device(device)
        found = [memory.read() for memory in held]
        self.keeps_edges = all(keeps_edges for _, keeps_edges in found)
        return [inside for inside, _ in found]

    def on_cpu(self, contents):
        return self.on("cpu", contents, debugged(self.kernel))

    def on_device(self, kernel):
        """(the contents behind the run, the text of a fault): one of them is None."""
        found = fault = None
        try:
            found = self.on(self.device, self.contents, kernel)
        except PROBLEMS as problem:
            fault = str(problem)
        while recover() or fault:
            try:
                wp.synchronize_device(self.device)  # the rest of the pending work
                break
            except PROBLEMS as problem:
                fault = fault or str(problem)
        return found, fault

    def compare(self):
        there, fault = self.on_device(self.kernel)
        # With these numbers indices may go out of arrays, threads race, and loops never end. Then code for debug mode,
        # which executes more instructions, does not get through either. The CPU would not stop a loop.
        is_wanted = fault and self.on_device(debugged(self.kernel))[1]
        keeps_edges = not fault and self.keeps_edges
        if is_wanted or (uses_addresses(self.kernel) and not keeps_edges):
            raise NotComparable
        try:
            here = self.on_cpu(self.contents)
        except PROBLEMS as problem:
            raise NotComparable from problem
        assert not fault, f"{self.kernel.key}: with other numbers ({self.change}) the CPU goes on, and {fault}"
        assert keeps_edges, f"{self.kernel.key}: with other numbers ({self.change}) it writes beside its arrays"
        self.require_same(here, there)
        self.require_same_gaps(here, there)

    def require_same(self, here, there):
        moved = None
        for index, (one, other) in enumerate(zip(here, there, strict=True)):
            numbers = list(zip(self.views(index, one), self.views(index, other), strict=True))
            if all(agree(mine, its).all() for (_, mine), (_, its) in numbers):
                continue
            moved = moved or self.runs_with_other_roundings()
            every = [view for i, part in enumerate(here) for _, view in self.views(i, part)]
            most = max(largest(view) for view in every) * np.sqrt(max(view.size for view in every))
            runs = zip(*(self.views(index, run[index]) for run in moved), strict=True)
            # Numbers that grow without a bound may end as anything.
            is_infinite = self.change.kind in ("infinite floats", "zero floats")
            for ((_, mine), (_, its)), of_runs in zip(numbers, runs, strict=True):
                wrong = ~agree(mine, its, [near for _, near in of_runs], most, is_infinite)
                assert not wrong.any(), (
                    f"{self.kernel.key}: with other numbers ({self.change}) the devices differ at "
                    f"{np.argwhere(wrong)[0]} of {mine.shape}: {mine[wrong][0]} on the CPU, {its[wrong][0]} on the GPU"
                )

    def runs_with_other_roundings(self):
        """On the CPU: of floats that are moved a little, and of the code for release, which adds in another order."""
        nudged = [self.nudged(i) for i in range(len(self.contents))]
        return [self.on_cpu(nudged), self.on("cpu", self.contents, self.kernel)]

    def require_same_gaps(self, here, there):
        """Compares the bytes between the rows."""
        for index, (one, other) in enumerate(zip(here, there, strict=True)):
            for _, view in [*self.views(index, one), *self.views(index, other)]:
                view[...] = 0
            assert (one == other).all(), f"{self.kernel.key}: ({self.change}) it writes between the rows of its arrays"

    def nudged(self, index):
        """Numbers that the kernel may compare with stay: these are the same on both devices."""
        contents, literals = self.contents[index].copy(), floats_in(self.kernel)
        for _, view in self.views(index, contents):
            if view.dtype.kind == "f":
                moved = view * (1.0 + NUDGES[view.dtype.itemsize] * self.rng.choice([-1.0, 1.0], view.shape))
                view[...] = np.where(np.isin(view, np.array(literals, view.dtype)), view, moved)
        return contents


driver = functools.cache(emulated_driver.driver_library)


def recover():
    """Whether a kernel of the emulated device had a fault; the device can be used again."""
    return driver().weftEmulatedRecover()
