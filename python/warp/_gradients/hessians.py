"""Products with Hessians: a program in forward mode (tangent_arrays.py), then back through it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import warp._weft as _weft
from warp._gradients.jacobians import Unrecorded
from warp._gradients.tangent_arrays import (
    Forward,
    TangentArrays,
    check_gradient,
    copies,
    has_tangent,
    refuse_function,
    results,
    set_vectors,
    with_arrays,
)
from warp._gradients.tangents import check_moving, tangents_like
from warp._gradients.tape import Tape
from warp._weft import (
    Kernel,
    RecordedLaunch,
    RecordedOperation,
    RecordedWrite,
    SavedPrimal,
    array,
    primitives,
    usage_error,
)

__all__ = ["hvp"]


class _TangentTape(Tape):
    """A tape that runs its entries in forward mode while it records, and then back with tangents.

    ``launch_tangents`` are those of the arguments of a single launch. Later entries need no tangents, and run as they
    are.
    """

    def __init__(self, tangent_arrays: TangentArrays, launch_tangents: list | None = None):
        super().__init__()
        self._tangent_arrays, self._launch_tangents = tangent_arrays, launch_tangents
        self._forward = Forward("hvp()", tangent_arrays)
        self._kept_tangents: dict[int, array] = {}  # by SavedPrimal.copy_id
        self._of_meshes: dict[int, array] = {}  # by id(): arrays of meshes that move
        self._takes_all = self._tells_kept = True

    def _tangents_of(self, values: list) -> list:
        return self._launch_tangents or [self._tangent_arrays.of(value) for value in values]

    def _record_launch(self, kernel: Any, dim: Any, values: list, device: Any, is_seen: bool) -> Any:
        returned = super()._record_launch(kernel, dim, values, device, is_seen)
        if not self._launch_tangents and self._forward.launch(kernel, dim, values, returned, device):
            self._entries[-1].returned = returned
            for one, _ in self._forward.moving([one for one, _ in self._entries[-1].arrays_of_meshes]):
                self._of_meshes[id(one)] = one
            return None  # it has been run
        return returned

    def _record_write(self, to: array, source: array | None) -> None:
        super()._record_write(to, source)
        with self._paused():
            self._forward.write(to, source)

    def _record_operation(self, operation: RecordedOperation, run: Callable[[], Any]) -> None:
        with self._paused():
            tangents = self._forward.tangents_before(operation)
        super()._record_operation(operation, run)
        with self._paused():
            self._forward.operation(operation, tangents)

    def _record_function(self, backward: Callable, arrays: list[array]) -> None:
        refuse_function("hvp()", backward)

    def _kept_now(self, needs: list[SavedPrimal]) -> None:
        tangents = [
            (need, tangent) for need in needs if (tangent := self._tangent_arrays.of_array(need.array)) is not None
        ]
        kept = _weft.keep_together([tangent for _, tangent in tangents])
        for (need, _), one in zip(tangents, kept, strict=True):
            self._kept_tangents[need.copy_id] = one

    def _reverse(self, entry: Any) -> None:
        if isinstance(entry, RecordedLaunch):
            self._reverse_moving(entry)
        elif isinstance(entry, RecordedWrite):
            self._reverse_write(entry)
        else:
            self._reverse_operation(entry)

    def _kept_tangent(self, need: SavedPrimal) -> array | None:
        return self._kept_tangents.get(need.copy_id)

    def _tangent_then(self, need: SavedPrimal) -> array | None:
        kept = self._kept_tangent(need)
        return kept if kept is not None else self._tangent_arrays.of_array(need.array)

    def _reverse_moving(self, launch: RecordedLaunch) -> None:
        if not launch.is_smooth:
            return
        values, before, after = _contents(launch)
        needed, given = launch.before, launch.values
        tangents = self._tangents_of(given)
        kept = {id(need.array): self._kept_tangent(need) for needs in needed.values() for need in needs}

        def at_launch(one: array) -> array | None:
            tangent, then = self._tangent_arrays.of_array(one), kept.get(id(one))
            if tangent is None or then is None:
                return tangent
            then.grad = tangent.grad
            return then

        tangents = [
            with_arrays(value, at_launch, tangent) if i in needed else tangent
            for i, (value, tangent) in enumerate(zip(given, tangents, strict=True))
        ]
        _weft.run_jvp(
            launch.kernel,
            launch.dim,
            values,
            tangents,
            True,
            before,
            after,
            launch.returned,
            launch.device,
            self._moving_meshes(launch),
            launch,
            self,
        )

    def _moving_meshes(self, launch: RecordedLaunch) -> list[tuple[array, array]]:
        """The moving arrays of the meshes that the launch read, with the tangents that it saw."""
        if self._launch_tangents:
            return []
        moving = []
        needs = {id(one): need for one, need in launch.arrays_of_meshes}
        for one, tangent in self._forward.moving([one for one, _ in launch.arrays_of_meshes]):
            need = needs[id(one)]
            then = self._kept_tangent(need) if need is not None else None
            if then is not None:
                then.grad = tangent.grad
            moving.append((one, tangent if then is None else then))
        return moving

    @contextmanager
    def gradients_of_meshes(self) -> Iterator[None]:
        """Meshes that move are the user's. Their gradients start from zero here, and are given back."""
        own = [(one, _weft.keep(one.grad)) for one in self._of_meshes.values()]
        for one, _ in own:
            one.grad.zero_()
        try:
            yield
        finally:
            for one, before in own:
                one.grad.assign(before)

    def _reverse_operation(self, operation: RecordedOperation) -> None:
        tangents = {name: self._tangent_arrays.of_array(read) for name, read in operation.reads.items()}
        written = {
            f"the tangent of {name}.grad": tangent.grad for name, tangent in tangents.items() if tangent is not None
        }
        self._forward.verified(
            f"the backward pass of {operation.name}", written, lambda: self._go_back(operation, tangents)
        )

    def _go_back(self, operation: RecordedOperation, tangents: dict[str, array | None]) -> None:
        def gradient_tangent(written: array) -> array | None:
            tangent = self._tangent_arrays.of_array(written)
            return tangent.grad if tangent is not None else None

        gradients = operation.take(lambda written: written.grad)
        gradient_tangents = operation.take(gradient_tangent)
        moved = {name: self._tangent_then(need) for name, need in operation.needs.items()}
        for part in operation.parts():
            gradient, factors = gradients[id(part.written)], operation.factors(part)
            into = tangents[part.read].grad
            part.backward(gradient, operation.reads[part.read].grad, *factors)
            part.backward(gradient_tangents[id(part.written)], into, *factors)
            for i, name in enumerate(part.factors):
                if moved[name] is not None:
                    part.backward(gradient, into, *factors[:i], moved[name], *factors[i + 1 :])

    def _reverse_write(self, write: RecordedWrite) -> None:
        _weft.reverse_copy(write.to, write.source)
        tangent = self._tangent_arrays.of_array(write.to)
        if tangent is not None:
            _weft.reverse_copy(
                tangent, self._tangent_arrays.of_array(write.source) if write.source is not None else None
            )


def _contents(launch: RecordedLaunch) -> tuple[list, list, list]:
    """The arguments as the adjoint takes them: (values, before, after). The latter two hold arrays to be read in place
    of the values, or None."""
    values, nested = launch.values, launch.nested
    before: list[array | None] = [None] * len(values)
    after: list[array | None] = [None] * len(values)
    within = {need.array: need.copy for needs in launch.within.values() for need in needs if need.copy is not None}
    needed = launch.before
    for i, value in enumerate(values):
        copies = {id(need.array): need.copy for need in needed.get(i, ())}
        leads_on = bool(within) and i in nested
        if isinstance(value, array):
            before[i] = _with_nested(value, copies.get(id(value)), within if leads_on else {})
        elif leads_on or any(copy is not None for copy in copies.values()):
            values[i] = _with_contents(value, copies, within)
    for i, need in launch.after.items():
        after[i] = need.copy
    return values, before, after


def _with_nested(one: array, copy: array | None, within: dict[array, array]) -> array | None:
    """The array to be read in place of ``one``: its copy, whose elements lead to the copies of nested arrays. None if
    nothing was copied."""
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


# ---- the public function ----


def _set_weights(outputs: list, weights: Sequence[Any] | None) -> None:
    """Weights become the gradients of the outputs."""
    weights = tangents_like("hvp()", "weights", outputs, weights)
    seen: list[array] = []
    for i, (output, weight) in enumerate(zip(outputs, weights, strict=True)):
        if not isinstance(output, array) or not has_tangent(output):
            continue
        check_gradient("hvp()", i, output)
        if any(primitives.overlap(output, other) for other in seen):
            raise usage_error(
                f"hvp(): output {i} shares memory with another output, which has a weight too", ValueError
            )
        seen.append(output)
        if weight is None:
            output.grad.fill_(1)
        else:
            output.grad.assign(weight)


def _through_kernel(
    kernel: Kernel, dim: Any, values: list, tangent_arrays: TangentArrays, launch_tangents: list, device: Any
) -> None:
    if not _weft.hessian_needs_launch(kernel, values, launch_tangents, device):
        nothing = [None] * len(values)
        _weft.run_jvp(kernel, dim, values, launch_tangents, True, nothing, nothing, [], device, [])
        return
    with _TangentTape(tangent_arrays, launch_tangents) as tape:
        _weft.launch(kernel, dim, values, device=device)
    tape._reverse_all()


def _through_function(
    function: Callable, values: list, outputs: list, tangent_arrays: TangentArrays, weights: Sequence[Any] | None
) -> None:
    with _TangentTape(tangent_arrays) as tape:
        result = function(*values)
    found = results("hvp()", function, outputs if result is None and outputs else result)
    with tape.gradients_of_meshes():
        _set_weights(found, weights)
        tape._reverse_all()


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
            :func:`warp.autograd.jacobian`: it returns an array or a list of arrays, or nothing if outputs are given.
            Meshes whose points a function moves move with them; those that a kernel looks into are constant.
        dim: the grid, for a kernel; as for ``wp.launch``.
        inputs: the arguments. All arrays of floats are differentiated by.
        outputs: the further arguments. The kernel starts from their contents.
        vectors: one for each input, an array like it; None for zero. An array that shares memory with another input
            moves with it. Numbers and structs of a kernel's inputs have vectors too: a number, a struct.
        weights: one for each output, an array like it; ones if None.
        device: as for ``wp.launch``.
    Returns:
        One array for each input that is an array of floats, None for the others: the derivative of its gradient along
        the vectors. All runs on copies; arguments and their gradients are left as they are.
    Raises:
        UsageError: a vector or weight is not like its argument; outputs share memory; the function has an operation
            without a second derivative here.
        CompileError: a kernel has no second derivative that could be computed here, at its line.
    """
    inputs, outputs = list(inputs), list(outputs)
    vectors = tangents_like("hvp()", "vectors", inputs, vectors)
    is_kernel = isinstance(function, Kernel)
    if not is_kernel and not callable(function):
        raise usage_error(f"hvp(): expected a kernel or a function, got {function!r}", TypeError)
    if not is_kernel:
        check_moving("hvp()", "vectors", inputs, vectors)
    with Unrecorded():
        values, tangent_arrays = copies("hvp()", [*inputs, *outputs]), TangentArrays("hvp()")
        split = len(inputs)
        its_tangents = [tangent_arrays.of(value) for value in values]
        set_vectors("hvp()", "vectors", inputs, its_tangents, vectors)
        if is_kernel:
            _set_weights(values[split:], weights)
            _through_kernel(function, dim, values, tangent_arrays, its_tangents, device)
        else:
            _through_function(function, values, values[split:], tangent_arrays, weights)
    return [
        tangent.grad if isinstance(value, array) and tangent is not None else None
        for value, tangent in zip(inputs, its_tangents[:split], strict=True)
    ]
