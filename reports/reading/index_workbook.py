"""The index workbook: all accounts of one night on one page, each linked to its own workbook.

No amounts: accounts have different currencies, and the index says where to look, not what is there.
"""

import os
from collections.abc import Sequence
from datetime import date, datetime, time
from pathlib import Path
from typing import Any
from urllib.parse import quote

from openpyxl.worksheet.hyperlink import Hyperlink

from recon.model.errors import OutputError
from recon.model.words import Verdict
from recon.steps.night.night_index import IndexLine
from reports.drawing import look as looks
from reports.drawing.draft import Draft
from reports.drawing.in_place import put_in_place
from reports.drawing.look import Look
from reports.drawing.page import print_on, protect, put_header, put_heading, set_widths

HEADER_ROW = 4
WIDTHS = (12, 14, 16, 9, 9, 16, 34, 48, 64)
TITLES = (
    "Merchant",
    "Account",
    "Verdict",
    ">Breaks",
    ">High",
    ">Needs a person",
    "Signed",
    "Void because",
    "Workbook",
)
WARNING = frozenset({Verdict.BREAKS_OPEN.value})


def write_index(lines: Sequence[IndexLine], *, day: date, folder: Path) -> Path:
    """Write `nights-<date>.xlsx` into the folder, or -v2 when another one stands there.

    Raises:
        OutputError: the folder cannot be written.
    """
    target = folder / f"nights-{day}.xlsx"
    try:
        return put_in_place(index_bytes(lines, day=day, folder=folder), path=target)
    except OSError as error:
        msg = (
            f"the index cannot be written to {folder} ({error.strerror}); the nights are kept: "
            "name a folder that exists and can be written"
        )
        raise OutputError(msg) from error


def index_bytes(lines: Sequence[IndexLine], *, day: date, folder: Path) -> bytes:
    """The XLSX file; links are relative to the folder, so that both may be moved together."""
    draft = Draft(timezone="UTC")
    sheet = draft.sheet("Nights")
    proven = sum(line.night.standing == Verdict.RECONCILED for line in lines)
    sentence = f"{proven} of {len(lines)} accounts reconciled. A night that never ran is missing."
    put_heading(draft, sheet, title=f"All accounts, {day}", sentence=sentence)
    put_header(draft, sheet, row=HEADER_ROW, titles=TITLES)
    set_widths(sheet, WIDTHS)
    for row, line in enumerate(lines, HEADER_ROW + 1):
        _put_line(draft, sheet, row, line=line, folder=folder)
    sheet.freeze_panes = f"A{HEADER_ROW + 1}"
    print_on(sheet, about=f"All accounts, night of {day}", title_rows=f"{HEADER_ROW}:{HEADER_ROW}")
    protect(sheet)
    properties: Any = draft.workbook.properties
    properties.title, properties.creator = f"Nights of {day}", "recon"
    properties.created = properties.modified = datetime.combine(day, time())
    return draft.content()


def _put_line(draft: Draft, sheet: Any, row: int, *, line: IndexLine, folder: Path) -> None:
    night = line.night
    draft.text(sheet, (row, 1), night.merchant_id, looks.BODY_TEXT)
    draft.text(sheet, (row, 2), night.account_id, looks.BODY_TEXT)
    draft.text(sheet, (row, 3), night.standing, _look_of(night.standing))
    for column, count in enumerate((line.breaks, line.grave_breaks, line.waiting), 4):
        draft.number(sheet, (row, column), count)
    names = (
        ", ".join(f"{signature.by} ({signature.role})" for signature in night.signed)
        or "not signed"
    )
    draft.text(sheet, (row, 7), names, looks.BODY_TEXT)
    draft.text(sheet, (row, 8), night.void_because, looks.BODY_TEXT)
    if not night.workbook:
        draft.text(sheet, (row, 9), "no workbook", looks.BODY_TEXT)
        return
    put_file_link(draft, sheet, (row, 9), path=Path(night.workbook), folder=folder)


def put_file_link(
    draft: Draft, sheet: Any, at: tuple[int, int], *, path: Path, folder: Path
) -> None:
    """A link to a file, relative to the folder of the workbook that has it."""
    draft.text(sheet, at, path.name, looks.LINK)
    cell = sheet.cell(row=at[0], column=at[1])
    target = quote(Path(os.path.relpath(path, folder)).as_posix())
    cell.hyperlink = Hyperlink(ref=cell.coordinate, target=target, display=path.name)
    # The library sets a style of its own for links.
    cell._style = draft.style(looks.LINK)  # noqa: SLF001


def _look_of(standing: str) -> Look:
    fill, colour = looks.BAD
    if standing == Verdict.RECONCILED:
        fill, colour = looks.GOOD
    elif standing in WARNING:
        fill, colour = looks.WARN
    return looks.BODY_TEXT.but(fill=fill, colour=colour, bold=True)
