"""What a tape records: launches, copies by the host, operations on whole arrays, and functions of the user.

Each entry knows the way back. A launch runs the adjoint of its kernel, a copy adds the gradient of what it wrote to
that of what it read, and what comes from elsewhere takes the gradient away. Whole-array operations bring theirs, as
parts, each of which says how one array that is read enters one that is written:

    d = a @ b:    Part("a", d, forward: into += tangent @ b, backward: into += gradient @ b.T, factors=("b",))
                  Part("b", d, forward: into += a @ tangent, backward: into += a.T @ gradient, factors=("a",))

All are linear in the array and in each of the factors. So they are all that anybody needs: the tape goes back by them,
and products with Hessians (hessians.py) go forward and back with tangents, by the product rule.
"""

from __future__ import annotations

import bisect
import copy
import functools
import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from warp import _weft
from warp._weft import array, primitives, usage_error

__all__ = [
    "Function",
    "Launch",
    "Need",
    "Operation",
    "Part",
    "Waiting",
    "Write",
    "arrays_of",
    "gradients_of",
    "is_smooth",
    "join_overlapping",
    "recorded",
]


class Need:
    """That an entry of a tape reads an array, and its adjoint does so again."""

    __slots__ = ("array", "begin", "buffer", "copy", "end", "together")

    def __init__(self, needed: array):
        self.array = needed
        self.buffer, self.begin, self.end, _ = _weft.memory_of(needed)
        self.copy: array | None = None  # of the contents that the entry saw; None while the array still has them
        # Those of the entry that are copied as one, because they show parts of the same memory: what the kernel stores
        # through one argument it may read through another, and so does its adjoint.
        self.together: list[Need] = [self]

    def contents(self) -> array:
        return self.array if self.copy is None else self.copy

    def contents_with_gradient(self) -> array:
        """The same; a copy has a gradient of its own where the array has one."""
        contents = self.contents()
        if self.copy is not None and self.array.requires_grad:
            contents = _weft.clone(contents, requires_grad=True)
        return contents


def join_overlapping(needs: list[Need]) -> None:
    """Those of the needs of one entry that overlap will be copied together."""
    needs = sorted(needs, key=lambda need: (need.buffer, need.begin))
    end = 0
    for before, need in itertools.pairwise(needs):
        end = max(end, before.end) if before.buffer == need.buffer else 0
        if before.buffer == need.buffer and need.begin < max(end, before.end):
            before.together.append(need)
            need.together = before.together


class Waiting:
    """The needs of one buffer whose contents are still there, by their first byte: what a write meets is found without
    looking at all of them, as where every step of a rollout has a row of one array."""

    def __init__(self) -> None:
        self._begins: list[int] = []
        self._needs: list[Need] = []
        self._longest = 0

    def __bool__(self) -> bool:
        return bool(self._needs)

    def add(self, need: Need) -> None:
        at = bisect.bisect_right(self._begins, need.begin)
        self._begins.insert(at, need.begin)
        self._needs.insert(at, need)
        self._longest = max(self._longest, need.end - need.begin)

    def take(self, begin: int, end: int) -> list[Need]:
        """Removes and returns those that lie in part in these bytes."""
        first = bisect.bisect_right(self._begins, begin - self._longest)
        last = bisect.bisect_left(self._begins, end)
        found = [need for need in self._needs[first:last] if begin < need.end]
        if found:
            self._replace(first, last, [need for need in self._needs[first:last] if begin >= need.end])
        return found

    def forget(self, needs: list[Need]) -> None:
        self._replace(0, len(self._needs), [need for need in self._needs if need not in needs])

    def _replace(self, first: int, last: int, needs: list[Need]) -> None:
        self._needs[first:last] = needs
        self._begins[first:last] = [need.begin for need in needs]


def is_smooth(value: array) -> bool:
    """Whether it has a gradient that is more than zeros."""
    info = _weft.type_info(value.dtype)
    return value.grad is not None and info is not None and info["scalar_kind"] == "float"


def arrays_of(value: Any) -> list[array]:
    return [value] if isinstance(value, array) else _weft.arrays_in(value)


_FIXED = (array, float, int, bool, type(None))  # the usual arguments, which a tape takes as they are


def _as_now(value: Any) -> Any:
    """An argument for later: a struct, a vector or a matrix may be changed after the launch, which took it as it is."""
    if isinstance(value, list):
        return copy.deepcopy(value)
    if isinstance(value, array):
        return value
    return copy.copy(value) if _weft.field_names(value) or _weft.is_value(value) else value


class Entry:
    """What all entries of a tape can tell."""

    def arrays(self) -> Iterator[array]:
        """All that it has to do with."""
        raise NotImplementedError

    def written(self) -> list[list[array]]:
        """The arrays that it writes; those of one list count as one write to each memory that they lie in."""
        return []

    def known_arrays(self) -> Iterator[array]:
        """Those that the program has given."""
        return self.arrays()

    def may_start(self) -> list[array]:
        """Those whose gradients the way back may start from."""
        return [one for together in self.written() for one in together]


class Launch(Entry):
    """One launch.

    ``before`` and ``after`` have what the adjoint reads as it was then, by argument: arrays, and those in structs.
    ``nested`` has the arrays that lie in the elements of these, at any depth, and ``within`` those of them that the
    adjoint reads.
    """

    def __init__(self, kernel: Any, dim: Any, values: list, device: Any, shape: tuple[int, ...] | None):
        self.kernel, self.dim, self.device, self.shape = kernel, dim, device, shape
        self.values = [value if type(value) in _FIXED else _as_now(value) for value in values]
        self.structs = [value for value in values if type(value) not in _FIXED and _weft.arrays_in(value)]
        self.nested: dict[int, list[array]] = {}
        self.records: list[array] = []  # what its atomics gave
        self.before: dict[int, list[Need]] = {}
        self.within: dict[int, list[Need]] = {}
        self.after: dict[int, Need] = {}
        self._look(values)

    def _look(self, values: list) -> None:
        """Finds out what the launch writes, and what its adjoint reads, for gradients that there are, and those that
        outputs may get later (``gradients``, by argument). ``is_left_out`` says that there is no adjoint because of
        enable_backward=False."""
        (
            before,
            within,
            after,
            self.writes,
            self.writes_within,
            self.overwrites,
            self.gradients,
            nested,
            self.records,
            self.is_smooth,
            self.is_left_out,
        ) = _weft.launch_needs(self.kernel, self.dim, values, self.device, self.shape)
        self.nested = self.nested or nested
        for i, value in enumerate(self.values):
            if before[i] and i not in self.before and arrays_of(value):
                self.before[i] = [Need(one) for one in arrays_of(value)]
            if within[i] and i not in self.within:
                self.within[i] = [Need(one) for one in self.nested[i]]
            if after[i] and i not in self.after and isinstance(value, array):
                self.after[i] = Need(value)

    def needs(self) -> list[Need]:
        """Those of contents from before the launch."""
        return [need for needs in (*self.before.values(), *self.within.values()) for need in needs]

    def overwritten(self, one: array) -> int | None:
        """Which argument the array is, if the launch overwrites all of it and does nothing else with it."""
        return next((i for i, value in enumerate(self.values) if value is one and self.overwrites[i]), None)

    def known_arrays(self) -> Iterator[array]:
        for value in self.values:
            yield from arrays_of(value)

    def arrays(self) -> Iterator[array]:
        yield from self.known_arrays()
        for nested in self.nested.values():
            yield from nested

    def written(self) -> list[list[array]]:
        own = [[one] for i, value in enumerate(self.values) if self.writes[i] for one in arrays_of(value)]
        return own + [nested for i, nested in self.nested.items() if self.writes_within[i]]

    def uses(self) -> Iterator[tuple[array, bool]]:
        for value, is_written in zip(self.values, self.writes, strict=True):
            for one in arrays_of(value):
                yield one, is_written
        for i, nested in self.nested.items():
            for one in nested:
                yield one, self.writes_within[i]

    def contents(self) -> tuple[list, list, list]:
        """The arguments as the adjoint takes them: (values, before, after), where the latter have arrays to be read in
        place of the values, or None."""
        values = list(self.values)
        before: list[array | None] = [None] * len(values)
        after: list[array | None] = [None] * len(values)
        within = {need.array: need.copy for needs in self.within.values() for need in needs if need.copy is not None}
        for i, value in enumerate(values):
            copies = {id(need.array): need.copy for need in self.before.get(i, ())}
            leads_on = bool(within) and i in self.nested
            if isinstance(value, array):
                before[i] = _with_nested(value, copies.get(id(value)), within if leads_on else {})
            elif leads_on or any(copy is not None for copy in copies.values()):
                values[i] = _with_contents(value, copies, within)
        for i, need in self.after.items():
            after[i] = need.copy
        return values, before, after

    def backward(
        self, written_after: Callable[[], list[array]] = list, supplied: dict[int, array] | None = None
    ) -> None:
        """Adds to the gradients of what was read.

        Args:
            written_after: gives the arrays that later entries write.
            supplied: gradients of arguments, by number, that are read in place of ``array.grad``.
        """
        if self.is_left_out:
            for value, is_overwritten in zip(self.values, self.overwrites, strict=True):
                if is_overwritten and value.grad is not None:
                    value.grad.zero_()  # what was there before had no part in what followed
            return
        if not self.is_smooth and not self._has_new_gradients():
            return
        if not self.is_smooth or not self._run_adjoint(supplied):
            self._catch_up(written_after())
            self._run_adjoint(supplied)

    def _run_adjoint(self, supplied: dict[int, array] | None) -> bool:
        """False where there are gradients that nobody expected."""
        values, before, after = self.contents()
        gradients = [None] * len(values)
        for i, gradient in (supplied or {}).items():
            gradients[i] = gradient
        return _weft.run_adjoint(
            self.kernel, self.dim, values, before, after, self.records, gradients, self.gradients, self.device
        )

    def _has_new_gradients(self) -> bool:
        return any(
            is_written and isinstance(value, array) and value.grad is not None
            for value, is_written in zip(self.values, self.writes, strict=True)
        )

    def _catch_up(self, written_after: list[array]) -> None:
        """Gradients have come since the launch was recorded, and with them other contents that the adjoint reads. They
        have to be there still."""
        known = {id(need) for need in (*self.needs(), *self.after.values())}
        had_records = bool(self.records)
        records = self.records
        self._look(self.values)
        if had_records:
            self.records = records
        written = [one for together in self.written() for one in together] + written_after
        after = {id(need) for need in self.after.values()}
        for need in (*self.needs(), *self.after.values()):
            if id(need) in known:
                continue
            changed = written_after if id(need) in after else written
            if any(primitives.overlap(need.array, one) for one in changed):
                raise self._too_late(f"an array of shape {need.array.shape} that it reads was overwritten since")
        if self.records and not had_records:
            raise self._too_late("it needs what the atomics of the launch gave, which was not kept")

    def _too_late(self, why: str) -> Exception:
        return usage_error(
            f"Tape.backward(): an argument of {self!r} got its gradient after it was recorded, and the way back cannot "
            f"be run any more: {why}. help: make the arrays with requires_grad=True before they are recorded",
            RuntimeError,
        )

    def __repr__(self) -> str:
        return f"<launch of {self.kernel.key}, dim {self.dim}>"


def _with_nested(one: array, copy: array | None, within: dict[array, array]) -> array | None:
    """What is to be read in place of an array: its copy, which leads to other copies where there are some."""
    if not within or not _weft.holds_arrays(one):
        return copy
    return _weft.with_nested(one if copy is None else copy, list(within), list(within.values()))


def _with_contents(struct: Any, copies: dict[int, array | None], within: dict[array, array]) -> Any:
    """The struct with its arrays' contents as they were; the gradients are those that the arrays have."""
    result = type(struct)()
    for name in _weft.field_names(struct):
        value = getattr(struct, name)
        if isinstance(value, array):
            copy = _with_nested(value, copies.get(id(value)), within)
            if copy is not None:
                copy.grad = value.grad
                value = copy
        elif _weft.arrays_in(value):
            value = _with_contents(value, copies, within)
        setattr(result, name, value)
    return result


def gradients_of(struct: Any) -> Any:
    result = type(struct)()
    for name in _weft.field_names(struct):
        value = getattr(struct, name)
        if isinstance(value, array):
            if value.grad is not None:
                setattr(result, name, value.grad)
        elif _weft.arrays_in(value):
            setattr(result, name, gradients_of(value))
    return result


class Write(Entry):
    """A copy by the host, or, without a source, numbers from elsewhere."""

    def __init__(self, to: array, source: array | None):
        self.to, self.source = to, source

    def written(self) -> list[list[array]]:
        return [[self.to]]

    def arrays(self) -> Iterator[array]:
        yield self.to
        if self.source is not None:
            yield self.source

    def uses(self) -> Iterator[tuple[array, bool]]:
        yield self.to, True
        if self.source is not None:
            yield self.source, False

    def as_launch(self) -> tuple[Any, tuple[int, ...], list[array]] | None:
        """(kernel, dim, values) of a launch that does the same; None where no gradient goes back to a source."""
        if self.source is None or self.source.grad is None:
            return None
        from warp.copy_kernels import kernels

        source = self.source if self.source.dtype is self.to.dtype else self.source.view(self.to.dtype)
        return kernels[self.to.ndim - 1], self.to.shape, [source, self.to]

    def backward(self) -> None:
        if self.to.grad is None:
            return
        launch = self.as_launch()
        if launch is not None:
            kernel, dim, values = launch
            _weft.run_adjoint(kernel, dim, values, [None, None], [None, None], [], [None, None], None, None)
        else:
            self.to.grad.zero_()

    def __repr__(self) -> str:
        return f"<{'copy' if self.source is not None else 'write'} of {self.to.shape}>"


class Function(Entry):
    """What the user does by hand: record_func()."""

    def __init__(self, backward: Callable[[], Any], arrays: list[array]):
        self._backward, self._arrays = backward, arrays

    def arrays(self) -> Iterator[array]:
        yield from self._arrays

    def may_start(self) -> list[array]:
        return list(self._arrays)

    def uses(self) -> Iterator[tuple[array, bool]]:
        for one in self._arrays:
            yield one, False

    def backward(self) -> None:
        gradients = {f"arrays[{i}]": one.grad for i, one in enumerate(self._arrays) if one.grad is not None}
        _weft.run_verified("Tape.backward()", repr(self), "the gradient of ", gradients, self._backward)

    def __repr__(self) -> str:
        return f"<function {getattr(self._backward, '__name__', self._backward)}>"


class Part(NamedTuple):
    """How an array that an operation reads enters one that it writes: linearly, with other arrays that it reads as
    factors. Both functions add: ``forward(tangent, into, *factors)`` to the tangent of what is written,
    ``backward(gradient, into, *factors)`` to the gradient of what is read."""

    read: str
    written: array
    forward: Callable[..., None]
    backward: Callable[..., None]
    factors: tuple[str, ...] = ()


class Operation(Entry):
    """An operation on whole arrays. ``result`` is what ``run`` gave back."""

    def __init__(
        self,
        name: str,
        reads: Mapping[str, array],
        writes: Mapping[str, array],
        needs: Mapping[str, array],
        parts: Callable[[Any], Sequence[Part]],
    ):
        self.name, self.reads, self.writes = name, reads, writes
        self.needs = {key: Need(needed) for key, needed in needs.items()}
        self.result: Any = None
        self._make_parts = parts

    @functools.cached_property
    def _parts(self) -> Sequence[Part]:
        return self._make_parts(self.result)

    def parts(self) -> list[Part]:
        """Those that gradients go through. Known when it has run."""
        return [part for part in self._parts if is_smooth(part.written) and is_smooth(self.reads[part.read])]

    def factors(self, part: Part) -> list[array]:
        """As they were before the operation."""
        return [self.needs[name].contents() for name in part.factors]

    def take(self, gradient_of: Callable[[array], array | None]) -> dict[int, array]:
        """The gradients of what was written, as arrays of their own, by its id. They are used up: zeros are left."""
        taken: dict[int, array] = {}
        for part in self._parts:
            written, gradient = part.written, gradient_of(part.written)
            if gradient is None or id(written) in taken:
                continue
            taken[id(written)] = _weft.keep(gradient)
            gradient.zero_()
        return taken

    def written(self) -> list[list[array]]:
        return [[one] for one in self.writes.values()]

    def arrays(self) -> Iterator[array]:
        yield from self.reads.values()
        yield from self.writes.values()

    def uses(self) -> Iterator[tuple[array, bool]]:
        for one in self.reads.values():
            yield one, False
        for one in self.writes.values():
            yield one, True

    def backward(self) -> None:
        written = {name: read.grad for name, read in self.reads.items() if read.grad is not None}
        culprit = f"the way back of {self.name}"
        _weft.run_verified("Tape.backward()", culprit, "the gradient of ", written, self._go_back)

    def _go_back(self) -> None:
        gradients = self.take(lambda written: written.grad)
        for part in self.parts():
            part.backward(gradients[id(part.written)], self.reads[part.read].grad, *self.factors(part))

    def __repr__(self) -> str:
        return f"<{self.name}>"


def recorded(
    name: str,
    run: Callable[[], Any],
    *,
    reads: Mapping[str, array],
    writes: Mapping[str, array],
    needs: Mapping[str, array] | None = None,
    parts: Callable[[Any], Sequence[Part]],
) -> Any:
    """Runs an operation; a tape that records has it as an entry. What fails is not on the tape.

    Args:
        name: how messages and pictures of the tape call it.
        run: does it, and counts one write for each of ``writes``.
        reads, writes: the arrays, by the names that messages call them.
        needs: those whose contents are factors of a part.
        parts: its parts, given what ``run`` returned. No tape records while their functions run.
    Returns:
        What ``run`` returned.
    """
    tape = _weft.active_tape()
    if tape is None:
        return _weft.run_verified(name, "this", "", dict(writes), run)
    operation = Operation(name, reads, writes, needs or {}, parts)
    tape._record_operation(operation, lambda: _weft.run_verified(name, "this", "", dict(writes), run))
    return operation.result
