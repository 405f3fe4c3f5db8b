"""wp.Tape: records launches and copies, and carries gradients back through them.

Each entry of a tape knows its backward pass. A launch runs the adjoint of its kernel. A copy adds the gradient of the
array that it wrote to that of the array that it read. A write of other values clears the gradient. An adjoint reads the
arrays that its launch read, as they were then. So before a recorded write to an array that an earlier entry still
needs, the tape keeps a copy, and the entry uses that. An array that nothing on the tape overwrites is never copied: its
contents when ``backward`` runs are used.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple

import warp._weft as _weft
from warp import config
from warp._logger import get_logger
from warp._weft import array, usage_error
from warp.constants import LOG_WARNING

__all__ = ["Tape"]


class Memory(NamedTuple):
    """A tape's saved primals: the number of copies, their bytes now, and the most bytes it has had."""

    copies: int
    bytes: int
    peak_bytes: int


class Tape(_weft.TapeRecorder):
    """Records launches, copies and array operations, and computes gradients by running them backwards.

    It records the work of the thread that entered it; each thread can have a tape of its own.

    ::

        tape = wp.Tape()
        with tape:
            wp.launch(simulate, dim=n, inputs=[x], outputs=[loss])
        tape.backward(loss)
        print(x.grad)

    Gradients are added to those that the arrays have; :meth:`zero` clears them. The gradient of an array that a
    recorded entry overwrites is used up on the way (zero afterwards), unless ``array.retain_grad`` is set: then it is
    that of the last pass.
    """

    def __init__(self) -> None:
        super().__init__()
        self._forget()

    # ---- recording ----

    def __enter__(self) -> Tape:
        if _weft.active_tape() is not None:
            raise usage_error("Tape: another tape is recording already; tapes cannot be nested", RuntimeError)
        _weft.set_active_tape(self)
        return self

    def __exit__(self, *exception: Any) -> None:
        _weft.set_active_tape(None)

    def record_launch(
        self, kernel: Any, dim: Any, inputs: Iterable = (), outputs: Iterable = (), device: Any = None, **_: Any
    ) -> None:
        """Records a launch without running it, for programs that run it themselves. Arguments: as of ``wp.launch``."""
        self._record_launch(kernel, dim, [*inputs, *outputs], device, False)

    def record_func(self, backward: Callable[[], Any], arrays: Iterable[array]) -> None:
        """Records something that Weft does not see: ``backward()`` is called in its place in the backward pass.

        Args:
            backward: adds to the gradients of the arrays that were read, from those of the arrays that were written,
                and sets the latter to zero. It reads arrays as they are by then: it has to keep its own copies of
                arrays that are overwritten later.
            arrays: all that take part; :meth:`zero` clears their gradients.
        Raises:
            UsageError (a TypeError): ``backward`` cannot be called, or ``arrays`` has an element that is no array.
        """
        if not callable(backward):
            raise usage_error(f"Tape.record_func(): expected a function, got {backward!r}", TypeError)
        arrays = [arrays] if isinstance(arrays, array) else list(arrays)
        for one in arrays:
            if not isinstance(one, array):
                raise usage_error(f"Tape.record_func(): 'arrays' has {one!r}, expected arrays", TypeError)
        self._record_function(backward, arrays)

    # ---- groups ----

    def record_scope_begin(self, scope_name: str, metadata: dict | None = None) -> None:
        """Begins a group of this name: later entries belong to it, until :meth:`record_scope_end`. Groups may lie in
        groups; :meth:`visualize` draws them.

        Args:
            scope_name: its name.
            metadata: anything that is to be kept with it, in :attr:`scopes`.
        """
        self._open_scopes.append(len(self.scopes))
        self.scopes.append((self._count, scope_name, {} if metadata is None else metadata))

    def record_scope_end(self, remove_scope_if_empty: bool = True) -> None:
        """Ends the group that was begun last.

        Args:
            remove_scope_if_empty: forgets it if nothing has been recorded in it.
        Raises:
            UsageError (a RuntimeError): none is open.
        """
        if not self._open_scopes:
            raise usage_error("Tape.record_scope_end(): no group has been begun", RuntimeError)
        begin = self._open_scopes.pop()
        if remove_scope_if_empty and self.scopes[begin][0] == self._count:
            del self.scopes[begin:]
        else:
            self.scopes.append((self._count, None, None))

    def _end_of_timer(self) -> None:
        """Of a wp.ScopedTimer, inside of which the tape may have been reset."""
        if self._open_scopes:
            self.record_scope_end()

    # ---- going back ----

    def backward(self, loss: array | None = None, grads: dict[array, array] | None = None) -> None:
        """Runs the recorded entries back, and adds gradients to ``array.grad`` of the arrays that they read.

        Args:
            loss: an array of one element whose gradient is set to 1.
            grads: gradients to start with, by array: of its shape and dtype. They are not changed. An array without a
                gradient gets one.
                Without loss and grads, the gradients of the written arrays are the seeds. If all of them are zero, the
                array of one number that the last launch wrote is the loss.
        Raises:
            UsageError: the loss has more than one element or no gradient; a gradient has another shape or dtype;
                nothing says where to start; an array that the tape had to copy was written since by something that is
                not on the tape, so that recorded and present values would mix; an array got its gradient after it was
                recorded, and values that its adjoint reads are gone; with ``wp.config.verify_autograd_array_access``, a
                gradient stops at an array that has none.

        A warning, once for each place, names an array without a gradient that was written from arrays with gradients
        and that matters to the loss: the gradient stops there. A launch whose kernel has ``enable_backward=False``
        passes nothing back; a warning names the kernel.
        """
        if self._is_running:
            raise usage_error(
                "Tape.backward(): this tape is in its backward pass already; a function of record_func() must not run "
                "its own tape backward",
                RuntimeError,
            )
        if grads is not None and not isinstance(grads, dict):
            raise usage_error(
                f"Tape.backward(): grads is {type(grads).__name__}, expected a dict of arrays: {{array: gradient}}",
                TypeError,
            )
        given = dict(grads or {})
        if loss is not None and not isinstance(loss, array):
            raise usage_error(f"Tape.backward(): the loss is {loss!r}, expected an array of one element", TypeError)
        for of, gradient in given.items():
            if not isinstance(of, array) or not isinstance(gradient, array):
                raise usage_error(
                    f"Tape.backward(): grads has a {type(of).__name__} with a {type(gradient).__name__}, expected "
                    "arrays with arrays: {array: gradient}",
                    TypeError,
                )
        with self._paused():
            self._backward(loss, given)

    def _begin_backward(self, loss: array | None, seeds: list[array]) -> None:
        if loss is not None:
            self.loss = loss
        self._tell_of_stops(seeds)

    def _tell_of_stops(self, seeds: list[array]) -> None:
        """Warns, once for each place, of arrays without a gradient that gradients from ``seeds`` would go through."""
        is_error = config.verify_autograd_array_access
        if not is_error and _weft.log_level() > LOG_WARNING:
            return
        mark = self._may_stop_gradients()
        if mark == 0 or (mark in _stops_searched and not is_error):
            return
        if len(_stops_searched) >= _MOST_SEARCHED:
            _stops_searched.clear()
        _stops_searched.add(mark)
        for text in self._stopped_gradients(seeds):
            if is_error:
                raise usage_error(f"Tape.backward(): {text}", RuntimeError)
            if text not in _stops_told:
                _stops_told.add(text)
                get_logger().warning(f"Tape.backward(): {text}", stacklevel=5)

    def _reverse_all(self) -> None:
        """Runs all entries backward, from the gradients that the arrays hold."""
        with self._paused():
            self._reverse_entries()

    def _tell_left_out(self, kernels: list[str]) -> None:
        if _weft.log_level() > LOG_WARNING:
            return
        for key in kernels:
            get_logger().warning(
                f"Tape.backward(): kernel {key!r} is left out, because it has enable_backward=False; no gradient goes "
                "back through its launches",
                stacklevel=3,
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

    @property
    def gradients(self) -> dict[Any, Any]:
        """The gradient of each array on the tape that has one: ``tape.gradients[a]`` is ``a.grad``. For a struct that a
        launch took, an instance with the gradients of its arrays. Entries that a program adds stay."""
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
        """The recorded entries, in order."""
        return self._entries

    @property
    def memory(self) -> Memory:
        """The copies of arrays that the tape keeps because they were overwritten, and their bytes."""
        return Memory(*self._kept)

    def get_adjoint(self, a: Any) -> Any:
        """The gradient of an array, None if it has none. Of a struct, an instance whose arrays are the gradients of its
        arrays, and whose numbers are zero. UsageError (a TypeError) for anything else."""
        if isinstance(a, array):
            return a.grad
        if _weft.field_names(a):
            return gradients_of(a)
        raise usage_error(f"Tape.get_adjoint(): expected an array or a struct, got {a!r}", TypeError)

    def zero(self) -> None:
        """Sets the gradients of all arrays on the tape to zero."""
        with self._paused():
            self._zero()

    def reset(self) -> None:
        """Sets the gradients of all arrays on the tape to zero, forgets its entries, and drops the copies."""
        self.zero()
        self._forget()

    def _forget(self) -> None:
        self._clear()
        self._gradients: dict[Any, Any] = {}
        self.scopes: list[tuple[int, str | None, dict | None]] = []  # (entries before it, name, metadata); ends None
        self._open_scopes: list[int] = []
        self._is_running = False
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
            filename: a file to which the text is written too.
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
        from warp._gradients.tape_graph import Drawing

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


# Warnings of _tell_of_stops(), and marks of recordings that it has looked through: a loop records the same again.
_stops_told: set[str] = set()
_stops_searched: set[int] = set()
_MOST_SEARCHED = 4096


def gradients_of(struct: Any) -> Any:
    """An instance with the gradients of a struct's arrays in place of them."""
    result = type(struct)()
    for name in _weft.field_names(struct):
        value = getattr(struct, name)
        if isinstance(value, array):
            if value.grad is not None:
                setattr(result, name, value.grad)
        elif _weft.arrays_in(value):
            setattr(result, name, gradients_of(value))
    return result
