from dataclasses import astuple, replace
from datetime import date
from decimal import Decimal
from hashlib import sha256
from typing import Any

import openpyxl
import pytest

from recon.model.business_date import BusinessCalendar, BusinessMonth
from recon.month.close import (
    FIGURE_COLUMNS,
    Blocker,
    OpenItem,
    PreparedClose,
    month_files,
    name_of,
    reviewed_close,
    write_files,
)
from recon.month.stated import NightOfMonth, StatedMonth, statement_of
from recon.month.statement import MonthFrame
from reports import month_workbook
from reports.drawing.blocks import put_in_place
from reports.month_workbook import close_workbook
from reports.sheets.labels import label_of
from tests.recon.steps.month.month_folders import due_of, nights_of
from tests.recon.steps.month.month_truth import PLACE, MonthTruth
from tests.recon.steps.month.test_truth_of_months import ACCOUNTS

TOP = 4
"""Row of a list's header."""
SHEETS = (
    *("Close", "Statement", "Open items", "In transit", "Ledger", "Straddling", "Journals"),
    *("Open breaks", "Prior periods", "Facts", "Assurance", "Guide"),
)
CODE = "MISSING_IN_LEDGER"
SUM = "Sum EUR 2026-11"


@pytest.fixture(scope="module")
def month(tmp_path_factory):
    truth = MonthTruth(date(2026, 11, 1), 9, per_day=2)
    nights = nights_of(truth, tmp_path_factory.mktemp("month"), every=7)
    frame = MonthFrame(
        BusinessMonth.named("2026-11"),
        PLACE,
        BusinessCalendar.of(),
        due_of(truth, nights),
        ACCOUNTS,
    )
    return StatedMonth(
        statement=statement_of(frame, nights=nights),
        nights=[
            NightOfMonth(date(2026, 11, 2), "run-1", "BREAKS OPEN", ""),
            NightOfMonth(date(2026, 11, 3), "", "missing", "no night ran"),
        ],
        known_by="2026-12-05",
        is_first=False,
        rules={"a" * 64: "2026-11-02", "b" * 64: "2026-11-20"},
    )


def written(month, path):
    """The workbook of a month beside its files."""
    return written_close(close_of(month), path)


def written_close(close, path):
    """The workbook of a close beside its files."""
    return put_in_place(close_workbook(close, reviewed_close(close)), path=path)


def close_of(month):
    """A close of the month that something blocks."""
    blocker = Blocker("2026-11-03: no night ran", "Anna Berg", "recon nights")
    item = OpenItem(f"Break {CODE}", 2, "EUR", 500, "Open breaks", CODE)
    return PreparedClose(month, (blocker,), (item,), {}, "workbook.xlsx")


def test_a_close_is_the_statement_with_verdict_journals_and_breaks(month, tmp_path):
    path = written_close(close_of(month), tmp_path / "close.xlsx")
    book = openpyxl.load_workbook(path, data_only=True)
    first = [[cell.value for cell in row] for row in book["Close"].iter_rows()]

    assert tuple(book.sheetnames) == SHEETS
    assert first[2][0] == "NOT READY"
    assert ["2026-11-03: no night ran", "Anna Berg", None, None, "recon nights"] in first
    assert [f"{label_of(CODE).title} ({CODE})", 2, 5, "EUR", "Open breaks"] in first
    assert any(str(row[0]).startswith("ESTIMATE") for row in first)
    journals = [row[0].value for row in book["Journals"].iter_rows(min_row=TOP + 1)]
    lines = month.statement.journals
    assert [kind for kind in journals if kind in {*lines["kind"]}] == [*lines["kind"]]
    sums = {
        str(row[0].value): [Decimal(str(cell.value)) for cell in row[3:5]] + [row[5].value]
        for row in book["Journals"].iter_rows()
        if str(row[0].value).startswith("Sum ")
    }
    expected = lines.groupby([lines["currency"], lines["date"].str.slice(0, 7)])["debit"].sum()
    assert len(sums) == len(expected) > len({*lines["currency"]})
    assert sums[SUM] == [Decimal(int(expected["EUR", "2026-11"])) / 100] * 2 + ["OK"]
    assert {row[-1] for row in sums.values()} == {"OK"}
    assert book["Open breaks"].max_row == TOP + len(month.statement.breaks)


def test_the_parts_of_a_journal_stand_together_day_by_day(month):
    lines = month.statement.journals
    runs = lines[["journal_id", "date"]].ne(lines[["journal_id", "date"]].shift()).any(axis=1)

    assert lines.groupby("journal_id")["date"].nunique().max() > 1
    assert runs.sum() == len(lines[["journal_id", "date"]].drop_duplicates())


@pytest.mark.parametrize("is_blocked", [True, False], ids=["blocked", "ready"])
def test_page_one_says_what_to_do_and_what_is_signed(month, tmp_path, *, is_blocked):
    """The command that signs names the digest of exactly this close; what blocks it comes first.

    Below stand the closings of the statement, so that one page shows what is signed.
    """
    close = close_of(month)
    close = close if is_blocked else replace(close, blockers=())
    rows = rows_of_sheet(written_close(close, tmp_path / "close.xlsx"), "Close")
    texts = [str(row[0]) for row in rows if row[0]]
    digest = reviewed_close(close).digest

    assert any(f"--sign reviewer --as NAME --digest {digest[:16]}" in text for text in texts) is (
        not is_blocked
    )
    assert any("clear what blocks it" in text for text in texts) is is_blocked
    assert f"Digest {digest}" in texts
    heads = [at for at, row in enumerate(rows) if row[0]]
    first = next(at for at in heads if str(rows[at][0]).startswith("The gateway owes at the close"))
    # Said once, beside the first currency of all that follow.
    owed = {row[3]: row[2] for row in rows[first : next(at for at in heads if at > first)]}
    assert owed == {
        currency: float(
            Decimal(month.statement.sum_of(currency, of="gateway", at="closing")).scaleb(
                -DECIMALS[currency]
            )
        )
        for currency in month.statement.currencies
    }


DECIMALS = {"EUR": 2, "JPY": 0, "KWD": 3}


def test_the_sheets_say_what_the_statement_says(month, tmp_path):
    path = written(month, tmp_path / "statement.xlsx")
    book = openpyxl.load_workbook(path, data_only=True)
    first = [[cell.value for cell in row] for row in book["Statement"].iter_rows()]

    assert "NOT PROVEN" in [row[0] for row in first]
    assert "2026-11-03: no night ran" in [row[0] for row in first]
    assert {row[3] for row in first} == {None, "Check", "OK"}
    assert book["Facts"].max_row == TOP + len(month.statement.facts)
    proofs = [row[0].value for row in book["Assurance"].iter_rows()]
    equations = [each.id for each in month.statement.equations]
    assert proofs[proofs.index("Id") + 1 :] == equations
    days = proofs[proofs.index("Business date") + 1 :][: len(month.nights)]
    assert [f"{day:%Y-%m-%d}" for day in days] == [str(each.business_date) for each in month.nights]


def rows_of_sheet(path, title):
    sheet = openpyxl.load_workbook(path, data_only=True)[title]
    return [[cell.value for cell in row] for row in sheet.iter_rows()]


LISTS = {
    "Open items": (["What", "Ccy", "Close"], "Amount", ["closing-items.csv", "opening-items.csv"]),
    "Ledger": (["What", "Ccy", "Shown"], "Ledger less gateway", ["ledger.csv"]),
    "Facts": (["What", "Ccy", "Counts", "Late"], "Amount", ["facts.csv"]),
    "Straddling": (["What", "Ccy"], "Amount", ["straddling.csv"]),
}


@pytest.mark.parametrize("title", LISTS)
def test_of_too_many_rows_a_sheet_has_sums_the_first_ones_and_the_file(
    month, tmp_path, monkeypatch, title
):
    by, amount, names = LISTS[title]
    header, *every = rows_of_sheet(written(month, tmp_path / "whole.xlsx"), title)[TOP - 1 :]
    sums: dict[tuple[Any, ...], tuple[int, Decimal]] = {}
    for row in every:
        cells = dict(zip(header, row, strict=True))
        key = tuple(cells[each] for each in by)
        count, money = sums.get(key, (0, Decimal(0)))
        sums[key] = (count + 1, money + Decimal(str(cells[amount])))
    monkeypatch.setattr(month_workbook, "LIST_ROWS_MAX", len(every) - 1)
    monkeypatch.setattr(month_workbook, "LIST_ROWS_DISPLAYED", 2)

    shown = rows_of_sheet(written(month, tmp_path / "cut.xlsx"), title)

    titles = shown[TOP - 1]
    end = next(at for at, row in enumerate(shown) if at >= TOP and not any(row))
    groups = [dict(zip(titles, row, strict=True)) for row in shown[TOP:end]]
    assert {
        tuple(group[each] for each in by): (group["Rows"], Decimal(str(group[amount])))
        for group in groups
    } == sums
    folder = write_files(month_files(month), folder=tmp_path / name_of(month))
    for name in names:
        content = (folder / name).read_bytes()
        size = f"{len(content.splitlines()) - 1:,} rows, {len(content):,} bytes"
        assert f"{name}: {size}, SHA-256 {sha256(content).hexdigest()}" in [row[0] for row in shown]
    assert shown[-3] == header
    assert shown[-2:] == (every[:2] if title != "Ledger" else shown[-2:])


def test_of_too_many_differences_those_that_no_night_shows_stand_first(
    month, tmp_path, monkeypatch
):
    ledger = month.statement.ledger
    tampered = ledger["what"].eq("open").to_numpy().nonzero()[0][-1]
    ledger = ledger.assign(shown=ledger["shown"].where(ledger.index != tampered, 1))
    unproven = replace(month, statement=replace(month.statement, ledger=ledger))
    monkeypatch.setattr(month_workbook, "LIST_ROWS_MAX", len(ledger) - 1)
    monkeypatch.setattr(month_workbook, "LIST_ROWS_DISPLAYED", 1)

    rows = rows_of_sheet(written(unproven, tmp_path / "statement.xlsx"), "Ledger")

    assert rows[-1][2] == ledger["key"].iloc[tampered]
    assert rows[-1][-1] == "NO"


def test_the_script_runs_by_itself(month):
    import duckdb

    with duckdb.connect() as connection:
        statements = connection.extract_statements(month.statement.sql)
        answers = [connection.execute(each).fetchall() for each in statements]
    ordered = sorted(month.statement.figures, key=astuple)

    assert answers[-1] == [
        tuple(getattr(each, name) for name in FIGURE_COLUMNS) for each in ordered
    ]
