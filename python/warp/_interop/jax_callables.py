"""JAX: Python functions that make several launches, as functions of its arrays (bindings/interop/xla_function)."""

from __future__ import annotations

import contextlib
import functools
import inspect
import weakref
from collections import OrderedDict
from collections.abc import Callable, Sequence
from enum import IntEnum
from typing import Any

import warp._weft as _weft
from warp._interop.jax_kernels import JaxModulePreloadMode, ensure_handlers, refusing
from warp._interop.jax_signature import Arguments, Output, Signature, aliases, alike, known_vmap_method
from warp._interop.library import import_library
from warp._interop.parameters import Parameter, unknown_parameter

__all__ = ["JaxCallable", "JaxCallableGraphMode", "clear_jax_callable_graph_cache", "jax_callable"]


class JaxCallableGraphMode(IntEnum):
    """Whether the launches of a function become a CUDA graph, and whose. On the CPU the function is called each time,
    as with NONE on a GPU.

    With JAX, XLA may call the function while it captures, and replay the launches later. With WARP, Weft captures the
    launches at the first call with the buffers that XLA gives, and replays them for the same buffers. With
    WARP_STAGED_EX, there is one graph for all buffers, with memory of its own: inputs are copied there before it,
    outputs back behind it. WARP_STAGED asks for these copies as nodes of the graph; they are made outside of it there
    too, as nodes would be given the addresses of each call, a call of the driver for each copy as well. In each graph
    the function must not wait, or read numbers on the host.
    """

    NONE = 0
    JAX = 1
    WARP = 2
    WARP_STAGED = 3
    WARP_STAGED_EX = 4


_API = "jax_callable"


def _parameters(function: Callable, name: str) -> list[Parameter]:
    """The parameters of a function."""

    def error(text: str) -> Exception:
        return _weft.usage_error(f"{_API}(): function '{name}': {text}", TypeError)

    annotations = inspect.get_annotations(function, eval_str=True)
    parameters = []
    for parameter in inspect.signature(function).parameters.values():
        annotation = annotations.get(parameter.name)
        if annotation is None:
            raise error(f"parameter '{parameter.name}' has no annotation, expected a type such as wp.array[float]")
        if parameter.kind not in (parameter.POSITIONAL_ONLY, parameter.POSITIONAL_OR_KEYWORD):
            raise error(f"parameter '{parameter.name}' cannot be given by its place, which is how it is called")
        if not _weft.is_annotation(annotation):
            text = getattr(annotation, "__name__", repr(annotation))
            parameters.append(Parameter(parameter.name, text, None, "", (), False, None))
            continue
        info = _weft.type_info(annotation.dtype)
        if info is None or annotation.ndim < 1:
            raise error(
                f"parameter '{parameter.name}' is {annotation}: arrays of JAX hold numbers, vectors and matrices"
            )
        shape = tuple(getattr(annotation.dtype, "_shape_", ()))
        scalar = info["scalar"].__name__
        text, ndim, dtype = repr(annotation), annotation.ndim, annotation.dtype
        parameters.append(Parameter(parameter.name, text, ndim, scalar, shape, False, dtype))
    return parameters


# All of them, for clear_jax_callable_graph_cache().
_callables: weakref.WeakSet[JaxCallable] = weakref.WeakSet()


class CapturedCalls:
    """The graphs of a function, the last used ones last: by the stream, the values and shapes of the call, and the
    addresses of the arrays that are not staged."""

    def __init__(self, function: Callable, staged: tuple[set[str], set[str]] | None, most: int | None):
        self.function, self.staged, self.most = function, staged, most
        self._graphs: OrderedDict[Any, tuple[Any, dict[str, Any]]] = OrderedDict()

    def clear(self) -> None:
        """Frees the graphs."""
        self._graphs.clear()

    def _is_staged(self, row: tuple) -> bool:
        if self.staged is None or len(row) == 2:
            return False
        name, _, _, is_input, is_output = row
        inputs, outputs = self.staged
        return (is_input and name in inputs) or (is_output and name in outputs)

    def run(self, rows: list[tuple], *values: Any) -> None:
        """One call of XLA: `rows` as Signature describes the parameters, and their values."""
        import warp as wp

        arrays = [value for row, value in zip(rows, values, strict=True) if len(row) > 2]
        if not arrays or not arrays[0].device.is_cuda:
            return self.function(*values)
        stream = wp.get_stream(arrays[0].device)
        if stream.is_capturing:
            return self.function(*values)
        pairs = zip(rows, values, strict=True)
        addresses = [value.ptr for row, value in pairs if len(row) > 2 and not self._is_staged(row)]
        key = (stream.cuda_stream, stream.device.alias, id(rows), *addresses)
        found = self._graphs.pop(key, None)
        if found is None:
            found = self._capture(rows, values, stream)
            while self.most is not None and len(self._graphs) >= self.most:
                self._graphs.popitem(last=False)
        self._graphs[key] = found
        graph, memory = found
        for row, value in zip(rows, values, strict=True):
            if row[0] in memory:
                if row[3]:
                    wp.copy(memory[row[0]], value)
                else:
                    memory[row[0]].zero_()
        wp.capture_launch(graph, stream=stream)
        for row, value in zip(rows, values, strict=True):
            if row[0] in memory and row[4]:
                wp.copy(value, memory[row[0]])
        return None

    def _capture(self, rows: list[tuple], values: tuple, stream: Any) -> tuple[Any, dict[str, Any]]:
        import warp as wp

        memory = {}
        for row, value in zip(rows, values, strict=True):
            if self._is_staged(row):
                memory[row[0]] = wp.empty(shape=value.shape, dtype=value.dtype, device=value.device)
        given = [memory.get(row[0], value) for row, value in zip(rows, values, strict=True)]
        # A stream of our own: no other library's is captured.
        own = wp.Stream(stream.device)
        with wp.ScopedStream(own), wp.ScopedCapture(stream=own) as capture:
            result = self.function(*given)
        if result is not None:
            raise _weft.usage_error(
                f"{_API}(): the function returned {result!r}, expected None: it writes its outputs, which are its last "
                "arguments",
                TypeError,
            )
        return capture.graph, memory


class JaxCallable:
    """A Python function as a function of arrays of JAX; made by :func:`warp.jax_callable`."""

    def __init__(
        self,
        function: Callable,
        num_outputs: int,
        vmap_method: str | None,
        output_dims: Any,
        in_out_argnames: Sequence[str] | None,
        has_side_effect: bool,
    ):
        if not callable(function):
            raise _weft.usage_error(f"{_API}(): func is {function!r}, expected a Python function", TypeError)
        self.function = function
        self.name = getattr(function, "__name__", type(function).__name__)
        self.vmap_method = known_vmap_method(_API, vmap_method)
        self.output_dims, self.has_side_effect = output_dims, has_side_effect
        self._outputs = num_outputs, in_out_argnames
        with contextlib.suppress(NameError):  # an annotation that means something later, or to other functions alone
            self.signature  # noqa: B018
        self._signature([unknown_parameter(name) for name in inspect.signature(function).parameters])
        self.graph_mode = JaxCallableGraphMode.JAX
        self.graphs: CapturedCalls | None = None  # of modes in which Weft captures
        self._known: dict[Any, int] = {}
        _callables.add(self)

    def _signature(self, parameters: list[Parameter]) -> Signature:
        num_outputs, in_out = self._outputs
        return Signature(_API, f"function '{self.name}'", parameters, num_outputs, in_out, False)

    @functools.cached_property
    def signature(self) -> Signature:
        """The parameters with their types."""
        return self._signature(_parameters(self.function, self.name))

    def __repr__(self) -> str:
        return f"<{_API} of {self.name}>"

    def __call__(self, *args: Any, output_dims: Any = None, vmap_method: str | None = None) -> list:
        """The outputs of the function, always a list.

        Args:
            args: its inputs in order: arrays of JAX, or values that become one; values for parameters that are no
                arrays.
            output_dims, vmap_method: for this call, in place of those of jax_callable().
        """
        jax = import_library("jax")
        ensure_handlers()
        inputs, outputs = self.signature.split(len(args))
        arguments = self.signature.read(inputs, args)
        output_dims = self.output_dims if output_dims is None else output_dims
        shapes = self.signature.outputs(outputs, output_dims, arguments.first, arguments.arrays)
        number = self._number(arguments, shapes)
        results = [
            jax.ShapeDtypeStruct((*output.own, *output.parameter.inner), output.parameter.scalar) for output in shapes
        ]
        method = self.vmap_method if vmap_method is None else known_vmap_method(_API, vmap_method)
        call = jax.ffi.ffi_call(
            "weft_captured_call" if self.graph_mode is JaxCallableGraphMode.JAX else "weft_call",
            results,
            vmap_method=self.signature.vmap_method(method),
            has_side_effect=self.has_side_effect,
            input_output_aliases=aliases([parameter for parameter in inputs if parameter.is_array], outputs),
        )

        def run(*arrays: Any) -> list:
            return alike(call(*arrays, call=import_library("numpy").int64(number)), arrays)

        text = (
            f"{_API}(): function '{self.name}' has no derivative: JAX does not see its launches. help: "
            "jax.custom_vjp with a gradient of your own, or wp.jax_kernel, which knows its kernel's"
        )
        return refusing(run, text)(*alike(list(arguments.arrays.values())))

    def _number(self, arguments: Arguments, outputs: list[Output]) -> int:
        """The number that identifies a call with these shapes and values; the same for equal ones."""
        shapes = {output.parameter.name: output.own for output in outputs}
        rows: list[tuple] = []
        for parameter in self.signature.parameters:
            if not parameter.is_array:
                rows.append((parameter.name, arguments.values[parameter.name]))
                continue
            array = arguments.arrays.get(parameter.name)
            shape = shapes[parameter.name] if array is None else tuple(array.shape[: parameter.ndim])
            rows.append((parameter.name, parameter.dtype, shape, array is not None, parameter.name in shapes))
        key = tuple((*row, type(row[1])) for row in rows)
        try:
            number = self._known.get(key)
        except TypeError:  # a value that cannot be looked up
            return self._made(rows)
        if number is None:
            number = self._known[key] = self._made(rows)
        return number

    def _made(self, rows: list[tuple]) -> int:
        function = self.function if self.graphs is None else functools.partial(self.graphs.run, rows)
        return _weft.make_xla_function(function, f"{_API}()", self.signature.subject, rows)


def jax_callable(
    func: Callable,
    num_outputs: int = 1,
    graph_mode: JaxCallableGraphMode = JaxCallableGraphMode.JAX,
    vmap_method: str | None = "broadcast_all",
    output_dims: Any = None,
    in_out_argnames: Sequence[str] | None = None,
    stage_in_argnames: Sequence[str] | None = None,
    stage_out_argnames: Sequence[str] | None = None,
    graph_cache_max: int | None = 32,
    module_preload_mode: JaxModulePreloadMode = JaxModulePreloadMode.CURRENT_DEVICE,
    has_side_effect: bool = False,
) -> JaxCallable:
    """A Python function that launches kernels, as a function of arrays of JAX: under ``jit``, ``vmap``, ``scan`` and
    ``shard_map``.

    ::

        def two_steps(x: wp.array[float], y: wp.array[float]):
            wp.launch(first, dim=x.shape, inputs=[x], outputs=[y])
            wp.launch(second, dim=x.shape, inputs=[y])

        y, = jax.jit(wp.jax_callable(two_steps))(x)

    All parameters have annotations, inputs first, then outputs. When XLA comes to the call, the function runs, with
    arrays over XLA's memory: inputs are read-only, outputs are zero. It must not keep them. Its exceptions become
    JAX's errors, with their text. ``func`` returns None; the new function returns a list of the outputs. On a GPU its
    default device and current stream are those that XLA gives the call.

    Args:
        func: the function.
        num_outputs: how many arguments are outputs, those of ``in_out_argnames`` too.
        graph_mode: whose graphs the launches become on a GPU: see :class:`JaxCallableGraphMode`. All modes are the same
            on the CPU.
        vmap_method: as in ``jax.ffi.ffi_call``. The function runs for each sample with any method; with None ``vmap``
            is an error.
        output_dims: the shape of the outputs, without the elements' own, or a dictionary of shapes by name; by default
            that of the first array.
        in_out_argnames: names of arguments that are inputs and outputs: the function gets a copy, which is returned.
        stage_in_argnames, stage_out_argnames: the inputs and outputs that WARP_STAGED stages; None is all. There is a
            graph for each set of buffers of the others.
        graph_cache_max: how many graphs are kept of the modes WARP and WARP_STAGED; the one that was used least
            recently goes. None is all.
        module_preload_mode: accepted; code is loaded at the first launch.
        has_side_effect: keeps calls whose results are unused.

    Raises:
        UsageError: a TypeError or ValueError, when it is made or traced: annotations, the number of arguments, dtypes
            or shapes do not fit; a RuntimeError if it is differentiated.
    """
    JaxModulePreloadMode(module_preload_mode)
    mode = JaxCallableGraphMode(graph_mode)
    result = JaxCallable(func, num_outputs, vmap_method, output_dims, in_out_argnames, has_side_effect)
    result.graph_mode = mode
    names = list(inspect.signature(func).parameters)
    for staged in (*(stage_in_argnames or ()), *(stage_out_argnames or ())):
        if staged not in names:
            text = f"{_API}(): function '{result.name}': there is no argument {staged!r} to be staged"
            raise _weft.usage_error(text, ValueError)
    if graph_cache_max is not None and graph_cache_max < 1:
        text = f"{_API}(): graph_cache_max is {graph_cache_max}, expected at least 1, or None for all"
        raise _weft.usage_error(text, ValueError)
    if mode not in (JaxCallableGraphMode.NONE, JaxCallableGraphMode.JAX):
        staged = tuple(set(names if some is None else some) for some in (stage_in_argnames, stage_out_argnames))
        result.graphs = CapturedCalls(func, staged if mode > JaxCallableGraphMode.WARP else None, graph_cache_max)
    return result


def clear_jax_callable_graph_cache(callable: JaxCallable | None = None) -> None:
    """Frees the CUDA graphs of a function, or of all. On the CPU there are none.

    Raises:
        UsageError: a TypeError if :func:`jax_callable` did not make it.
    """
    if callable is not None and not isinstance(callable, JaxCallable):
        raise _weft.usage_error(
            f"clear_jax_callable_graph_cache(): got {callable!r}, expected what wp.jax_callable() made", TypeError
        )
    for each in list(_callables) if callable is None else [callable]:
        if each.graphs is not None:
            each.graphs.clear()
