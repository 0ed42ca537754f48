"""The index over all accounts of a night."""

import hashlib
import io
import zipfile
from dataclasses import replace
from datetime import UTC, date, datetime
from pathlib import Path

import openpyxl
import pytest
from openpyxl import load_workbook

from recon.config.rules import Rules
from recon.config.settings import Settings
from recon.model.business_date import BusinessCalendar, BusinessMonth
from recon.model.errors import OutputError
from recon.model.nights import Mode
from recon.model.resolutions import BreakAnswer, StoredAnswer
from recon.model.terms import ControlTotal, Verdict
from recon.month.close import NOT_PROVEN
from recon.month.statement import MonthFigure
from recon.steps.admin.evidence import CopiedFolder, EvidenceIndex, NightOfEvidence, Span
from recon.steps.approvals.sign_off import Night
from recon.steps.compare.listed_breaks import severe_breaks
from recon.steps.compare.rules_change import Change, ChangedRule
from recon.steps.compare.what_if import ComparedAgain, NeverRaised, WhatIf
from recon.steps.night.monitor import IndexLine
from recon.store.database.history import Head
from recon.store.nights.runs import PurgedNight, Run
from recon.store.nights.sign_off_rows import Signature
from reports.close_preview import AccountMonth, index_of_months, write_months_index
from reports.reading import what_if_workbook
from reports.reading.evidence_workbook import evidence_index
from reports.reading.index_workbook import write_index
from reports.reading.signed_copy import PAGES, write_signed_copy
from reports.reading.what_if_workbook import write_what_if
from reports.workbook import write_workbook
from reports.workbook_io import returned_differences
from tests.reports.drawn_sheets import list_on, values_of, words_on

DAY = date(2026, 11, 20)


def lines(folder):
    """One night that was signed, one that never ran."""
    at = datetime(2026, 11, 21, 9, tzinfo=UTC)
    signed = Signature("reviewer", "Dan Orr", authenticated=True, at=at, workbook_sha256="0")
    path = str(folder / "a 1" / "night#1.xlsx")
    ran = Night("1", "11", DAY, "r1", "BREAKS OPEN", (signed,), "", 1, path)
    missing = Night("1", "12", DAY, "", "missing", (), "", 1)
    return [IndexLine(ran, 7, 2, 3), IndexLine(missing, None, None, None)]


def values(path, name, *, first=5):
    return [[*row] for row in load_workbook(path)[name].iter_rows(min_row=first, values_only=True)]


def test_every_account_has_its_line(tmp_path):
    ran, missing = values(write_index(lines(tmp_path), day=DAY, folder=tmp_path), "Nights")

    assert ran[:7] == ["1", "11", "BREAKS OPEN", 7, 2, 3, "Dan Orr (reviewer)"]
    assert missing[2:7] == ["missing", None, None, None, "not signed"]
    assert missing[8] == "no workbook"


def test_a_line_leads_to_its_workbook(tmp_path):
    path = write_index(lines(tmp_path), day=DAY, folder=tmp_path)
    cell = load_workbook(path)["Nights"]["I5"]

    assert cell.value == "night#1.xlsx"
    assert cell.hyperlink.target == "a%201/night%231.xlsx"


NOVEMBER = BusinessMonth.named("2026-11")
FIRST = AccountMonth(
    ("M", "1"),
    "CLOSED",
    [
        MonthFigure("EUR", "gateway", "opening", "not_settled", 1, 1_000),
        MonthFigure("EUR", "gateway", "moved", "capture", 2, 700),
        MonthFigure("EUR", "gateway", "moved", "pay_out", 1, -500),
        MonthFigure("EUR", "gateway", "closing", "not_settled", 1, 1_200),
        MonthFigure("EUR", "reserve", "moved", "reserve", 1, 90),
        MonthFigure("EUR", "outside", "moved", "capture", 1, 80),
        MonthFigure("EUR", "transit", "closing", "coming", 1, 500),
        MonthFigure("EUR", "ledger", "opening", "open", 1, -30),
        MonthFigure("EUR", "ledger", "moved", "capture", 2, 600),
        MonthFigure("EUR", "ledger", "closing", "open", 1, 370),
        MonthFigure("JPY", "gateway", "opening", "not_settled", 1, 40),
        MonthFigure("JPY", "gateway", "closing", "not_settled", 1, 40),
    ],
    has_ledger=True,
    workbook=Path("a 1/statement#1.xlsx"),
)
SECOND = AccountMonth(
    ("M", "2"),
    NOT_PROVEN,
    [
        MonthFigure("EUR", "gateway", "moved", "capture", 1, 300),
        MonthFigure("EUR", "gateway", "closing", "not_settled", 1, 290),
        MonthFigure("EUR", "ledger", "moved", "capture", 1, 300),
    ],
    has_ledger=True,
    workbook=Path("second.xlsx"),
)
WITHOUT_BOOKS = AccountMonth(("M", "3"), "PROVEN", SECOND.figures[:2], False, Path("x.xlsx"))
OTHER = AccountMonth(("N", "1"), "PROVEN", [], False, Path("x.xlsx"))


def test_another_index_is_never_overwritten(tmp_path):
    found = lines(tmp_path)
    first, again = (write_index(found, day=DAY, folder=tmp_path) for _ in range(2))
    changed = write_index(found[:1], day=DAY, folder=tmp_path)

    assert first == again
    assert changed.name == "nights-2026-11-20-v2.xlsx"


def written(tmp_path, *accounts):
    """The page of some accounts, beside the folder of one of them."""
    at = [replace(each, workbook=tmp_path / each.workbook) for each in accounts]
    return write_months_index(at, month=NOVEMBER, clearing="1360", folder=tmp_path)


def test_a_clearing_account_stands_at_the_sum_of_its_accounts(tmp_path):
    path = written(tmp_path, FIRST, SECOND)
    rows = values(path, "Accounts", first=7)

    assert path.name == "months-M-2026-11.xlsx"
    assert rows[0][:9] == ["1", "CLOSED", "EUR", 10, 2, 12, "OK", 15.7, 3.7]
    assert rows[1][:9] == ["2", "NOT PROVEN", "EUR", 0, 3, 2.9, "CHECK", 3, 0.1]
    assert rows[2][:9] == ["Sum EUR", None, "EUR", 10, 5, 14.9, None, 18.7, 3.8]
    assert rows[5][:9] == ["1", "CLOSED", "JPY", 40, 0, 40, "OK", 40, 0]


def test_where_the_books_of_an_account_were_not_compared_nobody_knows_their_sum(tmp_path):
    """A sum over some of them would be taken for the account's balance."""
    rows = values(written(tmp_path, FIRST, WITHOUT_BOOKS), "Accounts", first=7)

    assert rows[1][7:9] == [None, None]
    assert rows[2][5] == 14.9
    assert rows[2][7:9] == [None, None]


def test_accounts_of_two_merchants_share_no_clearing_account(tmp_path):
    """A merchant with one account needs no page: its one workbook is it."""
    settings = Settings.model_construct(rules=Rules())
    every = [OTHER, SECOND, WITHOUT_BOOKS]

    said = index_of_months(every, month=NOVEMBER, out=tmp_path, settings=settings)

    assert said == [f"All accounts of M: {tmp_path}/months-M-2026-11.xlsx"]


NOW = datetime(2026, 11, 21, 2, tzinfo=UTC)
FOLDER = "nights/1/2/2026-11-20/r"
RUN = Run(
    *("r", "1", "2", date(2026, 11, 20), Mode.LIVE, "finished", "report", "somebody", NOW, NOW),
    *("RECONCILED", "w.xlsx", ""),
)
TOTAL = ControlTotal("T4", "orders matched", "1", "2", "EUR", "amount", 1234, 1234)
GONE = PurgedNight("r", "1", "2", date(2026, 11, 20), "Otto", NOW, 3, 99, "ab")


def test_each_run_has_a_row_with_its_money_fault_and_a_link_that_moves_with_the_folder():
    copy = CopiedFolder(FOLDER, {"inputs": "cd"}, ("a file is gone",))
    workbook = f"{FOLDER}/proof/workbook.xlsx"
    night = NightOfEvidence(
        RUN,
        is_newest=True,
        rules_digest="ef",
        signed="Anna",
        totals=[TOTAL],
        copy=copy,
        workbook=workbook,
    )
    day = date(2026, 11, 20)
    index = EvidenceIndex(Span(day, day, [("1", "2")]), [night], [], [GONE], [], [], Head(7, "aa"))

    book = openpyxl.load_workbook(io.BytesIO(evidence_index(index)))

    cells = [cell.value for cell in book["Nights"][5]]
    assert (cells[0], cells[5], cells[6]) == (
        datetime(2026, 11, 20),  # noqa: DTZ001 - a date as a sheet has it
        "RECONCILED",
        "orders matched 12.34 EUR",
    )
    assert (cells[7], cells[8], cells[10], cells[14]) == (1, 1, "a file is gone", "inputs cd")
    assert book["Nights"].cell(row=5, column=12).hyperlink.target == workbook
    assert [cell.value for cell in book["Let go"][5]][3:6] == ["Otto", 3, 99]
    assert book["Closes"]["A5"].value == "None."


AT = datetime(2026, 11, 23, 8, tzinfo=UTC)
WINDOW = ChangedRule("window.orders_days", "30", "60")
RULES = (ChangedRule("tolerance.EUR.absolute_minor_units", "not set", "7"), WINDOW)
NIGHT = datetime(2026, 11, 20)  # noqa: DTZ001 - a date as a sheet has it


def found(*changes):
    """One night with these changes."""
    verdicts = (Verdict.BREAKS_OPEN, Verdict.RECONCILED)
    night = ComparedAgain(
        "r1",
        NIGHT.date(),
        *verdicts,
        3,
        2,
        1,
        0,
        changes,
        "d" * 64,
        is_same=False,
        unverified_then=6,
        unverified=4,
    )
    never = NeverRaised("b1", "AMOUNT_OVER", "=SO1", "JPY", 7, NIGHT.date(), "Jo Hill")
    return WhatIf("c" * 64, RULES, (WINDOW,), (night,), (never,), "e" * 64)


def change(number):
    """An order off by some minor units."""
    key = ("100042", "100042001", f"SO{number}", "KWD")
    return Change(key, "AMOUNT_OVER", "matched", "the rules changed, no side did", number)


def test_each_sheet_has_its_rows(tmp_path):
    path = write_what_if(found(change(1), change(2)), path=tmp_path / "w.xlsx", at=AT)

    assert values(path, "Nights")[0][1:11] == [
        "BREAKS OPEN",
        "RECONCILED",
        3,
        2,
        1,
        0,
        2,
        6,
        4,
        "r1",
    ]
    assert [row[:3] for row in values(path, "Rules")] == [
        [rule.key, rule.before, rule.after] for rule in RULES
    ]
    assert [bool(row[3]) for row in values(path, "Rules")] == [False, True]
    assert values(path, "Changes") == [
        [NIGHT, "AMOUNT_OVER", "matched", 2, "KWD", pytest.approx(0.003)]
    ]
    assert [row[1] for row in values(path, "Sets")] == ["SO1", "SO2"]
    assert values(path, "Never raised")[0][3:] == ["=SO1", "JPY", 7, "Jo Hill"]
    assert load_workbook(path)["Never raised"]["D5"].data_type == "s"


def test_more_sets_than_a_sheet_takes_are_told(tmp_path, monkeypatch):
    monkeypatch.setattr(what_if_workbook, "SETS_DISPLAYED_MAX", 2)

    path = write_what_if(found(*map(change, range(5))), path=tmp_path / "w.xlsx", at=AT)

    assert len(values(path, "Sets")) == 2
    assert load_workbook(path)["Sets"]["A2"].value.startswith("The first 2 of 5 sets")


def test_a_folder_that_is_not_there_is_told(tmp_path):
    with pytest.raises(OutputError, match="name a file in a folder that exists"):
        write_what_if(found(), path=tmp_path / "none" / "w.xlsx", at=AT)


ZONE = "Europe/Copenhagen"


def names_under(path, *people):
    """Signatures of these people under the file as it is."""
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    at = datetime(2026, 11, 21, 9, 5, tzinfo=UTC)
    return tuple(
        Signature(role, by, authenticated=True, at=at, workbook_sha256=digest)
        for role, by in zip(("reviewer", "approver"), people, strict=False)
    )


def page_one(path):
    """Every text of the Summary."""
    return {*words_on(path.read_bytes(), "Summary")}


def test_the_copy_says_who_signed_which_file_and_when(workbook):
    signatures = names_under(workbook, "Dan <Orr> & Co", "=Anna")
    copy = write_signed_copy(workbook, signatures=signatures, answers={}, timezone=ZONE)

    assert copy.name == "night-approved.xlsx"
    assert "not signed" in page_one(workbook)
    assert "not signed" not in page_one(copy)
    wanted = {"Dan <Orr> & Co", "=Anna", "2026-11-21 10:05", signatures[0].workbook_sha256}
    assert wanted <= page_one(copy)


def test_everything_but_page_one_is_the_signed_file(workbook):
    copy = write_signed_copy(
        workbook, signatures=names_under(workbook, "Dan Orr"), answers={}, timezone=ZONE
    )
    signed, stamped = (zipfile.ZipFile(io.BytesIO(path.read_bytes())) for path in (workbook, copy))
    differing = [name for name in signed.namelist() if signed.read(name) != stamped.read(name)]

    assert stamped.namelist() == signed.namelist()
    assert differing == [PAGES["Summary"]]


def test_another_file_is_never_given_the_signatures(workbook):
    signatures = names_under(workbook, "Dan Orr")
    workbook.write_bytes(workbook.read_bytes() + b" ")

    with pytest.raises(OutputError, match=r"not the file that was signed.*signature is kept"):
        write_signed_copy(workbook, signatures=signatures, answers={}, timezone=ZONE)


def test_the_copy_holds_the_answers_that_it_was_signed_on(workbook, build):
    key = str(build().breaks["break_id"].iloc[0])
    answer = BreakAnswer("Refunded", "Jo <Hill>", "=seen & done", date(2026, 11, 21))
    copy = write_signed_copy(
        workbook,
        signatures=names_under(workbook, "Dan Orr"),
        answers={
            key: StoredAnswer(answer, 1, "Jo Hill", waits=False),
            "gone": StoredAnswer(answer, 1, "X", waits=False),
        },
        timezone=ZONE,
    )
    titles = ("Resolution", "Owner", "Comment", "Resolved on", "Answered by")
    rows = list_on(copy.read_bytes(), "Breaks", "Key", "Owner")
    told = {row["Key"].partition(".")[0]: [row[title] for title in titles] for row in rows}

    assert {each for each, cells in told.items() if any(cells)} == {key}
    assert told[key] == ["Refunded", "Jo <Hill>", "=seen & done", "2026-11-21", "Jo Hill"]


def test_page_one_of_the_copy_says_the_answers_as_they_were_signed(figures, tmp_path):
    calendar, began_at = BusinessCalendar.of(), figures.generated_at
    severe = severe_breaks(figures.breaks, answers={}, calendar=calendar, began_at=began_at)
    workbook = write_workbook(replace(figures, attention=severe), tmp_path / "night.xlsx")
    answer = BreakAnswer("Gateway asked", "Jo Hill", "asked on Monday")
    keys = [f"{number:016x}" for number in (1, 2, 5)]
    copy = write_signed_copy(
        workbook,
        signatures=names_under(workbook, "Dan Orr"),
        answers={key: StoredAnswer(answer, 1, "Jo Hill", waits=False) for key in keys},
        timezone=ZONE,
    )
    before, signed = (values_of(path.read_bytes(), "Summary") for path in (workbook, copy))
    said = [row[8] for row in signed if "break: " in str(row[0])]
    other = [(old, new) for old, new in zip(before, signed, strict=True) if old != new]

    assert before[1][0].startswith("Next: give each of the 2 high and critical breaks an owner")
    assert signed[1][0] == (
        "As signed: each of the 2 high and critical breaks has an owner and a comment; 3 of 10 "
        "breaks are answered."
    )
    assert [text.split(":")[0] for text in said] == ["Jo Hill, due 23 Nov"] * 2
    assert [text.split(": ", 1)[1] for text in said] == [
        row[8].split(": ", 1)[1] for row in before if "break: " in str(row[0])
    ]
    assert len(other) == 6
    assert list(returned_differences(workbook, copy)) == []

    forged = load_workbook(copy)
    page = forged["Summary"]
    to_do = next(row[8] for row in page.iter_rows() if "break: " in str(row[0].value))
    to_do.value = "Settled: the order was found. Pay 405.37 EUR to DE12 3456."
    page["A2"].value = "Nothing is left to do: every break was settled by the gateway. Sign."
    forged.save(tmp_path / "forged.xlsx")
    named = [*returned_differences(workbook, tmp_path / "forged.xlsx")]
    assert [each.split(" ")[0] for each in named] == ["Summary!A2", f"Summary!{to_do.coordinate}"]
