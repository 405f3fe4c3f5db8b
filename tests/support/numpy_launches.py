"""Launches with arrays of NumPy on CUDA devices, which cannot reach the memory of the host: ``--device cuda:0``.

On the CPU a launch takes an array of NumPy as it is, and most tests of the language give their numbers so. Elsewhere
such a launch is an error, as tests of its own show. So that all of these tests run on every device, the arrays of a
launch are copied to its device before it, and back behind it.
"""

import functools
import typing

import numpy as np
import warp as wp


def launches_with_copies(launch):
    """``wp.launch`` for tests: launches on CUDA devices take arrays of NumPy too, through copies."""

    @functools.wraps(launch)
    def with_copies(kernel, *given, **named):
        settings = {**dict(zip(("dim", "inputs", "outputs"), given)), **named}
        inputs, outputs = settings.get("inputs", []), settings.get("outputs", [])
        arguments = [*inputs, *outputs] if isinstance(inputs, (list, tuple)) else []
        if not any(isinstance(argument, np.ndarray) for argument in arguments):
            return launch(kernel, *given, **named)
        device = wp.get_device(settings.get("device"))
        if not device.is_cuda:
            return launch(kernel, *given, **named)
        copies = Copies(kernel, device)
        moved = [copies.of(argument, number) for number, argument in enumerate(arguments)]
        settings.update(inputs=moved[: len(inputs)], outputs=moved[len(inputs) :])
        result = launch(kernel, **settings)
        copies.bring_back()
        return result

    return with_copies


class Copies:
    """The arrays of one launch: one that is given twice has one copy."""

    def __init__(self, kernel, device):
        self.annotations = list(typing.get_type_hints(kernel.func).values())
        self.device, self.pairs = device, {}

    def of(self, argument, number):
        if not isinstance(argument, np.ndarray) or not isinstance(self.annotations[number], wp.array):
            return argument
        if id(argument) not in self.pairs:
            dtype = self.annotations[number].dtype
            dtype = dtype if isinstance(dtype, type) else None  # else a pattern of a generic kernel
            shared = wp.array(argument, dtype=dtype, device="cpu", copy=False)
            is_shared = argument.size == 0 or shared.ptr == argument.ctypes.data
            assert is_shared, f"{argument.dtype} as {dtype} is not there without a copy"
            self.pairs[id(argument)] = (argument, shared, wp.clone(shared, device=self.device))
        return self.pairs[id(argument)][2]

    def bring_back(self):
        for argument, shared, there in self.pairs.values():
            if argument.flags.writeable:
                wp.copy(shared, there)
