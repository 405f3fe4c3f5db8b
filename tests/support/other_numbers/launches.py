"""Which launches of a test are done with other numbers, and how: plugs into wp.launch and the calls behind tapes."""

import collections
import functools
import zlib

import warp as wp
from warp._gradients.jacobians import Unrecorded

from other_numbers.arguments import NotComparable, arrays_in
from other_numbers.trials import MOST_INSTRUCTIONS, TRIALS, Trial, driver

# How often launches of one kernel with arrays of one form are compared in one test.
MOST_LAUNCHES = 2
TRIALS_OF_THE_RUN = collections.Counter()  # whether they were compared: how many


def summary():
    """Of all tests that have run."""
    done = TRIALS_OF_THE_RUN
    return f"launches with other numbers: {done[True]} compared, {done[False]} whose numbers meant nothing"


class Comparison:
    """The comparisons of one test."""

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
        def compared(kernel, dim, values, gradients, device, *blocks):
            if is_compared(kernel, wp.get_device(device)):

                def run(kernel, dim, lists, device):
                    run_adjoint(kernel, dim, *lists, device, *blocks)

                self.compare(kernel, wp.get_device(device), dim, [values, gradients], [run], "adjoint")
            return run_adjoint(kernel, dim, values, gradients, device, *blocks)

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
    """The properties of arrays that select code: gaps, elements that are apart, and shared memory."""
    places = []
    for array in arrays_in(lists):
        places.append(array.ptr)
        is_row = array.ndim > 0 and array.strides[-1] == wp.types.type_size_in_bytes(array.dtype)
        yield array.is_contiguous, is_row, 0 in array.strides, places.index(array.ptr)


def run_launch(kernel, dim, lists, device):
    """The launch, and back if arrays have gradients."""
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
