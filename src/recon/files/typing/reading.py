"""One table while it is read: its cells, what is wrong with each, and the rejects that come of it.

Values that are shown are scrubbed of card numbers, one line each, of bounded length.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from recon.files.formats.raw_table import RawTable
from recon.files.typing.distinct import Distinct, distinct
from recon.files.typing.mapped_columns import MappedColumns
from recon.files.typing.table_schema import Grammar, TableSchema
from recon.files.typing.text_cells import is_fit
from recon.model.words import Reject, SourceKind
from recon.privacy.shown_text import scrubbed

WHOLE_ROW = "(row)"
"""Column of a reject whose cells cannot be told apart."""

FURTHER_FAULTS_MAX = 3
"""Other bad cells of one row that are told by name; more are only counted."""

KEY_NAMES = ("merchant_id", "account_id", "order_no")
_MONEY = ("entry_type", "currency", "amount")
"""Of an entry of the books: what it adds to them."""


@dataclass(slots=True)
class TableReading:
    """One table while its columns are checked, in order."""

    raw: RawTable
    mapped: MappedColumns
    typed: dict[str, Any]
    problems: dict[int, tuple[str, str]]
    """Row number -> (column, reason): the first only."""
    further: dict[int, dict[str, str]] = field(default_factory=dict)
    """Row number -> column -> reason: the other bad cells of such rows."""
    keys_of_bad_rows: Mapping[int, Mapping[str, str]] = field(default_factory=dict)
    """Line of a row whose cells cannot be told apart -> what it says of its key for sure."""
    _distinct: dict[str, Distinct] = field(default_factory=dict)

    def distinct(self, name: str) -> Distinct:
        """The texts of a column, found once: each column of amounts asks for its currencies."""
        if name not in self._distinct:
            self._distinct[name] = distinct(self.columns[name])
        return self._distinct[name]

    @property
    def columns(self) -> Mapping[str, pa.Array]:
        """Cells in the standard form by our names."""
        return self.mapped.cells

    def note(self, column: str, problems: Mapping[int, str]) -> None:
        """Keep the first problem of every row, and those of its other cells."""
        for row, reason in problems.items():
            first, _ = self.problems.setdefault(row, (column, reason))
            if first not in {column, WHOLE_ROW}:
                self.further.setdefault(row, {}).setdefault(column, reason)

    def reason(self, row: int) -> str:
        """All that is wrong with a row, scrubbed."""
        reasons = [scrubbed(self.problems[row][1])]
        further = list(self.further.get(row, {}).items())
        for column, why in further[:FURTHER_FAULTS_MAX]:
            reasons.append(f"{scrubbed(self.mapped.theirs.get(column, column))}: {scrubbed(why)}")
        if len(further) > FURTHER_FAULTS_MAX:
            reasons.append(f"{len(further) - FURTHER_FAULTS_MAX} more cells")
        if "net" in {self.problems[row][0], *self.further.get(row, ())}:
            for name in sorted(self.mapped.sums):
                cells = scrubbed(self.mapped.shown[name][row].as_py()) or "nothing"
                reasons[-1] += f", {name} read as {cells} ({scrubbed(self.mapped.theirs[name])})"
        return "; also ".join(reasons)


def rejects_of(reading: TableReading, *, schema: TableSchema) -> tuple[Reject, ...]:
    """One reject for each row that cannot be read, by line."""
    raw = reading.raw
    rejects = []
    for bad in raw.bad_rows:
        key: dict[str, Any] = dict(reading.keys_of_bad_rows.get(bad.line, {}))
        shown = scrubbed(bad.text)
        rejects.append(Reject(schema.kind, raw.name, bad.line, WHOLE_ROW, bad.reason, shown, **key))
    for row, (column, _) in reading.problems.items():
        key = {name: _key_cell(reading, name, row=row) for name in KEY_NAMES}
        if schema.kind is SourceKind.SETTLEMENT and column != WHOLE_ROW:
            of_batch = ("batch_id", "currency")
            key |= {name: _key_cell(reading, name, row=row) for name in of_batch}
        cells = reading.mapped.shown.get(column)
        value = "" if cells is None else scrubbed(cells[row].as_py())
        line, column_shown = (
            int(raw.lines[row]),
            scrubbed(reading.mapped.theirs.get(column, column)),
        )
        reason = reading.reason(row)
        key |= _money_of(reading, row=row, kind=schema.kind)
        rejects.append(Reject(schema.kind, raw.name, line, column_shown, reason, value, **key))
    return tuple(sorted(rejects, key=lambda reject: reject.line))


def _money_of(reading: TableReading, *, row: int, kind: SourceKind) -> dict[str, Any]:
    """What a rejected entry of the books says in money; nothing where a part of that is wrong."""
    bad = {reading.problems[row][0], *reading.further.get(row, ())}
    if kind is not SourceKind.LEDGER or bad.intersection(_MONEY):
        return {}
    amounts = reading.typed["amount"]
    if not amounts.given[row]:
        return {}
    entry_type, currency = (reading.columns[name][row].as_py() for name in _MONEY[:2])
    return {
        "entry_type": entry_type,
        "currency": currency,
        "amount": int(amounts.minor_units[row]),
    }


def _key_cell(reading: TableReading, name: str, *, row: int) -> str:
    """The cell where it can be trusted, else blank."""
    if name not in reading.columns:  # a bank knows no merchant and no order
        return ""
    grammar = Grammar.ORDER_KEY if name == "order_no" else Grammar.ACCOUNT
    text: str = reading.columns[name][row].as_py()
    bad = {reading.problems[row][0], *reading.further.get(row, ())}
    if name in bad or not is_fit(text, grammar=grammar):
        return ""
    return text if scrubbed(text) == text else ""
