"""Where a tensor of PyTorch has the address of its memory, found out by experiment: for arrays that notice that a
tensor got other memory (bindings/interop/watched_memory.cpp)."""

from __future__ import annotations

import ctypes
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


def places_of_memory() -> tuple[int, int, int, int] | None:
    """Counted in bytes: where the object of a tensor points to the tensor itself, where that points to its storage, and
    where that has the address of its memory and its size.

    None where no word, or more than one, says so, or where one does not follow what is done with a tensor.
    """
    torch = import_library("torch")
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
