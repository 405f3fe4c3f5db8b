"""Products with Hessians: the launches of a program in forward mode, and then back through them, forward over reverse.

Every array that has a gradient gets a twin that holds its tangent. A twin lies in the twin of its memory, at the same
place: arrays that share memory share tangents.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from warp import _weft
from warp._weft import Kernel, array, primitives, usage_error
from warp.jacobians import Unrecorded
from warp.recording import Function, Launch, Need, Operation, Write
from warp.tangents import tangents_like
from warp.tape import Tape

__all__ = ["hvp"]


class _Memories:
    """Other memories in the place of those of arrays, each as large and made when an array in it is first met."""

    def __init__(self, zeros: bool):
        self._zeros = zeros
        self._made: dict[int, tuple[array, array]] = {}  # by buffer: an array in it, which holds it, and the other one

    def view(self, of: array) -> array:
        buffer, *_ = _weft.memory_of(of)
        if buffer not in self._made:
            self._made[buffer] = (of, _weft.memory_like(of, self._zeros))
        return _weft.view_in_memory(of, self._made[buffer][1])


def _check(one: array) -> None:
    if _weft.holds_arrays(one):
        raise usage_error(
            f"hvp(): an array of {_weft.type_name(one.dtype)} holds arrays in its elements, whose tangents are not "
            "known. help: pass them as arguments, or in a struct that is one",
            TypeError,
        )


def _is_smooth(of: array) -> bool:
    info = _weft.type_info(of.dtype)  # None for structs
    return info is None or info["scalar_kind"] == "float"


def _with_arrays(value: Any, made: Callable[[array], array | None], numbers: Any) -> Any:
    """The argument with other arrays in place of its own, and the numbers of another struct, or zeros. None where
    nothing is left of it."""
    if isinstance(value, array):
        return made(value)
    if not _weft.arrays_in(value):
        return numbers
    result, is_empty = type(value)(), numbers is None
    for name in _weft.field_names(value):
        field, number = getattr(value, name), getattr(numbers, name, None)
        if isinstance(field, array) or _weft.arrays_in(field):
            part = _with_arrays(field, made, number)
            is_empty &= part is None
            if part is not None:
                setattr(result, name, part)
        else:
            setattr(result, name, type(field)() if number is None else number)
    return None if is_empty else result


class _Twins:
    """The tangents of arrays, and of their gradients: zeros where nothing has been written."""

    def __init__(self) -> None:
        self._memories = _Memories(zeros=True)

    def of_array(self, one: array) -> array | None:
        """None for an array that is constant: one without a gradient, or of integers."""
        if one.grad is None or not _is_smooth(one):
            return None
        _check(one)
        twin = self._memories.view(one)
        twin.grad = self._memories.view(one.grad)
        return twin

    def of(self, value: Any) -> Any:
        return _with_arrays(value, self.of_array, None)


class _TwinTape(Tape):
    """A tape that runs what it records in forward mode, and then back with tangents.

    ``launch_twins`` are those of the arguments of a single launch; what comes after it has no tangents that anybody
    asks for, and it runs as it is.
    """

    def __init__(self, twins: _Twins, launch_twins: list | None = None):
        super().__init__()
        self._twins, self._launch_twins = twins, launch_twins
        self._kept_twins: dict[int, array] = {}  # by id of what is kept

    def _twins_of(self, values: list) -> list:
        return self._launch_twins or [self._twins.of(value) for value in values]

    def _record_launch(self, kernel: Any, dim: Any, values: list, device: Any, shape: Any) -> Any:
        records = super()._record_launch(kernel, dim, values, device, shape)
        twins = self._twins_of(values)
        if self._launch_twins or all(twin is None for twin in twins):
            return records
        nothing = [None] * len(values)
        _weft.run_jvp(kernel, dim, values, twins, False, nothing, nothing, records, device)
        return None  # it has been run

    def _record_write(self, to: array, source: array | None) -> None:
        super()._record_write(to, source)
        twin = self._twins.of_array(to)
        if twin is None:
            return
        origin = self._twins.of_array(source) if source is not None else None
        with self._paused():
            if origin is None:
                twin.zero_()
            else:
                if primitives.overlap(origin, twin):
                    origin = _weft.keep(origin)
                twin.assign(origin if origin.dtype is twin.dtype else origin.view(twin.dtype))

    def _record_operation(self, operation: Operation, run: Callable[[], Any]) -> None:
        # Tangents that the operation is about to overwrite.
        moving: dict[str, array] = {}
        for name, read in operation.reads.items():
            twin = self._twins.of_array(read)
            if twin is not None:
                is_written = any(primitives.overlap(read, one) for one in operation.writes.values())
                moving[name] = _weft.keep(twin) if is_written else twin
        super()._record_operation(operation, run)
        tangents = {f"the tangent of {name}": self._twins.of_array(one) for name, one in operation.writes.items()}
        with self._paused():
            self._verified(operation.name, tangents, lambda: self._go_forward(operation, moving))

    def _go_forward(self, operation: Operation, moving: dict[str, array]) -> None:
        parts = operation.parts()
        written = {id(part.written): self._twins.of_array(part.written) for part in parts}
        for twin in written.values():
            twin.zero_()
        for part in parts:
            part.forward(moving[part.read], written[id(part.written)], *operation.factors(part))

    @staticmethod
    def _verified(what: str, tangents: dict[str, array | None], run: Callable[[], Any]) -> None:
        there = {name: one for name, one in tangents.items() if one is not None}
        _weft.run_verified("hvp()", what, "", there, run)

    def _append(self, entry: Any, *needs: Any) -> None:
        if isinstance(entry, Function):
            raise usage_error(
                f"hvp(): the function records {entry!r} by Tape.record_func(), and what that does on the way back, and "
                "so its second derivative, nobody knows. help: launch a kernel that does it",
                RuntimeError,
            )
        super()._append(entry, *needs)

    def _keep(self, need: Need) -> array:
        kept = super()._keep(need)
        twin = self._twins.of_array(need.array)
        if twin is not None:
            self._kept_twins[id(kept)] = _weft.keep(twin)
        return kept

    def _reverse(self, entry: Any) -> None:
        if isinstance(entry, Launch):
            self._reverse_launch(entry)
        elif isinstance(entry, Write):
            self._reverse_write(entry)
        else:
            self._reverse_operation(entry)

    def _kept_twin(self, need: Need) -> array | None:
        return self._kept_twins.get(id(need.copy)) if need.copy is not None else None

    def _twin_then(self, need: Need) -> array | None:
        kept = self._kept_twin(need)
        return kept if kept is not None else self._twins.of_array(need.array)

    def _reverse_launch(self, launch: Launch) -> None:
        if not launch.is_smooth:
            return
        values, before, after = launch.contents()
        twins = self._twins_of(launch.values)
        kept = {id(need.array): self._kept_twin(need) for needs in launch.before.values() for need in needs}

        def at_launch(one: array) -> array | None:
            twin, then = self._twins.of_array(one), kept.get(id(one))
            if twin is None or then is None:
                return twin
            then.grad = twin.grad
            return then

        twins = [
            _with_arrays(value, at_launch, twin) if i in launch.before else twin
            for i, (value, twin) in enumerate(zip(launch.values, twins, strict=True))
        ]
        _weft.run_jvp(launch.kernel, launch.dim, values, twins, True, before, after, launch.records, launch.device)

    def _reverse_operation(self, operation: Operation) -> None:
        twins = {name: self._twins.of_array(read) for name, read in operation.reads.items()}
        tangents = {f"the tangent of {name}.grad": twin.grad for name, twin in twins.items() if twin is not None}
        self._verified(f"the way back of {operation.name}", tangents, lambda: self._go_back(operation, twins))

    def _go_back(self, operation: Operation, twins: dict[str, array | None]) -> None:
        def twin_gradient(written: array) -> array | None:
            twin = self._twins.of_array(written)
            return twin.grad if twin is not None else None

        gradients, tangents = operation.take(lambda written: written.grad), operation.take(twin_gradient)
        moved = {name: self._twin_then(need) for name, need in operation.needs.items()}
        for part in operation.parts():
            gradient, factors = gradients[id(part.written)], operation.factors(part)
            into = twins[part.read].grad
            part.backward(gradient, operation.reads[part.read].grad, *factors)
            part.backward(tangents[id(part.written)], into, *factors)
            for i, name in enumerate(part.factors):
                if moved[name] is not None:
                    part.backward(gradient, into, *factors[:i], moved[name], *factors[i + 1 :])

    def _reverse_write(self, write: Write) -> None:
        twin, launch = self._twins.of_array(write.to), write.as_launch()
        if twin is not None and launch is not None:
            kernel, dim, values = launch
            twins = [self._twins.of_array(value) for value in values]
            _weft.run_jvp(kernel, dim, values, twins, True, [None, None], [None, None], [], None)
            return
        write.backward()
        if twin is not None and not write.to.retain_grad:
            twin.grad.zero_()


# ---- what users call ----


def _copies(values: Sequence[Any]) -> list[Any]:
    """Arrays in copies of their memories, with gradients of zeros."""
    memories, gradients = _Memories(zeros=False), _Memories(zeros=True)

    def copied(one: array) -> array:
        _check(one)
        made = memories.view(one)
        if _is_smooth(one):
            made.grad = gradients.view(one)
        return made

    return [_with_arrays(value, copied, value) for value in values]


def _set_vector(twin: Any, vector: Any) -> None:
    if isinstance(twin, array):
        twin.assign(vector)
        return
    for name in _weft.field_names(twin):
        field, given = getattr(twin, name), getattr(vector, name)
        if isinstance(field, array):
            if isinstance(given, array) and given.size:
                field.assign(given)
        elif _weft.arrays_in(field):
            _set_vector(field, given)
        else:
            setattr(twin, name, given)


def _set_vectors(inputs: list, twins: list, vectors: list) -> None:
    """Vectors become the tangents of the inputs; of what has no twin they are the tangent themselves."""
    for i, (value, vector) in enumerate(zip(inputs, vectors, strict=True)):
        if vector is None:
            continue
        if _weft.field_names(value) and type(vector) is not type(value):
            raise usage_error(
                f"hvp(): entry {i} of vectors is {vector!r}, expected a {type(value).__name__}, as its argument",
                TypeError,
            )
        if twins[i] is None:
            twins[i] = vector
        else:
            _set_vector(twins[i], vector)
    for i, (twin, vector) in enumerate(zip(twins, vectors, strict=False)):
        if isinstance(twin, array) and vector is not None and not np.array_equal(twin.numpy(), vector.numpy()):
            raise usage_error(
                f"hvp(): entry {i} of vectors is not that of another input with which its input shares memory",
                ValueError,
            )


def _set_weights(outputs: list, weights: Sequence[Any] | None) -> None:
    """Weights become the gradients of the outputs."""
    weights = tangents_like("hvp()", "weights", outputs, weights)
    seen: list[array] = []
    for i, (output, weight) in enumerate(zip(outputs, weights, strict=True)):
        if not isinstance(output, array) or not _is_smooth(output):
            continue
        if output.grad is None:
            raise usage_error(
                f"hvp(): output {i} has no gradient. help: make it with requires_grad=True in the function", ValueError
            )
        if any(primitives.overlap(output, other) for other in seen):
            raise usage_error(
                f"hvp(): output {i} shares memory with another output, which has a weight too", ValueError
            )
        seen.append(output)
        if weight is None:
            output.grad.fill_(1)
        else:
            output.grad.assign(weight)


def _through_kernel(kernel: Kernel, dim: Any, values: list, twins: _Twins, launch_twins: list, device: Any) -> None:
    if not _weft.hessian_needs_launch(kernel, values, launch_twins, device):
        nothing = [None] * len(values)
        _weft.run_jvp(kernel, dim, values, launch_twins, True, nothing, nothing, [], device)
        return
    with _TwinTape(twins, launch_twins) as tape:
        _weft.launch(kernel, dim, values, device=device)
    tape.backward()


def _through_function(
    function: Callable, values: list, outputs: list, twins: _Twins, weights: Sequence[Any] | None
) -> None:
    with _TwinTape(twins) as tape:
        result = function(*values)
    found = outputs if result is None and outputs else result
    found = list(found) if isinstance(found, (list, tuple)) else [found]
    if not all(isinstance(one, array) for one in found):
        raise usage_error(
            f"hvp(): {getattr(function, '__name__', function)!r} returned {result!r}, expected a wp.array or a list of "
            "them",
            TypeError,
        )
    _set_weights(found, weights)
    if tape.launches:
        tape.backward()


def hvp(
    function: Kernel | Callable,
    dim: Any = None,
    inputs: Sequence[Any] = (),
    outputs: Sequence[Any] = (),
    vectors: Sequence[Any] = (),
    weights: Sequence[Any] | None = None,
    device: Any = None,
) -> list[array | None]:
    """The Hessian of outputs, summed with weights, times a vector: forward mode over reverse mode.

    Args:
        function: a kernel, or a Python function of the inputs (and outputs) that launches kernels, as for
            :func:`warp.autograd.jacobian`: it returns an array or a list of arrays, or nothing where outputs are given.
        dim: the grid, for a kernel; as for ``wp.launch``.
        inputs: the arguments. All arrays of floats are differentiated by.
        outputs: the further arguments. What they hold is where the kernel starts from.
        vectors: one for each input, an array like it; None for zero. An array that shares memory with another input
            moves with it. Numbers and structs of a kernel's inputs have vectors too: a number, a struct.
        weights: one for each output, an array like it; ones where it is None.
        device: as for ``wp.launch``.
    Returns:
        One array for each input that is an array of floats, None for the others: the derivative of its gradient along
        the vectors. All runs on copies; arguments and their gradients are left as they are.
    Raises:
        UsageError: a vector or weight is not like its argument; outputs share memory; the function does what has no
            second derivative here.
        CompileError: a kernel has no second derivative that could be computed here, at its line.
    """
    inputs, outputs = list(inputs), list(outputs)
    vectors = tangents_like("hvp()", "vectors", inputs, vectors)
    is_kernel = isinstance(function, Kernel)
    if not is_kernel and not callable(function):
        raise usage_error(f"hvp(): expected a kernel or a function, got {function!r}", TypeError)
    for i, vector in enumerate(vectors):
        if not is_kernel and vector is not None and not isinstance(inputs[i], array):
            raise usage_error(
                f"hvp(): entry {i} of vectors is {vector!r} for an input that is no array, which only kernels take",
                TypeError,
            )
    with Unrecorded():
        copies, twins = _copies([*inputs, *outputs]), _Twins()
        split = len(inputs)
        its_twins = [twins.of(value) for value in copies]
        _set_vectors(inputs, its_twins, vectors)
        if is_kernel:
            _set_weights(copies[split:], weights)
            _through_kernel(function, dim, copies, twins, its_twins, device)
        else:
            _through_function(function, copies, copies[split:], twins, weights)
    return [
        twin.grad if isinstance(value, array) and twin is not None else None
        for value, twin in zip(inputs, its_twins[:split], strict=True)
    ]
