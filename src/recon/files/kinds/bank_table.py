"""A bank's entries as a table: CSV or XLSX in the columns of the contract, or by a layout.

Its rows are read a part at a time and held as few bytes as their words have: what every row of a
statement repeats is counted and let go.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import pyarrow as pa

from recon.config.file_layouts import FileLayout
from recon.config.rules import Rules
from recon.files.formats.named_bytes import FilePieces
from recon.files.formats.raw_reader import parts_of
from recon.files.formats.raw_table import refuse
from recon.files.kinds.bank_amounts import StatementPlace, refuse_unbalanced
from recon.files.kinds.bank_batches import ENTRY_SCHEMA
from recon.files.kinds.typed_parts import HowToRead, TypedPart, typed_part
from recon.files.typing.card_columns import CardTally
from recon.files.typing.mapped_columns import needed_of
from recon.files.typing.table_schema import BANK
from recon.matching.frames.bank_sources import BOOKED, BankStatement
from recon.matching.frames.grouping import Ints
from recon.model.words import Reject

_OF_STATEMENT = ["iban", "statement_no", "from_date", "to_date"]
_TOLD_ONCE = ("opening", "closing", "currency")
_COUNTED = ("statement", "part")
_CARRIED = [name for name in ENTRY_SCHEMA.names if name not in _COUNTED]
_FEW = frozenset({"booked_on", "value_on", "currency", "status", "instructed_currency"})
"""Columns with few different words: each is held once."""
_POOL = pa.system_memory_pool()
Key = tuple[str, str, str, str]
"""IBAN, number, first and last day."""


class BankTable(NamedTuple):
    """The statements of a table."""

    statements: tuple[BankStatement, ...]
    rows: int
    """Entries."""
    parts: tuple["_Held", ...]
    places: Ints
    """Number of a statement as it came -> its place among `statements`."""

    def batches(self) -> Iterator[pa.RecordBatch]:
        """ENTRY_SCHEMA."""
        for part in self.parts:
            size = len(part.statements)
            columns: dict[str, Any] = {
                **part.columns,
                "statement": pa.array(self.places[part.statements]),
                "part": pa.array(np.zeros(size, dtype=np.int64)),
            }
            cells = [columns[name].cast(ENTRY_SCHEMA.field(name).type) for name in columns]
            whole = pa.RecordBatch.from_arrays(cells, names=[*columns])
            ordered = whole.select(ENTRY_SCHEMA.names).columns
            yield pa.RecordBatch.from_arrays(ordered, schema=ENTRY_SCHEMA)


class _Held(NamedTuple):
    """The entries of one part of the file."""

    statements: Ints
    """In which statement each is, as these came."""
    columns: dict[str, pa.Array]


@dataclass(slots=True)
class _Counted:
    """What the rows of one statement say of it so far."""

    number: int
    told: dict[str, set[Any]] = field(default_factory=lambda: {name: set() for name in _TOLD_ONCE})
    rows: int = 0
    filled: int = 0
    booked: int = 0
    entries: int = 0
    """Booked ones."""

    def add(self, rows: pd.DataFrame, *, where: StatementPlace) -> None:
        """Count some of its rows; what it has once may not change."""
        for name in _TOLD_ONCE:
            self.told[name] |= {None if pd.isna(cell) else cell for cell in rows[name].unique()}
            if len(self.told[name]) > 1:
                where.refuse(f"its rows have more than one {name}")
        filled = rows["amount"].notna()
        booked = rows.loc[filled & rows["status"].eq(BOOKED), "amount"]
        self.rows += len(rows)
        self.filled += int(filled.sum())
        self.booked += sum(booked.tolist())
        self.entries += len(booked)

    def once(self, name: str) -> Any:
        """What all rows say."""
        (only,) = self.told[name]
        return only


@dataclass(slots=True)
class _Reading:
    """A file, read once from its beginning to its end."""

    name: str
    said: dict[Key, _Counted] = field(default_factory=dict)
    parts: list[_Held] = field(default_factory=list)
    rejects: list[Reject] = field(default_factory=list)
    cards: CardTally = field(default_factory=CardTally)

    def add(self, part: TypedPart) -> None:
        """The next rows."""
        self.rejects += part.rejects
        self.cards.add(part.cards)
        frame = part.rows.to_pandas()
        frame["status"] = frame["status"].where(frame["status"].ne(""), BOOKED)
        numbers = np.zeros(len(frame), dtype=np.int32)
        for key, places in frame.groupby(_OF_STATEMENT, sort=False).indices.items():
            named: Key = key
            own = self.said.setdefault(named, _Counted(len(self.said)))
            own.add(frame.iloc[places], where=self.where(named))
            numbers[places] = own.number
        filled = frame["amount"].notna().to_numpy()
        frame["charges"] = frame["charges"].fillna(0)
        entries = frame[filled]
        columns = {name: _cells(entries[name], name=name) for name in _CARRIED}
        self.parts.append(_Held(numbers[filled], columns))

    def where(self, key: Key) -> StatementPlace:
        """A statement as sentences name it."""
        return StatementPlace(self.name, key[0], key[1])

    def refuse_unread(self) -> None:
        """Refuse a file with a row that cannot be read."""
        if self.rejects:
            first = self.rejects[0]
            refuse(
                self.name,
                f"has {len(self.rejects)} rows that cannot be read, and a statement is whole or "
                f"nothing; the first is line {first.line}, {first.column}: {first.reason}",
            )

    def refuse_repeated(self) -> None:
        """Refuse two entries of one number; their hashes say first whether there may be any."""
        hashes = np.concatenate([np.zeros(0, dtype=np.int64), *map(_hashes, self.parts)])
        hashes.sort()
        if not np.any(hashes[1:] == hashes[:-1]):
            return
        keys = [*self.said]
        known: set[tuple[int, str]] = set()
        for part in self.parts:
            for own in zip(
                part.statements.tolist(), part.columns["entry_no"].to_pylist(), strict=True
            ):
                if own in known:
                    self.where(keys[own[0]]).refuse("it has two entries of one number (entry_no)")
                known.add(own)


def bank_table(file: FilePieces, *, rules: Rules, layout: FileLayout) -> BankTable:
    """The statements of a table, each proven by its balances where it has them.

    Raises:
        SourceUnreadableError: a row cannot be read, or a statement does not add up.
    """
    how = HowToRead(rules, layout, keep=False, schema=BANK)
    reading = _read(file, how=how)
    if not reading.cards.agrees:
        # What looks like cards in one part is how the whole column is numbered, or the other way.
        reading = _read(file, how=HowToRead(rules, layout, False, BANK, reading.cards.whole))
    reading.refuse_unread()
    reading.refuse_repeated()
    ordered = sorted(reading.said)
    statements = tuple(
        _statement(key, counted=reading.said[key], where=reading.where(key), sha256=file.sha256)
        for key in ordered
    )
    places = np.argsort([reading.said[key].number for key in ordered])
    rows = sum(len(part.statements) for part in reading.parts)
    return BankTable(statements, rows, tuple(reading.parts), places.astype(np.int64))


def _read(file: FilePieces, *, how: HowToRead) -> _Reading:
    needed = needed_of(how.schema, layout=how.layout)
    parts = parts_of(file, wanted=how.wanted, layout=how.layout, needed=needed)
    reading = _Reading(file.path.name)
    for part in parts:
        reading.add(typed_part(part, how=how))
    return reading


def _cells(cells: "pd.Series[Any]", *, name: str) -> pa.Array:
    """A column, outside of Arrow's own pool, which gives back little of what it took."""
    kind = ENTRY_SCHEMA.field(name).type
    if pa.types.is_integer(kind):
        return pa.array(cells.array, kind, memory_pool=_POOL)
    own = pa.array(cells.tolist(), pa.string(), memory_pool=_POOL)
    return own.dictionary_encode() if name in _FEW else own


def _hashes(part: _Held) -> Ints:
    named = zip(part.statements.tolist(), part.columns["entry_no"].to_pylist(), strict=True)
    return np.fromiter((hash(own) for own in named), np.int64, len(part.statements))


def _statement(key: Key, *, counted: _Counted, where: StatementPlace, sha256: str) -> BankStatement:
    if counted.filled < counted.rows and counted.rows > 1:
        where.refuse("it has entries, and a row that says it has none")
    opening, closing = (counted.once(name) for name in ("opening", "closing"))
    currency = str(counted.once("currency"))
    if (opening is None) != (closing is None):
        where.refuse("it has only one of its two balances")
    if opening is not None and opening + counted.booked != closing:
        refuse_unbalanced(
            int(opening), counted.booked, int(closing), statement=where, currency=currency
        )
    if key[2] > key[3]:
        where.refuse("its from_date is behind its to_date")
    return BankStatement(
        source=where.name,
        sha256=sha256,
        iban=where.account,
        statement_no=where.number,
        currency=currency,
        from_date=key[2],
        to_date=key[3],
        opening=None if opening is None else int(opening),
        closing=None if closing is None else int(closing),
        booked=counted.booked,
        entries=counted.entries,
    )
