"""A workbook held against its night, cell by cell: which cell says something else?

What it should say is the file that the run wrote, as long as it is there with the SHA-256 that the
database has; else the night drawn again from the tables. Both are read by another library than the
one that wrote them. Left out are the cells that people fill in and the lines of the sign-off.

A program that saves formulas without computing them (openpyxl) leaves no value in their cells:
those are counted, not named one by one, where the formula itself is that of the night.
"""

import re
import tempfile
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from decimal import Decimal, InvalidOperation
from itertools import islice
from pathlib import Path
from typing import IO, Any, NamedTuple

from openpyxl import load_workbook
from openpyxl.utils import get_column_letter
from python_calamine import CalamineError, CalamineWorkbook

from recon.files.formats.form_book import refuse_unfit_form
from recon.model.errors import OutputError, SourceUnreadableError
from recon.model.figures import NightFigures
from reports.reading.signed_copy import NAMES
from reports.reading.workbook_check import workbook_facts
from reports.sheets.breaks_sheet import ANSWERS, COLUMNS, HEADER_ROW, VERSION
from reports.sheets.run_sheet import TITLE as RUN_TITLE
from reports.summary.summary_tonight import SIGNED_FILE, SIGNED_NAMES
from reports.workbook import drawn

SUMMARY, BREAKS, GUIDE = "Summary", "Breaks", "Guide"
CELL_CHARACTERS_MAX = 60
"""Of a cell, in a message."""
NEWER_LATER = frozenset({"history_head", "History"})
"""Facts of the hidden sheet and the Guide that go on after the night."""
LEFT_OUT = frozenset({*ANSWERS, VERSION, "Answered by"})
"""Columns of Breaks that people fill in, or that an import fills in later."""
DIFFERENCES_MAX = 100_000
"""Cells of one workbook that are told; more say no more."""
NO_VALUES = (
    "{:,} formulas hold no value: whoever saved it last computed none (openpyxl does not). Open it "
    "in Excel or LibreOffice, save it there, and verify that file"
)
_EQUAL = Decimal("1e-15")
"""Another program may write the last digit of a quotient otherwise."""

Rows = list[list[Any]]
Address = tuple[str, str]
"""Sheet and cell."""


class Differing(NamedTuple):
    """Something that a workbook does not say as the night does."""

    sentence: str
    blank: Address | None = None
    """The cell, where nothing stands in it."""


def run_of(path: Path) -> str:
    """The run that a workbook says it is of; "" when it is not a workbook of ours."""
    try:
        refuse_unfit_form(path)
        return workbook_facts(CalamineWorkbook.from_path(str(path))).get("run_id", "")
    except (SourceUnreadableError, CalamineError, OSError):
        return ""


def differences(night: NightFigures | Path, path: Path, *, valued: bool = True) -> Iterator[str]:
    """Every cell that does not say what the night says, named with its sheet.

    `night` is the file that was written, or the figures to draw it from again; without `valued`
    it is nothing that formulas hold no values, where they are those of the night.

    Raises:
        OutputError: the workbook cannot be read.
    """
    try:
        with _true_file(night) as file:
            every = [*islice(_differing(file, path), DIFFERENCES_MAX)]
            blank = {each.blank for each in every if each.blank is not None}
            unvalued = _formulas_alike(file, path, cells=blank) if blank else frozenset()
        if unvalued and valued:
            yield NO_VALUES.format(len(unvalued))
        yield from (each.sentence for each in every if each.blank not in unvalued)
    except (CalamineError, OSError) as error:
        msg = f"{path} cannot be read ({error}): it is not a workbook of ours"
        raise OutputError(msg) from error


def _differing(file: IO[bytes], path: Path) -> Iterator[Differing]:
    workbook = CalamineWorkbook.from_path(str(path))
    signed = _sign_off_rows(file)
    file.seek(0)
    true = CalamineWorkbook.from_filelike(file)
    for title in true.sheet_names:
        if title not in workbook.sheet_names:
            yield Differing(f"the sheet {title} is missing")
            continue
        rows = (_rows(workbook, title), _rows(true, title))
        yield from _sheet(title, rows=rows, signed=signed)


def _formulas_alike(file: IO[bytes], path: Path, *, cells: set[Address]) -> frozenset[Address]:
    """Those of the cells that hold the night's formula, and so can be computed from the others."""
    file.seek(0)
    true, shown = (_formulas(of, cells=cells) for of in (file, path))
    return frozenset(address for address in shown if shown[address] == true.get(address))


def _formulas(of: IO[bytes] | Path, *, cells: set[Address]) -> dict[Address, str]:
    book = load_workbook(of, read_only=True)
    return {
        address: cell.value
        for title in {title for title, _ in cells} & {*book.sheetnames}
        for row in book[title].iter_rows()
        for cell in row
        if isinstance(cell.value, str) and cell.value.startswith("=")
        if (address := (title, cell.coordinate)) in cells
    }


def _rows(workbook: Any, title: str) -> Rows:
    """The values from A1 on: the reader begins at the first cell that holds something."""
    sheet = workbook.get_sheet_by_name(title)
    above, before = sheet.start or (0, 0)
    return [[]] * above + [[""] * before + row for row in sheet.iter_rows()]


@contextmanager
def _true_file(night: NightFigures | Path) -> Iterator[IO[bytes]]:
    """The file that the night's workbook should equal."""
    if isinstance(night, Path):
        with night.open("rb") as file:
            yield file
        return
    with tempfile.TemporaryFile() as file:
        drawn(night).write(file)
        file.seek(0)
        yield file


def _sign_off_rows(file: IO[bytes]) -> frozenset[int]:
    """Rows of page one that a signed copy fills in."""
    with zipfile.ZipFile(file) as book:
        names = book.read(NAMES).decode()
    wanted = (*SIGNED_NAMES.values(), *SIGNED_FILE)
    places = [re.search(rf'name="{name}"[^>]*>[^<]*?\$(\d+)', names) for name in wanted]
    return frozenset(int(match[1]) for match in places if match)


def _sheet(title: str, *, rows: tuple[Rows, Rows], signed: frozenset[int]) -> Iterator[Differing]:
    shown, true = rows
    if title == BREAKS:
        yield from _breaks(shown, true=true)
        return
    left_out = (
        signed if title == SUMMARY else _facts_left_out(true) if title in {RUN_TITLE, GUIDE} else ()
    )
    for number in range(1, max(len(shown), len(true)) + 1):
        if number not in left_out:
            sides = tuple(side[number - 1] if number <= len(side) else [] for side in rows)
            yield from _row(title, number=number, sides=(sides[0], sides[1]))


def _facts_left_out(true: Rows) -> frozenset[int]:
    return frozenset(number for number, row in enumerate(true, 1) if row[0] in NEWER_LATER)


def _breaks(shown: Rows, *, true: Rows) -> Iterator[Differing]:
    """Breaks by their key: people may sort them."""
    for number, sides in enumerate(zip(shown[:HEADER_ROW], true[:HEADER_ROW], strict=False), 1):
        # "Shown" counts what a filter leaves.
        yield from () if number == HEADER_ROW - 2 else _row(BREAKS, number=number, sides=sides)
    stored = {row[0]: row for row in true[HEADER_ROW:] if row[0] != ""}
    for number, row in enumerate(shown[HEADER_ROW:], HEADER_ROW + 1):
        if not row or all(cell == "" for cell in row):
            continue
        expected = stored.pop(row[0], None)
        if expected is None:
            sentence = f"{BREAKS}!A{number} says {_shown(row[0])}: no such break, or a second time"
            yield Differing(sentence)
        else:
            yield from _row(BREAKS, number=number, sides=(row, expected), left_out=_ANSWERED)
    for key in stored:
        yield Differing(f"{BREAKS} lacks the row of the break {key}")


_ANSWERED = frozenset(
    number for number, column in enumerate(COLUMNS, 1) if column.title in LEFT_OUT
)


def _row(
    title: str,
    *,
    number: int,
    sides: tuple[list[Any], list[Any]],
    left_out: frozenset[int] = frozenset(),
) -> Iterator[Differing]:
    shown, true = sides
    for column in range(1, max(len(shown), len(true)) + 1):
        shown_cell, stored = (side[column - 1] if column <= len(side) else "" for side in sides)
        if column not in left_out and not _is_same(shown_cell, stored):
            cell = f"{get_column_letter(column)}{number}"
            says = f"{title}!{cell} says {_shown(shown_cell)}, the night says {_shown(stored)}"
            yield Differing(says, (title, cell) if shown_cell == "" else None)


def _is_same(shown: object, stored: object) -> bool:
    if type(shown) is not type(stored) or shown == stored:
        return shown == stored
    try:
        left, other = Decimal(repr(shown)), Decimal(repr(stored))
    except InvalidOperation:
        return False
    return abs(left - other) <= _EQUAL * abs(other)


def _shown(cell: object) -> str:
    text = "nothing" if cell == "" else repr(cell) if isinstance(cell, str) else str(cell)
    return text if len(text) <= CELL_CHARACTERS_MAX else f"{text[:CELL_CHARACTERS_MAX]}…"
