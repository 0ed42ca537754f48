"""Workbooks that came back from people, read through the door of foreign files."""

import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import IO

from recon.files.reader import file_reader
from recon.model.errors import ReaderBrokenError
from recon.model.figures import NightFigures
from recon.model.resolutions import Returned


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


def returned_differences(night: NightFigures | Path, path: Path) -> Iterator[str]:
    """Every cell that does not say what the night says.

    Raises:
        OutputError: the workbook cannot be read.
        SourceUnreadableError: it broke its reader.
    """
    if isinstance(night, Path):
        yield from _told(night, path)
        return
    from reports.workbook import drawn

    with tempfile.NamedTemporaryFile(suffix=".xlsx") as again:
        drawn(night).write(again.file)
        again.flush()
        yield from _told(Path(again.name), path)


def _told(night: Path, path: Path) -> list[str]:
    with file_reader().read(path, differences, night=night, path=path) as read:
        return list(read.facts)


def answers(rows: IO[bytes], *, path: Path) -> Returned:  # noqa: ARG001 - all of it is facts
    """In the fork: the answers of a workbook."""
    from reports.reading.read_back import read_back

    return read_back(path)


def run_of(rows: IO[bytes], *, path: Path) -> str:  # noqa: ARG001 - all of it is facts
    """In the fork: the run of a workbook."""
    from reports.reading import comparison

    return comparison.run_of(path)


def differences(
    rows: IO[bytes],  # noqa: ARG001 - all of it is facts
    *,
    night: Path,
    path: Path,
) -> list[str]:
    """In the fork: the cells that differ."""
    from reports.reading import comparison

    return [*comparison.differences(night, path)]
