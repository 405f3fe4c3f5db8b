"""wp.Tape: records what is launched and copied, and carries gradients back through it.

Each entry of a tape knows the way back: a launch runs the adjoint of its kernel, a copy adds the gradient of what it
wrote to that of what it read, and what comes from elsewhere takes the gradient away. An adjoint reads the arrays that
its launch read, as they were then. So before something recorded overwrites an array that an earlier entry still needs,
the tape keeps a copy, and the entry uses that; what nothing on the tape overwrites is never copied, and is used with
the contents that it has when ``backward`` runs.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, NamedTuple

from warp import _weft
from warp._weft import array, primitives, usage_error
from warp.recording import (
    Function,
    Launch,
    Need,
    Operation,
    Waiting,
    Write,
    arrays_of,
    gradients_of,
    join_overlapping,
)

__all__ = ["Tape"]


class Memory(NamedTuple):
    """What a tape has kept: the number of copies, their bytes now, and the most bytes it has had."""

    copies: int
    bytes: int
    peak_bytes: int


class Tape:
    """Records launches, copies and array operations, and computes gradients by running them backwards.

    It records what the thread that entered it does; each thread can have a tape of its own.

    ::

        tape = wp.Tape()
        with tape:
            wp.launch(simulate, dim=n, inputs=[x], outputs=[loss])
        tape.backward(loss)
        print(x.grad)

    Gradients are added to what the arrays' gradients hold; :meth:`zero` clears them. The gradient of an array that
    something recorded overwrites is used up on the way (zero afterwards), unless ``array.retain_grad`` is set: then it
    is that of the last pass.
    """

    def __init__(self) -> None:
        self._is_reset = False
        self._forget()

    # ---- recording ----

    def __enter__(self) -> Tape:
        if _weft.active_tape() is not None:
            raise usage_error("Tape: another tape is recording already; tapes cannot be nested", RuntimeError)
        self._is_reset = False
        _weft.set_active_tape(self)
        return self

    def __exit__(self, *exception: Any) -> None:
        _weft.set_active_tape(None)

    def _record_launch(
        self, kernel: Any, dim: Any, values: list, device: Any, shape: tuple[int, ...] | None
    ) -> list[array] | None:
        """Gives the arrays in which the launch has to keep what its atomics give, for a grid of this shape, which is
        None where the launch is not made here. Tapes that run it themselves give None."""
        before, after, writes, overwrites, records, is_smooth = _weft.launch_needs(kernel, dim, values, device, shape)
        entry = Launch(kernel, dim, values, device, writes, overwrites, is_smooth)
        values = entry.values
        for i, value in enumerate(values):
            if before[i] and arrays_of(value):
                entry.before[i] = [Need(one) for one in arrays_of(value)]
            if after[i] and isinstance(value, array):
                entry.after[i] = Need(value)
        needs = [need for needs in entry.before.values() for need in needs]
        join_overlapping(needs)
        self._append(
            entry,
            needs,
            [one for i, value in enumerate(values) if writes[i] for one in arrays_of(value)],
            list(entry.after.values()),
        )
        entry.records = records
        return records

    def _record_write(self, to: array, source: array | None) -> None:
        if source is not None and source.grad is not None and primitives.overlap(to, source):
            # The way back would read gradients that it has added to already. So it goes through another array.
            between = _weft.empty_like(source, requires_grad=True)
            self._append(Write(between, source), [], [between])
            source = between
        self._append(Write(to, source), [], [to])

    def _record_operation(self, operation: Operation, run: Callable[[], Any]) -> None:
        self._append(operation, list(operation.needs.values()), list(operation.writes.values()))
        try:
            operation.result = run()
        except BaseException:
            self._forget_last()
            raise

    def _append(self, entry: Any, before: list[Need], written: list[array], after: Sequence[Need] = ()) -> None:
        """Adds an entry that is about to run: keeps what it overwrites and somebody needs, which may be itself
        (``before``)."""
        self._is_reset = False
        versions = {buffer: self._versions.get(buffer) for buffer in {_weft.memory_of(w)[0] for w in written}}
        self._last = [*before, *after], versions
        self._wait(before)
        for one in written:
            self._written[id(one)] = one
            buffer, begin, end, _ = _weft.memory_of(one)
            taken = self._needs[buffer].take(begin, end) if buffer in self._needs else []
            copies: dict[tuple, array] = {}
            for need in taken:
                if len(need.together) > 1:
                    if need.copy is None:
                        self._keep(need.together)
                        self._needs[buffer].forget(need.together)
                    continue
                key = (need.begin, need.end, need.array.shape, need.array.strides, need.array.dtype)
                if key not in copies:
                    self._keep([need])
                    copies[key] = need.copy
                need.copy = copies[key]
            if taken:
                self._kept.setdefault(buffer, one)
        self._wait(after)
        self._count_writes(written)
        self._entries.append(entry)

    def _wait(self, needs: Iterable[Need]) -> None:
        for need in needs:
            self._needs.setdefault(need.buffer, Waiting()).add(need)

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
        """What was recorded last has failed: it needs nothing, and has not counted its writes."""
        self._entries.pop()
        needs, versions = self._last
        for waiting in self._needs.values():
            waiting.forget(needs)
        for buffer, before in versions.items():
            if before is None:
                self._versions.pop(buffer, None)
            else:
                self._versions[buffer] = before

    def _keep(self, needs: list[Need]) -> None:
        """Copies the contents that these need, which lie in one memory, as one."""
        copies = _weft.keep_together([need.array for need in needs])
        for need, made in zip(needs, copies, strict=True):
            need.copy = made
        size = max(need.end for need in needs) - min(need.begin for need in needs)
        self._memory = Memory(
            self._memory.copies + 1,
            self._memory.bytes + size,
            max(self._memory.peak_bytes, self._memory.bytes + size),
        )

    def record_launch(
        self, kernel: Any, dim: Any, inputs: Iterable = (), outputs: Iterable = (), device: Any = None, **_: Any
    ) -> None:
        """Records a launch without running it: for those who have run it themselves, and are about to."""
        self._record_launch(kernel, dim, [*inputs, *outputs], device, None)

    def record_func(self, backward: Callable[[], Any], arrays: Iterable[array]) -> None:
        """Records something that Weft does not see: ``backward()`` is called in its place on the way back.

        Args:
            backward: adds to the gradients of what was read, from those of what was written, and sets these to zero. It
                reads arrays as they are by then: copies of what is overwritten later are its own business.
            arrays: all that take part; :meth:`zero` clears their gradients.
        """
        if not callable(backward):
            raise usage_error(f"Tape.record_func(): expected a function, got {backward!r}", TypeError)
        arrays = [arrays] if isinstance(arrays, array) else list(arrays)
        for one in arrays:
            if not isinstance(one, array):
                raise usage_error(f"Tape.record_func(): 'arrays' has {one!r}, expected arrays", TypeError)
        self._append(Function(backward, arrays), [], [])

    # ---- going back ----

    def backward(self, loss: array | None = None, grads: dict[array, array] | None = None) -> None:
        """Adds the gradients of what was recorded to ``array.grad`` of the arrays that it depends on.

        Args:
            loss: an array of one element whose gradient is set to 1.
            grads: gradients to start with, by array: of its shape and dtype. They are not changed.
                Without loss and grads, those that the arrays hold already.
        Raises:
            UsageError: the loss has more than one element, or nothing on the tape has written it; an array has no
                gradient; a gradient has another shape or dtype; the tape is empty; an array that the tape had to copy
                was written since by something that is not on the tape, so that recorded and present values would mix.
        """
        if not self._entries:
            why = "was reset" if self._is_reset else "has recorded nothing"
            raise usage_error(f"Tape.backward(): the tape {why}. help: record in 'with tape:' again", RuntimeError)
        if self._is_running:
            raise usage_error(
                "Tape.backward(): this tape is on its way back already; a function of record_func() must not run its "
                "own tape backward",
                RuntimeError,
            )
        if grads is not None and not isinstance(grads, dict):
            raise usage_error(
                f"Tape.backward(): grads is {type(grads).__name__}, expected a dict of arrays: {{array: gradient}}",
                TypeError,
            )
        self._check_versions()
        with self._paused():
            if loss is not None or grads:
                # What is kept to be looked at is the gradient of this pass, and has no part in it.
                for one in self._written.values():
                    if one.retain_grad and one.grad is not None:
                        one.grad.zero_()
            if loss is not None:
                self._check_loss(loss)
                self._check_written(loss)
                loss.grad.fill_(1)
                self.loss = loss
            own = []
            for of, gradient in (grads or {}).items():
                self._check_gradient(of, gradient)
                if _weft.primitives.overlap(of.grad, gradient):
                    own.append((gradient, _weft.keep(gradient)))
                elif not self._supply(of, gradient, grads or {}):
                    of.grad.assign(gradient)
            try:
                for entry in reversed(self._entries):
                    self._reverse(entry)
            finally:
                self._supplied.clear()
            for gradient, before in own:
                gradient.assign(before)

    def _reverse(self, entry: Any) -> None:
        if isinstance(entry, Launch):
            entry.backward(self._supplied.get(id(entry)))
        else:
            entry.backward()

    def _supply(self, of: array, gradient: array, grads: dict[array, array]) -> bool:
        """Whether a launch reads the gradient from where the caller has it: the last entry that has to do with the
        array, if all it does is to overwrite the whole array. The array's own gradient is used up by that."""
        overlap = _weft.primitives.overlap
        if of.retain_grad or any(overlap(other.grad, of.grad) for other in grads if other is not of):
            return False
        for entry in reversed(self._entries):
            arrays = list(entry.arrays())
            gradients = [one.grad for one in arrays if one.grad is not None]
            if isinstance(entry, Function) or any(overlap(one, gradient) for one in gradients):
                return False
            concerned = [one for one in arrays if overlap(one, of)]
            if not concerned:
                if any(overlap(one, of.grad) for one in gradients):
                    return False
                continue
            at = entry.overwritten(concerned[0]) if isinstance(entry, Launch) else None
            if len(concerned) > 1 or at is None or not _is_like(concerned[0], of, gradient):
                return False
            of.grad.zero_()
            self._supplied.setdefault(id(entry), {})[at] = gradient
            return True
        return False

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

    def _check_written(self, loss: array) -> None:
        has_functions = any(isinstance(entry, Function) for entry in self._entries)
        if _weft.memory_of(loss)[0] not in self._versions and not has_functions:
            raise usage_error(
                "Tape.backward(): nothing on the tape has written the loss, so that no array would get a gradient. "
                "help: launch the kernel that computes it inside of 'with tape:'",
                ValueError,
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
        was_running, self._is_running = self._is_running, True
        _weft.set_active_tape(None)
        try:
            yield
        finally:
            self._is_running = was_running
            _weft.set_active_tape(recording)

    # ---- looking at it ----

    def _arrays(self) -> list[array]:
        return list({id(one): one for entry in self._entries for one in entry.arrays()}.values())

    @property
    def gradients(self) -> dict[Any, Any]:
        """The gradient of each array on the tape that has one: ``tape.gradients[a]`` is ``a.grad``. For a struct that a
        launch took, an instance with the gradients of its arrays."""
        found: dict[Any, Any] = {one: one.grad for one in self._arrays() if one.grad is not None}
        for entry in self._entries:
            for struct in getattr(entry, "structs", ()):
                if any(one.grad is not None for one in _weft.arrays_in(struct)):
                    found[struct] = gradients_of(struct)
        return found

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

    def get_adjoint(self, a: Any) -> Any:
        """The gradient of an array, None where it has none; of a struct, an instance whose arrays are the gradients of
        its arrays, and whose numbers are zero."""
        if isinstance(a, array):
            return a.grad
        if _weft.field_names(a):
            return gradients_of(a)
        raise usage_error(f"Tape.get_adjoint(): expected an array or a struct, got {a!r}", TypeError)

    def zero(self) -> None:
        """Sets the gradients of all arrays on the tape to zero."""
        with self._paused():
            for gradient in {id(one.grad): one.grad for one in self._arrays() if one.grad is not None}.values():
                gradient.zero_()

    def reset(self) -> None:
        """Sets the gradients of all arrays on the tape to zero, forgets what was recorded, and drops the copies."""
        self.zero()
        self._forget()
        self._is_reset = True

    def _forget(self) -> None:
        self._entries: list[Any] = []
        self._needs: dict[int, Waiting] = {}  # by buffer: contents that are needed and still there
        self._kept: dict[int, array] = {}  # by buffer: an array of which contents were kept
        self._supplied: dict[int, dict[int, array]] = {}  # by id of a launch: gradients of arguments, by number
        self._versions: dict[int, tuple[array, int]] = {}  # by buffer: writes when the last recorded one is done
        self._written: dict[int, array] = {}  # by id
        self._last: tuple[list[Need], dict] = ([], {})  # what the last entry needs; the versions before it
        self._is_running = False
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


def _is_like(one: array, of: array, gradient: array) -> bool:
    """Whether both show the same elements and the same gradients, with the gradient laid out as they are."""
    if one.grad is None:
        return False
    same = all(_weft.memory_of(a)[1:3] == _weft.memory_of(b)[1:3] for a, b in ((one, of), (one.grad, of.grad)))
    return same and one.dtype is of.dtype and one.shape == of.shape and one.strides == of.strides == gradient.strides


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
            work = _weft.keep(gradient if gradient.strides == value.strides else value)
            if gradient.strides != value.strides:
                work.assign(gradient)
            if not is_output:
                results.append((gradient, work))
        gradients.append(work)
    nothing = [None] * len(values)
    _weft.run_adjoint(kernel, dim, values, nothing, nothing, [], gradients, False, device)
    for gradient, work in results:
        gradient.assign(work)


def _padded(name: str, gradients: Any, count: int) -> list:
    gradients = list(gradients or ())
    if len(gradients) > count:
        raise usage_error(f"launch(): {name} has {len(gradients)} entries for {count} arguments", ValueError)
    return gradients + [None] * (count - len(gradients))
