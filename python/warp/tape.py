"""wp.Tape: records what is launched and copied, and carries gradients back through it.

Each entry of a tape knows the way back: a launch runs the adjoint of its kernel, a copy adds the gradient of what it
wrote to that of what it read, and what comes from elsewhere takes the gradient away. An adjoint reads the arrays that
its launch read, as they were then. So before something recorded overwrites an array that an earlier entry still needs,
the tape keeps a copy, and the entry uses that; what nothing on the tape overwrites is never copied, and is used with
the contents that it has when ``backward`` runs.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple

from warp import _weft
from warp._weft import array, usage_error

__all__ = ["Tape"]


class Memory(NamedTuple):
    """What a tape has kept: the number of copies, their bytes now, and the most bytes it has had."""

    copies: int
    bytes: int
    peak_bytes: int


class _Need:
    """That an entry reads an array and its adjoint does so again."""

    __slots__ = ("array", "begin", "copy", "end")

    def __init__(self, needed: array):
        self.array = needed
        _, self.begin, self.end, _ = _weft.memory_of(needed)
        self.copy: array | None = None  # of the contents that the entry saw; None while the array still has them

    def contents(self) -> array:
        return self.array if self.copy is None else self.copy


def _arrays_of(value: Any) -> list[array]:
    return [value] if isinstance(value, array) else _weft.arrays_in(value)


class _Launch:
    """One launch. ``needs`` has what the adjoint reads, by argument."""

    def __init__(self, kernel: Any, dim: Any, values: list, device: Any, writes: list[bool], is_smooth: bool):
        self.kernel, self.dim, self.values, self.device = kernel, dim, values, device
        self.writes, self.is_smooth = writes, is_smooth
        self.needs: dict[int, list[_Need]] = {}

    def arrays(self) -> Iterator[array]:
        for value in self.values:
            yield from _arrays_of(value)

    def uses(self) -> Iterator[tuple[array, bool]]:
        for value, is_written in zip(self.values, self.writes, strict=True):
            for one in _arrays_of(value):
                yield one, is_written

    def backward(self) -> None:
        if not self.is_smooth:
            return
        values, contents = list(self.values), [None] * len(self.values)
        for i, needs in self.needs.items():
            if isinstance(values[i], array):
                contents[i] = needs[0].copy
            elif any(need.copy is not None for need in needs):
                values[i] = _with_contents(values[i], {id(need.array): need.copy for need in needs})
        _weft.run_adjoint(self.kernel, self.dim, values, contents, [None] * len(values), self.device)

    def __repr__(self) -> str:
        return f"<launch of {self.kernel.key}, dim {self.dim}>"


def _with_contents(struct: Any, copies: dict[int, array | None]) -> Any:
    """The struct with its arrays' contents as they were; the gradients are those that the arrays have."""
    result = type(struct)()
    for name in _weft.field_names(struct):
        value = getattr(struct, name)
        if isinstance(value, array) and (copy := copies.get(id(value))) is not None:
            copy.grad = value.grad
            value = copy
        elif not isinstance(value, array) and _weft.arrays_in(value):
            value = _with_contents(value, copies)
        setattr(result, name, value)
    return result


class _Write:
    """A copy by the host, or, without a source, numbers from elsewhere."""

    def __init__(self, to: array, source: array | None):
        self.to, self.source = to, source

    def arrays(self) -> Iterator[array]:
        yield self.to
        if self.source is not None:
            yield self.source

    def uses(self) -> Iterator[tuple[array, bool]]:
        yield self.to, True
        if self.source is not None:
            yield self.source, False

    def backward(self) -> None:
        if self.to.grad is None:
            return
        if self.source is None or self.source.grad is None:
            if not self.to.retain_grad:
                self.to.grad.zero_()
            return
        source = self.source if self.source.dtype is self.to.dtype else self.source.view(self.to.dtype)
        from warp.copy_kernels import kernels

        _weft.run_adjoint(kernels[self.to.ndim - 1], self.to.shape, [source, self.to], [None] * 2, [None] * 2, None)

    def __repr__(self) -> str:
        return f"<{'copy' if self.source is not None else 'write'} of {self.to.shape}>"


class _Function:
    """What the user does by hand: record_func()."""

    def __init__(self, backward: Callable[[], Any], arrays: list[array]):
        self._backward, self._arrays = backward, arrays

    def arrays(self) -> Iterator[array]:
        yield from self._arrays

    def uses(self) -> Iterator[tuple[array, bool]]:
        for one in self._arrays:
            yield one, False

    def backward(self) -> None:
        self._backward()

    def __repr__(self) -> str:
        return f"<function {getattr(self._backward, '__name__', self._backward)}>"


class Tape:
    """Records launches, copies and array operations, and computes gradients by running them backwards.

    ::

        tape = wp.Tape()
        with tape:
            wp.launch(simulate, dim=n, inputs=[x], outputs=[loss])
        tape.backward(loss)
        print(x.grad)

    Gradients are added to what the arrays' gradients hold; :meth:`zero` clears them. The gradient of an array that
    something recorded overwrites is used up on the way (zero afterwards), unless ``array.retain_grad`` is set.
    """

    def __init__(self) -> None:
        self.reset()

    # ---- recording ----

    def __enter__(self) -> Tape:
        if _weft.active_tape() is not None:
            raise usage_error("Tape: another tape is recording already; tapes cannot be nested", RuntimeError)
        self._is_reset = False
        _weft.set_active_tape(self)
        return self

    def __exit__(self, *exception: Any) -> None:
        _weft.set_active_tape(None)

    def _record_launch(self, kernel: Any, dim: Any, values: list, device: Any) -> None:
        reads, writes, is_smooth = _weft.launch_needs(kernel, values, device)
        entry = _Launch(kernel, dim, values, device, writes, is_smooth)
        for i, value in enumerate(values):
            if reads[i] and _arrays_of(value):
                entry.needs[i] = [_Need(one) for one in _arrays_of(value)]
        self._append(
            entry,
            [need for needs in entry.needs.values() for need in needs],
            [one for i, value in enumerate(values) if writes[i] for one in _arrays_of(value)],
        )

    def _record_write(self, to: array, source: array | None) -> None:
        self._append(_Write(to, source), [], [to])

    def _append(self, entry: Any, needs: list[_Need], written: list[array]) -> None:
        """Adds an entry that is about to run: keeps what it overwrites and somebody needs."""
        for need in needs:
            self._needs.setdefault(_weft.memory_of(need.array)[0], []).append(need)
        for one in written:
            buffer, begin, end, _ = _weft.memory_of(one)
            waiting = self._needs.get(buffer, [])
            copies: dict[tuple, array] = {}
            for need in waiting:
                if need.begin < end and begin < need.end:
                    key = (need.begin, need.end, need.array.shape, need.array.strides, need.array.dtype)
                    if key not in copies:
                        copies[key] = self._keep(need)
                    need.copy = copies[key]
            if copies:
                self._needs[buffer] = [need for need in waiting if need.copy is None]
                self._kept.setdefault(buffer, one)
        self._count_writes(written)
        self._entries.append(entry)

    def _count_writes(self, written: Iterable[array]) -> None:
        """Each of these is about to be written once. What else writes there is not on the tape."""
        for one in written:
            buffer, *_, version = _weft.memory_of(one)
            _, before = self._versions.get(buffer, (one, version))
            if before == version:
                self._versions[buffer] = (one, version + 1)
            elif before < version:  # by now; else this very entry writes it more than once
                self._versions[buffer] = (one, -1)
            else:
                self._versions[buffer] = (one, before + 1)

    def _forget_last(self) -> None:
        """What was recorded last has failed."""
        self._entries.pop()

    def _keep(self, need: _Need) -> array:
        copy = _weft.keep(need.array)
        self._memory = Memory(
            self._memory.copies + 1,
            self._memory.bytes + need.end - need.begin,
            max(self._memory.peak_bytes, self._memory.bytes + need.end - need.begin),
        )
        return copy

    def record_launch(
        self, kernel: Any, dim: Any, inputs: Iterable = (), outputs: Iterable = (), device: Any = None, **_: Any
    ) -> None:
        """Records a launch without running it: for those who have run it themselves, and are about to."""
        self._record_launch(kernel, dim, [*inputs, *outputs], device)

    def record_func(self, backward: Callable[[], Any], arrays: Iterable[array]) -> None:
        """Records something that Weft does not see: ``backward()`` is called in its place on the way back.

        Args:
            backward: adds to the gradients of what was read, from those of what was written.
            arrays: all that take part; :meth:`zero` clears their gradients.
        """
        if not callable(backward):
            raise usage_error(f"Tape.record_func(): expected a function, got {backward!r}", TypeError)
        self._is_reset = False
        self._append(_Function(backward, list(arrays)), [], [])

    # ---- going back ----

    def backward(self, loss: array | None = None, grads: dict[array, array] | None = None) -> None:
        """Adds the gradients of what was recorded to ``array.grad`` of the arrays that it depends on.

        Args:
            loss: an array of one element whose gradient is set to 1.
            grads: gradients to start with, by array: of its shape and dtype. They are not changed.
                Without loss and grads, those that the arrays hold already.
        Raises:
            UsageError: the loss has more than one element; an array has no gradient; a gradient has another shape or
                dtype; the tape is empty; an array that the tape had to copy was written since by something that is not
                on the tape, so that recorded and present values would mix.
        """
        if not self._entries:
            why = "was reset" if self._is_reset else "has recorded nothing"
            raise usage_error(f"Tape.backward(): the tape {why}. help: record in 'with tape:' again", RuntimeError)
        self._check_versions()
        with self._paused():
            if loss is not None:
                self._check_loss(loss)
                loss.grad.fill_(1)
                self.loss = loss
            supplied = []
            for of, gradient in (grads or {}).items():
                self._check_gradient(of, gradient)
                if _weft.primitives.overlap(of.grad, gradient):
                    supplied.append((gradient, _weft.keep(gradient)))
                else:
                    of.grad.assign(gradient)
            for entry in reversed(self._entries):
                entry.backward()
            for gradient, before in supplied:
                gradient.assign(before)

    @staticmethod
    def _check_loss(loss: Any) -> None:
        if not isinstance(loss, array):
            raise usage_error(f"Tape.backward(): the loss is {loss!r}, expected an array of one element", TypeError)
        if loss.size != 1:
            raise usage_error(
                f"Tape.backward(): the loss has the shape {loss.shape}, expected one element. help: "
                "backward(grads={array: gradient}) starts from any array",
                ValueError,
            )
        if not loss.requires_grad:
            raise usage_error(
                "Tape.backward(): the loss has no gradient. help: make it with requires_grad=True", ValueError
            )

    @staticmethod
    def _check_gradient(of: Any, gradient: Any) -> None:
        if not isinstance(of, array) or not isinstance(gradient, array):
            raise usage_error(
                f"Tape.backward(): grads has a {type(of).__name__} with a {type(gradient).__name__}, expected arrays "
                "with arrays: {array: gradient}",
                TypeError,
            )
        if not of.requires_grad:
            raise usage_error(
                f"Tape.backward(): grads has a gradient for an array of shape {of.shape} that has none. help: make it "
                "with requires_grad=True",
                ValueError,
            )
        if gradient.dtype is not of.dtype or gradient.shape != of.shape:
            name = _weft.type_name
            raise usage_error(
                f"Tape.backward(): a gradient is {name(gradient.dtype)} of shape {gradient.shape}, its array "
                f"{name(of.dtype)} of shape {of.shape}; expected the same",
                TypeError if gradient.dtype is not of.dtype else ValueError,
            )

    def _check_versions(self) -> None:
        for buffer, kept in self._kept.items():
            _, expected = self._versions[buffer]
            if _weft.memory_of(kept)[3] != expected:
                raise usage_error(
                    f"Tape.backward(): an array of shape {kept.shape}, of which the tape had to keep earlier contents, "
                    "was written outside of the tape since; recorded and present values would mix. help: record again",
                    RuntimeError,
                )

    @contextlib.contextmanager
    def _paused(self) -> Iterator[None]:
        recording = _weft.active_tape()
        _weft.set_active_tape(None)
        try:
            yield
        finally:
            _weft.set_active_tape(recording)

    # ---- looking at it ----

    def _arrays(self) -> list[array]:
        return list({id(one): one for entry in self._entries for one in entry.arrays()}.values())

    @property
    def gradients(self) -> dict[array, array]:
        """The gradient of each array on the tape that has one: ``tape.gradients[a]`` is ``a.grad``."""
        return {one: one.grad for one in self._arrays() if one.grad is not None}

    @property
    def adjoints(self) -> dict[array, array]:
        """The older name of :attr:`gradients`."""
        return self.gradients

    @property
    def launches(self) -> list:
        """What was recorded, in order."""
        return list(self._entries)

    @property
    def memory(self) -> Memory:
        """The copies of arrays that the tape keeps because they were overwritten, and their bytes."""
        return self._memory

    def get_adjoint(self, a: array) -> array | None:
        """The gradient of an array; None where it has none."""
        if not isinstance(a, array):
            raise usage_error(f"Tape.get_adjoint(): expected an array, got {a!r}", TypeError)
        return a.grad

    def zero(self) -> None:
        """Sets the gradients of all arrays on the tape to zero."""
        with self._paused():
            for gradient in {id(one.grad): one.grad for one in self._arrays() if one.grad is not None}.values():
                gradient.zero_()

    def reset(self) -> None:
        """Forgets what was recorded, and gives back the copies."""
        self._is_reset = hasattr(self, "_entries")
        self._entries: list[Any] = []
        self._needs: dict[int, list[_Need]] = {}  # by buffer: contents that are needed and still there
        self._kept: dict[int, array] = {}  # by buffer: an array of which contents were kept
        self._versions: dict[int, tuple[array, int]] = {}  # by buffer: writes when the last recorded one is done
        self._memory = Memory(0, 0, getattr(self, "_memory", Memory(0, 0, 0)).peak_bytes)
        self.loss: array | None = None

    def visualize(self, filename: str | None = None, array_labels: dict[array, str] | None = None) -> str:
        """The tape as a graph for Graphviz: launches and copies as boxes, arrays as ellipses.

        Args:
            filename: where the text is written too.
            array_labels: names of arrays.
        Returns:
            The text, in the DOT language.
        """
        names: dict[int, str] = {id(one): label for one, label in (array_labels or {}).items()}
        lines = ["digraph tape {", "    rankdir=LR;", "    node [fontname=Helvetica];"]
        for one in self._arrays():
            label = names.get(id(one), f"{_weft.type_name(one.dtype)} {one.shape}")
            lines.append(f'    a{id(one)} [label="{label}", style={"bold" if one.requires_grad else "solid"}];')
        for number, entry in enumerate(self._entries):
            lines.append(f'    e{number} [label="{number}: {entry!r}", shape=box];')
            for one, is_written in entry.uses():
                lines.append(f"    e{number} -> a{id(one)};" if is_written else f"    a{id(one)} -> e{number};")
        text = "\n".join([*lines, "}"]) + "\n"
        if filename is not None:
            with open(filename, "w", encoding="utf-8") as file:
                file.write(text)
        return text


def launch_adjoint(
    kernel: Any, dim: Any, inputs: Any, outputs: Any, adj_inputs: Any, adj_outputs: Any, device: Any
) -> None:
    """``wp.launch(..., adjoint=True)``: adds to the gradients of the inputs. Those of outputs are read only."""
    inputs, outputs = list(inputs or ()), list(outputs or ())
    values = inputs + outputs
    given = _padded("adj_inputs", adj_inputs, len(inputs)) + _padded("adj_outputs", adj_outputs, len(outputs))
    gradients: list[array | None] = []
    results: list[tuple[array, array]] = []
    for i, (value, gradient) in enumerate(zip(values, given, strict=True)):
        if gradient is None:
            gradients.append(None)
            continue
        if not isinstance(value, array) or not isinstance(gradient, array):
            raise usage_error(
                f"launch(): a gradient is given for argument {i + 1} of kernel {kernel.key!r}, which is "
                f"{type(value).__name__}, as {type(gradient).__name__}; expected arrays, or None",
                TypeError,
            )
        if gradient.dtype is not value.dtype or gradient.shape != value.shape:
            raise usage_error(
                f"launch(): the gradient given for argument {i + 1} of kernel {kernel.key!r} is "
                f"{_weft.type_name(gradient.dtype)} of shape {gradient.shape}, expected "
                f"{_weft.type_name(value.dtype)} of shape {value.shape}",
                TypeError if gradient.dtype is not value.dtype else ValueError,
            )
        work = gradient
        is_output = i >= len(inputs)
        if is_output or gradient.strides != value.strides:
            work = _weft.keep(value)
            work.assign(gradient)
            if not is_output:
                results.append((gradient, work))
        gradients.append(work)
    _weft.run_adjoint(kernel, dim, values, [None] * len(values), gradients, device)
    for gradient, work in results:
        gradient.assign(work)


def _padded(name: str, gradients: Any, count: int) -> list:
    gradients = list(gradients or ())
    if len(gradients) > count:
        raise usage_error(f"launch(): {name} has {len(gradients)} entries for {count} arguments", ValueError)
    return gradients + [None] * (count - len(gradients))
