"""Dates of which a spreadsheet took the month for the day are refused, in every kind of file."""

import csv
from datetime import date
from pathlib import Path

import openpyxl
import pytest

from recon.config.file_layouts import FileLayout
from recon.config.rules import Rules
from recon.files.typing.table_schema import BANK, GATEWAY, LEDGER, ORDERS, SETTLEMENT, TableSchema
from recon.files.typing.typed_table import read_table

KINDS = {
    "ordered_at": (ORDERS, "{n},EUR,10.00,paid,{t}", "order_no,currency,amount,status"),
    "transaction_date": (
        GATEWAY,
        "{n},t{n},EUR,10.00,3000,1,,{t}",
        "order_no,transaction_id,currency,amount,payment_status,query_result,reference_no",
    ),
    "booked_at": (
        LEDGER,
        "E{n},{n},capture,EUR,10.00,{t}",
        "entry_id,order_no,entry_type,currency,amount",
    ),
    "settled_on": (
        SETTLEMENT,
        "B1,capture,{n},t{n},,EUR,10.00,0.00,10.00,{t}",
        "batch_id,entry_type,order_no,transaction_id,reference_no,currency,gross,fee,net",
    ),
    "booked_on": (
        BANK,
        "DE89370400440532013000,1,2026-04-13,2026-04-30,,,{n},2026-04-13,EUR,10.00,{t}",
        "iban,statement_no,from_date,to_date,opening,closing,entry_no,value_on,currency,amount",
    ),
}
"""Column of a date -> table, a row, the names of its other columns."""
CONSTANTS = {"merchant_id": "M1", "account_id": "A1"}


def read(
    folder: Path, column: str, cells: list[str | date], *, times: str = "", ending: str = "csv"
) -> dict[int, str]:
    """Line -> why its row is refused, of a file with these dates."""
    schema, row, names = KINDS[column]
    path = folder / f"export.{ending}"
    grid: list[list[str | date]] = [[*names.split(","), column]]
    for number, cell in enumerate(cells, start=1):
        *others, _ = row.format(n=number, t="").split(",")
        grid.append([*others, cell])
    if ending == "xlsx":
        book = openpyxl.Workbook()
        for line in grid:
            book.active.append(line)
        book.save(path)
    else:
        with path.open("w", newline="") as out:
            csv.writer(out).writerows(grid)
    return _rejects(path, schema=schema, times=times)


def _rejects(path: Path, *, schema: TableSchema, times: str) -> dict[int, str]:
    constants = {name: text for name, text in CONSTANTS.items() if name in schema.names}
    layout = FileLayout(constants=constants, times=times)
    table = read_table(path, kind=schema.kind, rules=Rules(), layout=layout, schema=schema)
    assert len(table.frame) + len(table.rejects) == table.source_file.rows_read
    return {reject.line: reject.reason for reject in table.rejects}


@pytest.mark.parametrize("column", KINDS)
@pytest.mark.parametrize("text", ["25/04/2026", "4/25/2026"])
@pytest.mark.parametrize("times", ["", "%-d/%-m/%Y", "%-m/%-d/%Y"])
@pytest.mark.parametrize("ending", ["csv", "xlsx"])
def test_dates_of_day_12_and_below_beside_texts_above_are_refused(
    column: str, text: str, times: str, ending: str, tmp_path: Path
) -> None:
    """3 April in a file of days before months became 4 March; 25 April stayed a text."""
    cells = [date(2026, 3, 4), text, date(2026, 12, 4)]
    refused = read(tmp_path, column, cells, times=times, ending=ending)
    assert {2, 4} <= set(refused)
    if ending == "xlsx" or not times:
        assert f"beside texts such as {text}" in refused[2]
        assert "day and month" in refused[2]


@pytest.mark.parametrize(
    "cells",
    [
        [date(2026, 3, 4), date(2026, 12, 4)],
        [date(2026, 3, 4), date(2026, 3, 25), "25/04/2026"],
        [date(2026, 3, 4), "5/6/2026"],
    ],
)
def test_dates_that_nothing_speaks_against_are_taken(
    cells: list[str | date], tmp_path: Path
) -> None:
    """A real date above 12 shows that none was turned; so does a text that could have been one."""
    dates = {at for at, cell in enumerate(cells, start=2) if isinstance(cell, date)}
    assert not dates & set(read(tmp_path, "ordered_at", cells, ending="xlsx"))


def test_a_real_date_in_a_file_of_texts_may_be_turned_although_no_text_is_beside_it(
    tmp_path: Path,
) -> None:
    """In the first days of a month every date of the file is one that a spreadsheet turns."""
    cells = [date(2026, 3, 4), date(2026, 12, 4)]
    refused = read(tmp_path, "settled_on", cells, times="%d/%m/%Y", ending="xlsx")
    assert list(refused) == [2, 3]
    assert "and no text as %d/%m/%Y" in refused[2]
    assert not read(tmp_path, "settled_on", cells, times="%Y-%m-%d", ending="xlsx")
