"""Functions that write and read workbooks, passed to the steps, which never import `reports`.

Drawing code is imported when the first workbook is written, because most errors occur earlier. The
steps are imported where they are needed, because plain files need no database. Workbooks returned
by people are read in the reader process for foreign files.
"""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import IO, TYPE_CHECKING

from recon.files.reader_process import file_reader
from recon.model.errors import ReaderBrokenError
from recon.model.resolutions import Returned
from recon.privacy.own_files import folder_for_now, for_owner

if TYPE_CHECKING:
    from recon.acts import Drawings
    from recon.model.figures import NightFigures
    from recon.steps.admin.verify import Reading
    from recon.steps.approvals.returned_answers import Form
    from recon.steps.compare.sheets_proven import SheetTotals
    from recon.steps.night.report import Workbooks


def workbooks() -> "Workbooks":
    """The writer and the reader of the run's workbook."""
    from recon.steps.night.report import Workbooks

    return Workbooks(write=write, totals=totals)


def write(figures: "NightFigures", path: Path) -> Path:
    """Write a workbook; return the path that was written."""
    from reports.workbook import write_workbook

    return write_workbook(figures, path)


class Drawn:
    """A writer that remembers the path it wrote; workbooks of earlier runs keep their names."""

    path: Path
    notes: tuple[str, ...] = ()

    def write(self, figures: "NightFigures", path: Path) -> Path:
        """Like the function `write`, and store the path and the notes of the figures."""
        self.path, self.notes = write(figures, path), figures.notes
        return self.path


def totals(path: Path, *, companions: Mapping[str, Path] | None = None) -> "SheetTotals":
    """Totals of a workbook's sheets, as read back; `companions`: paths of files not yet renamed."""
    from reports.reading.workbook_check import sheet_totals

    return sheet_totals(path, companions=companions)


def reading() -> "Reading":
    """The functions that compare workbooks with the database."""
    from recon.steps.admin.verify import Reading
    from reports.reading.workbook_check import companion_problems

    return Reading(companion_problems, returned_run, returned_differences)


def form() -> "Form":
    """The reader of returned workbooks."""
    from recon.steps.approvals.returned_answers import Form
    from reports.sheets.totals import keys_digest

    return Form(read=returned_answers, keys_digest=keys_digest)


def drawings() -> "Drawings":
    """The functions with which people's actions read and write workbooks."""
    from recon.acts import Drawings
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
    """Read the answers of a returned workbook.

    Raises:
        SourceMissingError: there is no such file.
        SourceUnreadableError: not a workbook of ours, or the reader process crashed on it.
    """
    with file_reader().read(path, answers, path=path) as read:
        returned: Returned = read.facts
        return returned


def returned_run(path: Path) -> str:
    """The run id stated in a workbook; "" when it is not a readable one of ours."""
    try:
        with file_reader().read(path, run_of, path=path) as read:
            return str(read.facts)
    except ReaderBrokenError:
        return ""


def returned_differences(night: "NightFigures | Path", path: Path) -> Iterator[str]:
    """Every cell that differs from the workbook that the run gives.

    Raises:
        OutputError: the workbook cannot be read.
        SourceUnreadableError: the reader process crashed on it.
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
    """Read the answers of a workbook; runs in the reader process."""
    from reports.reading.read_back import read_back

    return read_back(path)


def run_of(rows: IO[bytes], *, path: Path) -> str:  # noqa: ARG001 - all of it is facts
    """Read the run of a workbook; runs in the reader process."""
    from reports.reading import workbook_check

    return workbook_check.run_of(path)


def differences(
    rows: IO[bytes],  # noqa: ARG001 - all of it is facts
    *,
    night: Path,
    path: Path,
) -> list[str]:
    """List the cells that differ; runs in the reader process."""
    from reports.reading import workbook_check

    return [*workbook_check.differences(night, path)]
