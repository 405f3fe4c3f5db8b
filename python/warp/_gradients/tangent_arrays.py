"""Tangents of arrays, and programs in forward mode: wp.jvp of a function, and the forward pass of hvp.

Every array that has a gradient gets a tangent array. The memory of the array has a memory of tangents beside it, and
the tangent array lies there at the same place: arrays that share memory share tangents.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import warp._weft as _weft
from warp._gradients.tape import Tape
from warp._weft import RecordedOperation, array, primitives, usage_error

__all__ = [
    "Forward",
    "ForwardTape",
    "TangentArrays",
    "check_gradient",
    "copies",
    "has_tangent",
    "refuse_function",
    "results",
    "set_vectors",
    "with_arrays",
]


class _Memories:
    """Other memories in the place of those of arrays, each as large and made when an array in it is first met."""

    def __init__(self, zeros: bool):
        self._zeros = zeros
        self._made: dict[int, tuple[array, array]] = {}  # by buffer: an array in it, which holds it, and the other one

    def has(self, of: array) -> bool:
        return _weft.memory_of(of)[0] in self._made

    def view(self, of: array) -> array:
        buffer, *_ = _weft.memory_of(of)
        if buffer not in self._made:
            self._made[buffer] = (of, _weft.memory_like(of, self._zeros))
        return _weft.view_in_memory(of, self._made[buffer][1])


def _check(api: str, one: array) -> None:
    """Refuses an array whose elements hold arrays, if it or one of these may move."""
    if _weft.holds_arrays(one) and any(other.grad is not None for other in [one, *_weft.nested_arrays(one)]):
        raise usage_error(
            f"{api}: an array of {_weft.type_name(one.dtype)} holds arrays in its elements, whose tangents are not "
            "known. help: pass them as arguments, or in a struct that is one",
            TypeError,
        )


def has_tangent(of: array) -> bool:
    info = _weft.type_info(of.dtype)  # None for structs
    return info is None or info["scalar_kind"] == "float"


def with_arrays(value: Any, made: Callable[[array], array | None], numbers: Any) -> Any:
    """The argument with other arrays in place of its own, and the numbers of another struct, or zeros. None if no array
    and no number is left."""
    if isinstance(value, array):
        return made(value)
    if not _weft.arrays_in(value):
        return numbers
    result, is_empty = type(value)(), numbers is None
    for name in _weft.field_names(value):
        field, number = getattr(value, name), getattr(numbers, name, None)
        if isinstance(field, array) or _weft.arrays_in(field):
            part = with_arrays(field, made, number)
            is_empty &= part is None
            if part is not None:
                setattr(result, name, part)
        else:
            setattr(result, name, type(field)() if number is None else number)
    return None if is_empty else result


class TangentArrays:
    """The tangents of arrays, and of their gradients; they begin as zeros."""

    def __init__(self, api: str) -> None:
        self._api, self._memories = api, _Memories(zeros=True)

    def of_array(self, one: array) -> array | None:
        """None for an array that is constant: one without a gradient, or of integers."""
        _check(self._api, one)
        if one.grad is None or not has_tangent(one):
            return None
        tangent = self._memories.view(one)
        tangent.grad = self._memories.view(one.grad)
        return tangent

    def of(self, value: Any) -> Any:
        return with_arrays(value, self.of_array, None)

    def takes_part(self, one: array) -> bool:
        """Whether its memory has tangents."""
        return one.grad is not None and has_tangent(one) and self._memories.has(one)


class Forward:
    """Runs the operations that a tape records in forward mode: each write also writes the tangent array."""

    def __init__(self, api: str, tangent_arrays: TangentArrays):
        self._api, self.tangent_arrays = api, tangent_arrays

    def launch(self, kernel: Any, dim: Any, values: list, returned: list[array], device: Any) -> bool:
        """False if nothing moves; then the caller has to launch."""
        tangents = [self.tangent_arrays.of(value) for value in values]
        if all(tangent is None for tangent in tangents):
            return False
        nothing = [None] * len(values)
        meshes = self.moving(_weft.arrays_of_objects(kernel, values, device))
        _weft.run_jvp(kernel, dim, values, tangents, False, nothing, nothing, returned, device, meshes)
        return True

    def moving(self, arrays_of_meshes: list[array]) -> list[tuple[array, array | None]]:
        """Those arrays that move, with their tangents: the others of a mesh are constant."""
        return [
            (one, self.tangent_arrays.of_array(one)) for one in arrays_of_meshes if self.tangent_arrays.takes_part(one)
        ]

    def write(self, to: array, source: array | None) -> None:
        tangent = self.tangent_arrays.of_array(to)
        if tangent is None:
            return
        origin = self.tangent_arrays.of_array(source) if source is not None else None
        if origin is None:
            tangent.zero_()
            return
        if primitives.overlap(origin, tangent):
            origin = _weft.keep(origin)
        tangent.assign(origin if origin.dtype is tangent.dtype else origin.view(tangent.dtype))

    def tangents_before(self, operation: RecordedOperation) -> dict[str, array]:
        """The tangents of the arrays that the operation is about to read: copies of those that it overwrites."""
        found: dict[str, array] = {}
        for name, read in operation.reads.items():
            tangent = self.tangent_arrays.of_array(read)
            if tangent is not None:
                is_written = any(primitives.overlap(read, one) for one in operation.writes.values())
                found[name] = _weft.keep(tangent) if is_written else tangent
        return found

    def operation(self, operation: RecordedOperation, tangents: dict[str, array]) -> None:
        """When it has run."""

        def run() -> None:
            parts = operation.parts()
            written = {id(part.written): self.tangent_arrays.of_array(part.written) for part in parts}
            for tangent in written.values():
                tangent.zero_()
            for part in parts:
                part.forward(tangents[part.read], written[id(part.written)], *operation.factors(part))

        moved = {f"the tangent of {name}": self.tangent_arrays.of_array(one) for name, one in operation.writes.items()}
        self.verified(operation.name, moved, run)

    def verified(self, what: str, tangents: dict[str, array | None], run: Callable[[], None]) -> None:
        there = {name: one for name, one in tangents.items() if one is not None}
        _weft.run_verified(self._api, what, "", there, run)


def refuse_function(api: str, function: Callable) -> None:
    """Refuses user operations (Tape.record_func), which have only the derivative that the user wrote."""
    raise usage_error(
        f"{api}: the function records <function {getattr(function, '__name__', function)}> by Tape.record_func(), and "
        "Weft knows neither its work nor its derivative. help: launch a kernel that does it",
        RuntimeError,
    )


class ForwardTape(Tape):
    """Runs launches and operations in forward mode, and keeps no entries."""

    def __init__(self, api: str, tangent_arrays: TangentArrays):
        super().__init__()
        self._api, self._forward = api, Forward(api, tangent_arrays)
        self._takes_all = True

    def _record_launch(self, kernel: Any, dim: Any, values: list, device: Any, is_seen: bool) -> Any:
        return None if self._forward.launch(kernel, dim, values, [], device) else []

    def _record_write(self, to: array, source: array | None) -> None:
        with self._paused():
            self._forward.write(to, source)

    def _record_operation(self, operation: RecordedOperation, run: Callable[[], Any]) -> None:
        with self._paused():
            tangents = self._forward.tangents_before(operation)
            for need in operation.needs.values():
                if any(primitives.overlap(need.array, one) for one in operation.writes.values()):
                    need.copy = _weft.keep(need.array)
        operation.result = run()
        with self._paused():
            self._forward.operation(operation, tangents)

    def _record_function(self, backward: Callable, arrays: list[array]) -> None:
        refuse_function(self._api, backward)

    def _forget_last(self) -> None:
        pass  # a failed operation leaves no entry


# ---- arguments and results ----


def copies(api: str, values: Sequence[Any]) -> list[Any]:
    """Arrays in copies of their memories, with gradients of zeros."""
    memories, gradients = _Memories(zeros=False), _Memories(zeros=True)

    def copied(one: array) -> array:
        _check(api, one)
        made = memories.view(one)
        if has_tangent(one):
            made.grad = gradients.view(one)
        return made

    return [with_arrays(value, copied, value) for value in values]


def _set_vector(tangent: Any, vector: Any) -> None:
    if isinstance(tangent, array):
        tangent.assign(vector)
        return
    for name in _weft.field_names(tangent):
        field, given = getattr(tangent, name), getattr(vector, name)
        if isinstance(field, array):
            if isinstance(given, array) and given.size:
                field.assign(given)
        elif _weft.arrays_in(field):
            _set_vector(field, given)
        else:
            setattr(tangent, name, given)


def set_vectors(api: str, what: str, inputs: list, tangents: list, vectors: list) -> None:
    """Vectors become the tangents of the inputs. For an input without a tangent array, the vector is the tangent."""
    for i, (value, vector) in enumerate(zip(inputs, vectors, strict=True)):
        if vector is None:
            continue
        if _weft.field_names(value) and type(vector) is not type(value):
            raise usage_error(
                f"{api}: entry {i} of {what} is {vector!r}, expected a {type(value).__name__}, as its argument",
                TypeError,
            )
        if tangents[i] is None:
            tangents[i] = vector
        else:
            _set_vector(tangents[i], vector)
    arrays = [tangent if isinstance(tangent, array) else None for tangent in tangents]
    for i, (tangent, vector) in enumerate(zip(arrays, vectors, strict=False)):
        if tangent is None or vector is None:
            continue
        others = (other for at, other in enumerate(arrays) if at != i and other is not None)
        if not any(primitives.overlap(tangent, other) for other in others):
            continue
        if tangent.device.is_capturing:
            raise usage_error(
                f"{api}: input {i} shares memory with another input, and in a graph capture nothing can say whether "
                f"their entries of {what} agree. help: one input for both"
            )
        if not np.array_equal(tangent.numpy(), vector.numpy()):
            raise usage_error(
                f"{api}: entry {i} of {what} is not that of another input with which its input shares memory",
                ValueError,
            )


def results(api: str, function: Callable, result: Any) -> list[array]:
    """The results of a function, as a list."""
    found = list(result) if isinstance(result, (list, tuple)) else [result]
    if not all(isinstance(one, array) for one in found):
        name = getattr(function, "__name__", function)
        raise usage_error(f"{api}: {name!r} returned {result!r}, expected a wp.array or a list of them", TypeError)
    return found


def check_gradient(api: str, index: int, output: array) -> None:
    if output.grad is None:
        raise usage_error(
            f"{api}: output {index} has no gradient. help: make it with requires_grad=True in the function", ValueError
        )
