"""wp.Tape: records what is launched and copied, and carries gradients back through it.

Each entry of a tape knows the way back: a launch runs the adjoint of its kernel, a copy adds the gradient of what it
wrote to that of what it read, and what comes from elsewhere takes the gradient away. An adjoint reads the arrays that
its launch read, as they were then. So before something recorded overwrites an array that an earlier entry still needs,
the tape keeps a copy, and the entry uses that; what nothing on the tape overwrites is never copied, and is used with
the contents that it has when ``backward`` runs.
"""

from __future__ import annotations

import contextlib
import itertools
import weakref
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, NamedTuple

from warp import _weft
from warp._weft import array, primitives, usage_error
from warp.constants import LOG_WARNING
from warp.launches import Launch, gradients_of
from warp.logger import get_logger
from warp.recording import Function, Need, Operation, Waiting, Write, join_overlapping
from warp.starts import check_gradient, check_loss, give_gradient, implied_loss, reader_of

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
        self._forget()

    # ---- recording ----

    def __enter__(self) -> Tape:
        if _weft.active_tape() is not None:
            raise usage_error("Tape: another tape is recording already; tapes cannot be nested", RuntimeError)
        _weft.set_active_tape(self)
        return self

    def __exit__(self, *exception: Any) -> None:
        _weft.set_active_tape(None)

    def _record_launch(
        self, kernel: Any, dim: Any, values: list, device: Any, shape: tuple[int, ...] | None
    ) -> list[array] | None:
        """Gives the arrays in which the launch has to keep what its atomics give, for a grid of this shape, which is
        None where the launch is not made here. Tapes that run it themselves give None."""
        entry = Launch(kernel, dim, values, device, shape)
        needs = entry.needs()
        join_overlapping(needs)
        self._append(entry, needs, list(entry.after.values()))
        return entry.records

    def _record_write(self, to: array, source: array | None) -> None:
        if source is not None and source.grad is not None and primitives.overlap(to, source):
            # The way back would read gradients that it has added to already. So it goes through another array.
            between = _weft.empty_like(source, requires_grad=True)
            self._append(Write(between, source), [])
            source = between
        self._append(Write(to, source), [])

    def _record_operation(self, operation: Operation, run: Callable[[], Any]) -> None:
        self._append(operation, list(operation.needs.values()))
        try:
            operation.result = run()
        except BaseException:
            self._forget_last()
            raise

    def _append(self, entry: Any, before: list[Need], after: Sequence[Need] = ()) -> None:
        """Adds an entry that is about to run: keeps what it overwrites and somebody needs, which may be itself
        (``before``)."""
        written = entry.written()
        counted = [one for together in written for one in _of_each_memory(together)]
        self._last = [*before, *after], {buffer: self._versions.get(buffer) for buffer, _ in counted}
        self._wait(before)
        for one in itertools.chain.from_iterable(written):
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
        self._count_writes(counted)
        self._entries.append(entry)

    def _wait(self, needs: Iterable[Need]) -> None:
        for need in needs:
            self._needs.setdefault(need.buffer, Waiting()).add(need)

    def _count_writes(self, written: Iterable[tuple[int, array]]) -> None:
        """Each of these is about to be written once. What else writes there is not on the tape."""
        for buffer, one in written:
            *_, version = _weft.memory_of(one)
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
        self._append(Function(backward, arrays), [])

    # ---- groups ----

    def record_scope_begin(self, scope_name: str, metadata: dict | None = None) -> None:
        """What is recorded from here on belongs to a group of this name, until :meth:`record_scope_end`. Groups may lie
        in groups; :meth:`visualize` draws them.

        Args:
            scope_name: its name.
            metadata: anything that is to be kept with it, in :attr:`scopes`.
        """
        self._open_scopes.append(len(self.scopes))
        self.scopes.append((len(self._entries), scope_name, {} if metadata is None else metadata))

    def record_scope_end(self, remove_scope_if_empty: bool = True) -> None:
        """Ends the group that was begun last.

        Args:
            remove_scope_if_empty: forgets it where nothing has been recorded in it.
        Raises:
            UsageError (a RuntimeError): none is open.
        """
        if not self._open_scopes:
            raise usage_error("Tape.record_scope_end(): no group has been begun", RuntimeError)
        begin = self._open_scopes.pop()
        if remove_scope_if_empty and self.scopes[begin][0] == len(self._entries):
            del self.scopes[begin:]
        else:
            self.scopes.append((len(self._entries), None, None))

    def _end_of_timer(self) -> None:
        """Of a wp.ScopedTimer, inside of which the tape may have been reset."""
        if self._open_scopes:
            self.record_scope_end()

    # ---- going back ----

    def backward(self, loss: array | None = None, grads: dict[array, array] | None = None) -> None:
        """Adds the gradients of what was recorded to ``array.grad`` of the arrays that it depends on.

        Args:
            loss: an array of one element whose gradient is set to 1.
            grads: gradients to start with, by array: of its shape and dtype. They are not changed. An array without a
                gradient gets one.
                Without loss and grads, what the gradients of the arrays hold that were written; where all of that is
                zero, the array of one number that the last launch wrote is the loss.
        Raises:
            UsageError: the loss has more than one element or no gradient; a gradient has another shape or dtype;
                nothing says where to start; an array that the tape had to copy was written since by something that is
                not on the tape, so that recorded and present values would mix; an array got its gradient after it was
                recorded, and what its adjoint reads is gone.

        A launch whose kernel has ``enable_backward=False`` passes nothing back; a warning names the kernel.
        """
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
            self._clear_retained(all_of_them=loss is not None or bool(grads))
            if loss is None and not grads:
                loss = implied_loss(self._entries)
                if loss is not None:
                    give_gradient(loss, self._arrays())
            if loss is not None:
                check_loss(loss)
                loss.grad.fill_(1)
                self.loss = loss
            given = grads or {}
            for of, gradient in given.items():
                check_gradient(of, gradient)
                give_gradient(of, self._arrays())
            own = []
            for of, gradient in given.items():
                if _weft.primitives.overlap(of.grad, gradient):
                    own.append((gradient, _weft.keep(gradient)))
                elif (reader := reader_of(of, gradient, given, self._entries)) is not None:
                    of.grad.zero_()  # that launch uses it up
                    self._supplied.setdefault(id(reader[0]), {})[reader[1]] = gradient
                else:
                    of.grad.assign(gradient)
            try:
                self._reverse_all()
            finally:
                self._supplied.clear()
            for gradient, before in own:
                gradient.assign(before)

    def _reverse_all(self) -> None:
        """Goes back through all entries, from the gradients that the arrays hold."""
        self._check_versions()
        retained = [one for one in self._written.values() if one.retain_grad]
        laid_aside: list[tuple[array, array]] = []
        left_out: dict[str, None] = {}
        with self._paused():
            for entry in reversed(self._entries):
                for one in _those_of(entry, retained):
                    laid_aside.append((one.grad, _weft.keep(one.grad)))
                if isinstance(entry, Launch) and entry.is_left_out:
                    left_out[entry.kernel.__name__] = None
                self._reverse(entry)
            # The one that was laid aside first is that of the last contents.
            for gradient, kept in reversed(laid_aside):
                gradient.assign(kept)
                _retained[gradient] = _weft.memory_of(gradient)[3]
        for key in left_out if _weft.log_level() <= LOG_WARNING else ():
            get_logger().warning(
                f"Tape.backward(): kernel {key!r} is left out, because it has enable_backward=False; no gradient goes "
                "back through its launches",
                stacklevel=3,
            )

    def _clear_retained(self, all_of_them: bool) -> None:
        """What was kept to be looked at has no part in another pass. Where the caller's seeds may be anywhere, it is
        told by nobody having touched it since."""
        for one in self._written.values():
            if one.retain_grad and (all_of_them or _retained.get(one.grad) == _weft.memory_of(one.grad)[3]):
                one.grad.zero_()

    def _reverse(self, entry: Any) -> None:
        if isinstance(entry, Launch):
            entry.backward(lambda: self._written_after(entry), self._supplied.get(id(entry)))
        else:
            entry.backward()

    def _written_after(self, entry: Launch) -> list[array]:
        later = itertools.takewhile(lambda other: other is not entry, reversed(self._entries))
        return [one for other in later for together in other.written() for one in together]

    def _check_versions(self) -> None:
        for buffer, kept in self._kept.items():
            _, expected = self._versions[buffer]
            if _weft.memory_of(kept)[3] != expected and self._needs.get(buffer):
                raise usage_error(
                    f"Tape.backward(): an array of shape {kept.shape}, of which the tape had to keep earlier contents "
                    "and needs the last ones too, was written outside of the tape since; recorded and present values "
                    "would mix. help: record again",
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
        launch took, an instance with the gradients of its arrays. What a program puts there besides stays there."""
        for entry in self._entries:
            for one in entry.known_arrays():
                if one.grad is not None:
                    self._gradients[one] = one.grad
            for struct in getattr(entry, "structs", ()):
                if any(one.grad is not None for one in _weft.arrays_in(struct)):
                    self._gradients[struct] = gradients_of(struct)
        return self._gradients

    @gradients.setter
    def gradients(self, gradients: dict[Any, Any]) -> None:
        self._gradients = dict(gradients)

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

    def _forget(self) -> None:
        self._entries: list[Any] = []
        self._needs: dict[int, Waiting] = {}  # by buffer: contents that are needed and still there
        self._kept: dict[int, array] = {}  # by buffer: an array of which contents were kept
        self._supplied: dict[int, dict[int, array]] = {}  # by id of a launch: gradients of arguments, by number
        self._versions: dict[int, tuple[array, int]] = {}  # by buffer: writes when the last recorded one is done
        self._written: dict[int, array] = {}  # by id
        self._last: tuple[list[Need], dict] = ([], {})  # what the last entry needs; the versions before it
        self._gradients: dict[Any, Any] = {}
        self.scopes: list[tuple[int, str | None, dict | None]] = []  # (entries before it, name, metadata); ends None
        self._open_scopes: list[int] = []
        self._is_running = False
        self._memory = Memory(0, 0, getattr(self, "_memory", Memory(0, 0, 0)).peak_bytes)
        self.loss: array | None = None

    def visualize(
        self,
        filename: str | None = None,
        simplify_graph: bool = True,
        hide_readonly_arrays: bool = False,
        array_labels: dict[array, str] | None = None,
        choose_longest_node_name: bool = True,
        ignore_graph_scopes: bool = False,
        track_inputs: list[array] | None = None,
        track_outputs: list[array] | None = None,
        track_input_names: list[str] | None = None,
        track_output_names: list[str] | None = None,
        graph_direction: str = "LR",
    ) -> str:
        """The tape as a graph for Graphviz: launches and copies as boxes, arrays as ellipses.

        Args:
            filename: where the text is written too.
            simplify_graph: launches of one kernel that follow each other with the same arrays are one box.
            hide_readonly_arrays: leaves out arrays that nothing on the tape writes.
            array_labels: names of arrays. Others have those of the parameters that they were passed as.
            choose_longest_node_name: of several such names the longest; else the first.
            ignore_graph_scopes: draws no groups.
            track_inputs, track_outputs: arrays that are marked, under ``track_input_names``, ``track_output_names``.
            graph_direction: as Graphviz's ``rankdir``: "LR", "TB", "RL", "BT".
        Returns:
            The text, in the DOT language.
        """
        from warp.tape_graph import Drawing

        drawing = Drawing(
            self._entries,
            [] if ignore_graph_scopes else self.scopes,
            simplify_graph,
            hide_readonly_arrays,
            choose_longest_node_name,
        )
        drawing.name(array_labels or {})
        drawing.mark(track_inputs, track_input_names, "input")
        drawing.mark(track_outputs, track_output_names, "output")
        text = drawing.text(graph_direction)
        if filename is not None:
            with open(filename, "w", encoding="utf-8") as file:
                file.write(text)
        return text


# What a pass has left in gradients that are to be looked at: their writes by then.
_retained: weakref.WeakKeyDictionary[array, int] = weakref.WeakKeyDictionary()


def _those_of(entry: Any, retained: list[array]) -> list[array]:
    """What the entry writes, of the arrays whose gradients are to be looked at."""
    if not retained:
        return []
    return [one for together in entry.written() for one in together if one.retain_grad]


def _of_each_memory(arrays: list[array]) -> Iterable[tuple[int, array]]:
    """One of the arrays for each memory that they lie in, with the memory."""
    return {_weft.memory_of(one)[0]: one for one in arrays}.items()
