"""The search for exact sets by partitions of the order key, wherever each of them is done.

A partition holds all rows of its keys, so it finds what the whole would find. Rows without an order
number are in none: what they name is known before (`Question.words`), and they are left over. The
partition of a row is a hash of its order number, the same in every source, process and machine;
their balance is a matter of speed only.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
import pyarrow as pa

from recon.config.cluster import Workers
from recon.matching.breaks.result_rows import identity_of
from recon.matching.exact.exact_search import (
    ALONE,
    FIRST_SETTLED,
    SHARED,
    Found,
    Question,
    find_exact,
)
from recon.matching.frames.coding import NO_KEY, placed_together
from recon.matching.frames.grouping import Rows
from recon.matching.frames.numbering import Keys
from recon.matching.frames.sources import KEY_COLUMNS, Sources
from recon.matching.frames.total_rows import ACCOUNT
from recon.matching.sides.agreed_fees import FEE_GAP
from recon.matching.sides.ledger_side import ADDED

_KEY = (*KEY_COLUMNS,)
_NAMES = ("transaction_id", "reference_no")
NEEDED: Mapping[str, tuple[str, ...]] = {
    "orders": (
        *(*_KEY, "transaction_id", "currency", "amount", "expected_captured_amount"),
        *("status", "ordered_at"),
    ),
    "gateway": (
        *(*_KEY, *_NAMES, "currency", "amount", "authorised_amount", "captured_amount"),
        *("refunded_amount", "payment_status", "answer", "transaction_date"),
        SHARED,
    ),
    "ledger": (*_KEY, *_NAMES, "currency", "amount", "transaction_amount", "entry_type", ALONE),
    "settlement": (*_KEY, *_NAMES, "currency", "gross", FEE_GAP, "entry_type", FIRST_SETTLED),
}
"""For each leg, the columns that the search reads: nothing else is sent to a worker."""

Places = Mapping[str, Rows]
"""By source, the rows of the whole that a partition holds."""
_Hashes = npt.NDArray[np.uint64]
_WORD_BYTES = 8
_WORDS = 4
"""The last 32 bytes of a number and its length decide; no number of an order is longer in use."""
_ODD = 0x9E3779B97F4A7C15
_HIGH_BITS = np.uint64(32)


@dataclass(frozen=True, slots=True)
class FoundPart:
    """What one partition found, in its own numbers."""

    exact: Found
    match_ids: "pd.Series[str]"


def find_in_partitions(question: Question, *, workers: Workers) -> tuple[Found, "pd.Series[str]"]:
    """The exact sets and the ids of their matches, as `find_exact` of the whole would have them."""
    places = _places(question, partitions=workers.partitions)
    parts = (_part(question, places=rows_of) for rows_of in places)
    parts_found = list(zip(places, workers.each(find_part, parts), strict=True))
    keys = _joined_keys(question, parts=parts_found)
    rows = {
        leg: np.concatenate([rows_of[leg][part.exact.rows[leg]] for rows_of, part in parts_found])
        for leg in _legs(question)
    }
    ids = pd.concat([part.match_ids for _, part in parts_found], ignore_index=True)
    return Found(rows, keys), ids


def find_part(question: Question) -> FoundPart:
    """The exact sets of one partition, and what makes the ids of their matches."""
    exact = find_exact(question)
    orders = question.sources.orders[[*_KEY]].iloc[exact.rows["orders"]].reset_index(drop=True)
    return FoundPart(exact, identity_of(*(orders[name] for name in _KEY)))


def _legs(question: Question) -> dict[str, pd.DataFrame]:
    frames = {name: getattr(question.sources, name) for name in NEEDED}
    return {name: frame for name, frame in frames.items() if frame is not None}


def _places(question: Question, *, partitions: int) -> list[Places]:
    frames = _legs(question) | dict(question.others)
    split = {
        name: rows_by_partition(frame["order_no"], partitions=partitions)
        for name, frame in frames.items()
    }
    return [{name: rows[number] for name, rows in split.items()} for number in range(partitions)]


def _part(question: Question, *, places: Places) -> Question:
    legs = {
        name: _taken(frame, rows=places[name], columns=NEEDED[name])
        for name, frame in _legs(question).items()
    }
    others = {
        name: _taken(frame, rows=places[name], columns=_KEY)
        for name, frame in question.others.items()
    }
    moves = question.sources.instructions
    kept = Sources(
        orders=legs["orders"],
        gateway=legs["gateway"],
        ledger=legs.get("ledger"),
        # Whether there is a source of instructions matters; whom they speak of is in `others`.
        instructions=None if moves is None else moves.iloc[:0],
        settlement=legs.get("settlement"),
    )
    return replace(question, sources=kept, others=others)


def _taken(frame: pd.DataFrame, *, rows: Rows, columns: tuple[str, ...]) -> pd.DataFrame:
    wanted = [*columns, *(name for name in ADDED if name in frame.columns)]
    return frame[wanted].iloc[rows].reset_index(drop=True)


def _joined_keys(question: Question, *, parts: list[tuple[Places, FoundPart]]) -> Keys:
    """The keys of all partitions numbered through; no key is in two of them."""
    frames = _legs(question) | dict(question.others)
    of = {name: np.full(len(frame), NO_KEY, dtype=np.intp) for name, frame in frames.items()}
    account_of, accounts = placed_together([*frames.values()], by=ACCOUNT)
    number = {account: at for at, account in enumerate(accounts)}
    account = []
    for first, (places, part) in zip(_starts(parts), parts, strict=True):
        keys = part.exact.keys
        for name, rows in places.items():
            numbers = keys.of[name]
            of[name][rows] = np.where(numbers == NO_KEY, NO_KEY, numbers + first)
        known = [number[account] for account in keys.accounts]
        account.append(np.asarray([*known, 0], dtype=np.intp)[keys.account])
    named = dict(zip(frames, account_of, strict=True))
    return Keys(of, named, np.concatenate(account), accounts)


def _starts(parts: list[tuple[Places, FoundPart]]) -> Iterator[int]:
    first = 0
    for _, part in parts:
        yield first
        first += part.exact.keys.size


def partition_of(order_nos: "pd.Series[str]", *, partitions: int) -> Rows:
    """The partition of each row, 0 .. partitions-1."""
    hashed = _hashes(order_nos) >> _HIGH_BITS
    return np.asarray(hashed % np.uint64(partitions), dtype=np.intp)


def rows_by_partition(order_nos: "pd.Series[str]", *, partitions: int) -> list[Rows]:
    """The rows of each partition in their order; a row without an order number is in none."""
    numbers = partition_of(order_nos, partitions=partitions)
    numbers[order_nos.eq("").to_numpy()] = partitions
    ordered = np.argsort(numbers.astype(np.int16), kind="stable")  # so narrow it is no comparison
    ends = np.cumsum(np.bincount(numbers, minlength=partitions + 1))
    return np.split(ordered, ends[:-1])[:partitions]


def _hashes(column: "pd.Series[str]") -> _Hashes:
    """A number for each text, made of its last bytes, eight at a time."""
    starts, ends, content = _bytes_of(column)
    # Every window of eight bytes as one number, read where it stands.
    windows: Any = np.ndarray(len(content) - _WORD_BYTES + 1, "<u8", content.tobytes(), 0, (1,))
    lengths = ends - starts
    hashes: _Hashes = lengths.astype(np.uint64)
    for word in range(_WORDS):
        left = lengths - word * _WORD_BYTES
        there = left > 0
        missing = (_WORD_BYTES - np.clip(left, 1, _WORD_BYTES)).astype(np.uint64)
        places = np.where(there, ends - word * _WORD_BYTES, 0)
        value = windows[places] >> (missing * np.uint64(8))
        hashes = np.where(there, _mixed(hashes ^ value), hashes)
    return hashes


def _mixed(hashes: _Hashes) -> _Hashes:
    hashes = hashes * np.uint64(_ODD)
    return hashes ^ (hashes >> _HIGH_BITS)


def _bytes_of(column: "pd.Series[str]") -> tuple[Rows, Rows, npt.NDArray[np.uint8]]:
    """Where each text starts and ends, and the bytes of all behind eight of padding."""
    text: Any = pa.array(column)
    if isinstance(text, pa.ChunkedArray):
        text = pa.concat_arrays(text.chunks) if text.num_chunks else pa.array([], text.type)
    text = text.cast(pa.large_string()).fill_null("")
    _, places, content = text.buffers()
    offsets = np.frombuffer(places, np.int64)[text.offset : text.offset + len(text) + 1]
    raw = np.frombuffer(content or b"", np.uint8)
    padded = np.concatenate([np.zeros(_WORD_BYTES, np.uint8), raw])
    return offsets[:-1], offsets[1:], padded
