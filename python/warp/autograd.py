"""Jacobians, and gradients checked against central differences.

    import warp.autograd

    jacobians = wp.autograd.jacobian(kernel, dim=n, inputs=[x], outputs=[y])
    jacobians[0, 0].numpy()  # derivative of each number of outputs[0] by each number of inputs[0]
    wp.autograd.gradcheck(kernel, dim=n, inputs=[x], outputs=[y])
    loss, gradient = wp.autograd.value_and_grad(function)(x)

All but the last run on copies: the arrays that are given, and their gradients, are left as they are.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

import warp._weft as _weft
from warp._gradients.hessians import hvp
from warp._gradients.jacobians import (
    Result,
    Subject,
    differences,
    is_differentiable,
    parameters,
    reverse,
    selected,
    subject_of,
)
from warp._gradients.tape import Tape
from warp._weft import Kernel, array

__all__ = ["gradcheck", "gradcheck_tape", "hvp", "jacobian", "jacobian_fd", "jacobian_plot", "value_and_grad"]


def __dir__() -> list[str]:
    return sorted(__all__)


def value_and_grad(
    function: Callable, argnums: int | Sequence[int] = 0, has_aux: bool = False
) -> Callable[..., tuple[Any, Any]]:
    """A function that calls ``function`` and gives with its value the gradient by some of its arguments, as in JAX.

    Args:
        function: takes arrays and anything else, and returns an array of one element. Its launches and array operations
            are recorded on a tape; arrays that it makes on the way need ``requires_grad=True``.
        argnums: the position of the argument to differentiate by, an array of floats, or several positions.
        has_aux: whether ``function`` returns a pair of that array and of anything else, which is passed on.
    Returns:
        A function of the same arguments. It returns ``(value, gradient)``: the result of ``function``, and an array
        like the argument, or a tuple of them if ``argnums`` is a sequence. The argument needs no gradient; one that it
        has is not touched.
    Raises:
        UsageError: when that function is called: an argument is no array of floats, or the value no array of one
            element with ``requires_grad=True``.
    """
    if not callable(function):
        raise _weft.usage_error(f"value_and_grad(): expected a function, got {function!r}", TypeError)
    positions = list(argnums) if isinstance(argnums, Sequence) else [argnums]

    def with_gradient(*arguments: Any, **keywords: Any) -> tuple[Any, Any]:
        arguments, gradients = list(arguments), []
        for position in positions:
            if not -len(arguments) <= position < len(arguments):
                raise _weft.usage_error(
                    f"value_and_grad(): argnums has {position}, and the function is called with {len(arguments)} "
                    "positional arguments",
                    IndexError,
                )
            given = arguments[position]
            info = _weft.type_info(given.dtype) if isinstance(given, array) else None
            if info is None or info["scalar_kind"] != "float":
                what = f"an array of {_weft.type_name(given.dtype)}" if isinstance(given, array) else repr(given)
                raise _weft.usage_error(
                    f"value_and_grad(): argument {position} is {what}, expected an array of floats", TypeError
                )
            # The same memory with a gradient of its own.
            arguments[position] = given[...]
            gradients.append(_weft.zeros_like(given, requires_grad=False))
            arguments[position].grad = gradients[-1]
        with Tape() as tape:
            result = function(*arguments, **keywords)
        value = result[0] if has_aux else result
        if not isinstance(value, array):
            raise _weft.usage_error(
                f"value_and_grad(): the function returned {value!r}, expected an array of one element", TypeError
            )
        tape.backward(value)
        return result, gradients[0] if not isinstance(argnums, Sequence) else tuple(gradients)

    return functools.wraps(function)(with_gradient)


def _matrices(result: Result, function: Any, inputs: Any, is_plotted: bool) -> dict[tuple[int, int], array]:
    matrices = result.arrays()
    if is_plotted:
        jacobian_plot(matrices, function, inputs)
    return matrices


def jacobian(
    function: Kernel | Callable,
    dim: Any = None,
    inputs: Sequence[Any] | None = None,
    outputs: Sequence[Any] | None = None,
    input_output_mask: Sequence[tuple[str | int, str | int]] | None = None,
    device: Any = None,
    max_blocks: int = 0,
    block_dim: int | None = None,
    max_outputs_per_var: int = -1,
    plot_jacobians: bool = False,
    metadata: Any = None,
    restore_inputs: bool = True,
) -> dict[tuple[int, int], array]:
    """The derivatives of outputs by inputs, by one pass back through a tape for each number of the outputs.

    Args:
        function: a kernel, or a Python function of the inputs that launches kernels and returns an array or a list of
            arrays; or one of the inputs and outputs that returns nothing.
        dim: the grid, for a kernel; as for ``wp.launch``.
        inputs: the arguments. Arrays with ``requires_grad=True``, of float16, float32, float64 or of vectors or
            matrices of them, are differentiated by.
        outputs: the kernel's further arguments. Those with ``requires_grad=True`` are differentiated. The kernel starts
            from their contents.
        input_output_mask: the pairs (input, output) that are wanted, by position in ``inputs`` and ``outputs`` or by
            name; all if None.
        device, max_blocks, block_dim: as for ``wp.launch``.
        max_outputs_per_var: only the first so many numbers of each output; the other rows are NaN. All if it is not
            positive.
        plot_jacobians: show them with :func:`jacobian_plot`.
        metadata, restore_inputs: accepted. Everything runs on copies, so that inputs are never changed.
    Returns:
        By (input, output), positions in ``inputs`` and ``outputs``, a matrix of shape (numbers of the output, numbers
        of the input) and the wider of their scalar types, float32 at least: components of vectors count, in C
        order. Arguments and their gradients are left as they are.
    Raises:
        UsageError: nothing can be differentiated, arguments do not fit, or an output partly overlaps an input; the
            kernel has enable_backward=False (a ValueError).
    """
    subject = subject_of("jacobian()", function, dim, inputs, outputs, device, max_blocks, block_dim)
    result = reverse(subject, input_output_mask, max_outputs_per_var)
    return _matrices(result, function, inputs, plot_jacobians)


def jacobian_fd(
    function: Kernel | Callable,
    dim: Any = None,
    inputs: Sequence[Any] | None = None,
    outputs: Sequence[Any] | None = None,
    input_output_mask: Sequence[tuple[str | int, str | int]] | None = None,
    device: Any = None,
    max_blocks: int = 0,
    block_dim: int | None = None,
    max_inputs_per_var: int = -1,
    eps: float | None = 1e-4,
    plot_jacobians: bool = False,
    metadata: Any = None,
    restore_inputs: bool = True,
) -> dict[tuple[int, int], array]:
    """The same as :func:`jacobian` by central differences: two runs for each number of the inputs.

    Args:
        max_inputs_per_var: only the first so many numbers of each input; the other columns are NaN. All if it is not
            positive.
        eps: the step. None takes the cube root of the scalar type's precision, 6e-6 in float64 and 5e-3 in float32,
            times the number if that is above 1, which is more exact.
        metadata, restore_inputs: as for :func:`jacobian`.
    Returns, Raises:
        As for :func:`jacobian`.
    """
    subject = subject_of(
        "jacobian_fd()", function, dim, inputs, outputs, device, max_blocks, block_dim, goes_back=False
    )
    result = differences(subject, input_output_mask, max_inputs_per_var, eps)
    return _matrices(result, function, inputs, plot_jacobians)


# ---- checks ----


class _Comparison(NamedTuple):
    """One pair of input and output: the entry that is furthest outside, relative to the tolerance there."""

    input: str
    output: str
    passed: bool
    absolute: float  # largest errors
    relative: float
    worst: str

    def row(self) -> str:
        state = "ok" if self.passed else "WRONG"
        return (
            f"  {self.output} by {self.input}: {state}, largest error {self.absolute:.3g}, relative {self.relative:.3g}"
        )


def _place(name: str, shape: tuple[int, ...], index: int) -> str:
    at = ", ".join(str(i) for i in np.unravel_index(index, shape))
    return f"{name}[{at}]"


def _compare(
    subject: Subject, exact: Result, near: Result, max_outputs: int, max_inputs: int, atol: float, rtol: float
) -> Iterator[_Comparison]:
    for (i, o), found in exact.matrices.items():
        names = subject.input_names[i], subject.output_name(o)
        computed = np.s_[: selected(found.shape[0], max_outputs), : selected(found.shape[1], max_inputs)]
        a, b = found[computed], near.matrices[i, o][computed]
        if a.size == 0:
            yield _Comparison(*names, True, 0.0, 0.0, "")
            continue
        error = np.abs(a - b)
        excess = error / (atol + rtol * np.abs(b))
        excess[np.isnan(excess)] = np.inf
        row, column = np.unravel_index(int(np.argmax(excess)), excess.shape)
        with np.errstate(divide="ignore", invalid="ignore"):
            relative = np.where(error == 0, 0.0, error / np.abs(b))
        worst = (
            f"the derivative of {_place(names[1], exact.output_shapes[o], row)} by "
            f"{_place(names[0], subject.arguments[i].numpy().shape, column)} is {a[row, column]:.9g}, central "
            f"differences give {b[row, column]:.9g}: {error[row, column]:.3g} apart, allowed are "
            f"{atol + rtol * abs(b[row, column]):.3g} (atol={atol}, rtol={rtol})"
        )
        yield _Comparison(*names, bool(excess[row, column] <= 1.0), error.max(), relative.max(), worst)


def _check(
    subject: Subject,
    mask: Any,
    eps: float | None,
    atol: float,
    rtol: float,
    max_inputs: int,
    max_outputs: int,
    raise_exception: bool,
    show_summary: bool,
    plots: Callable[[Result, Result], None] | None = None,
) -> bool:
    exact = reverse(subject, mask, max_outputs)
    near = differences(subject, mask, max_inputs, eps)
    comparisons = list(_compare(subject, exact, near, max_outputs, max_inputs, atol, rtol))
    wrong = [one for one in comparisons if not one.passed]
    if show_summary:
        print(f"gradients of {subject.name}: {'WRONG' if wrong else 'ok'}")
        for one in comparisons:
            print(one.row())
    if plots is not None:
        plots(exact, near)
    if wrong and raise_exception:
        pairs = "" if len(wrong) == 1 else f" ({len(wrong)} pairs of {len(comparisons)} are wrong)"
        raise _weft.usage_error(f"{subject.api}: {subject.name!r}{pairs}: {wrong[0].worst}", ValueError)
    return not wrong


def _error_plots(
    subject: Subject, function: Any, inputs: Any, absolute: bool, relative: bool
) -> Callable[[Result, Result], None] | None:
    if not absolute and not relative:
        return None

    def show(exact: Result, near: Result) -> None:
        for wanted, title in ((relative, "relative error"), (absolute, "absolute error")):
            if not wanted:
                continue
            errors = {}
            for pair, matrix in exact.matrices.items():
                error = np.abs(matrix - near.matrices[pair])
                if title == "relative error":
                    error = error / np.maximum(np.abs(near.matrices[pair]), np.finfo(np.float64).tiny)
                errors[pair] = error
            jacobian_plot(errors, function, inputs, title=f"{subject.name}: {title}")

    return show


def gradcheck(
    function: Kernel | Callable,
    dim: Any = None,
    inputs: Sequence[Any] | None = None,
    outputs: Sequence[Any] | None = None,
    *,
    eps: float | None = 1e-4,
    atol: float = 1e-3,
    rtol: float = 1e-2,
    raise_exception: bool = True,
    input_output_mask: Sequence[tuple[str | int, str | int]] | None = None,
    device: Any = None,
    max_blocks: int = 0,
    block_dim: int | None = None,
    max_inputs_per_var: int = -1,
    max_outputs_per_var: int = -1,
    plot_relative_error: bool = False,
    plot_absolute_error: bool = False,
    show_summary: bool = True,
    restore_inputs: bool = True,
) -> bool:
    """Compares :func:`jacobian` with :func:`jacobian_fd`: ``|exact - fd| <= atol + rtol * |fd|`` for every entry.

    Args:
        function, dim, inputs, outputs, input_output_mask, device, max_blocks, block_dim: as for :func:`jacobian`.
        eps: as for :func:`jacobian_fd`.
        atol, rtol: the tolerances. The defaults suit float32; with float64 ``atol=1e-8, rtol=1e-6`` is a sharper test.
        raise_exception: raise if an entry is wrong, instead of returning False.
        max_inputs_per_var, max_outputs_per_var: only the first so many numbers of each array; all if not positive.
        plot_relative_error, plot_absolute_error: show the errors with :func:`jacobian_plot`.
        show_summary: print a line for each pair of input and output.
        restore_inputs: accepted, as for :func:`jacobian`.
    Returns:
        Whether every entry is as near as allowed. NaN is not.
    Raises:
        UsageError (a ValueError): an entry is wrong; the message names the one that is furthest off, with both values.
            Also as for :func:`jacobian`.
    """
    subject = subject_of("gradcheck()", function, dim, inputs, outputs, device, max_blocks, block_dim)
    return _check(
        subject,
        input_output_mask,
        eps,
        atol,
        rtol,
        max_inputs_per_var,
        max_outputs_per_var,
        raise_exception,
        show_summary,
        _error_plots(subject, function, inputs, plot_absolute_error, plot_relative_error),
    )


def _contents(need: _weft.SavedPrimal) -> array:
    """The argument as the launch saw it; a copy has a gradient of its own if the array has one."""
    contents = need.contents()
    if need.copy is not None and need.array.requires_grad:
        return _weft.clone(contents, requires_grad=True)
    return contents


def _launch_subject(api: str, entry: Any) -> Subject | None:
    """One launch of a tape, from the contents of its arrays then; None if it has no gradients."""
    names, before = parameters(entry.kernel.func), entry.before
    arguments = [
        _contents(before[i][0]) if i in before and isinstance(value, array) else value
        for i, value in enumerate(entry.values)
    ]
    written = [i for i, writes in enumerate(entry.writes) if writes and is_differentiable(arguments[i])]
    if entry.is_left_out or not written or not any(is_differentiable(value) for value in arguments):
        return None

    def launch(values: list[Any]) -> list[Any]:
        _weft.launch(entry.kernel, entry.dim, inputs=values, device=entry.device)
        return [values[i] for i in written]

    return Subject(api, entry.kernel.__name__, arguments, names, lambda o: names[written[o]], launch)


def gradcheck_tape(
    tape: Tape,
    *,
    eps: float | None = 1e-4,
    atol: float = 1e-3,
    rtol: float = 1e-2,
    raise_exception: bool = True,
    input_output_masks: dict[str, Sequence[tuple[str | int, str | int]]] | None = None,
    blacklist_kernels: Sequence[str] | None = None,
    whitelist_kernels: Sequence[str] | None = None,
    max_inputs_per_var: int = -1,
    max_outputs_per_var: int = -1,
    plot_relative_error: bool = False,
    plot_absolute_error: bool = False,
    show_summary: bool = True,
    reverse_launches: bool = False,
    skip_to_launch_index: int = 0,
) -> bool:
    """:func:`gradcheck` of every launch on a tape, each by itself, from the contents that its arrays had.

    Entries of the tape that are no launches (copies, products, functions) are not checked. Every array argument that
    has a gradient is an input; those that the kernel writes are outputs, and inputs too.

    Args:
        tape: the tape with the recorded launches.
        input_output_masks: for kernels by name (``kernel.key``), as for :func:`jacobian`. Names are those of
            parameters; numbers count all parameters for inputs, and those that the kernel writes for outputs.
        blacklist_kernels, whitelist_kernels: names of kernels that are not, or that alone are checked.
        reverse_launches: check the last launch first.
        skip_to_launch_index: begin with this launch, in the order in which they are checked.
        eps, atol, rtol, raise_exception, max_inputs_per_var, max_outputs_per_var, plot_relative_error,
            plot_absolute_error, show_summary: as for :func:`gradcheck`.
    Returns:
        Whether every entry of every launch is as near as allowed.
    Raises:
        UsageError: an entry is wrong (a ValueError, unless raise_exception is False); ``tape`` is no tape, or has no
            launch.
    """
    api = "gradcheck_tape()"
    if not isinstance(tape, Tape):
        raise _weft.usage_error(f"{api}: expected a wp.Tape, got {type(tape).__name__}", TypeError)
    launches = [entry for entry in tape.launches if isinstance(entry, _weft.RecordedLaunch)]
    if not launches:
        raise _weft.usage_error(f"{api}: there is no launch on the tape", ValueError)
    if reverse_launches:
        launches.reverse()
    good = True
    for entry in launches[skip_to_launch_index:]:
        key = entry.kernel.__name__
        if key in (blacklist_kernels or ()) or (whitelist_kernels is not None and key not in whitelist_kernels):
            continue
        subject = _launch_subject(api, entry)
        if subject is None:
            continue
        good &= _check(
            subject,
            (input_output_masks or {}).get(key),
            eps,
            atol,
            rtol,
            max_inputs_per_var,
            max_outputs_per_var,
            raise_exception,
            show_summary,
            _error_plots(subject, entry.kernel, subject.arguments, plot_absolute_error, plot_relative_error),
        )
    return good


# ---- plots ----


def _largest(matrices: Iterable[np.ndarray]) -> float:
    """The largest magnitude among their finite entries; 1 if there is none or all are zero."""
    known = [np.abs(matrix[np.isfinite(matrix)]) for matrix in matrices]
    return max((float(m.max()) for m in known if m.size), default=1.0) or 1.0


def _pyplot() -> tuple:
    """colors and pyplot of matplotlib."""
    try:
        from matplotlib import colors, pyplot
    except ImportError as error:
        message = f"jacobian_plot(): matplotlib is needed: {error}. help: pip install matplotlib"
        raise _weft.usage_error(message, ImportError) from error
    return colors, pyplot


def jacobian_plot(
    jacobians: dict[tuple[int, int], array],
    kernel: Kernel | Callable,
    inputs: Sequence[Any] | None = None,
    show_plot: bool = True,
    show_colorbar: bool = True,
    scale_colors_per_submatrix: bool = False,
    title: str | None = None,
    colormap: str = "coolwarm",
    log_scale: bool = False,
    filename: str | None = None,
) -> Any:
    """Draws Jacobians side by side: outputs from top to bottom, inputs from left to right. Needs matplotlib.

    Args:
        jacobians: the result of :func:`jacobian` or :func:`jacobian_fd`.
        kernel: the kernel or function, whose parameters give the names.
        inputs: the arguments before the outputs; their number is the position of the first output's name.
        show_plot: open a window, unless a filename is given.
        show_colorbar: draw the scale of the colours beside the matrices.
        scale_colors_per_submatrix: each matrix has colours from its own smallest to its own largest entry.
        title: over the plot; else the name of the kernel.
        colormap: one of matplotlib's.
        log_scale: colours by the logarithm of magnitudes, with sign.
        filename: the picture's file (``.png``, ``.pdf`` or another type that matplotlib knows).
    Returns:
        The ``matplotlib.figure.Figure``.
    Raises:
        UsageError: there is nothing to draw, or matplotlib is not installed.
    """
    if not jacobians:
        raise _weft.usage_error("jacobian_plot(): 'jacobians' is empty", ValueError)
    colors, pyplot = _pyplot()
    matrices = {pair: np.asarray(j.numpy() if isinstance(j, array) else j) for pair, j in jacobians.items()}
    columns, rows = [sorted({pair[side] for pair in matrices}) for side in (0, 1)]
    names = parameters(kernel.func if isinstance(kernel, Kernel) else kernel)
    split = len(inputs) if inputs is not None else max(columns) + 1
    largest = _largest(matrices.values())

    figure, axes = pyplot.subplots(
        len(rows),
        len(columns),
        squeeze=False,
        layout="constrained",
        gridspec_kw={
            "width_ratios": [max(m.shape[1] for (i, _), m in matrices.items() if i == c) for c in columns],
            "height_ratios": [max(m.shape[0] for (_, o), m in matrices.items() if o == r) for r in rows],
        },
    )
    drawn = None
    for row, o in enumerate(rows):
        for column, i in enumerate(columns):
            axis = axes[row, column]
            axis.set(xticks=[], yticks=[])
            if row == len(rows) - 1:
                axis.set_xlabel(names[i] if i < len(names) else f"input {i}")
            if column == 0:
                is_named = isinstance(kernel, Kernel) and split + o < len(names)
                axis.set_ylabel(names[split + o] if is_named else f"output {o}")
            if (i, o) not in matrices:
                axis.set_facecolor("lightgray")
                continue
            matrix = matrices[i, o]
            most = _largest([matrix]) if scale_colors_per_submatrix else largest
            norm = (
                colors.SymLogNorm(linthresh=most * 1e-6, vmin=-most, vmax=most)
                if log_scale
                else colors.Normalize(-most, most)
            )
            drawn = axis.imshow(matrix, cmap=colormap, norm=norm, aspect="auto", interpolation="nearest")
            if show_colorbar and scale_colors_per_submatrix:
                figure.colorbar(drawn, ax=axis)
    if show_colorbar and not scale_colors_per_submatrix:
        figure.colorbar(drawn, ax=axes)
    figure.suptitle(title or getattr(kernel, "key", None) or getattr(kernel, "__name__", "Jacobian"))
    if filename is not None:
        figure.savefig(filename)
    elif show_plot:
        pyplot.show()
    return figure
