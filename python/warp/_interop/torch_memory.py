"""Where a tensor of PyTorch has the address of its memory, and whether it stands for negated numbers, found out by
experiment (bindings/interop/watched_memory.cpp)."""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Callable
from typing import Any

import numpy as np

from warp._interop.library import import_library

__all__ = ["places_of_memory"]

_WORD = ctypes.sizeof(ctypes.c_uint64)


def _words(address: int, count: int) -> list[int]:
    return list((ctypes.c_uint64 * count).from_address(address))


def _object_words(tensor: Any) -> list[int]:
    return _words(id(tensor), type(tensor).__basicsize__ // _WORD)


def _tensor_words(tensor: Any) -> list[int]:
    return _words(tensor._cdata, 8)  # of some twenty


def _storage_words(tensor: Any) -> list[int]:
    return _words(tensor.untyped_storage()._cdata, 7)


def places_of_memory() -> tuple[int, int, int, int, int, int] | None:
    """Counted in bytes: where the object of a tensor points to the tensor itself, where that points to its storage, and
    where that has the address of its memory and its size; where the tensor says whether it is a negated view, and the
    bit that does.

    None where no word, or more than one, says so, or where one does not follow what is done with a tensor.
    """
    found: list = []
    # Modes of torch (inference, fake tensors, devices) are those of a thread.
    thread = threading.Thread(target=lambda: found.append(_find_places(import_library("torch"))))
    thread.start()
    thread.join()
    return found[0] if found else None


def _find_places(torch: Any) -> tuple[int, int, int, int, int, int] | None:
    memory, negation = _places_of_address(torch), _place_of_negation(torch)
    return None if memory is None or negation is None else (*memory, *negation)


def _place_of_negation(torch: Any) -> tuple[int, int] | None:
    """Where the bit is, and the bit as a number."""
    count = 22  # words, which every tensor has
    complex_ = torch.zeros(3, 2, dtype=torch.complex64)
    plain = [
        *(torch.zeros(3, dtype=dtype) for dtype in (torch.float32, torch.bfloat16, torch.int8, torch.bool)),
        *(torch.zeros(3, 4).T, torch.zeros(4)[1:], torch.zeros(4, requires_grad=True), complex_.real, complex_.conj()),
        *(
            torch.nn.Parameter(torch.zeros(2)),
            torch.zeros(0),
            torch.tensor(1.0),
            torch.zeros(4, requires_grad=True) * 2,
        ),
    ]
    negated = [
        *(complex_.conj().imag, complex_.conj().imag[0], complex_.conj().imag.T, complex_.conj().imag.detach()),
        *(torch.zeros(3)._neg_view(), torch.zeros(3, requires_grad=True)._neg_view(), torch.zeros(0)._neg_view()),
    ]
    if any(one.is_neg() for one in plain) or not all(one.is_neg() for one in negated):
        return None
    found = []
    for i in range(count):
        always = never = (1 << 64) - 1
        for one in negated:
            always &= _words(one._cdata, count)[i]
        for one in plain:
            never &= ~_words(one._cdata, count)[i]
        found += [(i * _WORD, 1 << bit) for bit in range(64) if always & never & (1 << bit)]
    return found[0] if len(found) == 1 else None


def _places_of_address(torch: Any) -> tuple[int, int, int, int] | None:
    # Of borrowed memory the address stands in one place only; of a size that is no other number of the tensor's.
    tensor = torch.from_numpy(np.zeros(1237))
    # What says it, the words to look at, and what they have to say.
    questions: tuple[tuple[Callable, Callable], ...] = (
        (_object_words, lambda tensor: tensor._cdata),
        (_tensor_words, lambda tensor: tensor.untyped_storage()._cdata),
        (_storage_words, lambda tensor: tensor.untyped_storage().data_ptr()),
        (_storage_words, lambda tensor: tensor.untyped_storage().nbytes()),
    )
    places = []
    for words, answer in questions:
        found = [i for i, word in enumerate(words(tensor)) if word == answer(tensor)]
        if len(found) != 1:
            return None
        places += found
    own, other = torch.zeros(3), torch.zeros(4)
    for change in (
        lambda: own.resize_(5000),
        lambda: own.untyped_storage().resize_(0),
        lambda: own.untyped_storage().resize_(64),
        lambda: own.set_(torch.ones(7)),
        lambda: setattr(own, "data", torch.ones(5)),
        lambda: torch.utils.swap_tensors(own, other),
    ):
        change()
        for place, (words, answer) in zip(places, questions, strict=True):
            if words(own)[place] != answer(own):
                return None
    return tuple(place * _WORD for place in places)
