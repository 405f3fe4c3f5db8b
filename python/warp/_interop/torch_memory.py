"""The offsets in PyTorch's tensor objects of the address of their memory and of the negation bit, found by experiment
(for bindings/foreign/watched_memory.cpp)."""

from __future__ import annotations

import ctypes
import random
import threading
from collections.abc import Callable
from typing import Any

import numpy as np

from warp._interop.library import import_library
from warp._logger import log_warning

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
    """Offsets in bytes, and a mask, in this order:

    * the tensor's pointer in its Python object
    * the storage's pointer in the tensor
    * the memory's address in the storage
    * the memory's size in the storage
    * the word in the tensor that has the bit of negated views
    * the mask of that bit

    None, with a warning, if for one of them no word or several words match, or if a word does not follow changes of a
    tensor.
    """
    torch = import_library("torch")
    found: list = []
    # Modes of torch (inference, fake tensors, devices) are those of a thread.
    thread = threading.Thread(target=lambda: found.append(_find_places(torch)))
    thread.start()
    thread.join()
    if not found or found[0] is None:
        log_warning(
            f"PyTorch {torch.__version__} does not show the memory of a tensor: an array from a tensor that"
            " gets other memory (resize_, set_, .data = ...) would use freed memory without an error."
            " help: leave such tensors as they are while arrays show them"
        )
        return None
    return found[0]


def _find_places(torch: Any) -> tuple[int, int, int, int, int, int] | None:
    memory, negation = _places_of_address(torch), _place_of_negation(torch)
    return None if memory is None or negation is None else (*memory, *negation)


def _plain_and_negated(torch: Any) -> list[tuple[Callable[[], Any], bool]]:
    """How to make tensors of many kinds, and whether they are negated views."""
    zeros = torch.zeros

    def pairs():
        return torch.zeros(3, 2, dtype=torch.complex64)

    types = (torch.float32, torch.bfloat16, torch.int8, torch.bool)
    plain = [
        *(lambda dtype=dtype: zeros(3, dtype=dtype) for dtype in types),
        *(lambda: zeros(3, 4).T, lambda: zeros(4)[1:], lambda: zeros(4, requires_grad=True)),
        *(lambda: pairs().real, lambda: pairs().conj(), lambda: torch.nn.Parameter(zeros(2)), lambda: zeros(0)),
        *(lambda: torch.tensor(1.0), lambda: zeros(4, requires_grad=True) * 2),
    ]
    negated = [
        *(lambda: pairs().conj().imag, lambda: pairs().conj().imag[0], lambda: pairs().conj().imag.T),
        *(lambda: pairs().conj().imag.detach(), lambda: zeros(3)._neg_view(), lambda: zeros(0)._neg_view()),
        lambda: zeros(3, requires_grad=True)._neg_view(),
    ]
    return [(make, False) for make in plain] + [(make, True) for make in negated]


def _place_of_negation(torch: Any) -> tuple[int, int] | None:
    """The offset in bytes of the word with the bit, and the bit as a mask."""
    count = 22  # words, which every tensor has
    kinds = _plain_and_negated(torch)
    candidates = [(1 << 64) - 1] * count  # the bits of each word that were set in all that are negated, and only there
    # Addresses grow with the time, and their bits may be so by chance: each round makes the tensors in another order,
    # while those of the rounds before have their memory still.
    kept = []
    for round in range(16):
        for make, is_negated in random.Random(round).sample(kinds, len(kinds)):
            tensor = make()
            if tensor.is_neg() != is_negated:
                return None
            kept.append(tensor)
            for i, word in enumerate(_words(tensor._cdata, count)):
                candidates[i] &= word if is_negated else ~word
        bits = sum(word.bit_count() for word in candidates)
        if bits == 0 or (bits == 1 and round >= 3):
            break
    if bits != 1:
        return None
    place = next(i for i, word in enumerate(candidates) if word)
    return place * _WORD, candidates[place]


def _places_of_address(torch: Any) -> tuple[int, int, int, int] | None:
    # The words to search, and the value to find among them.
    questions: tuple[tuple[Callable, Callable], ...] = (
        (_object_words, lambda tensor: tensor._cdata),
        (_tensor_words, lambda tensor: tensor.untyped_storage()._cdata),
        (_storage_words, lambda tensor: tensor.untyped_storage().data_ptr()),
        (_storage_words, lambda tensor: tensor.untyped_storage().nbytes()),
    )
    # Of borrowed memory the address stands in one place only. Other words may have the same number by chance, but not
    # each time.
    tensors = [torch.from_numpy(np.zeros(size)) for size in (1237, 211, 4099, 31, 2477)]
    places = []
    for words, answer in questions:
        same = [{i for i, word in enumerate(words(tensor)) if word == answer(tensor)} for tensor in tensors]
        found = set.intersection(*same)
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
