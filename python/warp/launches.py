"""Launches on a tape: what their adjoints read as it was then, and the way back."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from typing import Any

from warp import _weft
from warp._weft import array, primitives, usage_error
from warp.recording import Entry, Need, arrays_of

__all__ = ["Launch", "gradients_of"]


_FIXED = (array, float, int, bool, type(None))  # the usual arguments, which a tape takes as they are


def _as_now(value: Any) -> Any:
    """An argument for later: a struct, a vector or a matrix may be changed after the launch, which took it as it is."""
    if isinstance(value, list):
        return copy.deepcopy(value)
    if isinstance(value, array):
        return value
    return copy.copy(value) if _weft.field_names(value) or _weft.is_value(value) else value


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
        return f"<launch of {self.kernel.__name__}, dim {self.dim}>"


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
