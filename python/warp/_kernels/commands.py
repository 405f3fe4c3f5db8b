"""Launch commands (``wp.Launch``): their form in Python, and those of adjoints."""

from __future__ import annotations

import ctypes
import math
from typing import TYPE_CHECKING, Any

from warp._weft import Launch
from warp._weft import usage_error as _usage_error

if TYPE_CHECKING:
    from warp._gradients.adjoint_launch import AdjointLaunch

__all__ = ["AdjointLaunchCommand", "LaunchBounds", "value_of_ctype"]


class LaunchBounds:
    """The grid of a launch: ``shape``, a tuple of extents, and ``size``, their product."""

    __slots__ = ("shape", "size")

    def __init__(self, shape: tuple[int, ...]):
        self.shape = shape
        self.size = math.prod(shape)

    def __repr__(self) -> str:
        return f"LaunchBounds(shape={self.shape}, size={self.size})"


def value_of_ctype(value: Any) -> Any:
    """The number in a ctypes number; anything else as it is: vectors, matrices and arrays need no conversion."""
    return value.value if isinstance(value, ctypes._SimpleCData) else value


class AdjointLaunchCommand(Launch):
    """A launch command of a kernel's adjoint: ``wp.launch(..., adjoint=True, record_cmd=True)``.

    The methods are those of ``wp.Launch``; with ``adjoint=True`` they set the gradient of a parameter.
    """

    def __init__(self, launch: AdjointLaunch):
        super().__init__(launch.kernel, launch.device)
        launch.device = self.device.alias
        self._launch = launch

    def launch(self, stream: Any = None) -> None:
        """Adds to the gradients of the inputs."""
        self._launch.run()

    __call__ = launch

    @property
    def params(self) -> list:
        return [self.bounds, *self._launch.values]

    @property
    def dim(self) -> Any:
        dim = self._launch.dim
        return dim if isinstance(dim, tuple) else (dim,)

    @property
    def bounds(self) -> LaunchBounds:
        return LaunchBounds(self.dim)

    def set_dim(self, dim: Any) -> None:
        """Changes the grid."""
        self._launch.dim = dim

    def set_param_at_index(self, index: int, value: Any, adjoint: bool = False) -> None:
        """Changes one argument, or its gradient, counted from 0."""
        values = self._launch.gradients if adjoint else self._launch.values
        if not -len(values) <= index < len(values):
            message = f"kernel {self.kernel.key!r} has {len(values)} parameters, there is no index {index}"
            raise _usage_error(f"Launch.set_param_at_index(): {message}", IndexError)
        values[index] = value

    def set_param_by_name(self, name: str, value: Any, adjoint: bool = False) -> None:
        """Changes one argument, or its gradient, by its parameter's name."""
        code = self.kernel.func.__code__
        names = code.co_varnames[: code.co_argcount]
        if name not in names:
            message = f"kernel {self.kernel.key!r} has no parameter {name!r}; it has {', '.join(names)}"
            raise _usage_error(f"Launch.set_param_by_name(): {message}", ValueError)
        self.set_param_at_index(names.index(name), value, adjoint)

    def set_params(self, values: Any) -> None:
        """Changes all arguments."""
        values = list(values)
        expected = len(self._launch.values)
        if len(values) != expected:
            message = f"got {len(values)} values, kernel {self.kernel.key!r} takes {expected}"
            raise _usage_error(f"Launch.set_params(): {message}", TypeError)
        self._launch.values = values

    def set_param_at_index_from_ctype(self, index: int, value: Any, adjoint: bool = False) -> None:
        """The same as ``set_param_at_index``, with a number of ctypes."""
        self.set_param_at_index(index, value_of_ctype(value), adjoint)

    def set_param_by_name_from_ctype(self, name: str, value: Any, adjoint: bool = False) -> None:
        """The same as ``set_param_by_name``, with a number of ctypes."""
        self.set_param_by_name(name, value_of_ctype(value), adjoint)

    def set_params_from_ctypes(self, values: Any) -> None:
        """The same as ``set_params``, with numbers of ctypes."""
        self.set_params([value_of_ctype(value) for value in values])
