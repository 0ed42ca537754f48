from pathlib import Path

import pytest

from recon.files.formats.raw_reader import read_raw
from recon.model.errors import SourceMissingError, SourceUnreadableError


@pytest.mark.parametrize("name", ["orders.txt", "orders", "orders.csv.gz", "orders.xls", ".csv"])
def test_a_format_that_is_not_known_is_refused(tmp_path: Path, name: str) -> None:
    """The ending of a name decides the format; other endings are told what is read."""
    path = tmp_path / name
    path.write_text("a,b\n1,2\n")
    with pytest.raises(SourceUnreadableError, match=r"does not end in \.csv, \.xlsx, \.parquet"):
        read_raw(path, wanted=frozenset("ab"))


def test_endings_may_be_capitals(tmp_path: Path) -> None:
    """Windows writes ORDERS.CSV."""
    path = tmp_path / "ORDERS.CSV"
    path.write_text("a,b\n1,2\n")
    assert read_raw(path, wanted=frozenset("ab")).rows_read == 1


def test_an_absent_file_of_an_unknown_format_is_absent(tmp_path: Path) -> None:
    """That there is no such file is told before what its name might mean."""
    with pytest.raises(SourceMissingError, match="does not exist"):
        read_raw(tmp_path / "orders", wanted=frozenset("ab"))
