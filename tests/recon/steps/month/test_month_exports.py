"""The journals of a closed month: handed out once, and only while they are still to be booked."""

import csv
from collections import Counter
from dataclasses import replace
from datetime import date

import pandas as pd
import pytest

from recon.model.errors import UsageError
from recon.model.terms import ACCRUAL, REVERSAL
from recon.month import journal_exports
from recon.month import signing as signed_closes
from recon.month.close import prepared_close
from recon.month.journal_exports import HandOut, export_month, journals_out
from recon.store.people import closed_months
from tests.recon.steps.approvals.test_sign_off import PEOPLE
from tests.recon.steps.compare.test_journals import (
    RULES,
    ask_write_off,
    book,
    handed_out,
    newest,
    proposed,
)
from tests.recon.steps.conftest import ACCOUNT, MERCHANT
from tests.recon.steps.month.test_month_closes import LAST, NOVEMBER
from tests.recon.steps.month.test_signed_closes import close, problems, reopened

OWN = (MERCHANT, ACCOUNT)
pytestmark = pytest.mark.xdist_group("closes")
"""They share a month that takes longer to make than to look at."""
EXPORT = """
[journal.export]
tax_code = "Tax Exempt"
company_code = "1000"
"""
DATEV = """
[journal.export.datev]
consultant = 29098
client = 55003
fiscal_year_month = 1
account_digits = 4
"""
DATEV_BATCHES = ("EUR-2026-11", "USD-2026-11", "EUR-2026-12")
ACCRUED = ("accrual-fees-EUR-2026-11", "reversal-fees-EUR-2026-11")


def play_closed(merchant):
    """A closed month with a captured payment that the ledger lacks, and fees to accrue."""
    merchant.configure("rules.toml", RULES + EXPORT + DATEV)
    (merchant.folder / "config" / "approvers.toml").write_text(PEOPLE)
    merchant.drop("orders.csv", merchant.order(merchant.payments("captured")[0]))
    merchant.night()
    merchant.wait(hours=10 * 24)
    merchant.night(date=LAST, skip="the cluster was down")
    with pytest.MonkeyPatch.context() as patch:
        close_with(patch, fees=1234)
        close(merchant)


def accrued(amount):
    """Fees of November, booked on its last day and taken back on the next."""
    shared = {"currency": "EUR", "order_no": "", "break_id": "", "text": "fees of 2026-11"}
    rows = [
        {**shared, "kind": kind, "journal_id": name, "date": day, "account": account} | sides
        for kind, name, day, debited, credited in (
            (ACCRUAL, ACCRUED[0], LAST, "4970", "1360"),
            (REVERSAL, ACCRUED[1], "2026-12-01", "1360", "4970"),
        )
        for account, sides in (
            (debited, {"debit": amount, "credit": 0}),
            (credited, {"debit": 0, "credit": amount}),
        )
    ]
    return pd.DataFrame(rows)


@pytest.fixture
def over(begun):
    return begun(play_closed)


def close_with(monkeypatch, *, fees):
    """Whoever closes November finds these fees to accrue; what blocks it is not asked here."""

    def prepared(*args, **named):
        found = prepared_close(*args, **named)
        statement = found.stated.statement
        journals = pd.concat([statement.journals, accrued(fees)], ignore_index=True)
        stated = replace(found.stated, statement=replace(statement, journals=journals))
        return replace(found, stated=stated, blockers=())

    monkeypatch.setattr(signed_closes, "prepared_close", prepared)


def exported(merchant, out, *, kind="csv", again=()):
    wanted = HandOut(out, kind, again)
    with merchant.environment() as environment:
        return export_month(NOVEMBER, account=OWN, hand_out=wanted, environment=environment)


def sums(path):
    """Account and currency -> debits less credits in hundredths, of a file of our own columns."""
    found: Counter[tuple[str, str]] = Counter()
    with path.open(newline="") as file:
        for row in csv.DictReader(file):
            amounts = [int((row[side] or "0").replace(".", "")) for side in ("debit", "credit")]
            found[row["account"], row["currency"]] += amounts[0] - amounts[1]
    return found


def test_the_journals_of_a_closed_month_leave_once_as_they_were_sealed(over, tmp_path):
    with over.environment() as environment, environment.store.reading() as connection:
        closed = journal_exports.closed_months.state_of(connection, OWN, month="2026-11").closed
    assert closed is not None
    with over.environment() as environment:
        sealed = journal_exports.sealed_lines(closed, environment=environment)

    handed = exported(over, tmp_path / "out")
    twice = exported(over, tmp_path / "second")

    (path,) = handed.paths
    assert path.name == f"journals-{MERCHANT}-{ACCOUNT}-2026-11-close-1.csv"
    expected: Counter[tuple[str, str]] = Counter()
    for line in sealed:
        expected[line.account, line.currency] += line.debit - line.credit
    assert sums(path) == expected
    assert len(path.read_text().splitlines()) == len(sealed) + 1 == 7
    assert (handed.journals, handed.exported_before, handed.held_back_journals) == (3, 0, {})
    assert (twice.paths, twice.journals, twice.exported_before) == ((), 0, 3)
    night = handed_out(over, newest(over).run_id, out=tmp_path / "night")
    assert (night.journals, night.exported_before) == (0, 1)
    assert problems(over) == ""


def test_what_a_night_handed_out_is_in_no_file_of_the_month(over, tmp_path):
    """A journal is one journal, whoever hands it out."""
    handed_out(over, newest(over).run_id, out=tmp_path / "night")

    handed = exported(over, tmp_path / "out")

    assert (handed.journals, handed.exported_before) == (2, 1)
    assert ACCRUED[0] in handed.paths[0].read_text()


def test_what_the_books_show_since_the_close_is_kept_back(over, tmp_path):
    """The newest night does not propose it any more: booking it would book it twice."""
    book(over, over.payments("captured")[0])
    over.wait(hours=24)
    over.night(date="2026-12-01")

    handed = exported(over, tmp_path / "out")

    assert handed.journals == 2
    assert [*handed.held_back_journals.values()] == [journal_exports.MOVED_ON]


def test_what_a_person_wrote_off_since_the_close_is_kept_back(over, tmp_path):
    run_id = newest(over).run_id
    result, _, _ = proposed(over, run_id)
    ask_write_off(over, result.journals["break_id"].iloc[0], run_id=run_id)

    handed = exported(over, tmp_path / "out")

    assert handed.held_back_journals == {
        result.journals["journal_id"].iloc[0]: journal_exports.WRITTEN_OFF
    }
    assert handed.journals == 2


def test_a_lost_file_is_written_again_and_another_content_is_not_replaced(over, tmp_path):
    """By the ids of its journals; one that never left is refused by name."""
    first = exported(over, tmp_path / "out").paths[0].read_bytes()
    names = (*ACCRUED, next(iter(_names(first) - {*ACCRUED})))

    again = exported(over, tmp_path / "out", again=names)

    assert again.paths[0].read_bytes() == first
    assert again.paths[0].name.endswith("-again.csv")
    with pytest.raises(UsageError, match="lies there with another content"):
        exported(over, tmp_path / "out", again=ACCRUED)
    with pytest.raises(UsageError, match="was never handed out of 2026-11"):
        exported(over, tmp_path / "out", again=("unknown-EUR-1",))


def _names(content):
    return {row["journal_id"] for row in csv.DictReader(content.decode().splitlines())}


def test_journals_leave_by_currency(over, tmp_path):
    """A format that cannot hold one currency does not keep the others back; each leaves once."""
    out = tmp_path / "out"

    def of(*currencies):
        wanted = HandOut(out, currencies=currencies)
        with over.environment() as environment:
            return export_month(NOVEMBER, account=OWN, hand_out=wanted, environment=environment)

    with pytest.raises(UsageError, match="no journal of 2026-11 is in KWD"):
        of("EUR", "KWD")
    euros, again, rest = of("EUR"), of("EUR"), exported(over, out)

    (path,) = euros.paths
    assert path.name == f"journals-{MERCHANT}-{ACCOUNT}-2026-11-close-1-EUR.csv"
    assert {currency for _, currency in sums(path)} == {"EUR"}
    assert (euros.journals, again.journals, again.exported_before) == (2, 0, 2)
    assert {currency for _, currency in sums(rest.paths[0])} == {"USD"}
    assert (rest.journals, rest.exported_before) == (1, 2)


@pytest.mark.parametrize(
    ("kind", "names"),
    [
        ("datev", [f"EXTF_{{}}-{each}.csv" for each in DATEV_BATCHES]),
        ("xero", ["{}-xero-EUR-1.csv", "{}-xero-USD-1.csv"]),
        ("sap-csv", ["{}.sap.csv"]),
    ],
)
def test_other_formats_leave_under_names_of_their_own(over, tmp_path, kind, names):
    handed = exported(over, tmp_path / "out", kind=kind)

    assert handed.journals == 3
    name = f"journals-{MERCHANT}-{ACCOUNT}-2026-11-close-1"
    assert [path.name for path in handed.paths] == [each.format(name) for each in names]


def test_an_accrual_of_an_earlier_close_is_kept_back(over, tmp_path, monkeypatch):
    """Reopened and closed with other fees: booking both would accrue them twice."""
    exported(over, tmp_path / "first")
    reopened(over, name="dan")
    reopened(over, name="anna")
    close_with(monkeypatch, fees=999)
    close(over)

    handed = exported(over, tmp_path / "out")

    assert (handed.journals, {*handed.held_back_journals}) == (0, {*ACCRUED})
    assert "close 1 handed it out" in handed.held_back_journals[ACCRUED[0]]
    (path,) = exported(over, tmp_path / "out", again=ACCRUED).paths
    assert "9.99" in path.read_text()


def test_what_a_close_accrued_is_listed_until_the_next_month_is_closed(over, tmp_path):
    """Beside the proposed ones: each with its day, its amount and the format that it left in."""
    exported(over, tmp_path / "out", kind="xero")
    with over.environment() as environment:
        listed = {out.journal_id: out for out in journals_out(environment)}
        with environment.store.writing() as connection:
            (november,) = closed_months.all_closes(connection)
            closed_months.note_closed(connection, replace(november, month="2026-12"))
        later = {out.journal_id for out in journals_out(environment)}

    accruals = [listed.pop(name) for name in ACCRUED]
    assert [(out.kind, out.day) for out in accruals] == [
        (ACCRUAL, "2026-11-30"),
        (REVERSAL, "2026-12-01"),
    ]
    assert {(out.amount, out.currency, out.format) for out in accruals} == {(1234, "EUR", "xero")}
    assert {(out.kind, out.format) for out in listed.values()} == {("permanent", "xero")}
    assert later == {*listed}


def test_a_journal_is_listed_with_the_days_of_its_file(over, tmp_path, monkeypatch):
    """One that is booked in two months leaves whole, and is not held for another than proposed."""
    read, early = journal_exports.sealed_lines, date(2026, 11, 28)

    def of_two_days(closed, *, environment):
        lines = read(closed, environment=environment)
        part = {"debit": 1, "credit": 1}
        for line in [line for line in lines if line.kind == "permanent"]:
            sides = {side: n for side, n in part.items() if getattr(line, side)}
            rest = {side: getattr(line, side) - n for side, n in sides.items()}
            lines.remove(line)
            lines += [replace(line, day=early, **sides), replace(line, **rest)]
        return lines

    monkeypatch.setattr(journal_exports, "sealed_lines", of_two_days)
    handed = exported(over, tmp_path / "out")
    with over.environment() as environment:
        (listed,) = [out for out in journals_out(environment) if out.kind == "permanent"]

    assert handed.held_back_journals == {}
    assert listed.day == f"{early} and {LAST}"


@pytest.mark.parametrize(
    ("kind", "lacks", "declares"),
    [("xero", "tax rate", EXPORT), ("sap-csv", "company code", EXPORT), ("datev", "datev", DATEV)],
)
def test_what_a_format_needs_and_nobody_declared_hands_nothing_out(
    over, tmp_path, kind, lacks, declares
):
    rules = over.folder / "config" / "rules.toml"
    declared = rules.read_text()
    rules.write_text(declared.replace(declares, ""))
    with pytest.raises(UsageError, match=f"{lacks}.*nothing is written"):
        exported(over, tmp_path / "out", kind=kind)
    assert not list((tmp_path / "out").rglob("*.csv"))
    rules.write_text(declared)

    assert exported(over, tmp_path / "out", kind=kind).journals == 3
