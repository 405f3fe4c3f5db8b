# Made by tools/generate/gen_stubs.py from tools/generate/stub_head.pyi, the builtin table and the names of the module.
# mypy: disable-error-code="overload-overlap, override, misc, no-redef"
import builtins
import typing
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Generic, Literal, TypeVar

import numpy
from typing_extensions import Self, dataclass_transform

_T = TypeVar("_T")
_U = TypeVar("_U")
_D = TypeVar("_D")
_N = TypeVar("_N")
_R = TypeVar("_R")
_C = TypeVar("_C")
_Element = TypeVar("_Element")
_Function = TypeVar("_Function", bound=Callable[..., Any])
_Number = TypeVar("_Number")
_Float = builtins.float
_Int = builtins.int
_Shape = builtins.int | Sequence[builtins.int]
_A = TypeVar("_A", bound="_ArrayBase")

class _Value:
    """A value of a kernel: vector, matrix, quaternion or transform."""

    def __init__(self, *args: Any, **kwargs: Any) -> None: ...
    @classmethod
    def from_ptr(cls, ptr: _Int) -> Self: ...
    @classmethod
    def from_buffer(cls, source: Any, offset: _Int = 0) -> Self: ...
    @classmethod
    def from_buffer_copy(cls, source: Any, offset: _Int = 0) -> Self: ...

class _Floating(builtins.float):
    """A float; Python's floats stand for the ones of 32 bits."""

    def __new__(cls, value: Any = ...) -> Self: ...
    @property
    def value(self) -> _Float: ...
    def __add__(self, other: _Float, /) -> Self: ...
    def __radd__(self, other: _Float, /) -> Self: ...
    def __sub__(self, other: _Float, /) -> Self: ...
    def __rsub__(self, other: _Float, /) -> Self: ...
    def __mul__(self, other: _Float, /) -> Self: ...
    def __rmul__(self, other: _Float, /) -> Self: ...
    def __truediv__(self, other: _Float, /) -> Self: ...
    def __rtruediv__(self, other: _Float, /) -> Self: ...
    def __floordiv__(self, other: _Float, /) -> Self: ...
    def __rfloordiv__(self, other: _Float, /) -> Self: ...
    def __mod__(self, other: _Float, /) -> Self: ...
    def __rmod__(self, other: _Float, /) -> Self: ...
    def __pow__(self, other: _Float, modulo: None = None, /) -> Self: ...
    def __rpow__(self, other: _Float, modulo: None = None, /) -> Self: ...
    def __neg__(self) -> Self: ...
    def __pos__(self) -> Self: ...
    def __abs__(self) -> Self: ...

class _Integer(builtins.int):
    """An integer; Python's stand for the ones of 32 bits."""

    def __new__(cls, value: Any = ...) -> Self: ...
    @property
    def value(self) -> _Int: ...
    def __add__(self, other: _Int, /) -> Self: ...
    def __radd__(self, other: _Int, /) -> Self: ...
    def __sub__(self, other: _Int, /) -> Self: ...
    def __rsub__(self, other: _Int, /) -> Self: ...
    def __mul__(self, other: _Int, /) -> Self: ...
    def __rmul__(self, other: _Int, /) -> Self: ...
    def __truediv__(self, other: _Int, /) -> Self: ...
    def __rtruediv__(self, other: _Int, /) -> Self: ...
    def __floordiv__(self, other: _Int, /) -> Self: ...
    def __rfloordiv__(self, other: _Int, /) -> Self: ...
    def __mod__(self, other: _Int, /) -> Self: ...
    def __rmod__(self, other: _Int, /) -> Self: ...
    def __pow__(self, other: _Int, modulo: None = None, /) -> Self: ...
    def __rpow__(self, other: _Int, modulo: None = None, /) -> Self: ...
    def __lshift__(self, other: _Int, /) -> Self: ...
    def __rlshift__(self, other: _Int, /) -> Self: ...
    def __rshift__(self, other: _Int, /) -> Self: ...
    def __rrshift__(self, other: _Int, /) -> Self: ...
    def __and__(self, other: _Int, /) -> Self: ...
    def __rand__(self, other: _Int, /) -> Self: ...
    def __or__(self, other: _Int, /) -> Self: ...
    def __ror__(self, other: _Int, /) -> Self: ...
    def __xor__(self, other: _Int, /) -> Self: ...
    def __rxor__(self, other: _Int, /) -> Self: ...
    def __neg__(self) -> Self: ...
    def __pos__(self) -> Self: ...
    def __abs__(self) -> Self: ...
    def __invert__(self) -> Self: ...

class _Results:
    """What kernels compute with by default. Python's float and int stand for these, also by the names wp.float32 and
    wp.int32, so that no program has to convert its literals; results have these types."""

    class float32(_Floating): ...
    class int32(_Integer): ...
    class uint64(_Integer): ...

class _Aggregate(_Value, Generic[_Number]):
    dtype: Any
    shape: tuple[_Int, ...]
    _length_: _Int
    _shape_: tuple[_Int, ...]
    _type_: Any
    _wp_scalar_type_: Any

    def __len__(self) -> _Int: ...
    def __add__(self, other: Self, /) -> Self: ...
    def __sub__(self, other: Self, /) -> Self: ...
    def __neg__(self) -> Self: ...
    def __pos__(self) -> Self: ...
    def __abs__(self) -> Self: ...
    def __invert__(self) -> Self: ...
    def __truediv__(self, other: _Float | _Number, /) -> Self: ...
    def __rtruediv__(self, other: _Float | _Number, /) -> Self: ...
    def __floordiv__(self, other: Any, /) -> Self: ...
    def __rfloordiv__(self, other: Any, /) -> Self: ...
    def __mod__(self, other: Any, /) -> Self: ...
    def __rmod__(self, other: Any, /) -> Self: ...
    def __rmul__(self, other: _Float | _Number, /) -> Self: ...
    def __lshift__(self, other: Any, /) -> Self: ...
    def __rshift__(self, other: Any, /) -> Self: ...
    def __and__(self, other: Any, /) -> Self: ...
    def __or__(self, other: Any, /) -> Self: ...
    def __xor__(self, other: Any, /) -> Self: ...

class _Row(_Aggregate[_Number]):
    length: _Int
    @property
    def x(self) -> _Number: ...
    @x.setter
    def x(self, value: Any, /) -> None: ...
    @property
    def y(self) -> _Number: ...
    @y.setter
    def y(self, value: Any, /) -> None: ...
    @property
    def z(self) -> _Number: ...
    @z.setter
    def z(self, value: Any, /) -> None: ...
    @property
    def w(self) -> _Number: ...
    @w.setter
    def w(self, value: Any, /) -> None: ...
    def __iter__(self) -> Iterator[_Number]: ...
    @typing.overload
    def __getitem__(self, index: _Int, /) -> _Number: ...
    @typing.overload
    def __getitem__(self, index: Any, /) -> Any: ...
    def __setitem__(self, index: Any, value: Any, /) -> None: ...
    def __delitem__(self, index: Any, /) -> None: ...

class _Vector(_Row[_Number], Generic[_N, _Number]):
    """A vector of _N components."""

    @typing.overload
    def __mul__(self, other: _Matrix[_N, _C, _Number], /) -> _Vector[_C, _Number]: ...
    @typing.overload
    def __mul__(self, other: _Float | _Number, /) -> Self: ...
    def __matmul__(self, other: _Matrix[_N, _C, _Number], /) -> _Vector[_C, _Number]: ...

class _Matrix(_Aggregate[_Number], Generic[_R, _C, _Number]):
    """A matrix of _R rows and _C columns."""

    @typing.overload
    def __mul__(self, other: _Vector[_C, _Number], /) -> _Vector[_R, _Number]: ...
    @typing.overload
    def __mul__(self, other: _Matrix[_C, _N, _Number], /) -> _Matrix[_R, _N, _Number]: ...
    @typing.overload
    def __mul__(self, other: _Float | _Number, /) -> Self: ...
    @typing.overload
    def __matmul__(self, other: _Vector[_C, _Number], /) -> _Vector[_R, _Number]: ...
    @typing.overload
    def __matmul__(self, other: _Matrix[_C, _N, _Number], /) -> _Matrix[_R, _N, _Number]: ...
    def __iter__(self) -> Iterator[_Vector[_C, _Number]]: ...
    @typing.overload
    def __getitem__(self, index: tuple[_Int, _Int], /) -> _Number: ...
    @typing.overload
    def __getitem__(self, index: _Int, /) -> _Vector[_C, _Number]: ...
    @typing.overload
    def __getitem__(self, index: Any, /) -> Any: ...
    def __setitem__(self, index: Any, value: Any, /) -> None: ...
    def __delitem__(self, index: Any, /) -> None: ...
    def get_row(self, index: _Int) -> _Vector[_C, _Number]: ...
    def get_col(self, index: _Int) -> _Vector[_R, _Number]: ...
    def set_row(self, index: _Int, value: Any) -> None: ...
    def set_col(self, index: _Int, value: Any) -> None: ...

class _Quaternion(_Row[_Number]):
    """A quaternion: x, y, z and w, which is the real part."""

    @typing.overload
    def __mul__(self, other: _Quaternion[_Number], /) -> Self: ...
    @typing.overload
    def __mul__(self, other: _Float | _Number, /) -> Self: ...

class _Transformation(_Aggregate[_Number]):
    """A rotation q and, after it, a translation p."""

    length: _Int
    @property
    def p(self) -> _Vector[Literal[3], _Number]: ...
    @p.setter
    def p(self, value: Any, /) -> None: ...
    @property
    def q(self) -> _Quaternion[_Number]: ...
    @q.setter
    def q(self, value: Any, /) -> None: ...
    @typing.overload
    def __mul__(self, other: _Transformation[_Number], /) -> Self: ...
    @typing.overload
    def __mul__(self, other: _Float | _Number, /) -> Self: ...
    def __iter__(self) -> Iterator[_Number]: ...
    @typing.overload
    def __getitem__(self, index: _Int, /) -> _Number: ...
    @typing.overload
    def __getitem__(self, index: Any, /) -> Any: ...
    def __setitem__(self, index: Any, value: Any, /) -> None: ...
    def __delitem__(self, index: Any, /) -> None: ...

# ---- arrays ----

class _ArrayBase:
    dtype: Any
    ndim: _Int
    shape: Any
    strides: Any
    size: _Int
    length: _Int
    capacity: _Int
    ptr: Any
    device: Any
    memory_kind: Any
    pinned: builtins.bool
    is_contiguous: builtins.bool
    requires_grad: builtins.bool
    retain_grad: builtins.bool
    grad: Any
    vars: Any
    def __getattr__(self, name: str, /) -> Any: ...
    def __setattr__(self, name: str, value: Any, /) -> None: ...
    def __len__(self) -> _Int: ...
    def __bool__(self) -> builtins.bool: ...
    def __int__(self) -> _Int: ...
    def __float__(self) -> _Float: ...
    def __iter__(self) -> Iterator[Any]: ...
    def __setitem__(self, index: Any, value: Any, /) -> None: ...
    def __delitem__(self, index: Any, /) -> None: ...
    def __array__(self, dtype: Any = None, copy: builtins.bool | None = None) -> numpy.ndarray: ...
    def __dlpack__(
        self, *, stream: Any = None, max_version: Any = None, dl_device: Any = None, copy: Any = None
    ) -> Any: ...
    def __dlpack_device__(self) -> tuple[_Int, _Int]: ...
    def numpy(self) -> numpy.ndarray: ...
    def list(self) -> builtins.list[Any]: ...
    def fill_(self, value: Any) -> Self: ...
    def zero_(self) -> Self: ...
    def assign(self, src: Any) -> Self: ...
    def astype(self, dtype: builtins.type[_D]) -> array[_D]: ...
    def view(self, dtype: builtins.type[_D]) -> array[_D]: ...
    def to(self, device: Any, requires_grad: builtins.bool | None = None) -> Self: ...
    def contiguous(self) -> Self: ...
    def __neg__(self) -> Self: ...
    def __pos__(self) -> Self: ...
    def __invert__(self) -> Self: ...

class _Array(_ArrayBase, Generic[_Element]):
    @typing.overload
    def __init__(
        self,
        data: Any,
        dtype: builtins.type[_Element],
        shape: Any = None,
        strides: Any = None,
        length: _Int | None = None,
        ptr: _Int | None = None,
        capacity: _Int | None = None,
        device: Any = None,
        pinned: builtins.bool = False,
        copy: builtins.bool = True,
        owner: builtins.bool = True,
        ndim: _Int | None = None,
        grad: Any = None,
        requires_grad: builtins.bool = False,
        deleter: Any = None,
        retain_grad: builtins.bool = False,
    ) -> None: ...
    @typing.overload
    def __init__(
        self,
        data: Any = None,
        *,
        dtype: builtins.type[_Element],
        shape: Any = None,
        strides: Any = None,
        length: _Int | None = None,
        ptr: _Int | None = None,
        capacity: _Int | None = None,
        device: Any = None,
        pinned: builtins.bool = False,
        copy: builtins.bool = True,
        owner: builtins.bool = True,
        ndim: _Int | None = None,
        grad: Any = None,
        requires_grad: builtins.bool = False,
        deleter: Any = None,
        retain_grad: builtins.bool = False,
    ) -> None: ...
    @typing.overload
    def __init__(
        self: _Array[Any],
        data: Any = None,
        dtype: None = None,
        shape: Any = None,
        strides: Any = None,
        length: _Int | None = None,
        ptr: _Int | None = None,
        capacity: _Int | None = None,
        device: Any = None,
        pinned: builtins.bool = False,
        copy: builtins.bool = True,
        owner: builtins.bool = True,
        ndim: _Int | None = None,
        grad: Any = None,
        requires_grad: builtins.bool = False,
        deleter: Any = None,
        retain_grad: builtins.bool = False,
    ) -> None: ...
    @property
    def T(self) -> array[_Element]: ...
    def flatten(self) -> array[_Element]: ...
    def reshape(self, *shape: Any) -> array[_Element]: ...
    def transpose(self, axes: Any = None) -> array[_Element]: ...

# All indices of an array give an element, fewer a view. An array that wp.zeros() has made may have any number of
# dimensions, so that its class is one of all.
class _Array2d(_Array3d[_Element]):
    @typing.overload
    def __getitem__(self, index: tuple[_Int, _Int], /) -> _Element: ...
    @typing.overload
    def __getitem__(self, index: Any, /) -> Any: ...

class _Array3d(_Array4d[_Element]):
    @typing.overload
    def __getitem__(self, index: tuple[_Int, _Int, _Int], /) -> _Element: ...
    @typing.overload
    def __getitem__(self, index: Any, /) -> Any: ...

class _Array4d(_Array[_Element]):
    @typing.overload
    def __getitem__(self, index: tuple[_Int, _Int, _Int, _Int], /) -> _Element: ...
    @typing.overload
    def __getitem__(self, index: Any, /) -> Any: ...

class array(_Array2d[_Element]):
    @typing.overload
    def __getitem__(self, index: _Int, /) -> _Element: ...
    @typing.overload
    def __getitem__(self, index: tuple[_Int, ...], /) -> _Element: ...
    @typing.overload
    def __getitem__(self, index: Any, /) -> Any: ...

array1d = array
array2d = _Array2d
array3d = _Array3d
array4d = _Array4d

class indexedarray(array[_Element]):
    def __init__(self, data: Any = None, indices: Any = None, dtype: Any = None, ndim: _Int | None = None) -> None: ...

# ---- functions whose results say what is in them ----

@typing.overload
def empty(
    shape: _Shape | None,
    dtype: builtins.type[_D],
    device: Any = None,
    requires_grad: builtins.bool = False,
    pinned: builtins.bool = False,
    retain_grad: builtins.bool = False,
    *,
    n: _Int | None = None,
    length: _Int | None = None,
    strides: Any = None,
    ndim: _Int | None = None,
) -> array[_D]: ...
@typing.overload
def empty(
    shape: _Shape | None = None,
    *,
    dtype: builtins.type[_D],
    device: Any = None,
    requires_grad: builtins.bool = False,
    pinned: builtins.bool = False,
    retain_grad: builtins.bool = False,
    n: _Int | None = None,
    length: _Int | None = None,
    strides: Any = None,
    ndim: _Int | None = None,
) -> array[_D]: ...
@typing.overload
def empty(
    shape: _Shape | None = None,
    dtype: None = None,
    device: Any = None,
    requires_grad: builtins.bool = False,
    pinned: builtins.bool = False,
    retain_grad: builtins.bool = False,
    *,
    n: _Int | None = None,
    length: _Int | None = None,
    strides: Any = None,
    ndim: _Int | None = None,
) -> array[_Float]: ...
@typing.overload
def zeros(
    shape: _Shape | None,
    dtype: builtins.type[_D],
    device: Any = None,
    requires_grad: builtins.bool = False,
    pinned: builtins.bool = False,
    retain_grad: builtins.bool = False,
    *,
    n: _Int | None = None,
    length: _Int | None = None,
    strides: Any = None,
    ndim: _Int | None = None,
) -> array[_D]: ...
@typing.overload
def zeros(
    shape: _Shape | None = None,
    *,
    dtype: builtins.type[_D],
    device: Any = None,
    requires_grad: builtins.bool = False,
    pinned: builtins.bool = False,
    retain_grad: builtins.bool = False,
    n: _Int | None = None,
    length: _Int | None = None,
    strides: Any = None,
    ndim: _Int | None = None,
) -> array[_D]: ...
@typing.overload
def zeros(
    shape: _Shape | None = None,
    dtype: None = None,
    device: Any = None,
    requires_grad: builtins.bool = False,
    pinned: builtins.bool = False,
    retain_grad: builtins.bool = False,
    *,
    n: _Int | None = None,
    length: _Int | None = None,
    strides: Any = None,
    ndim: _Int | None = None,
) -> array[_Float]: ...
@typing.overload
def ones(
    shape: _Shape | None,
    dtype: builtins.type[_D],
    device: Any = None,
    requires_grad: builtins.bool = False,
    pinned: builtins.bool = False,
    retain_grad: builtins.bool = False,
    *,
    n: _Int | None = None,
    length: _Int | None = None,
    strides: Any = None,
    ndim: _Int | None = None,
) -> array[_D]: ...
@typing.overload
def ones(
    shape: _Shape | None = None,
    *,
    dtype: builtins.type[_D],
    device: Any = None,
    requires_grad: builtins.bool = False,
    pinned: builtins.bool = False,
    retain_grad: builtins.bool = False,
    n: _Int | None = None,
    length: _Int | None = None,
    strides: Any = None,
    ndim: _Int | None = None,
) -> array[_D]: ...
@typing.overload
def ones(
    shape: _Shape | None = None,
    dtype: None = None,
    device: Any = None,
    requires_grad: builtins.bool = False,
    pinned: builtins.bool = False,
    retain_grad: builtins.bool = False,
    *,
    n: _Int | None = None,
    length: _Int | None = None,
    strides: Any = None,
    ndim: _Int | None = None,
) -> array[_Float]: ...
@typing.overload
def full(
    shape: _Shape | None,
    value: Any,
    dtype: builtins.type[_D],
    device: Any = None,
    requires_grad: builtins.bool = False,
    pinned: builtins.bool = False,
    retain_grad: builtins.bool = False,
    *,
    n: _Int | None = None,
    length: _Int | None = None,
    strides: Any = None,
    ndim: _Int | None = None,
) -> array[_D]: ...
@typing.overload
def full(
    shape: _Shape | None = None,
    value: Any = 0,
    *,
    dtype: builtins.type[_D],
    device: Any = None,
    requires_grad: builtins.bool = False,
    pinned: builtins.bool = False,
    retain_grad: builtins.bool = False,
    n: _Int | None = None,
    length: _Int | None = None,
    strides: Any = None,
    ndim: _Int | None = None,
) -> array[_D]: ...
@typing.overload
def full(
    shape: _Shape | None,
    value: _T,
    dtype: None = None,
    device: Any = None,
    requires_grad: builtins.bool = False,
    pinned: builtins.bool = False,
    retain_grad: builtins.bool = False,
    *,
    n: _Int | None = None,
    length: _Int | None = None,
    strides: Any = None,
    ndim: _Int | None = None,
) -> array[_T]: ...
@typing.overload
def empty_like(
    src: _A,
    device: Any = None,
    requires_grad: builtins.bool | None = None,
    pinned: builtins.bool | None = None,
    retain_grad: builtins.bool = False,
) -> _A: ...
@typing.overload
def empty_like(
    src: Any,
    device: Any = None,
    requires_grad: builtins.bool | None = None,
    pinned: builtins.bool | None = None,
    retain_grad: builtins.bool = False,
) -> array[Any]: ...
@typing.overload
def zeros_like(
    src: _A,
    device: Any = None,
    requires_grad: builtins.bool | None = None,
    pinned: builtins.bool | None = None,
    retain_grad: builtins.bool = False,
) -> _A: ...
@typing.overload
def zeros_like(
    src: Any,
    device: Any = None,
    requires_grad: builtins.bool | None = None,
    pinned: builtins.bool | None = None,
    retain_grad: builtins.bool = False,
) -> array[Any]: ...
@typing.overload
def ones_like(
    src: _A,
    device: Any = None,
    requires_grad: builtins.bool | None = None,
    pinned: builtins.bool | None = None,
    retain_grad: builtins.bool = False,
) -> _A: ...
@typing.overload
def ones_like(
    src: Any,
    device: Any = None,
    requires_grad: builtins.bool | None = None,
    pinned: builtins.bool | None = None,
    retain_grad: builtins.bool = False,
) -> array[Any]: ...
@typing.overload
def clone(
    src: _A,
    device: Any = None,
    requires_grad: builtins.bool | None = None,
    pinned: builtins.bool | None = None,
    retain_grad: builtins.bool = False,
) -> _A: ...
@typing.overload
def clone(
    src: Any,
    device: Any = None,
    requires_grad: builtins.bool | None = None,
    pinned: builtins.bool | None = None,
    retain_grad: builtins.bool = False,
) -> array[Any]: ...
@typing.overload
def full_like(
    src: _A,
    value: Any,
    device: Any = None,
    requires_grad: builtins.bool | None = None,
    pinned: builtins.bool | None = None,
    retain_grad: builtins.bool = False,
) -> _A: ...
@typing.overload
def full_like(
    src: Any,
    value: Any,
    device: Any = None,
    requires_grad: builtins.bool | None = None,
    pinned: builtins.bool | None = None,
    retain_grad: builtins.bool = False,
) -> array[Any]: ...
def copy(
    dest: Any, src: Any, dest_offset: _Int = 0, src_offset: _Int = 0, count: _Int = 0, stream: Any = None
) -> Any: ...
@typing.overload
def from_numpy(
    arr: Any,
    dtype: builtins.type[_D],
    shape: Any = None,
    device: Any = None,
    requires_grad: builtins.bool = False,
    retain_grad: builtins.bool = False,
) -> array[_D]: ...
@typing.overload
def from_numpy(
    arr: Any,
    dtype: None = None,
    shape: Any = None,
    device: Any = None,
    requires_grad: builtins.bool = False,
    retain_grad: builtins.bool = False,
) -> array[Any]: ...
@typing.overload
def from_torch(
    t: Any, dtype: builtins.type[_D], requires_grad: builtins.bool | None = None, grad: Any = None
) -> array[_D]: ...
@typing.overload
def from_torch(
    t: Any,
    dtype: Any = None,
    requires_grad: builtins.bool | None = None,
    grad: Any = None,
    return_ctype: builtins.bool = False,
) -> Any: ...
@typing.overload
def from_paddle(
    t: Any, dtype: builtins.type[_D], requires_grad: builtins.bool | None = None, grad: Any = None
) -> array[_D]: ...
@typing.overload
def from_paddle(
    t: Any,
    dtype: Any = None,
    requires_grad: builtins.bool | None = None,
    grad: Any = None,
    return_ctype: builtins.bool = False,
) -> Any: ...
@typing.overload
def from_jax(jax_array: Any, dtype: builtins.type[_D]) -> array[_D]: ...
@typing.overload
def from_jax(jax_array: Any, dtype: None = None) -> array[Any]: ...
@typing.overload
def from_dlpack(source: Any, dtype: builtins.type[_D], hint: Any = None) -> array[_D]: ...
@typing.overload
def from_dlpack(source: Any, dtype: None = None, hint: Any = None) -> array[Any]: ...
@typing.overload
def launch(
    kernel: Kernel,
    dim: _Shape | None = None,
    inputs: Sequence[Any] = (),
    outputs: Sequence[Any] = (),
    adj_inputs: Sequence[Any] = (),
    adj_outputs: Sequence[Any] = (),
    device: Any = None,
    stream: Any = None,
    adjoint: builtins.bool = False,
    record_tape: builtins.bool = True,
    *,
    record_cmd: Literal[True],
    max_blocks: builtins.float | None = 0,
    block_dim: builtins.float | None = 256,
) -> Launch: ...
@typing.overload
def launch(
    kernel: Kernel,
    dim: _Shape | None = None,
    inputs: Sequence[Any] = (),
    outputs: Sequence[Any] = (),
    adj_inputs: Sequence[Any] = (),
    adj_outputs: Sequence[Any] = (),
    device: Any = None,
    stream: Any = None,
    adjoint: builtins.bool = False,
    record_tape: builtins.bool = True,
    record_cmd: builtins.bool = False,
    max_blocks: builtins.float | None = 0,
    block_dim: builtins.float | None = 256,
) -> None: ...
@typing.overload
def launch_tiled(
    kernel: Kernel,
    *,
    dim: _Shape,
    inputs: Sequence[Any] = (),
    outputs: Sequence[Any] = (),
    adj_inputs: Sequence[Any] = (),
    adj_outputs: Sequence[Any] = (),
    device: Any = None,
    stream: Any = None,
    adjoint: builtins.bool = False,
    record_tape: builtins.bool = True,
    record_cmd: Literal[True],
    max_blocks: builtins.float | None = 0,
    block_dim: builtins.float | None,
) -> Launch: ...
@typing.overload
def launch_tiled(
    kernel: Kernel,
    *,
    dim: _Shape,
    inputs: Sequence[Any] = (),
    outputs: Sequence[Any] = (),
    adj_inputs: Sequence[Any] = (),
    adj_outputs: Sequence[Any] = (),
    device: Any = None,
    stream: Any = None,
    adjoint: builtins.bool = False,
    record_tape: builtins.bool = True,
    record_cmd: builtins.bool = False,
    max_blocks: builtins.float | None = 0,
    block_dim: builtins.float | None,
) -> None: ...
@typing.overload
def kernel(f: Callable[..., Any], /) -> Kernel: ...
@typing.overload
def kernel(
    *,
    name: str | None = None,
    enable_backward: builtins.bool | None = None,
    module: Any = None,
    module_options: dict[str, Any] | None = None,
    launch_bounds: Any = None,
    grid_stride: builtins.bool | None = None,
    cuda_max_registers: _Int | None = None,
    enable_cuda_smem_spilling: builtins.bool | None = None,
    cluster_dim: _Int | None = None,
    entry_point_abi: str | None = None,
    **options: Any,
) -> Callable[[Callable[..., Any]], Kernel]: ...
@typing.overload
def func(f: _Function, /) -> _Function: ...
@typing.overload
def func(
    *, name: str | None = None, module: Any = None, inline: builtins.bool | None = None, **options: Any
) -> Callable[[_Function], _Function]: ...
@typing.overload
@dataclass_transform()
def struct(c: builtins.type[_T], /) -> builtins.type[_T]: ...
@typing.overload
@dataclass_transform()
def struct(*, module: Any = None) -> Callable[[builtins.type[_T]], builtins.type[_T]]: ...
def constant(x: _T) -> _T: ...
