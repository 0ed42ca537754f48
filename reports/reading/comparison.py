"""A workbook held against its night, cell by cell: which cell says something else?

What it should say is the file that the run wrote, as long as it is there with the SHA-256 that the
database has; else the night drawn again from the tables. Left out are the cells that people fill in
and the lines of the sign-off.
"""

import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from decimal import Decimal, InvalidOperation
from itertools import islice, zip_longest
from pathlib import Path
from typing import IO, Any

from openpyxl.utils import get_column_letter

from recon.files.formats.form_book import refuse_unfit_form
from recon.model.errors import OutputError, SourceUnreadableError
from recon.model.figures import NightFigures
from reports.reading.workbook_check import UNREADABLE, Cells, opened, rows_in, workbook_facts
from reports.sheets.breaks_sheet import ANSWERED_BY, ANSWERS, COLUMNS, HEADER_ROW, KEY_AT, break_of
from reports.sheets.breaks_sheet import TITLE as BREAKS
from reports.sheets.page_one import SIGN_OFF, SIGNED_FILE
from reports.sheets.page_one import TITLE as SUMMARY
from reports.sheets.run_sheet import TITLE as RUN_TITLE
from reports.workbook import drawn

CELL_CHARACTERS_MAX = 60
"""Of a cell, in a message."""
NEWER_LATER = frozenset({"history_head", "History"})
"""Facts of the hidden sheet and the Guide that go on after the night."""
LEFT_OUT = frozenset({*ANSWERS, ANSWERED_BY})
"""Columns of Breaks that people fill in, or that an import fills in later."""
DIFFERENCES_MAX = 100_000
"""Cells of one workbook that are told; more say no more."""
_EQUAL = Decimal("1e-15")
"""Another program may write the last digit of a quotient otherwise."""
_ANSWERED = frozenset(
    number for number, column in enumerate(COLUMNS, 1) if column.title in LEFT_OUT
)


def run_of(path: Path) -> str:
    """The run that a workbook says it is of; "" when it is not a workbook of ours."""
    try:
        refuse_unfit_form(path)
        with opened(path) as book:
            return workbook_facts(book).get("run_id", "")
    except (SourceUnreadableError, *UNREADABLE):
        return ""


def differences(night: NightFigures | Path, path: Path) -> Iterator[str]:
    """Every cell that does not say what the night says, named with its sheet.

    `night` is the file that was written, or the figures to draw it from again.

    Raises:
        OutputError: the workbook cannot be read.
    """
    try:
        with _true_file(night) as file, opened(file) as true, opened(path) as book:
            yield from islice(_differing(book, true=true), DIFFERENCES_MAX)
    except UNREADABLE as error:
        msg = f"{path} cannot be read ({error}): it is not a workbook of ours"
        raise OutputError(msg) from error


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


def _differing(book: Any, *, true: Any) -> Iterator[str]:
    for title in true.sheetnames:
        if title not in book.sheetnames:
            yield f"the sheet {title} is missing"
            continue
        shown, stored = rows_in(book, title), rows_in(true, title)
        if title == BREAKS:
            yield from _breaks([*shown], true=[*stored])
            continue
        nothing: Cells = ()
        for number, (row, expected) in enumerate(zip_longest(shown, stored, fillvalue=nothing), 1):
            if not _is_left_out(title, expected):
                yield from _row(title, number=number, sides=(row, expected))


def _is_left_out(title: str, expected: Cells) -> bool:
    """Lines that a signed copy fills in, and facts that go on after the night."""
    if title == SUMMARY:
        return not {*SIGN_OFF.values(), *SIGNED_FILE}.isdisjoint(map(str, expected))
    return title in {RUN_TITLE, "Guide"} and bool(expected) and expected[0] in NEWER_LATER


def _breaks(shown: Sequence[Cells], *, true: Sequence[Cells]) -> Iterator[str]:
    """Breaks by their key: people may sort them."""
    for number, sides in enumerate(zip(shown[:HEADER_ROW], true[:HEADER_ROW], strict=False), 1):
        yield from _row(BREAKS, number=number, sides=sides)
    stored = {break_of(row): row for row in true[HEADER_ROW:] if break_of(row)}
    for number, row in enumerate(shown[HEADER_ROW:], HEADER_ROW + 1):
        if all(cell == "" for cell in row):
            continue
        expected = stored.pop(break_of(row), None)
        if expected is None:
            cell = f"{BREAKS}!{get_column_letter(KEY_AT + 1)}{number}"
            yield f"{cell} says {_shown(break_of(row))}: no such break, or a second time"
        else:
            yield from _row(BREAKS, number=number, sides=(row, expected), left_out=_ANSWERED)
    for key in stored:
        yield f"{BREAKS} lacks the row of the break {key}"


def _row(
    title: str,
    *,
    number: int,
    sides: tuple[Cells, Cells],
    left_out: frozenset[int] = frozenset(),
) -> Iterator[str]:
    for column, (shown, stored) in enumerate(zip_longest(*sides, fillvalue=""), 1):
        if title == BREAKS and column == KEY_AT + 1:
            shown, stored = (str(each).partition(".")[0] for each in (shown, stored))  # noqa: PLW2901 - its version may grow
        if column not in left_out and not _is_same(shown, stored):
            cell = f"{title}!{get_column_letter(column)}{number}"
            yield f"{cell} says {_shown(shown)}, the night says {_shown(stored)}"


def _is_same(shown: object, stored: object) -> bool:
    if shown == stored or isinstance(shown, str) or isinstance(stored, str):
        return shown == stored
    try:
        left, other = Decimal(repr(shown)), Decimal(repr(stored))
    except InvalidOperation:
        return False
    return abs(left - other) <= _EQUAL * abs(other)


def _shown(cell: object) -> str:
    text = "nothing" if cell == "" else repr(cell) if isinstance(cell, str) else str(cell)
    return text if len(text) <= CELL_CHARACTERS_MAX else f"{text[:CELL_CHARACTERS_MAX]}…"
