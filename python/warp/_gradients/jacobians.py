"""The inside of warp.autograd: a launch or a function as a map from inputs to outputs, and its Jacobians by a tape
and by differences, as NumPy matrices.
"""

from __future__ import annotations

import copy
import inspect
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
import warp._weft as _weft
from warp._gradients.tape import Tape
from warp._weft import Kernel, array, primitives, type_name, usage_error
from warp.types import type_components

__all__ = [
    "Result",
    "Subject",
    "Unrecorded",
    "differences",
    "is_differentiable",
    "parameters",
    "reverse",
    "selected",
    "subject_of",
]


# ---- numbers of arrays ----


def _arrays_of(value: Any) -> list[array]:
    return [value] if isinstance(value, array) else _weft.arrays_in(value)


def is_differentiable(value: Any) -> bool:
    return isinstance(value, array) and value.requires_grad


def _check_floats(api: str, name: str, value: array) -> None:
    info = _weft.type_info(value.dtype)
    if info is None or info["scalar_kind"] != "float" or info["numpy"] is None:
        raise usage_error(
            f"{api}: {name!r} is an array of {type_name(value.dtype)}, expected float16, float32 or float64, or "
            "vectors or matrices of them",
            TypeError,
        )


def _count(value: array) -> int:
    """How many numbers it has."""
    return value.size * type_components(value.dtype)


def _numbers(value: array) -> np.ndarray:
    """A copy as float64, in a row."""
    return np.array(value.numpy(), dtype=np.float64).reshape(-1)


def _numpy_type(value: array) -> np.dtype:
    return np.dtype(_weft.type_info(value.dtype)["numpy"])


def _copies(values: Sequence[Any]) -> list[Any]:
    """Clones of the arrays, those in structs and in elements too. Arrays with gradients get gradients of zeros; one
    that is given twice is one array again."""
    made: dict[int, Any] = {}
    nested = [one for value in values for one in _weft.nested_arrays(value)]
    inside = [_weft.clone(one) for one in nested]

    def is_same(one: array, other: array) -> bool:
        return _weft.memory_of(one)[1:3] == _weft.memory_of(other)[1:3] and one.dtype is other.dtype

    def cloned(one: array) -> array | None:
        if _weft.holds_arrays(one):
            holder = _weft.with_nested(one, nested, inside)
            holder.requires_grad = one.requires_grad
            return holder
        return next((clone for other, clone in zip(nested, inside, strict=True) if is_same(one, other)), None)

    for one in [one for value in values for one in _arrays_of(value)] if nested else ():
        if (clone := cloned(one)) is not None:
            made[id(one)] = clone

    def copied(value: Any) -> Any:
        if not isinstance(value, array):
            return copy.deepcopy(value, made) if _weft.arrays_in(value) else value
        if id(value) not in made:
            made[id(value)] = _weft.clone(value)
        return made[id(value)]

    return [copied(value) for value in values]


# ---- the function to differentiate ----


class Subject:
    """A kernel launch or a function with its arguments: ``run(arguments)`` gives the outputs."""

    def __init__(
        self,
        api: str,
        name: str,
        arguments: list[Any],
        input_names: list[str],
        output_names: Callable[[int], str],
        run: Callable[[list[Any]], list[Any]],
    ):
        self.api, self.name, self.arguments = api, name, arguments
        self.input_names, self._output_name, self._run = input_names, output_names, run
        self.inputs = [i for i in range(len(input_names)) if is_differentiable(arguments[i])]
        for i in self.inputs:
            _check_floats(api, input_names[i], arguments[i])
        if not self.inputs:
            raise usage_error(
                f"{api}: none of the inputs of {name!r} is an array with requires_grad=True; nothing can be "
                "differentiated",
                ValueError,
            )

    def output_name(self, index: int) -> str:
        return self._output_name(index)

    def run(self, arguments: list[Any]) -> list[Any]:
        return self._run(arguments)

    def pairs(self, outputs: list[Any], mask: Any) -> list[tuple[int, int]]:
        """(input, output) by index, of those that are asked for and have gradients."""
        smooth = [o for o, output in enumerate(outputs) if is_differentiable(output)]
        if not smooth:
            raise usage_error(
                f"{self.api}: none of the outputs of {self.name!r} is an array with requires_grad=True", ValueError
            )
        for o in smooth:
            _check_floats(self.api, self.output_name(o), outputs[o])
        if mask is None:
            return [(i, o) for i in self.inputs for o in smooth]
        output_names = [self.output_name(o) for o in range(len(outputs))]
        pairs = []
        for given in mask:
            if not isinstance(given, (tuple, list)) or len(given) != 2:
                raise usage_error(
                    f"{self.api}: input_output_mask has {given!r}, expected (input, output) by index or name", TypeError
                )
            i = self._index(given[0], self.input_names, "input")
            o = self._index(given[1], output_names, "output")
            found = ((i, self.inputs, "input", self.input_names), (o, smooth, "output", output_names))
            for index, known, kind, names in found:
                if index not in known:
                    raise usage_error(
                        f"{self.api}: the {kind} {names[index]!r} of input_output_mask is no array with "
                        "requires_grad=True",
                        ValueError,
                    )
            pairs.append((i, o))
        return pairs

    def _index(self, given: Any, names: list[str], kind: str) -> int:
        if isinstance(given, str) and given in names:
            return names.index(given)
        if not isinstance(given, str) and hasattr(given, "__index__") and -len(names) <= given.__index__() < len(names):
            return given.__index__() % len(names)
        raise usage_error(
            f"{self.api}: input_output_mask names the {kind} {given!r}; {self.name!r} has {', '.join(names)} "
            f"(0 to {len(names) - 1})",
            ValueError,
        )


def parameters(function: Any) -> list[str]:
    try:
        return list(inspect.signature(function).parameters)
    except (TypeError, ValueError):  # a builtin: it has no names that Python knows
        return []


def _list(api: str, name: str, given: Any) -> list[Any]:
    if given is None:
        return []
    if isinstance(given, (str, dict, array)) or not isinstance(given, Sequence):
        raise usage_error(f"{api}: {name!r} is {type(given).__name__}, expected a list of arguments", TypeError)
    return list(given)


def subject_of(
    api: str,
    function: Any,
    dim: Any,
    inputs: Any,
    outputs: Any,
    device: Any,
    max_blocks: int,
    block_dim: int | None,
    *,
    goes_back: bool = True,
) -> Subject:
    given_inputs, given_outputs = _list(api, "inputs", inputs), _list(api, "outputs", outputs)
    for output in given_outputs:
        for value in given_inputs:
            both = isinstance(output, array) and isinstance(value, array) and output is not value
            if both and primitives.overlap(output, value):
                raise usage_error(
                    f"{api}: an output shares memory with an input and is not the same array; copies of them would "
                    "not. help: clone one of them",
                    ValueError,
                )
    arguments = given_inputs + given_outputs
    split = len(given_inputs)
    if isinstance(function, Kernel):
        if not given_outputs:
            raise usage_error(f"{api}: the kernel {function.__name__!r} needs outputs=[...]", ValueError)
        if goes_back and not function.enable_backward:
            raise usage_error(
                f"{api}: the kernel {function.__name__!r} has no gradient, because it was declared with "
                "enable_backward=False",
                ValueError,
            )
        names = parameters(function.func)
        if len(arguments) != len(names):
            raise usage_error(
                f"{api}: kernel {function.__name__!r} has the parameters {', '.join(names)}; inputs and outputs are "
                f"{len(arguments)} arguments, expected {len(names)}",
                TypeError,
            )

        def launch(values: list[Any]) -> list[Any]:
            _weft.launch(
                function,
                dim,
                inputs=values[:split],
                outputs=values[split:],
                device=device,
                max_blocks=max_blocks,
                block_dim=block_dim,
            )
            return values[split:]

        return Subject(api, function.__name__, arguments, names[:split], lambda o: names[split + o], launch)
    if not callable(function):
        raise usage_error(f"{api}: expected a kernel or a function, got {function!r}", TypeError)
    known = parameters(function)
    names = known if len(known) == len(arguments) else [f"input {i}" for i in range(len(arguments))]
    name = getattr(function, "__name__", repr(function))

    def call(values: list[Any]) -> list[Any]:
        result = function(*values)
        if result is None and given_outputs:
            return values[split:]
        found = list(result) if isinstance(result, (list, tuple)) else [result]
        if not all(isinstance(one, array) for one in found):
            raise usage_error(f"{api}: {name!r} returned {result!r}, expected a wp.array or a list of them", TypeError)
        return found

    return Subject(api, name, arguments, names[:split], lambda o: f"output {o}", call)


# ---- Jacobians ----


class Result(NamedTuple):
    matrices: dict[tuple[int, int], np.ndarray]  # float64; NaN for entries that were not computed
    types: dict[tuple[int, int], np.dtype]  # of the arrays that the user gets
    devices: dict[tuple[int, int], Any]
    output_shapes: dict[int, tuple[int, ...]]

    def arrays(self) -> dict[tuple[int, int], array]:
        return {
            pair: array(matrix.astype(self.types[pair]), device=self.devices[pair])
            for pair, matrix in self.matrices.items()
        }


def _empty(subject: Subject, outputs: list[Any], mask: Any) -> Result:
    result = Result({}, {}, {}, {})
    for i, o in subject.pairs(outputs, mask):
        given, output = subject.arguments[i], outputs[o]
        result.matrices[i, o] = np.full((_count(output), _count(given)), np.nan)
        result.types[i, o] = np.result_type(_numpy_type(given), _numpy_type(output), np.float32)
        result.devices[i, o] = output.device
        result.output_shapes[o] = output.numpy().shape
    return result


def selected(count: int, limit: int) -> int:
    return count if limit <= 0 else min(count, limit)


class Unrecorded:
    """``with``: a tape that is recording does not record the block."""

    def __enter__(self) -> None:
        self._recording = _weft.active_tape()
        _weft.set_active_tape(None)

    def __exit__(self, *exception: Any) -> None:
        _weft.set_active_tape(self._recording)


def reverse(subject: Subject, mask: Any, max_outputs: int) -> Result:
    """One pass back for each number of each output."""
    with Unrecorded():
        arguments = _copies(subject.arguments)
        with Tape() as tape:
            outputs = subject.run(arguments)
        result = _empty(subject, outputs, mask)
        for o in sorted({o for _, o in result.matrices}):
            output = outputs[o]
            seed = _weft.zeros(output.shape, output.dtype, device=output.device)
            numbers = seed.flatten().view(_weft.type_info(seed.dtype)["scalar"]).flatten()
            for row in range(selected(_count(output), max_outputs)):
                tape.zero()
                numbers[row] = 1.0
                if tape.launches:
                    tape.backward(grads={output: seed})
                else:  # the function returned an argument: the gradient is the seed itself
                    output.grad.assign(seed)
                numbers[row] = 0.0
                for (i, of), matrix in result.matrices.items():
                    if of == o:
                        matrix[row] = _numbers(arguments[i].grad)
    return result


def _step(value: float, dtype: np.dtype, eps: float | None) -> float:
    """The cube root of the type's precision balances truncation and rounding errors."""
    return np.cbrt(np.finfo(dtype).eps) * max(1.0, abs(value)) if eps is None else eps


def differences(subject: Subject, mask: Any, max_inputs: int, eps: float | None) -> Result:
    """Two runs for each number of each input."""
    with Unrecorded():
        result = _empty(subject, subject.run(_copies(subject.arguments)), mask)
        for i in sorted({i for i, _ in result.matrices}):
            given = subject.arguments[i]
            start, dtype = np.array(given.numpy()), _numpy_type(given)
            for column in range(selected(_count(given), max_inputs)):
                ends, places = [], []
                step = _step(float(start.reshape(-1)[column]), dtype, eps)
                for sign in (1.0, -1.0):
                    arguments = _copies(subject.arguments)
                    moved = start.copy()
                    moved.reshape(-1)[column] += dtype.type(sign * step)
                    arguments[i].assign(moved)
                    places.append(float(moved.reshape(-1)[column]))
                    outputs = subject.run(arguments)
                    ends.append([_numbers(output) if is_differentiable(output) else None for output in outputs])
                if places[0] == places[1]:
                    raise usage_error(
                        f"{subject.api}: eps={eps} does not change {places[0]!r} in {dtype.name}; expected more",
                        ValueError,
                    )
                for (of, o), matrix in result.matrices.items():
                    if of == i:
                        matrix[:, column] = (ends[0][o] - ends[1][o]) / (places[0] - places[1])
    return result
