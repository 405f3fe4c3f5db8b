"""The functions of PyTorch and Paddle that have the same names, by the name of the module."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import warp._weft as _weft
from warp._interop.library import import_library
from warp._weft import usage_error

__all__ = ["Framework"]


@dataclass(frozen=True)
class Framework:
    """The methods import the framework when they are called. C++ calls the first three (bindings/interop/tensors)."""

    name: str
    """Of its module, as in the names of Weft's functions for it."""
    dtype: str
    """What its dtypes are called in errors."""

    def tensor_type(self) -> type:
        return import_library(self.name).Tensor

    def is_grad_enabled(self) -> bool:
        return import_library(self.name).is_grad_enabled()

    def from_capsule(self, capsule: Any) -> Any:
        """For releases without the C exchange API."""
        return import_library(self.name).utils.dlpack.from_dlpack(capsule)

    def scalar_type(self, dtype: Any) -> type:
        """Weft's type for a dtype of the framework."""
        if isinstance(dtype, import_library(self.name).dtype):
            name = str(dtype).removeprefix(f"{self.name}.")
            found = next((t for t in _weft.scalar_types() if t.__name__ == name), None)
            if found is not None:
                return found
        raise usage_error(
            f"dtype_from_{self.name}(): Weft has no type for {dtype!r}, expected a {self.dtype}: bool, integers or "
            "floats of 8 to 64 bits",
            TypeError,
        )

    def dtype_of(self, scalar: Any) -> Any:
        """The framework's dtype for a type of Weft."""
        return getattr(import_library(self.name), _weft.tensor_scalar(scalar, f"dtype_to_{self.name}()"))
