"""Launches on a CUDA device with other numbers, beside the CPU in debug mode: ``--other-numbers``.

Tests choose numbers that show what they are about. An instruction that is wrong for others passes them: integers from 0
to 4, factors of 1, branches that go one way, arrays of fewer elements than a block has threads. So each launch of a
test is done with other numbers before it takes place, on copies of its arguments: on the device, and on the CPU, one
thread after the other and with every index checked. All arrays have to agree afterwards, their gradients and tangents
too where the launch has them. Where the CPU raises, or the emulated device finds threads that race, the numbers mean
nothing to the kernel.
"""

import collections
import functools
import inspect
import re
import zlib
from dataclasses import dataclass

import emulated_driver
import numpy as np
import warp as wp
from warp._gradients.jacobians import Unrecorded

# How often launches of one kernel with arrays of one form are compared in one test.
MOST_LAUNCHES = 2
KINDS = ("other floats", "floats of any size", "integers in another order", "integers near those", "small integers",
         "any integers")  # fmt: skip


@dataclass(frozen=True)
class Change:
    """What a trial changes."""

    kind: str  # of the numbers: one of KINDS
    longer: int = 0  # the first dimension of arrays and launches
    wider: int = 0  # the last one of those that have several
    width: int = 0  # what becomes of it, if not 0
    gap: int = 0  # numbers between the rows
    spread: int = 1  # how far an element of a row is from the one before
    extents: tuple[int, ...] = ()  # what all dimensions become, in turn
    integer: int | None = None  # what integer arguments become

    @property
    def keeps_places(self):
        return not (self.longer or self.wider or self.width or self.gap or self.spread > 1 or self.extents)


# With these a second block of threads begins, and loops over rows that are unrolled have a rest of another length.
LONGER, WIDER = 261, 10
TRIALS = [Change(kind) for kind in KINDS] + [Change(kind, longer=LONGER) for kind in KINDS]
TRIALS += [Change("other floats", longer=longer, wider=WIDER) for longer in (0, LONGER)]
TRIALS += [Change("other floats", longer=longer, gap=3) for longer in (0, LONGER)]
TRIALS += [Change("other floats", width=width, gap=3) for width in (1, 2)]
SHORT = ((2,), (1, 2), (2, 1))
TRIALS += [Change("other floats", gap=gap, extents=extents) for gap in (0, 3) for extents in SHORT]
TRIALS += [Change("other floats", gap=3, spread=2, extents=extents) for extents in ((), *SHORT)]
TRIALS += [Change("other floats", integer=integer) for integer in (-1, 0, 1, 2)]
ONLY_FLOATS = [Change(kind) for kind in KINDS if "floats" in kind]
# Arrays that are larger in all take too long on the CPU in debug mode.
MOST_BYTES = 1 << 19
# What a warp executes of one block: loops over any integers may never end.
MOST_INSTRUCTIONS = 300_000
SMALL = -9, 70
LANES = 32  # of a warp
RACES = (": race", "read-only load of written memory")  # what the emulated device calls them
# What other functions and another order of sums may change: of a number, and of the array's largest.
TOLERANCES = {2: (1e-2, 1e-3), 4: (3e-6, 2e-7), 8: (1e-14, 1e-13)}
# How far floats are moved for another run on the CPU: where that changes a result, its rounding decides something.
NUDGES = {2: 1e-3, 4: 2e-7, 8: 1e-15}
# By how much more than that run other roundings may change a result.
FACTORS = {2: 300.0, 4: 300.0, 8: 1000.0}
# What has grown beyond this had its roundings grow with it.
MOST_GROWTH = {2: np.inf, 4: 1e12, 8: 1e30}


class NotComparable(Exception):
    """The numbers mean nothing to the kernel, or its arguments are none that are copied here."""


TRIALS_OF_THE_RUN = collections.Counter()  # whether they were compared: how many


def summary():
    """Of all tests that have run."""
    done = TRIALS_OF_THE_RUN
    return f"launches with other numbers: {done[True]} compared, {done[False]} whose numbers meant nothing"


class Comparison:
    """What one test has compared."""

    def __init__(self):
        self.counts, self.is_comparing = {}, False

    def patch(self, monkeypatch):
        launch = self.launches(wp.launch)
        monkeypatch.setattr(wp, "launch", launch)
        monkeypatch.setattr(wp._weft, "launch", launch)
        monkeypatch.setattr(wp._weft, "run_adjoint", self.adjoints(wp._weft.run_adjoint))
        monkeypatch.setattr(wp._weft, "run_jvp", self.tangents(wp._weft.run_jvp))

    def launches(self, launch):
        @functools.wraps(launch)
        def compared(kernel, dim=None, inputs=(), outputs=(), *rest, **named):
            device = wp.get_device(named.get("device"))
            is_plain = (
                not rest and set(named) <= {"device"} and all(isinstance(v, (list, tuple)) for v in (inputs, outputs))
            )
            if is_plain and is_grid(dim) and is_compared(kernel, device):
                self.compare(kernel, device, dim, [[*inputs, *outputs]], RUNS_OF_A_LAUNCH, "launch")
            return launch(kernel, dim, inputs, outputs, *rest, **named)

        return compared

    def adjoints(self, run_adjoint):
        @functools.wraps(run_adjoint)
        def compared(kernel, dim, values, gradients, device):
            if is_compared(kernel, wp.get_device(device)):

                def run(kernel, dim, lists, device):
                    run_adjoint(kernel, dim, *lists, device)

                self.compare(kernel, wp.get_device(device), dim, [values, gradients], [run], "adjoint")
            return run_adjoint(kernel, dim, values, gradients, device)

        return compared

    def tangents(self, run_jvp):
        @functools.wraps(run_jvp)
        def compared(kernel, dim, values, tangents, of_adjoint, before, after, returned, device, meshes, *tape):
            if is_compared(kernel, wp.get_device(device)) and not returned and not meshes:

                def run(kernel, dim, lists, device):
                    values, tangents, before, after = lists
                    run_jvp(kernel, dim, values, tangents, of_adjoint, before, after, [], device, [])

                lists = [values, tangents, before, after]
                self.compare(kernel, wp.get_device(device), dim, lists, [run], f"tangent {of_adjoint}")
            return run_jvp(kernel, dim, values, tangents, of_adjoint, before, after, returned, device, meshes, *tape)

        return compared

    def compare(self, kernel, device, dim, lists, runs, what):
        """`runs`: ways to do it, which take turns."""
        if self.is_comparing:
            return
        name = f"{what} {kernel.key} {types_of(lists)}"
        form = kernel, name, tuple(layouts_of(lists))
        seen = self.counts[form] = self.counts.get(form, 0) + 1
        if seen > MOST_LAUNCHES:
            return
        self.is_comparing = True
        seed = zlib.crc32(f"{name} {seen}".encode())
        before = None
        try:
            wp.synchronize_device(device)
            before = driver().weftEmulatedLimit(MOST_INSTRUCTIONS)
            with Unrecorded():
                for number, change in enumerate(TRIALS):
                    trial = kernel, device, dim, lists, runs[number % len(runs)], change, [seed, number]
                    TRIALS_OF_THE_RUN[compares(*trial)] += 1
        finally:
            self.is_comparing = False
            if before is not None:
                driver().weftEmulatedLimit(before)


def compares(*trial):
    """Whether the trial was compared, or its numbers meant nothing."""
    try:
        Trial(*trial).compare()
    except NotComparable:
        return False
    return True


def is_grid(dim):
    extents = dim if isinstance(dim, (tuple, list)) else (dim,)
    return dim is None or (len(extents) > 0 and all(type(n) is int for n in extents))


def is_compared(kernel, device):
    return device.is_cuda and isinstance(kernel, wp.Kernel) and not device.is_capturing and device.is_emulated


def types_of(value):
    if isinstance(value, (list, tuple)):
        return f"[{', '.join(map(types_of, value))}]"
    return f"{value.dtype}{value.ndim}" if isinstance(value, wp.array) else type(value).__name__


def layouts_of(lists):
    """What tells the code for some arrays from that for others: gaps, elements that are apart, and shared memory."""
    places = []
    for array in arrays_in(lists):
        places.append(array.ptr)
        is_row = array.ndim > 0 and array.strides[-1] == wp.types.type_size_in_bytes(array.dtype)
        yield array.is_contiguous, is_row, 0 in array.strides, places.index(array.ptr)


def run_launch(kernel, dim, lists, device):
    """The launch, and back where arrays have gradients."""
    run_recorded(kernel, dim, lists[0], device, lambda tape: tape._reverse_all())


def run_from_seeds(kernel, dim, lists, device):
    """The same, with the gradients of the arrays in memory of the caller: then kernels have other adjoints."""

    def go_back(tape):
        grads = {array: wp.clone(array.grad) for array in arrays_in(lists[0]) if array.grad is not None}
        tape.backward(grads=grads)

    run_recorded(kernel, dim, lists[0], device, go_back)


def run_recorded(kernel, dim, values, device, go_back):
    if not any(array.grad is not None for array in arrays_in(values)):
        wp.launch(kernel, dim, values, device=device)
        return
    with wp.Tape() as tape:
        wp.launch(kernel, dim, values, device=device)
    go_back(tape)


RUNS_OF_A_LAUNCH = run_launch, run_from_seeds


# ---- arguments ----


def fields_of(struct):
    return [(name, getattr(struct, name)) for name in wp._weft.field_names(struct)]


def is_struct(value):
    return isinstance(value, wp._weft.StructValue)


def arrays_in(value):
    """All arrays of an argument, in order."""
    if isinstance(value, (list, tuple)):
        return [array for one in value for array in arrays_in(one)]
    if isinstance(value, wp.array):
        return [value]
    return [array for _, field in fields_of(value) for array in arrays_in(field)] if is_struct(value) else []


def has_integers(value):
    """Whether an argument is an integer, or has one, outside of arrays."""
    if isinstance(value, (list, tuple)):
        return any(map(has_integers, value))
    return any(has_integers(field) for _, field in fields_of(value)) if is_struct(value) else type(value) is int


def rebuilt(value, array_of, number_of):
    """The argument with other arrays and numbers in place of its own."""
    if isinstance(value, (list, tuple)):
        return type(value)(rebuilt(one, array_of, number_of) for one in value)
    if isinstance(value, wp.array):
        return array_of(value)
    if is_struct(value):
        made = type(value)()
        for name, field in fields_of(value):
            setattr(made, name, rebuilt(field, array_of, number_of))
        return made
    return number_of(value)


def extent(array):
    """The first address, and the one behind the last."""
    first = last = array.ptr or 0
    if array.size == 0:
        return first, first
    for n, stride in zip(array.shape, array.strides, strict=True):
        first, last = (first + (n - 1) * stride, last) if stride < 0 else (first, last + (n - 1) * stride)
    return first, last + wp.types.type_size_in_bytes(array.dtype)


def has_arrays(dtype):
    """Whether elements contain arrays."""
    if not isinstance(dtype, type) or not issubclass(dtype, wp._weft.StructValue):
        return False
    return any(
        field is None or isinstance(field, wp.array) or has_arrays(type(field)) for _, field in fields_of(dtype())
    )


@functools.cache
def layout(dtype):
    """[(byte, NumPy's type, shape)] of the numbers in one element."""
    if has_arrays(dtype):
        raise NotComparable
    try:
        probe = wp.zeros(1, dtype=dtype, device="cpu")
        if dtype in (wp.bfloat16, wp.float8_e4m3fn, wp.float8_e5m2):
            raise NotComparable
        found = probe.numpy()
    except (RuntimeError, TypeError, AttributeError) as problem:
        raise NotComparable from problem
    return tuple(numbers_of(found.dtype, found.shape[1:], 0))


def numbers_of(dtype, shape, byte):
    if dtype.subdtype:
        yield from numbers_of(dtype.subdtype[0], (*shape, *dtype.subdtype[1]), byte)
    elif dtype.fields:
        for kind, offset in ((field[0], field[1]) for field in dtype.fields.values()):
            if shape:
                raise NotComparable
            yield from numbers_of(kind, (), byte + offset)
    elif dtype.kind in "fiub":
        yield byte, dtype, shape
    else:
        raise NotComparable


def places(array):
    """Where its elements lie: arrays with the same places are one array."""
    return array.ptr or id(array), array.shape, array.strides, array.dtype


def is_in_rows(array):
    """Whether its elements lie one after the other; of a single row, also where a second one would begin."""
    row = wp.types.type_size_in_bytes(array.dtype) * int(np.prod(array.shape[1:]))
    return array.is_contiguous and array.strides[0] == row


def inner_steps(dtype, shape):
    """The bytes from one number of an element to the next, in each dimension."""
    return [dtype.itemsize * int(np.prod(shape[axis + 1 :])) for axis in range(len(shape))]


class Trial:
    """One launch with other numbers."""

    def __init__(self, kernel, device, dim, lists, run, change, seed):
        self.kernel, self.device, self.dim, self.run, self.change = kernel, device, dim, run, change
        self.threads = 1 if dim is None else int(np.prod(dim))  # of the test's own launch
        self.rng = np.random.default_rng(seed)
        self.arrays = {}  # id -> array, with the gradients
        for array in arrays_in(lists):
            while array is not None and id(array) not in self.arrays:
                self.arrays[id(array)] = array
                array = array.grad
        is_there = all(type(array) is wp.array and array.device == device for array in self.arrays.values())
        has_ties = self.change.kind == "any integers" and (
            "atomic_min" in source(kernel) or "atomic_max" in source(kernel)
        )
        # The indices of an indexed array were checked when it was made, and it has its shape from them.
        changes_indices = "integers" in self.change.kind or not self.change.keeps_places
        has_indices = changes_indices and any(hasattr(one, "indices") for values in lists for one in values)
        has_addresses = uses_addresses(kernel) and any(one.dtype is wp.uint64 for one in self.arrays.values())
        lacks_integers = self.change.integer is not None and not has_integers(lists)
        if not is_there or has_ties or has_indices or has_addresses or lacks_integers or says_more(kernel):
            raise NotComparable
        if not self.change.keeps_places:
            self.require_rows()
        if tickets := uses_of_tickets(kernel):
            # One atomic of a warp takes place thread by thread, as on the CPU, if no thread has several.
            most = LANES if tickets == 1 and not has_loops(kernel) else 1
            extents = np.atleast_1d(1 if dim is None else dim)
            self.dim = min(int(extents[0]), most) if len(extents) == 1 else (1,) * len(extents)
        elif dim is not None:
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
        """Arrays change their shape where no two share a part of their memory, and there are rows to be changed."""
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
        """A gap follows each row of the last dimension, where there are rows, each plane of rows, and so on."""
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
        """The numbers of a region's array, and again from the first where it is longer."""
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
            largest = float(np.finfo(values.dtype).max)
            return np.clip(self.floats(values.shape), -largest, largest)
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
            near_limits = self.rng.choice([limits.max, limits.max - 1, limits.min, limits.min + 1], values.shape)
            near_zero = self.rng.choice([max(-1, limits.min), 1, 2], values.shape)
            rare = self.rng.random(values.shape)
            made = np.select([rare < 0.15, rare < 0.3, rare < 0.4], [near_limits, near_zero, any_at_all], made)
            made = np.where(made == 0, 1, made).astype(values.dtype)  # any integers that are divided by
        return made

    def floats(self, shape):
        made = self.rng.normal(0.0, 1.5, shape)
        if self.change.kind == "floats of any size":
            return made * 10.0 ** self.rng.integers(-6, 7)
        if self.change.kind == "any integers":
            kinds = self.rng.random(shape)
            made = np.where(kinds < 0.1, 0.0, np.where(kinds < 0.3, np.round(made), made * np.exp(2 * made)))
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

    def on_device(self):
        """(the contents behind the run, the text of a fault): one of them is None."""
        found = fault = problem = None
        try:
            found = self.on(self.device, self.contents, self.kernel)
        except (RuntimeError, TypeError, ValueError, NotImplementedError, AssertionError) as error:
            problem = error
        while recover() or problem:
            fault = fault or (str(problem) if "the emulated device says" in str(problem) else None)
            try:
                wp.synchronize_device(self.device)  # what else was to be done
                break
            except wp.UsageError as error:
                fault = fault or str(error)
        if problem and not fault:
            raise NotComparable from problem
        return found, fault

    def compare(self):
        there, fault = self.on_device()
        keeps_edges = not fault and self.keeps_edges
        # Where other indices go out of arrays the CPU says so, too; where they let threads race it may not, and loops
        # over any integers take for ever.
        has_other_indices = self.change not in ONLY_FLOATS
        has_raced = fault and has_other_indices and any(word in fault for word in RACES)
        has_raced = has_raced and not self.keeps_threads_apart()
        is_endless = fault and (self.change.kind == "any integers" or "TIMEOUT" in fault)
        if has_raced or is_endless or (uses_addresses(self.kernel) and not keeps_edges):
            raise NotComparable
        try:
            here = self.on_cpu(self.contents)
        except (RuntimeError, IndexError, ZeroDivisionError, AssertionError) as problem:
            raise NotComparable from problem
        assert not fault, f"{self.kernel.key}: with other numbers ({self.change}) the CPU goes on, and {fault}"
        assert keeps_edges, f"{self.kernel.key}: with other numbers ({self.change}) it writes beside its arrays"
        self.require_same(here, there)
        self.require_same_gaps(here, there)

    def keeps_threads_apart(self):
        """Whether threads that do not race in the test's own launch, of several threads, do not in a longer one: where
        their places are sums of indices and products with what the trial does not change."""
        change = self.change
        is_longer = not (change.wider or change.width or change.extents)
        same = is_longer and change.integer is None and "floats" in change.kind
        has_indices = any(dtype.kind in "iu" for parts in self.layouts.values() for _, dtype, _ in parts)
        return same and self.threads > 1 and not has_indices and not joins_threads(self.kernel)

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
            for ((_, mine), (_, its)), of_runs in zip(numbers, runs, strict=True):
                wrong = ~agree(mine, its, [near for _, near in of_runs], most)
                assert not wrong.any(), (
                    f"{self.kernel.key}: with other numbers ({self.change}) the devices differ at "
                    f"{np.argwhere(wrong)[0]} of {mine.shape}: {mine[wrong][0]} on the CPU, {its[wrong][0]} on the GPU"
                )

    def runs_with_other_roundings(self):
        """On the CPU: of floats that are moved a little, and of the code for release, which adds in another order."""
        nudged = [self.nudged(i) for i in range(len(self.contents))]
        return [self.on_cpu(nudged), self.on("cpu", self.contents, self.kernel)]

    def require_same_gaps(self, here, there):
        """What is between the rows."""
        for index, (one, other) in enumerate(zip(here, there, strict=True)):
            for _, view in [*self.views(index, one), *self.views(index, other)]:
                view[...] = 0
            assert (one == other).all(), f"{self.kernel.key}: ({self.change}) it writes between the rows of its arrays"

    def nudged(self, index):
        contents = self.contents[index].copy()
        for _, view in self.views(index, contents):
            if view.dtype.kind == "f":
                view[...] = view * (1.0 + NUDGES[view.dtype.itemsize] * self.rng.choice([-1.0, 1.0], view.shape))
        return contents


def agree(one, other, nears=(), most=0.0):
    """Which numbers are the same but for rounding. `nears` are what `one` is with other roundings, and `most`
    what the roundings of a sum of all numbers add up to, in units of those of one."""
    with np.errstate(all="ignore"):
        if one.dtype.kind != "f":
            return np.any([one == other, *(one != near for near in nears)], axis=0)
        size = one.dtype.itemsize
        relative, of_largest = TOLERANCES[size]
        a, b = one.astype(np.float64), other.astype(np.float64)
        allowed = relative * (np.abs(a) + np.abs(b)) + of_largest * (1.0 + largest(a) + most)
        same = (a == b) | (np.isnan(a) & np.isnan(b))
        if nears:
            same |= ~(np.abs(a) <= MOST_GROWTH[size])
        for near in nears:
            moved = near.astype(np.float64)
            allowed += FACTORS[size] * largest(moved - a)
            # What roundings decide as a whole may also be infinite.
            same |= ~np.isfinite(moved) | (FACTORS[size] * np.abs(moved - a) > np.abs(a))
        return same | (np.abs(a - b) <= allowed)


def largest(numbers):
    """The largest size of a float, but for infinite ones."""
    if numbers.dtype.kind != "f":
        return 0.0
    finite = np.abs(numbers[np.isfinite(numbers)].astype(np.float64))
    return finite.max() if finite.size else 0.0


class Region:
    """Memory that arguments share."""

    def __init__(self, keys, first, last):
        self.keys, self.first, self.last = keys, first, last

    @property
    def size(self):
        return self.last - self.first

    def contents(self, device):
        if not self.size or not self.first:
            return np.zeros(self.size, np.uint8)
        return wp.array(ptr=self.first, shape=self.size, dtype=wp.uint8, device=device).numpy().copy()


class Memory:
    """A copy of a region on a device, as far behind a multiple of 256 as the region is, between edges of a pattern."""

    EDGE = 0xA5

    def __init__(self, contents, device, start):
        whole = np.full(contents.size + 512, self.EDGE, np.uint8)
        self.bytes = wp.zeros(whole.size, dtype=wp.uint8, device=device)
        first = (start - self.bytes.ptr) % 256
        self.inside = slice(first, first + contents.size)
        whole[self.inside] = contents
        self.bytes.assign(whole)
        self.ptr = self.bytes.ptr + first

    def read(self):
        """(the copy, whether its edges are as they were)"""
        whole = self.bytes.numpy()
        return whole[self.inside].copy(), bool((np.delete(whole, self.inside) == self.EDGE).all())


@functools.cache
def debugged(kernel):
    """The kernel, compiled for one thread at a time and with its indices checked."""
    if not hasattr(kernel, "options"):
        raise NotComparable  # one of Weft's own
    options = {**kernel.options, "mode": "debug", "enable_backward": kernel.enable_backward}
    return wp.kernel(kernel.func, module="unique", module_options=options)


@functools.cache
def source(kernel):
    """The text of a kernel and of the functions that it names."""
    variables = inspect.getclosurevars(kernel.func)
    named = [*variables.nonlocals.values(), *variables.globals.values()]
    functions = [kernel.func, *(one.func for one in named if isinstance(one, wp.Function))]
    return "\n".join(inspect.getsource(one) for one in functions if inspect.isfunction(one))


def says_more(kernel):
    """Whether it prints, or asks for the size of a block, which is 1 on the CPU."""
    return any(word in source(kernel) for word in ("print", "expect_", "block_dim"))


def uses_addresses(kernel):
    """Whether it may make arrays of addresses, of which nobody knows where they end."""
    return "ptr" in source(kernel)


def joins_threads(kernel):
    """Whether it may compute one number of several indices, or counts from the end of an array."""
    text = source(kernel)
    return re.search(r"%|//|>>|&|\*\*|\[[^]]*-|\b(min|max|clamp|int\w*|where|abs|shape|select|if)\b", text) is not None


def has_loops(kernel):
    return re.search(r"\b(for|while)\b", source(kernel)) is not None


def uses_of_tickets(kernel):
    """How many lines use what an atomic gave, which depends on the order of threads."""
    lines = [line.strip() for line in source(kernel).splitlines()]
    return sum("atomic_" in line and not line.startswith("wp.atomic_") for line in lines)


driver = functools.cache(emulated_driver.driver_library)


def recover():
    """Whether a kernel of the emulated device had a fault; the device can be used again."""
    return driver().weftEmulatedRecover()
