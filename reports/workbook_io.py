"""How workbooks are written and read back: handed down to the steps, which never import `reports`.

What draws is imported when the first workbook is written: most of what can go wrong comes earlier.
The steps are imported by whoever needs theirs: plain files need no database. Workbooks that came
back from people are read through the door of foreign files.
"""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import IO, TYPE_CHECKING

from recon.files.reader_process import file_reader
from recon.model.errors import ReaderBrokenError
from recon.model.resolutions import Returned
from recon.privacy.own_files import folder_for_now, for_owner

if TYPE_CHECKING:
    from recon.model.figures import NightFigures
    from recon.steps.acts import Drawings
    from recon.steps.admin.verify import Reading
    from recon.steps.approvals.returned_answers import Form
    from recon.steps.compare.sheets_proven import SheetTotals
    from recon.steps.night.report import Workbooks


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


def totals(path: Path, *, companions: Mapping[str, Path] | None = None) -> "SheetTotals":
    """What a workbook's sheets come to, as read back; `companions`: files that have no name yet."""
    from reports.reading.workbook_check import sheet_totals

    return sheet_totals(path, companions=companions)


def reading() -> "Reading":
    """How workbooks are held against the database."""
    from recon.steps.admin.verify import Reading
    from reports.reading.workbook_check import companion_problems

    return Reading(companion_problems, returned_run, returned_differences)


def form() -> "Form":
    """The reader of workbooks that come back."""
    from recon.steps.approvals.returned_answers import Form
    from reports.sheets.totals import keys_digest

    return Form(read=returned_answers, keys_digest=keys_digest)


def drawings() -> "Drawings":
    """What acts of people read and draw."""
    from recon.steps.acts import Drawings
    from reports.month_workbook import close_workbook
    from reports.reading import signed_copy as copies
    from reports.reading.read_back import write_import

    return Drawings(
        form=form(),
        close=close_workbook,
        copy=copies.signed_bytes,
        write_copy=copies.write_signed_copy,
        remove_copies=copies.remove_signed_copies,
        write_import=write_import,
        workbooks=workbooks(),
    )


def returned_answers(path: Path) -> Returned:
    """What a returned workbook says.

    Raises:
        SourceMissingError: there is no such file.
        SourceUnreadableError: not a workbook of ours, or it broke its reader.
    """
    with file_reader().read(path, answers, path=path) as read:
        returned: Returned = read.facts
        return returned


def returned_run(path: Path) -> str:
    """The run that a workbook says it is of; "" when it is not one that can be read."""
    try:
        with file_reader().read(path, run_of, path=path) as read:
            return str(read.facts)
    except ReaderBrokenError:
        return ""


def returned_differences(night: "NightFigures | Path", path: Path) -> Iterator[str]:
    """Every cell that does not say what the night says.

    Raises:
        OutputError: the workbook cannot be read.
        SourceUnreadableError: it broke its reader.
    """
    if isinstance(night, Path):
        yield from _reported(night, path)
        return
    from reports.workbook import drawn

    with folder_for_now("recon-drawn-") as folder:
        again = folder / "again.xlsx"
        with open(again, "wb", opener=for_owner) as file:
            drawn(night).write(file)
        yield from _reported(again, path)


def _reported(night: Path, path: Path) -> list[str]:
    with file_reader().read(path, differences, night=night, path=path) as read:
        return list(read.facts)


def answers(rows: IO[bytes], *, path: Path) -> Returned:  # noqa: ARG001 - all of it is facts
    """In the fork: the answers of a workbook."""
    from reports.reading.read_back import read_back

    return read_back(path)


def run_of(rows: IO[bytes], *, path: Path) -> str:  # noqa: ARG001 - all of it is facts
    """In the fork: the run of a workbook."""
    from reports.reading import workbook_check

    return workbook_check.run_of(path)


def differences(
    rows: IO[bytes],  # noqa: ARG001 - all of it is facts
    *,
    night: Path,
    path: Path,
) -> list[str]:
    """In the fork: the cells that differ."""
    from reports.reading import workbook_check

    return [*workbook_check.differences(night, path)]
