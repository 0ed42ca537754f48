"""What people get, as tables of text: a workbook's sheets, by openpyxl, and the files beside it."""

import csv
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

from openpyxl import load_workbook

Row = Mapping[str, str]
SHEETS: Mapping[str, tuple[str, tuple[str, ...]]] = {
    "breaks": ("Breaks", ("Order or batch", "Key")),
    "pending": ("Pending", ("Result", "Order no")),
    "unverified": ("Pending", ("Result", "Order no")),
    "matched": ("Matched", ("Order no", "Match key")),
    "instructions": ("Instructions", ("Instruction",)),
    "rejected": ("Pending", ("Kind", "Line")),
    "totals": ("Assurance", ("What must be equal",)),
    "attention": ("Summary", ("What",)),
    "held": ("Assurance", ("Currency", "Payable, held back included")),
    "became": ("Journals", ("What became of it",)),
    "journals": ("Journals", ("Journal", "Debit")),
    "bank": ("Bank", ("Batch",)),
    "fees": ("Fees", ("Line",)),
}
"""Table -> its sheet, and titles that its header line has."""
NOTES, PERSON = "notes", "Needs a person"
"""What page one must say beside its figures, and the title below it."""
RESULTS = {"pending": "Waiting", "unverified": "Not verified"}
"""Two tables share a sheet, and a column tells them apart."""
TITLES = {"order no": "order", "order or batch": "order", "money at risk": "at risk", "ref.": "id"}
"""Shorter words for a few titles."""
CODE_LINE = "Code, severity, since"
"""A column of Breaks that says three things, the first ones of several."""
DECIMALS = {"JPY": 0, "KWD": 3}
COUNTED = re.compile(r"All instructions|[\d,]+ open breaks?, ")
"""How a row of page one begins that only counts what another sheet has."""
LAST_ROWS = frozenset({"None.", "All"})


@dataclass(frozen=True, slots=True)
class Results:
    """A workbook as it was read, and the folder in which it lies."""

    cells: Mapping[str, Sequence[Sequence[Any]]] = field(default_factory=dict)
    folder: Path | None = None

    @property
    def verdict(self) -> str:
        """The night's verdict, from the workbook's own record."""
        record = {str(row[0]): row[1] for row in self.cells.get("_run", ()) if row}
        return str(record.get("verdict", ""))

    def rows(self, table: str) -> Sequence[Row]:
        """The rows of one table, every cell as text under its title."""
        if table.endswith(".csv"):
            return self._file(table)
        if table == NOTES:
            return self._notes()
        sheet, titles = SHEETS[table]
        found = _below(self.cells.get(sheet, ()), titles=titles)
        found = [row for row in found if not COUNTED.match(next(iter(row.values()), ""))]
        return [row for row in found if table not in RESULTS or row["result"] == RESULTS[table]]

    def _notes(self) -> Sequence[Row]:
        """The sentences of page one above what needs a person, below its figures."""
        lines = [
            [cell for cell in line if cell is not None] for line in self.cells.get("Summary", ())
        ]
        first = next((n for n, line in enumerate(lines) if line[:1] == [PERSON]), 0)
        every = (str(line[0]) for line in lines[:first] if len(line) == 1)
        return [{"why": text} for text in every if text.endswith(".")]

    def failing_totals(self) -> tuple[str, ...]:
        """Ids of control totals whose two figures differ."""
        rows = self.rows("totals")
        failing = {row["id"] for row in rows if row["first figure"] != row["second figure"]}
        return tuple(sorted(failing))

    def _file(self, name: str) -> Sequence[Row]:
        path = self.folder / name if self.folder else None
        if path is None or not path.exists():
            return []
        with path.open(newline="", encoding="utf-8") as file:
            return list(csv.DictReader(file))


def read(workbook: Path | None) -> Results:
    """Read a workbook; without one there is nothing to see."""
    if workbook is None or not workbook.exists():
        return Results()
    book = load_workbook(workbook, read_only=True)
    try:
        cells = {sheet.title: list(sheet.iter_rows(values_only=True)) for sheet in book}
    finally:
        book.close()
    return Results(cells, workbook.parent)


def _below(lines: Sequence[Sequence[Any]], *, titles: Sequence[str]) -> list[Row]:
    """Rows under the line that has these titles, up to one that is empty or a last row."""
    start = next((n for n, line in enumerate(lines) if set(titles) <= set(line)), None)
    if start is None:
        return []
    first = lines[start].index(titles[0])
    rows: list[Row] = []
    for line in lines[start + 1 :]:
        cells = line[first:]
        if all(cell is None for cell in cells) or cells[0] in LAST_ROWS:
            break
        rows.append(_row(lines[start][first:], cells))
    return rows


def _row(titles: Sequence[Any], cells: Sequence[Any]) -> Row:
    named = {str(title): cell for title, cell in zip(titles, cells, strict=False) if title}
    currency = str(named.get("Ccy") or named.get("Currency") or "")
    if line := named.pop(CODE_LINE, ""):
        code, severity, owed_to, *_ = str(line).split(" · ")
        named |= {"Code": code, "Severity": severity, "Owed to": owed_to.removeprefix("owed to ")}
    row = {_title(title): _text(cell, currency=currency) for title, cell in named.items()}
    if "at risk" in row and currency:
        row["at risk"] = f"{row['at risk']} {currency}"
    return row


def _title(title: str) -> str:
    plain = title.replace("\N{MINUS SIGN}", "-").lower()
    return TITLES.get(plain, plain)


def _text(cell: Any, *, currency: str) -> str:
    if cell is None:
        return ""
    if isinstance(cell, datetime):
        return f"{cell:%Y-%m-%d}" if cell.time() == cell.min.time() else f"{cell:%Y-%m-%d %H:%M}"
    if isinstance(cell, float) and currency:
        return f"{cell:.{DECIMALS.get(currency, 2)}f}"
    return " ".join(str(cell).split())
