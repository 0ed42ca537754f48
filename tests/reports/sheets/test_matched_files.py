"""The matches of a large night stand in two files beside its workbook, and their sums in it."""

import csv
import gzip
import hashlib
import re
from collections.abc import Callable
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import Any

import openpyxl
import pytest
from pyarrow import parquet

from recon.matching.breaks.result import MATCH_COLUMNS
from recon.model.figures import NightFigures, matched_of
from recon.steps.ground.csv_columns import csv_of
from reports.reading.workbook_check import beside_problems, sheet_totals
from reports.sheets import matched_sheet
from reports.sheets.matched_files import described, totals_in
from reports.workbook import write_workbook

EVIL = '=HYPERLINK("http://evil.example","click")'
PARQUET, PACKED = "night-matched.parquet", "night-matched.csv.gz"


@pytest.fixture
def workbook(figures: NightFigures, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The example night, written as if 48 matches were too many for a sheet."""
    monkeypatch.setattr(matched_sheet, "MATCHED_ROWS_MAX", 47)
    return write_workbook(figures, tmp_path / "night.xlsx")


def test_both_files_hold_every_row_exactly(workbook: Path, figures: NightFigures) -> None:
    """CSV says what `recon reconcile` writes; Parquet has the same rows with exact decimals."""
    whole = csv_of(next(figures.matches.batches()), columns=MATCH_COLUMNS)
    packed = gzip.decompress(workbook.with_name(PACKED).read_bytes()).decode()
    rows = list(csv.DictReader(packed.splitlines()))
    table = parquet.read_table(workbook.with_name(PARQUET)).to_pylist()

    assert packed == whole
    assert len(rows) == len(table) == 48
    for row, kept in zip(rows, table, strict=True):
        for name in MATCH_COLUMNS:
            told = Decimal(row[name]) if isinstance(kept[name], Decimal) else row[name]
            assert told == ("" if kept[name] is None else kept[name])
    assert table[0]["order_no"] == EVIL
    assert str(table[0]["gateway_amount"]) == "1234567.9000"


def test_the_sheet_adds_up_what_the_files_hold(workbook: Path, figures: NightFigures) -> None:
    """A pivot per currency and kind of match, whose sums and rows are those of all matches."""
    sheet = openpyxl.load_workbook(workbook)["Matched"]
    header = [cell.value for cell in sheet[4]]
    rows = [
        dict(zip(header, cells, strict=True))
        for cells in sheet.iter_rows(min_row=5, values_only=True)
    ]

    assert [(row["Ccy"], row["Matched rows"], row["What explains it"]) for row in rows] == [
        ("EUR", 11, None),
        ("EUR", 1, "rounding within the tolerance"),
        ("JPY", 12, None),
        ("KWD", 12, None),
        ("USD", 12, None),
    ]
    assert Decimal(str(rows[1]["Gateway"])) == Decimal("1234567.90")
    totals = sheet_totals(workbook)["match"]
    assert totals == (48, {"EUR": 1, "JPY": 0, "KWD": 0, "USD": 0})
    assert figures.matches.count == 48


def test_a_result_file_that_holds_all_matches_is_named_and_not_copied(
    figures: NightFigures, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The whole list beside the workbook once; it is added up and checked as the copies are."""
    monkeypatch.setattr(matched_sheet, "MATCHED_ROWS_MAX", 47)
    whole = tmp_path / "matches.csv"
    whole.write_text(csv_of(next(figures.matches.batches()), columns=MATCH_COLUMNS), "utf-8")
    told = replace(figures, matched_file=described(whole, rows=48))
    path = write_workbook(told, tmp_path / "night.xlsx")

    assert sorted(one.name for one in tmp_path.iterdir()) == ["matches.csv", "night.xlsx"]
    assert sheet_totals(path)["match"] == (48, {"EUR": 1, "JPY": 0, "KWD": 0, "USD": 0})
    assert [*beside_problems(path)] == []
    whole.write_text(whole.read_text("utf-8").replace("1234567.90", "1234567.91"), "utf-8")
    assert "was changed since" in "".join(beside_problems(path))


def test_sources_and_the_hidden_sheet_name_both_files(workbook: Path) -> None:
    """Name, rows and SHA-256: whoever has the workbook can tell whether the files are whole."""
    book = openpyxl.load_workbook(workbook)
    told = [[cell.value for cell in row] for row in book["Sources"].iter_rows()]
    hidden = {row[0].value: row[1].value for row in book["_run"].iter_rows(max_col=2)}
    for number, name in enumerate((PARQUET, PACKED), 1):
        content = workbook.with_name(name).read_bytes()
        digest = hashlib.sha256(content).hexdigest()
        (line,) = (row for row in told if row[1] == name)
        assert (line[2], line[3], line[9]) == (len(content), 48, digest)
        assert hidden[f"matched_file_{number}"] == f"48 {digest} {name}"


def _shortened(path: Path) -> None:
    lines = gzip.decompress(path.read_bytes()).splitlines(keepends=True)
    path.write_bytes(gzip.compress(b"".join(lines[:-1])))


def _one_cent_more(path: Path) -> None:
    text = gzip.decompress(path.read_bytes()).decode()
    path.write_bytes(gzip.compress(re.sub(r",0\.01,0\.01", ",0.02,0.01", text, count=1).encode()))


@pytest.mark.parametrize(
    ("spoil", "found"),
    [(_shortened, (47, 1)), (_one_cent_more, (48, 2))],
)
def test_a_file_that_lost_a_row_or_a_cent_is_not_the_sheets_total(
    workbook: Path, spoil: Callable[[Path], None], found: tuple[int, int]
) -> None:
    """T13 reads the files too: a night with other rows beside it fails."""
    spoil(workbook.with_name(PACKED))
    count, sums = sheet_totals(workbook)["match"]

    assert (count, sums["EUR"]) == found


def test_a_changed_or_lost_file_is_named(workbook: Path) -> None:
    """`recon verify` says which file beside the workbook is not the one that was written."""
    assert list(beside_problems(workbook)) == []
    _one_cent_more(workbook.with_name(PACKED))
    workbook.with_name(PARQUET).unlink()
    gone, changed = beside_problems(workbook)

    assert f"{PARQUET}, which holds the 48 matched rows of night.xlsx, is gone" in gone
    assert f"{PACKED} is not the file that night.xlsx names" in changed


def test_the_same_night_gives_the_same_files_and_another_never_takes_their_names(
    workbook: Path, figures: NightFigures, build: Any
) -> None:
    """Written again nothing is added; other rows are version 2, and the workbook names that."""
    write_workbook(figures, workbook)
    assert len(list(workbook.parent.iterdir())) == 3
    rows = next(figures.matches.batches())
    other = build(matches=matched_of(rows.iloc[::-1]))
    second = write_workbook(other, workbook)

    assert second.name == "night-v2.xlsx"
    assert list(beside_problems(second)) == list(beside_problems(workbook)) == []
    assert totals_in(workbook.with_name("night-matched-v2.parquet"))[0] == 48
