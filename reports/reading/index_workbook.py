"""The index workbook: all accounts of one business date on one page, linked to their workbooks.

It has no amounts: accounts differ in currency, and the index only tells where to look.
"""

import os
from collections.abc import Sequence
from datetime import date, datetime, time
from pathlib import Path
from typing import Any
from urllib.parse import quote

from recon.model.terms import Verdict
from recon.steps.night.monitor import IndexLine
from reports.drawing.blocks import Column, Listing, Sheet, Workbook, saved
from reports.drawing.look import CellLink

STATUS_TONES = {Verdict.RECONCILED.value: "good", Verdict.BREAKS_OPEN.value: "warn"}
COLUMNS = (
    Column("Merchant", 12, "merchant"),
    Column("Account", 14, "account"),
    Column("Verdict", 16, "status", tone=lambda row: STATUS_TONES.get(row["status"], "bad")),
    Column("Breaks", 9, "breaks", "count"),
    Column("High", 9, "severe", "count"),
    Column("Needs a person", 16, "waiting", "count"),
    Column("Signed", 34, "signed"),
    Column("Void because", 48, "void_because", wrap=True),
    Column("Workbook", 64, "workbook"),
)


def write_index(lines: Sequence[IndexLine], *, day: date, folder: Path) -> Path:
    """Write `nights-<date>.xlsx` into the folder, or -v2 when a different one exists.

    Links are relative to the folder, so that both can be moved together.

    Raises:
        OutputError: the folder cannot be written.
    """
    proven = sum(line.night.status == Verdict.RECONCILED for line in lines)
    sheet = Sheet(
        "Nights",
        [Listing(COLUMNS, [_row(line, folder=folder) for line in lines])],
        heading=f"All accounts, {day}",
        about=f"{proven} of {len(lines)} accounts reconciled. A night that never ran is missing.",
        frozen=(4, 0),
    )
    footer = f"All accounts, night of {day}"
    book = Workbook(f"Nights of {day}", [sheet], datetime.combine(day, time()), footer=footer)
    advice = "; the nights are kept: name a folder that exists and can be written"
    path = folder / f"nights-{day}.xlsx"
    return saved(book, path=path, what="the index", advice=advice)


def _row(line: IndexLine, *, folder: Path) -> dict[str, Any]:
    night = line.night
    names = ", ".join(f"{signature.by} ({signature.role})" for signature in night.signed)
    path = Path(night.workbook)
    return {
        "merchant": night.merchant_id,
        "account": night.account_id,
        "status": night.status,
        "breaks": line.breaks,
        "severe": line.severe_breaks,
        "waiting": line.waiting,
        "signed": names or "not signed",
        "void_because": night.void_because,
        "workbook": file_link(path, folder=folder) if night.workbook else "no workbook",
    }


def file_link(path: Path, *, folder: Path) -> CellLink:
    """A link to a file, relative to the folder of the workbook that contains it."""
    return CellLink(path.name, quote(Path(os.path.relpath(path, folder)).as_posix()), is_file=True)
