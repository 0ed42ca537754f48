"""One part of an order file into the current rows: which row is new, a repeat, or a successor.

Most keys come once and nobody had them: these go in as they are. Only the others, keys that come
twice or have rows already, are looked at one by one, in the order of the file.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import pandas as pd
import pyarrow as pa
from sqlalchemy import Connection, select, update

from recon.matching.frames.sources import ORDER_COLUMNS, LoadCounts
from recon.store.database.bulk_rows import (
    among,
    arrow_rows,
    insert_rows,
    instant_text,
    listed,
    with_constant,
)
from recon.store.schema import order_file, order_row

CONTENT_COLUMNS = (
    "currency",
    "amount",
    "status",
    "ordered_at",
    "transaction_id",
    "expected_captured_amount",
    "refund_amount",
    "updated_at",
)
"""Rows of one order with these equal are the same row."""

_STORED = tuple(name for name in ORDER_COLUMNS if name != "source")
_KEY = ("merchant_id", "account_id", "order_no")
_UPDATED_AT = CONTENT_COLUMNS.index("updated_at")
_INSTANTS = frozenset({"ordered_at", "updated_at"})
Key = tuple[str, str, str]
Content = tuple[Any, ...]


class Arriving(NamedTuple):
    """The file whose rows come, and the earlier files of its name."""

    file_id: int
    earlier: frozenset[int]


@dataclass(slots=True)
class _Current:
    """One row of an order without a successor: stored already, or of this part."""

    row_id: int | None
    file_id: int
    content: Content
    position: int = -1


@dataclass(slots=True)
class _Sorted:
    """Where the rows of one part belong."""

    stored: list[int] = field(default_factory=list)
    """Positions to be stored."""
    replaced: set[int] = field(default_factory=set)
    """Those of them that a later row of the same part took the place of."""
    gone: list[int] = field(default_factory=list)
    """Stored rows that got a successor."""
    repeat: int = 0
    superseding: int = 0


def arriving(connection: Connection, *, file_id: int) -> Arriving:
    """A file that was noted, and its earlier versions."""
    this = select(order_file).where(order_file.c.file_id == file_id).subquery()
    rows = connection.execute(
        select(order_file.c.file_id).where(
            order_file.c.name == this.c.name, order_file.c.file_id != file_id
        )
    )
    return Arriving(file_id, frozenset(rows.scalars()))


def merge(connection: Connection, orders: pd.DataFrame, *, file: Arriving) -> LoadCounts:
    """Store ORDER_COLUMNS of one part of a file."""
    rows = arrow_rows(orders, names=_STORED)
    keys: list[Key] = list(zip(*(listed(rows.column(name)) for name in _KEY), strict=True))
    known = _known(connection, keys)
    sorted_rows = _sort_out(rows, keys, known=known, file=file)
    sorted_rows.stored.sort(key=keys.__getitem__)
    _store(connection, rows, sorted_rows=sorted_rows, file=file)
    if sorted_rows.gone:
        connection.execute(
            update(order_row)
            .where(among(connection, order_row.c.row_id, sorted_rows.gone))
            .values(superseded_in=file.file_id)
        )
    accepted = len(keys)
    new = accepted - sorted_rows.repeat - sorted_rows.superseding
    return LoadCounts(accepted, new, sorted_rows.repeat, sorted_rows.superseding)


def _known(connection: Connection, keys: Sequence[Key]) -> dict[Key, list[_Current]]:
    """Stored rows without a successor of these keys."""
    by_account: dict[tuple[str, str], list[str]] = {}
    for merchant_id, account_id, order_no in keys:
        by_account.setdefault((merchant_id, account_id), []).append(order_no)
    known: dict[Key, list[_Current]] = {}
    content = [
        instant_text(connection, order_row.c[name]) if name in _INSTANTS else order_row.c[name]
        for name in CONTENT_COLUMNS
    ]
    for (merchant_id, account_id), order_nos in by_account.items():
        rows = connection.execute(
            select(order_row.c.order_no, order_row.c.row_id, order_row.c.file_id, *content)
            .where(
                order_row.c.merchant_id == merchant_id,
                order_row.c.account_id == account_id,
                among(connection, order_row.c.order_no, order_nos),
                order_row.c.superseded_in.is_(None),
            )
            .order_by(order_row.c.row_id)
        )
        for order_no, row_id, file_id, *cells in rows:
            beside = known.setdefault((merchant_id, account_id, order_no), [])
            beside.append(_Current(row_id, file_id, tuple(cells)))
    return known


def _sort_out(
    rows: pa.Table, keys: Sequence[Key], *, known: dict[Key, list[_Current]], file: Arriving
) -> _Sorted:
    sorted_rows = _Sorted()
    odd = _repeated(keys)
    if not known and not odd:
        sorted_rows.stored = list(range(len(keys)))
        return sorted_rows
    contents: list[Content] = list(
        zip(*(listed(rows.column(name)) for name in CONTENT_COLUMNS), strict=True)
    )
    for position, key in enumerate(keys):
        if key not in known and key not in odd:
            sorted_rows.stored.append(position)
            continue
        beside = known.setdefault(key, [])
        _place(
            _Current(None, file.file_id, contents[position], position), beside, sorted_rows, file
        )
    return sorted_rows


def _repeated(keys: Sequence[Key]) -> set[Key]:
    if len(set(keys)) == len(keys):
        return set()
    return {key for key, times in Counter(keys).items() if times > 1}


def _place(arrived: _Current, beside: list[_Current], sorted_rows: _Sorted, file: Arriving) -> None:
    """Put one row beside, or in the place of, the current rows of its order."""
    if any(old.content == arrived.content for old in beside):
        sorted_rows.repeat += 1
        return
    older = [old for old in beside if _takes_place(arrived, old, file=file)]
    sorted_rows.superseding += bool(older)
    sorted_rows.gone.extend(old.row_id for old in older if old.row_id is not None)
    sorted_rows.replaced.update(old.position for old in older if old.row_id is None)
    sorted_rows.stored.append(arrived.position)
    beside[:] = [old for old in beside if old not in older] + [arrived]


def _takes_place(arrived: _Current, old: _Current, *, file: Arriving) -> bool:
    newer, older = arrived.content[_UPDATED_AT], old.content[_UPDATED_AT]
    if newer is not None and older is not None:
        return bool(newer > older)  # text of one width
    return old.file_id in file.earlier


def _store(connection: Connection, rows: pa.Table, *, sorted_rows: _Sorted, file: Arriving) -> None:
    if len(sorted_rows.stored) < rows.num_rows or sorted_rows.stored != sorted(sorted_rows.stored):
        rows = rows.take(pa.array(sorted_rows.stored, pa.int64()))
    rows = with_constant(rows, name="file_id", value=file.file_id)
    if sorted_rows.replaced:
        marks = [
            file.file_id if row_index in sorted_rows.replaced else None
            for row_index in sorted_rows.stored
        ]
        rows = rows.append_column("superseded_in", pa.array(marks, pa.int64()))
    insert_rows(connection, order_row, rows)
