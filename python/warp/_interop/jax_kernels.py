"""JAX: kernels as functions of arrays, under jit, grad, vmap, scan and shard_map, through the FFI of XLA.

Shapes, the grid and the machine code of a call are determined when JAX traces it. At run time XLA calls C++
(bindings/interop/xla_call) with addresses.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Sequence
from enum import IntEnum
from typing import Any

import warp._weft as _weft
from warp._interop.jax_call import Call
from warp._interop.jax_derivatives import Tangent, smooth
from warp._interop.jax_generic import GenericJaxKernel
from warp._interop.jax_linear import apply
from warp._interop.jax_signature import Signature, alike, known_vmap_method
from warp._interop.library import import_library
from warp._interop.parameters import Parameter, extents, parameters_of, unknown_parameter

__all__ = [
    "CountingJaxKernel",
    "JaxKernel",
    "JaxModulePreloadMode",
    "ensure_handlers",
    "jax_kernel",
    "refusing",
]

UsageError = _weft.UsageError


class JaxModulePreloadMode(IntEnum):
    """When the code of a kernel is loaded. Each of them loads the CPU's when JAX traces the call, and a GPU's before
    XLA first runs it there."""

    NONE = 0
    CURRENT_DEVICE = 1
    ALL_DEVICES = 2


class _Handlers:
    are_known = False


def ensure_handlers() -> None:
    """Tells XLA of the functions that run kernels. Starts no backend of JAX."""
    if not _Handlers.are_known:
        jax = import_library("jax")
        for platform in ("cpu", "CUDA"):
            for name, stages in _weft.xla_handlers(platform == "CUDA").items():
                handlers = stages if len(stages) > 1 else stages["execute"]
                jax.ffi.register_ffi_target(name, handlers, platform=platform)
        _Handlers.are_known = True


def refusing(function: Any, text: str) -> Any:
    """The function of arrays, whose differentiation is an error with this text."""
    jax = import_library("jax")
    result = jax.custom_jvp(function)

    def jvp(primals: Any, tangents: Any) -> Any:
        raise UsageError(text)

    result.defjvp(jvp)
    return result


class JaxKernel:
    """A kernel as a function of arrays of JAX; made by :func:`warp.jax_kernel`."""

    _api = "jax_kernel"
    _collapses = False

    def __init__(
        self,
        kernel: Any,
        num_outputs: int | None = 1,
        vmap_method: str | None = "broadcast_all",
        launch_dims: Any = None,
        output_dims: Any = None,
        in_out_argnames: Sequence[str] | None = None,
        enable_backward: bool = True,
        has_side_effect: bool = False,
    ):
        self.kernel = kernel
        self.vmap_method = known_vmap_method(self._api, vmap_method)
        self.launch_dims, self.output_dims = launch_dims, output_dims
        self.enable_backward, self.has_side_effect = enable_backward, has_side_effect
        if not isinstance(kernel, _weft.Kernel):
            parameters_of(kernel, f"{self._api}()", "JAX")  # raises an error that names the argument
        self.name = kernel.key
        self._outputs = num_outputs, in_out_argnames
        # Numbers and names are checked now, types when the kernel is analysed: one bad kernel stops no import.
        self._signature([unknown_parameter(name) for name in inspect.signature(kernel.func).parameters])

    def _signature(self, parameters: Sequence[Parameter]) -> Signature:
        num_outputs, in_out = self._outputs
        return Signature(self._api, f"kernel '{self.name}'", parameters, num_outputs, in_out, self._collapses)

    @functools.cached_property
    def signature(self) -> Signature:
        """The parameters with their types, found by analysing the kernel at the first call."""
        return self._signature(parameters_of(self.kernel, f"{self._api}()", "JAX"))

    def __repr__(self) -> str:
        return f"<{self._api} of {self.name}>"

    def __call__(
        self, *args: Any, output_dims: Any = None, launch_dims: Any = None, vmap_method: str | None = None
    ) -> list:
        """The outputs of the kernel, always a list.

        Args:
            args: its inputs in order: arrays of JAX, or values that become one; numbers, vectors and matrices for
                parameters that are no arrays, which are part of the compiled program.
            output_dims, launch_dims, vmap_method: for this call, in place of those of jax_kernel().
        """
        ensure_handlers()
        inputs, outputs = self.signature.split(len(args))
        arguments = self.signature.read(inputs, args)
        launch_dims = self.launch_dims if launch_dims is None else launch_dims
        output_dims = self.output_dims if output_dims is None else output_dims
        dims = arguments.first if launch_dims is None else extents(launch_dims, f"{self._api}(): launch_dims")
        otherwise = arguments.leading if launch_dims is None else dims
        shapes = self.signature.outputs(outputs, output_dims, otherwise, arguments.arrays)
        method = self.vmap_method if vmap_method is None else known_vmap_method(self._api, vmap_method)
        return run(Call(self, arguments, dims, shapes, method), list(arguments.arrays.values()))


def run(call: Call, arrays: Sequence[Any]) -> list:
    """The call's outputs, with its rule for tangents."""
    jax, numpy = import_library("jax"), import_library("numpy")
    function = jax.custom_jvp(call.launch)

    def moved(arrays: Sequence[Any], tangents: Sequence[Any]) -> tuple[list, list]:
        found = iter(())
        if call.smooth_inputs and call.smooth_outputs:
            found = iter(apply(Tangent(call), arrays, smooth(call.inputs, tangents)))
        results = function(*arrays)
        return results, [
            next(found) if output.parameter.is_smooth else numpy.zeros(result.shape, jax.dtypes.float0)
            for output, result in zip(call.outputs, results, strict=True)
        ]

    function.defjvp(moved)
    return [
        array.reshape((*output.shown, *output.parameter.inner))
        for array, output in zip(function(*alike(arrays)), call.outputs, strict=True)
    ]


class CountingJaxKernel(JaxKernel):
    """As programs of 2024 have it: the outputs are the arguments that a call does not give, and dimensions before those
    that a parameter has become its first one."""

    _collapses = True

    def __init__(self, kernel: Any, launch_dims: Any = None):
        super().__init__(kernel, num_outputs=None, launch_dims=launch_dims)


def jax_kernel(
    kernel: Any,
    num_outputs: int = 1,
    vmap_method: str | None = "broadcast_all",
    launch_dims: Any = None,
    output_dims: Any = None,
    in_out_argnames: Sequence[str] | None = None,
    module_preload_mode: JaxModulePreloadMode = JaxModulePreloadMode.CURRENT_DEVICE,
    enable_backward: bool = True,
    has_side_effect: bool = False,
    block_dim: int | None = None,
) -> JaxKernel | GenericJaxKernel:
    """A kernel as a function of arrays of JAX, under ``jit``, ``grad``, ``vmap``, ``scan`` and ``shard_map``.

    ::

        double = wp.jax_kernel(double_kernel)     # double_kernel(x: wp.array[float], y: wp.array[float])
        y, = jax.jit(double)(x)

    The kernel's inputs come first, then its outputs. The function takes the inputs, and ``output_dims``,
    ``launch_dims`` and ``vmap_method`` by name for one call; it returns a list of the outputs. Arrays have to have the
    parameters' dtypes and dimensions, and those of the elements of vectors and matrices at the end. Parameters that are
    no arrays take Python numbers, which become part of the compiled program. Outputs that the kernel does not write are
    zero.

    Args:
        kernel: the kernel; of a generic one each call uses the instance for its arrays, which must determine the types
            of the outputs.
        num_outputs: how many arguments are outputs, those of ``in_out_argnames`` too.
        vmap_method: as in ``jax.ffi.ffi_call``. Each sample is a launch of its own with any method; ``"sequential"``
            makes one call for each, and with None ``vmap`` is an error.
        launch_dims: the grid; by default the shape of the first array.
        output_dims: the shape of the outputs, without the elements' own, or a dictionary of shapes by name; by default
            the grid's.
        in_out_argnames: names of arguments that are inputs and outputs: the kernel gets a copy, which is returned.
        module_preload_mode: accepted; code for the CPU is loaded when JAX traces a call, and code for a GPU before XLA
            first runs it there.
        enable_backward: whether it can be differentiated (``jax.grad``, ``jax.vjp``), by the kernel's own adjoint.
        has_side_effect: keeps calls whose results are unused.
        block_dim: accepted, and not used.

    On a GPU a call runs on the device and in the stream that XLA gives it, without waiting, and may become a part of
    XLA's graphs if the kernel checks and prints nothing.

    Raises:
        UsageError: a TypeError or ValueError, when it is made or traced: the number of arguments, dtypes and shapes do
            not fit, or the kernel writes to an input. JAX itself is imported at the first call.
    """
    JaxModulePreloadMode(module_preload_mode)

    def make(instance: Any) -> JaxKernel:
        return JaxKernel(
            instance,
            num_outputs,
            vmap_method,
            launch_dims,
            output_dims,
            in_out_argnames,
            enable_backward,
            has_side_effect,
        )

    return GenericJaxKernel(kernel, make) if getattr(kernel, "is_generic", False) else make(kernel)
