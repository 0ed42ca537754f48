"""How workbooks are written and read back: the package `reports`, handed down to the steps.

`reports` is imported when the first workbook is written: most of what can go wrong comes earlier.
The steps are imported by whoever needs theirs: plain files need no database.
"""

from collections.abc import Mapping, Sequence
from datetime import date, datetime
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from recon.model.figures import NightFigures
    from recon.model.resolutions import KeptAnswer
    from recon.steps.care.verify import Reading
    from recon.steps.compare.sheets_proven import SheetTotals
    from recon.steps.compare.what_if import WhatIf
    from recon.steps.ground.environment import Environment
    from recon.steps.night.night_index import IndexLine
    from recon.steps.night.report import Workbooks
    from recon.steps.people.at_desk import Acts
    from recon.steps.people.returned_answers import Form
    from recon.steps.people.sign_off import Night


def workbooks() -> "Workbooks":
    """The writer and the reader of the product's workbook."""
    from recon.steps.night.report import Workbooks

    return Workbooks(write=write, totals=totals)


def write(figures: "NightFigures", path: Path) -> Path:
    """Write a workbook; gives the path that was written."""
    from reports.workbook import write_workbook

    return write_workbook(figures, path)


class Drawn:
    """The writer of a workbook, which remembers its file: an earlier run's stays under its name."""

    path: Path
    notes: tuple[str, ...] = ()

    def write(self, figures: "NightFigures", path: Path) -> Path:
        """As `write`."""
        self.path, self.notes = write(figures, path), figures.notes
        return self.path


def totals(path: Path, *, beside: Mapping[str, Path] | None = None) -> "SheetTotals":
    """What a workbook's sheets come to, as read back; `beside`: files that have no name yet."""
    from reports.reading.workbook_check import sheet_totals

    return sheet_totals(path, beside=beside)


def reading() -> "Reading":
    """How workbooks are held against the database."""
    from recon.cli.returned_workbooks import returned_differences, returned_run
    from recon.steps.care.verify import Reading
    from reports.reading.workbook_check import beside_problems

    return Reading(beside_problems, returned_run, returned_differences)


def form() -> "Form":
    """The reader of workbooks that come back."""
    from recon.cli.returned_workbooks import returned_answers
    from recon.steps.people.returned_answers import Form
    from reports.sheets.run_sheet import keys_digest

    return Form(read=returned_answers, keys_digest=keys_digest)


def signing_acts() -> "Acts":
    """What people put their names under at the desk, with the drawers of both workbooks."""
    from recon.steps.care.months_at_desk import acts_of_months
    from recon.steps.people.at_desk import acts_of_signatures
    from reports.month_workbook import close_workbook
    from reports.reading.signed_copy import signed_bytes

    return {**acts_of_months(close_workbook), **acts_of_signatures(signed_bytes)}


def signed_copy(night: "Night", *, answers: "Mapping[str, KeptAnswer]", timezone: str) -> Path:
    """The copy of a workbook that says who signed it, on which answers; gives its path."""
    from reports.reading.signed_copy import write_signed_copy

    return write_signed_copy(
        Path(night.workbook), signatures=night.signed, answers=answers, timezone=timezone
    )


def remove_signed_copies(run_id: str, *, environment: "Environment") -> list[Path]:
    """Remove the copies that name one person, who took their name back; their paths."""
    from recon.steps.people.sign_off import file_to_sign
    from reports.reading import signed_copy as copies

    path, _ = file_to_sign(run_id, environment=environment)
    return copies.remove_signed_copies(Path(path)) if path else []


def index(lines: "Sequence[IndexLine]", *, day: date, folder: Path) -> Path:
    """The workbook over all accounts of a night; gives its path."""
    from reports.reading.index_workbook import write_index

    return write_index(lines, day=day, folder=folder)


def write_what_if(answer: "WhatIf", *, path: Path, at: datetime) -> Path:
    """The workbook of nights under candidate rules; gives its path."""
    from reports.reading import what_if_workbook

    return what_if_workbook.write_what_if(answer, path=path, at=at)
