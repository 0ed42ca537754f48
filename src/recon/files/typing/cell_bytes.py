"""What the bytes of a column say of all its cells at once, before a pattern looks at each.

Most columns of ids hold what their grammar allows and nothing that could be a card: one look at
each byte shows it, several times sooner than a match of every cell. Nothing is refused by it.
"""

import re
import string
from functools import cache
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

Ints = npt.NDArray[np.int64]
Bytes = npt.NDArray[np.uint8]
_ASCII = 128
_SET = r"\[[^]]+\]"
_SHAPE = re.compile(rf"({_SET})?({_SET})\{{([0-9]+),([0-9]+)\}}")
"""One character, and so many of others; or all of one sort."""
_ENDED = re.compile(rf"({_SET})\(\?:({_SET})\{{0,([0-9]+)\}}({_SET})\)\?")
"""One character, or up to so many others between two."""


class _Alphabet(NamedTuple):
    """What cells of a grammar are made of, by byte."""

    first: npt.NDArray[np.bool_]
    others: bytes
    last: npt.NDArray[np.bool_]
    size_min: int
    size_max: int


def laid_out(texts: pa.Array) -> tuple[Ints, Bytes]:
    """Where each cell begins, and the last one ends, in the bytes of all."""
    cells = texts.cast(pa.large_string())
    _, offsets, content = cells.buffers()
    places = np.frombuffer(offsets, np.int64)[cells.offset : cells.offset + len(cells) + 1]
    whole = np.frombuffer(content or b"", np.uint8)
    return places - places[0], whole[places[0] : places[-1]]


def surely_fit(cells: pa.Array, *, pattern: str) -> bool:
    """True only where each cell matches the pattern from end to end; may be False all the same."""
    alphabet = _alphabet_of(pattern)
    if alphabet is None or not len(cells):
        return False
    places, content = laid_out(cells)
    sizes = np.diff(places)
    if int(sizes.min()) < max(alphabet.size_min, 1) or int(sizes.max()) > alphabet.size_max:
        return False
    if content.tobytes().translate(None, alphabet.others):
        return False
    first, last = content[places[:-1]], content[places[1:] - 1]
    return bool(alphabet.first[first].all() and alphabet.last[last].all())


@cache
def _alphabet_of(pattern: str) -> _Alphabet | None:
    """None of a pattern of another shape."""
    if ended := _ENDED.fullmatch(pattern):
        first, others, between, last = ended.groups()
        return _Alphabet(_among(first), _bytes(others), _among(last), 1, int(between) + 2)
    shape = _SHAPE.fullmatch(pattern)
    if shape is None:
        return None
    first, others, low, high = shape.groups()
    before = int(first is not None)
    sizes = int(low) + before, int(high) + before
    return _Alphabet(_among(first or others), _bytes(others), _among(others), *sizes)


def _bytes(characters: str) -> bytes:
    return bytes(np.flatnonzero(_among(characters)).tolist())


def _among(characters: str) -> npt.NDArray[np.bool_]:
    matching = [bool(re.fullmatch(characters, chr(code), re.ASCII)) for code in range(_ASCII)]
    return np.array([*matching, *[False] * _ASCII])


def digits_max_of(cells: pa.Array) -> Ints:
    """How many digits each cell has at most: each byte of a foreign character may be one."""
    places, content = laid_out(cells)
    most = np.zeros(len(cells), dtype=np.int64)
    filled = np.flatnonzero(np.diff(places))
    if len(filled):
        may_be = (content - ord("0") < len(string.digits)) | (content >= _ASCII)
        most[filled] = np.add.reduceat(may_be.view(np.uint8), places[filled], dtype=np.uint32)
    return most
