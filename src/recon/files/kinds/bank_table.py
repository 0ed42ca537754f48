"""A bank's entries as a table: CSV or XLSX in the columns of the contract, or by a layout."""

from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from recon.config.file_layouts import FileLayout
from recon.config.rules import Rules
from recon.files.formats.named_bytes import FileBytes
from recon.files.formats.raw_reader import raw_of
from recon.files.formats.raw_table import refuse
from recon.files.kinds.bank_amounts import StatementPlace, refuse_unbalanced
from recon.files.typing.mapped_columns import read_of
from recon.files.typing.table_schema import BANK
from recon.files.typing.typed_table import type_table
from recon.matching.frames.bank_sources import (
    BANK_ENTRY_COLUMNS,
    BOOKED,
    BankSource,
    BankStatement,
)

_OF_STATEMENT = ["iban", "statement_no", "from_date", "to_date"]
_TOLD_ONCE = ["opening", "closing", "currency"]


class _Told(NamedTuple):
    """What every row of a statement repeats."""

    opening: int | None
    closing: int | None
    currency: str


def bank_table(file: FileBytes, *, rules: Rules, layout: FileLayout) -> BankSource:
    """The statements of a table, each proven by its balances where it has them.

    Raises:
        SourceUnreadableError: a row cannot be read, or a statement does not add up.
    """
    wanted = read_of(BANK, layout=layout)
    raw = raw_of(file, wanted=wanted, layout=layout)
    table = type_table(raw, schema=BANK, rules=rules, layout=layout)
    if table.rejects:
        first = table.rejects[0]
        refuse(
            file.path.name,
            f"has {len(table.rejects)} rows that cannot be read, and a statement is whole or "
            f"nothing; the first is line {first.line}, {first.column}: {first.reason}",
        )
    frame = table.frame
    frame["status"] = frame["status"].where(frame["status"].ne(""), BOOKED)
    statements: list[BankStatement] = []
    parts: list[pd.DataFrame] = []
    for named, group in frame.groupby(_OF_STATEMENT, sort=True):
        where = StatementPlace(file.path.name, str(named[0]), str(named[1]))
        entries = _entries(group, number=len(statements), where=where)
        statements.append(_statement(group, entries=entries, where=where, sha256=file.sha256))
        parts.append(entries)
    entries = pd.concat(parts, ignore_index=True) if parts else _entries_of_nothing(frame)
    return BankSource(entries=entries, statements=tuple(statements))


def _entries(group: pd.DataFrame, *, number: int, where: StatementPlace) -> pd.DataFrame:
    """BANK_ENTRY_COLUMNS of one statement."""
    filled = group[group["amount"].notna()]
    twice = filled["entry_no"][filled["entry_no"].duplicated()]
    if len(twice):
        where.refuse("it has two entries of one number (entry_no)")
    if len(filled) < len(group) and len(group) > 1:
        where.refuse("it has entries, and a row that says it has none")
    return pd.DataFrame(
        {
            "statement": np.full(len(filled), number, dtype=np.int64),
            "part": np.zeros(len(filled), dtype=np.int64),
            **{name: filled[name].to_numpy() for name in _CARRIED},
            "charges": filled["charges"].fillna(0).to_numpy(),
        }
    ).astype(dict(BANK_ENTRY_COLUMNS))[list(BANK_ENTRY_COLUMNS)]


_CARRIED = [name for name in BANK_ENTRY_COLUMNS if name not in {"statement", "part", "charges"}]


def _entries_of_nothing(frame: pd.DataFrame) -> pd.DataFrame:
    where = StatementPlace("", "", "")
    return _entries(frame, number=0, where=where)


def _statement(
    group: pd.DataFrame, *, entries: pd.DataFrame, where: StatementPlace, sha256: str
) -> BankStatement:
    balances = _told(group, where=where)
    booked = entries[entries["status"].eq(BOOKED)]
    movement = sum(booked["amount"].tolist())
    if (
        balances.opening is not None
        and balances.closing is not None
        and balances.opening + movement != balances.closing
    ):
        refuse_unbalanced(
            balances.opening,
            movement,
            balances.closing,
            statement=where,
            currency=balances.currency,
        )
    first = group.iloc[0]
    if str(first["from_date"]) > str(first["to_date"]):
        where.refuse("its from_date is behind its to_date")
    return BankStatement(
        source=where.name,
        sha256=sha256,
        iban=where.account,
        statement_no=where.number,
        currency=balances.currency,
        from_date=str(first["from_date"]),
        to_date=str(first["to_date"]),
        opening=balances.opening,
        closing=balances.closing,
        booked=movement,
        entries=len(booked),
    )


def _told(group: pd.DataFrame, *, where: StatementPlace) -> _Told:
    differing = [name for name in _TOLD_ONCE if len(group[name].unique()) > 1]
    if differing:
        where.refuse(f"its rows have more than one {differing[0]}")
    first = group.iloc[0]
    opening, closing = (_amount(first[name]) for name in ("opening", "closing"))
    if (opening is None) != (closing is None):
        where.refuse("it has only one of its two balances")
    return _Told(opening, closing, str(first["currency"]))


def _amount(cell: Any) -> int | None:
    return None if pd.isna(cell) else int(cell)
