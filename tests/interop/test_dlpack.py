"""DLPack in both directions, with capsules, objects and the C exchange API of classes."""

from __future__ import annotations

import ctypes
import gc
import weakref

import numpy as np
import pytest
import warp as wp

pytestmark = pytest.mark.cpu_only("other frameworks are built for the CPU here; their GPUs come later")

SCALARS = "bool int8 uint8 int16 uint16 int32 uint32 int64 uint64 float16 float32 float64 bfloat16".split()


def capsule_name(capsule) -> str:
    get = ctypes.pythonapi.PyCapsule_GetName
    get.restype, get.argtypes = ctypes.c_char_p, [ctypes.py_object]
    return get(capsule).decode()


@pytest.mark.seed("S-DLP-003", "S-DLP-001", "S-DLP-011")
@pytest.mark.parametrize("shape", [(5,), (2, 3), (2, 1, 3, 2), (0,), (3, 0)])
def test_every_framework_takes_our_arrays_in_place(shape):
    import jax
    import paddle
    import torch

    a = wp.array(np.random.default_rng(0).normal(size=shape).astype(np.float32))
    for taken in (torch.utils.dlpack.from_dlpack(a), torch.from_dlpack(a), np.from_dlpack(a)):
        np.testing.assert_array_equal(np.asarray(taken), a.numpy())
        if a.size:
            taken[(0,) * len(shape)] = 7.0
            assert a.numpy()[(0,) * len(shape)] == 7.0
            a[(0,) * len(shape)] = 8.0
            assert float(taken[(0,) * len(shape)]) == 8.0
    if a.size:
        np.testing.assert_array_equal(np.asarray(jax.dlpack.from_dlpack(a)), a.numpy())
        tensor = paddle.utils.dlpack.from_dlpack(a)
        np.testing.assert_array_equal(tensor.numpy(), a.numpy())
        a.fill_(3.0)
        assert (tensor.numpy() == 3.0).all()


@pytest.mark.seed("S-DLP-002", "S-DLP-005", "S-DLP-007", "S-DLP-011", "D-13")
def test_arrays_of_frameworks_and_capsules_are_taken_in_place(library):
    values = np.arange(12, dtype=np.float32).reshape(4, 3)
    x = library.array(values)
    a = wp.from_dlpack(x)
    assert a.shape == (4, 3) and a.dtype is wp.float32
    np.testing.assert_array_equal(a.numpy(), values)
    v = wp.from_dlpack(x, dtype=wp.vec3)
    assert v.shape == (4,) and v.dtype is wp.vec3 and v.ptr == a.ptr
    if library.is_writable:
        v.fill_(wp.vec3(1.0, 2.0, 3.0))
        np.testing.assert_array_equal(library.numbers(x), np.tile([1, 2, 3], (4, 1)))
        b = wp.from_dlpack(x.__dlpack__())
        assert b.ptr == a.ptr
    else:
        with pytest.raises(ValueError, match="read.only"):
            v.fill_(wp.vec3(1.0))


@pytest.mark.seed("S-DLP-004", "S-DLP-002")
def test_capsules_are_used_once():
    import torch

    a = wp.array([1.0, 2.0, 3.0], dtype=float)
    capsule = wp.to_dlpack(a)
    assert capsule_name(capsule) == "dltensor"
    t = torch.utils.dlpack.from_dlpack(capsule)
    a.fill_(4.0)
    assert t.tolist() == [4, 4, 4] and capsule_name(capsule) == "used_dltensor"
    with pytest.raises(TypeError, match=r"from_dlpack\(\): source is .*this capsule was taken .* before"):
        wp.from_dlpack(capsule)
    versioned = a.__dlpack__(max_version=(1, 0))
    assert capsule_name(versioned) == "dltensor_versioned"
    assert wp.from_dlpack(versioned).ptr == a.ptr and capsule_name(versioned) == "used_dltensor_versioned"


@pytest.mark.parametrize("name", SCALARS)
def test_every_scalar_type_goes_both_ways(name):
    import torch

    dtype = getattr(wp, name)
    a = wp.full(3, 1, dtype=dtype)
    assert wp.from_dlpack(wp.to_dlpack(a)).dtype is dtype
    t = torch.from_dlpack(a)
    assert str(t.dtype) == f"torch.{name}"
    back = wp.from_dlpack(t)
    assert back.dtype is dtype and back.ptr == a.ptr and [float(x) for x in back.list()] == [1, 1, 1]


@pytest.mark.seed("S-DLP-011")
def test_strides_are_carried_in_both_directions():
    import torch

    a = wp.array(np.arange(24, dtype=np.int32).reshape(4, 6))
    for view in (a[1:, ::2], a.transpose(), a[::2], a[:, 3]):
        t = torch.from_dlpack(view)
        np.testing.assert_array_equal(t.numpy(), view.numpy())
        again = wp.from_dlpack(t)
        assert again.strides == view.strides and again.ptr == view.ptr
    backwards = wp.from_dlpack(np.arange(5.0)[::-1])
    assert backwards.strides == (-8,) and backwards.list() == [4, 3, 2, 1, 0]
    m = wp.zeros((2, 3), dtype=wp.mat22d)
    assert torch.from_dlpack(m).shape == (2, 3, 2, 2) and torch.from_dlpack(m[:, 1]).stride() == (12, 2, 1)


@pytest.mark.seed("S-DLP-009")
def test_what_has_no_form_is_an_error():
    import torch

    @wp.struct
    class Pair:
        a: int
        b: float

    with pytest.raises(TypeError, match="an array of Pair has no form that other libraries know"):
        wp.to_dlpack(wp.zeros(2, dtype=Pair))
    with pytest.raises(TypeError, match="its numbers are complex64"):
        wp.from_dlpack(torch.zeros(2, dtype=torch.complex64))
    with pytest.raises(
        TypeError, match="source is list of length 2, expected a DLPack capsule or an object with __dlpack__"
    ):
        wp.from_dlpack([1, 2])
    with pytest.raises(TypeError, match="expected a DLPack capsule"):
        wp.from_dlpack(ctypes.pythonapi.PyCapsule_New)
    with pytest.raises(RuntimeError, match="its numbers are float32, and dtype is float64"):
        wp.from_dlpack(torch.zeros(2), dtype=wp.float64)
    with pytest.raises(RuntimeError, match=r"inner dimensions must be \(3,\)"):
        wp.from_dlpack(torch.zeros(2, 2), dtype=wp.vec3)
    with pytest.raises(RuntimeError, match="do not lie side by side"):
        wp.from_dlpack(torch.zeros(3, 4).T, dtype=wp.vec3)
    with pytest.raises(RuntimeError, match="it has 5 dimensions, expected at most 4"):
        wp.from_dlpack(torch.zeros(1, 1, 1, 1, 1))


def test_one_number_is_an_array_of_one():
    import torch

    assert wp.from_dlpack(torch.tensor(2.5)).list() == [2.5]
    assert wp.from_dlpack(torch.tensor([1.0, 2.0, 3.0]), dtype=wp.vec3).shape == (1,)
    assert wp.from_dlpack(torch.ones(2, 2), dtype=wp.mat22).list() == [wp.mat22(1.0, 1.0, 1.0, 1.0)]


@pytest.mark.seed("S-DLP-001", "S-DLP-010")
def test_the_arguments_of_the_protocol():
    a = wp.ones(3)
    assert a.__dlpack_device__() == (1, 0)
    assert capsule_name(a.__dlpack__(stream=None)) == capsule_name(a.__dlpack__(stream=-1)) == "dltensor"
    copy = wp.from_dlpack(a.__dlpack__(copy=True, max_version=(1, 1), dl_device=(1, 0)))
    assert copy.ptr != a.ptr and copy.list() == [1, 1, 1]
    for options, message in (
        ({"stream": 5}, "the CPU has no streams"),
        ({"dl_device": (2, 0)}, "asks for another device"),
    ):
        with pytest.raises(BufferError, match=message):
            a.__dlpack__(**options)
    with pytest.raises(TypeError, match="max_version is str, expected a tuple of two ints"):
        a.__dlpack__(max_version="1.0")


@pytest.mark.seed("S-DLP-011")
def test_read_only_memory_says_so():
    frozen = np.ones(3, np.float32)
    frozen.flags.writeable = False
    a = wp.from_dlpack(frozen)
    assert not a.numpy().flags.writeable and not np.from_dlpack(a).flags.writeable
    with pytest.raises(BufferError, match="read-only"):
        a.__dlpack__()
    with pytest.raises(ValueError, match="read.only"):
        wp.to_dlpack(a)
    assert wp.from_dlpack(a.__dlpack__(copy=True)).fill_(2.0).list() == [2, 2, 2]


@pytest.mark.seed("S-DLP-011")
def test_each_side_keeps_the_other_alive():
    import torch

    a = wp.array([1.0, 2.0], dtype=float)
    t, address = torch.from_dlpack(a), a.ptr
    del a
    gc.collect()
    assert t.data_ptr() == address and t.tolist() == [1, 2]

    t = torch.ones(4)
    held = weakref.ref(t.untyped_storage())
    b = wp.from_dlpack(t)
    part = b[1:]
    del t, b
    gc.collect()
    assert part.list() == [1, 1, 1]
    del held


def test_capsules_that_nobody_takes_free_the_memory():
    numbers = np.ones(1000, np.float32)
    for make in (lambda a: wp.to_dlpack(a), lambda a: a.__dlpack__(max_version=(1, 0))):
        owner = numbers.copy()
        gone = weakref.ref(owner)
        capsule = make(wp.array(owner, copy=False))
        del owner
        gc.collect()
        assert gone() is not None
        del capsule
        gc.collect()
        assert gone() is None


def test_other_devices_are_refused_by_name():
    class Elsewhere:
        def __init__(self, kind):
            self.tensor = wp.ones(2)
            self.kind = kind

        def __dlpack__(self, **options):
            capsule = self.tensor.__dlpack__()
            get = ctypes.pythonapi.PyCapsule_GetPointer
            get.restype, get.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
            ctypes.c_int32.from_address(get(capsule, b"dltensor") + 8).value = self.kind
            return capsule

    for kind, name in (
        (2, "'cuda:0', and there is none here"),
        (8, "Metal:0"),
        (10, "ROCm:0"),
        (99, "unknown kind"),
    ):
        with pytest.raises(RuntimeError, match=f"source is .*Elsewhere: its memory is on .*{name}"):
            wp.from_dlpack(Elsewhere(kind))
    assert wp.from_dlpack(Elsewhere(3)).list() == [1, 1]  # pinned memory is the host's too


def test_our_class_has_the_exchange_api():
    capsule = wp.array.__dlpack_c_exchange_api__
    assert capsule_name(capsule) == "dlpack_exchange_api"
    get = ctypes.pythonapi.PyCapsule_GetPointer
    get.restype, get.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    table = (ctypes.c_void_p * 7).from_address(get(capsule, b"dlpack_exchange_api"))

    def call(row, *types):
        return ctypes.PYFUNCTYPE(ctypes.c_int, *types)(table[row])

    a, managed, made = wp.array([1.0, 2.0], dtype=float), ctypes.c_void_p(), ctypes.c_void_p()
    assert call(3, ctypes.py_object, ctypes.c_void_p)(a, ctypes.addressof(managed)) == 0
    assert call(4, ctypes.c_void_p, ctypes.c_void_p)(managed, ctypes.addressof(made)) == 0
    again = ctypes.cast(made, ctypes.py_object).value
    ctypes.pythonapi.Py_DecRef(ctypes.py_object(again))
    assert isinstance(again, wp.array) and again.ptr == a.ptr and again.list() == [1, 2]


def test_the_structures_are_those_of_dlpack(tmp_path):
    """Sizes and offsets against the header that PyTorch ships."""
    import os
    import subprocess
    from pathlib import Path

    import torch

    header = Path(torch.__file__).parent / "include" / "ATen" / "dlpack.h"
    ours = Path(__file__).parents[2] / "src"
    pairs = {
        "DLTensor": ("Tensor", "data device ndim dtype shape strides byte_offset"),
        "DLManagedTensorVersioned": ("VersionedTensor", "version manager_ctx=context deleter flags dl_tensor=tensor"),
        "DLManagedTensor": ("ManagedTensor", "dl_tensor=tensor manager_ctx=context deleter"),
        "DLPackExchangeAPI": (
            "ExchangeApi",
            "header managed_tensor_allocator=allocate managed_tensor_from_py_object_no_sync=from_object"
            " managed_tensor_to_py_object_no_sync=to_object dltensor_from_py_object_no_sync=view_of_object"
            " current_work_stream=current_stream",
        ),
    }
    checks = []
    for theirs, (name, fields) in pairs.items():
        checks.append(f"static_assert(sizeof({theirs}) == sizeof(weft::dlpack::{name}));")
        for field in fields.split():
            a, _, b = field.partition("=")
            checks.append(f"static_assert(offsetof({theirs}, {a}) == offsetof(weft::dlpack::{name}, {b or a}));")
    source = tmp_path / "check.cpp"
    source.write_text(
        f'#include <cstddef>\n#include "{header}"\n#include "bindings/foreign/dlpack.h"\n' + "\n".join(checks)
    )
    command = [os.environ.get("CXX", "c++"), "-std=c++20", "-fsyntax-only", f"-I{ours}", str(source)]
    subprocess.run(command, check=True)


def test_tensors_of_torch_come_by_the_c_functions_with_the_checks_of_the_protocol():
    import torch

    t = torch.arange(6.0).reshape(2, 3)
    a = wp.from_dlpack(t, dtype=wp.vec3)
    assert a.ptr == t.data_ptr() and a.shape == (2,)
    assert wp.from_dlpack(t.T).strides == (4, 12)
    with pytest.raises(TypeError, match="require gradient"):
        wp.from_dlpack(t.clone().requires_grad_(True))
    with pytest.raises(TypeError, match="negated"):
        wp.from_dlpack(torch.zeros(3, dtype=torch.complex64).conj().imag)
    with pytest.raises(TypeError, match="complex64"):
        wp.from_dlpack(torch.zeros(3, dtype=torch.complex64))
