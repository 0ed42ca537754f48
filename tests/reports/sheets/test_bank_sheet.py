"""The sheet of the bank: checks of each statement, every payout, what is expected next."""

from dataclasses import replace
from datetime import UTC, date, datetime

import pytest
from openpyxl import load_workbook

from recon.steps.compare.plain_files import plain_figures
from reports.sheets.bank_sheet import on_the_way, payout_rows
from reports.workbook import write_workbook
from tests.recon.matching.bank.cases import Case
from tests.reports.drawn_sheets import SHEETS, list_on


def figures_of(case):
    """The figures of a case, as a workbook shows them."""
    night = case.compared()
    return plain_figures(
        night.result,
        sources=night.sources,
        business_date=date(2026, 11, 30),
        clock=lambda: datetime(2026, 12, 1, tzinfo=UTC),
        rules=night.rules,
    )


@pytest.fixture(scope="module")
def figures():
    """Less than was paid, two in transit, charges."""
    case = Case().paid("BATCH-01", 10_000).came("BATCH-01", 9_750)
    case.paid("BATCH-02", 500, on="2026-11-30").paid("BATCH-03", 700, on="2026-11-27")
    case.paid("BATCH-04", 800).came("BATCH-04", 780, charges=-20)
    return figures_of(case)


def cells(path):
    sheet = load_workbook(path)["Bank"]
    return [[cell.value for cell in row] for row in sheet.iter_rows()]


def test_the_sheet_says_it_and_page_one_names_it(figures, tmp_path):
    path = write_workbook(figures, tmp_path / "w.xlsx")
    labels = [value for row in cells(path) for value in row]
    for label in ("Bank", "BATCH-01", "Payouts (4)", "Bank has another amount", "OK"):
        assert label in labels, label
    assert cells(path)[5][9] == "OK"
    summary = load_workbook(path)["Summary"]
    shown = [cell.value for row in summary.iter_rows() for cell in row if cell.value]
    assert {"On its way", "Overdue at the bank", "To be debited"} <= set(shown)


def test_what_the_gateway_will_take_is_no_cash_in_transit(tmp_path):
    """A payout below 0 goes the other way: it has its own column, and is in no other sum."""
    case = Case().paid("BATCH-01", 500, on="2026-11-30").paid("BATCH-02", -300, on="2026-11-27")
    case.paid("BATCH-03", -42, on="2026-11-30")
    figures = figures_of(case)
    content = write_workbook(figures, tmp_path / "w.xlsx").read_bytes()
    (euros, *_) = list_on(content, "Summary", "Currency", "To be debited")

    assert on_the_way(payout_rows(figures)) == ({"EUR": 500}, {"EUR": -342})
    assert (euros["On its way"], euros["To be debited"]) == (5, 3.42)


def test_what_is_expected_looks_ahead_by_the_days_of_the_bank(tmp_path):
    """Its days are counted as those by which payouts are due: holidays count in neither."""
    holidays = [date(2026, 12, day) for day in range(1, 19)]
    case = Case(rules={"calendar": {"holidays": holidays}}).paid("BATCH-01", 900, on="2026-11-30")
    rows = cells(write_workbook(figures_of(case), tmp_path / "w.xlsx"))
    (at,) = [number for number, row in enumerate(rows) if str(row[0]).startswith("Expected at")]

    assert rows[at][0] == "Expected at the bank in the next 10 working days"
    assert [cell for cell in rows[at + 2] if cell] == [datetime(2026, 12, 23), 1, "EUR", 9]  # noqa: DTZ001


@pytest.mark.parametrize(
    ("days", "half", "most"),
    [
        ((1, 1, 2, 2, 3), 2, 3),
        ((1, 1, 1, 1, 1, 1, 1, 1, 1, 6), 1, 1),
        ((1, 1, 1, 1, 1, 1, 1, 1, 6, 6), 1, 6),
        ((1, 1, 1, 1), None, None),
    ],
)
def test_what_is_expected_says_how_long_pay_outs_of_its_currency_took(days, half, most, tmp_path):
    """Half and nine of ten of those that arrived, in the days of the list; of too few nothing."""
    case = Case().paid("BATCH-99", 900, on="2026-11-30")
    case.paid("BATCH-98", 800, on="2026-11-30", currency="USD")
    for number, took in enumerate(days, start=10):
        case.paid(f"BATCH-{number}", 100 + number, on="2026-11-10")
        case.came(f"BATCH-{number}", 100 + number, on=f"2026-11-{10 + took}")
    rows = cells(write_workbook(figures_of(case), tmp_path / "w.xlsx"))
    (at,) = [number for number, row in enumerate(rows) if str(row[0]).startswith("Expected at")]

    assert rows[at + 1][2:4] == ["Half within", "90 % within"]
    assert rows[at + 2][2:6] == [half, most, "EUR", 9]
    assert rows[at + 3][2:6] == [None, None, "USD", 8]


def test_an_exchanged_pay_out_shows_what_stands_on_the_statement(tmp_path):
    case = Case(rules={"rate": {"USD.EUR": {"on": {"2026-11-05": "0.92"}}}})
    case.paid("BATCH-01", 10_000, currency="USD").paid("BATCH-02", 5_000, currency="USD")
    case.came("BATCH-01 BATCH-02", 13_800).paid("BATCH-03", 700).came("BATCH-03", 700)
    figures = figures_of(case)
    shown = {row["batch_id"]: (row["came_in"], row["came"]) for row in payout_rows(figures)}
    assert shown == {"BATCH-01": ("EUR", 13_800), "BATCH-02": ("", None), "BATCH-03": ("", None)}

    rows = cells(write_workbook(figures, tmp_path / "w.xlsx"))
    (titles,) = [row for row in rows if "Announced" in row]
    (first,) = [row for row in rows if "BATCH-01" in row]
    came = titles.index("Came in")
    assert (titles[came : came + 2], first[came : came + 2]) == (["Came in", "Came"], ["EUR", 138])
    plain = figures_of(Case().paid("BATCH-03", 700).came("BATCH-03", 700))
    titles = [cell for row in cells(write_workbook(plain, tmp_path / "x.xlsx")) for cell in row]
    assert "Came in" not in titles


def test_what_explains_a_pay_out_is_said_in_words(tmp_path):
    case = Case().paid("BATCH-01", 500).came("", 500, counterparty="Gateway", on="2026-11-20")
    labels = [
        value
        for row in cells(write_workbook(figures_of(case), tmp_path / "w.xlsx"))
        for value in row
    ]
    assert "found by its amount; late at the bank" in labels
    assert "by_amount;late" not in labels


def test_a_statement_that_does_not_add_up_says_check(figures, tmp_path):
    counted = figures.bank["counted"]
    wrong = counted.assign(booked=counted["booked"] + 1)
    changed = replace(figures, bank={**figures.bank, "counted": wrong})
    assert cells(write_workbook(changed, tmp_path / "w.xlsx"))[5][9] == "CHECK"


def test_without_a_bank_there_is_no_such_sheet(tmp_path):
    case = Case().paid("BATCH-01", 500)
    case.covered = False
    plain = figures_of(case)
    path = write_workbook(plain, tmp_path / "w.xlsx")
    assert tuple(load_workbook(path).sheetnames) == SHEETS
    assert any(one.startswith("the bank") for one in plain.not_covered)
