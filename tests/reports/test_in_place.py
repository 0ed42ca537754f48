"""A finished file takes its place whole, and never over something else."""

from pathlib import Path

import pytest

from recon.errors import OutputError
from reports.in_place import VERSIONS_MAX, put_in_place


@pytest.mark.parametrize("lock", ["~$night.xlsx", ".~lock.night.xlsx#"])
def test_a_workbook_that_is_open_is_not_touched(tmp_path: Path, lock: str) -> None:
    """Excel and LibreOffice leave a lock beside the file they have open."""
    (tmp_path / lock).write_bytes(b"")

    assert put_in_place(b"new", path=tmp_path / "night.xlsx") == tmp_path / "night-v2.xlsx"


def test_too_many_versions_are_refused_with_what_to_do(tmp_path: Path) -> None:
    """A folder that fills up without end is a fault that somebody must see."""
    for version in range(2, VERSIONS_MAX + 1):
        (tmp_path / f"night-v{version}.xlsx").write_bytes(b"other")
    (tmp_path / "night.xlsx").write_bytes(b"other")

    with pytest.raises(OutputError, match="move old workbooks away"):
        put_in_place(b"new", path=tmp_path / "night.xlsx")


def test_a_folder_that_is_missing_is_an_operating_system_error(tmp_path: Path) -> None:
    """The step knows the folder; it tells people what to do."""
    with pytest.raises(OSError, match="No such file"):
        put_in_place(b"new", path=tmp_path / "nowhere" / "night.xlsx")


def test_the_version_stands_before_both_endings_of_a_packed_file(tmp_path: Path) -> None:
    """A program that opens files by their ending still knows what the second version is."""
    (tmp_path / "a.b-matched.csv.gz").write_bytes(b"other")

    written = put_in_place(b"new", path=tmp_path / "a.b-matched.csv.gz")
    assert written.name == "a.b-matched-v2.csv.gz"
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "a.b-matched-v2.csv.gz",
        "a.b-matched.csv.gz",
    ]
