"""What a tape records besides launches: copies by the host, operations on whole arrays, functions of the user.

Each entry knows its backward pass. A launch runs the adjoint of its kernel, a copy adds the gradient of what it wrote
to that of what it read, and what comes from elsewhere takes the gradient away. Whole-array operations bring theirs, as
parts, each of which says how one array that is read enters one that is written:

    d = a @ b:    Part("a", d, forward: into += tangent @ b, backward: into += gradient @ b.T, factors=("b",))
                  Part("b", d, forward: into += a @ tangent, backward: into += a.T @ gradient, factors=("a",))

All are linear in the array and in each of the factors. So they are all that anybody needs: the tape goes back by them,
and products with Hessians (hessians.py) go forward and back with tangents, by the product rule.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from warp import _weft
from warp._weft import Need, array

__all__ = [
    "Entry",
    "Function",
    "Operation",
    "Part",
    "Write",
    "arrays_of",
    "is_smooth",
    "recorded",
]


def is_smooth(value: array) -> bool:
    """Whether it has a gradient that is more than zeros."""
    info = _weft.type_info(value.dtype)
    return value.grad is not None and info is not None and info["scalar_kind"] == "float"


def arrays_of(value: Any) -> list[array]:
    return [value] if isinstance(value, array) else _weft.arrays_in(value)


class Entry:
    """What all entries of a tape can tell."""

    def arrays(self) -> Iterator[array]:
        """All that it has to do with."""
        raise NotImplementedError

    def written(self) -> list[list[array]]:
        """The arrays that it writes; those of one list count as one write to each memory that they lie in."""
        return []

    def known_arrays(self) -> Iterable[array]:
        """Those that the program has given."""
        return self.arrays()

    def may_start(self) -> list[array]:
        """Those whose gradients the backward pass may start from."""
        return [one for together in self.written() for one in together]


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
        from warp._arrays.copy_kernels import kernels

        source = self.source if self.source.dtype is self.to.dtype else self.source.view(self.to.dtype)
        return kernels[self.to.ndim - 1], self.to.shape, [source, self.to]

    def backward(self) -> None:
        if self.to.grad is None:
            return
        launch = self.as_launch()
        if launch is not None:
            kernel, dim, values = launch
            _weft.run_adjoint(kernel, dim, values, [None, None], None)
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
        writer = f"the backward pass of {self.name}"
        gradients = [one.grad for one in (*self.reads.values(), *self.writes.values()) if one.grad is not None]
        _weft.run_adding(
            gradients,
            lambda: _weft.run_verified("Tape.backward()", writer, "the gradient of ", written, self._go_back),
        )

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
