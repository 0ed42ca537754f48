import dataclasses
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace
from datetime import date
from pathlib import Path

import pandas as pd
import pyarrow.parquet as pq
import pytest

from recon.model.business_date import BusinessCalendar
from recon.period.business_month import BusinessMonth
from recon.period.month_evidence import MonthNight
from recon.period.month_statement import MonthStatement, statement_of
from recon.period.statement_in_sql import proven_by_sql
from tests.recon.period.month_folders import nights_of
from tests.recon.period.month_truth import PLACE, Calendar, MonthTruth

pytestmark = pytest.mark.xdist_group("truth of months")
PLAYED = {
    "UTC": MonthTruth(date(2026, 11, 1)),
    "summer time ends": MonthTruth(date(2026, 10, 1), 2, Calendar("Europe/London", 18), 3),
    "summer time begins": MonthTruth(date(2026, 3, 1), 3, Calendar("America/New_York", 24), 3),
    "first month": MonthTruth(date(2026, 11, 1), 4, per_day=3, is_first=True),
}
SMALL = MonthTruth(date(2026, 11, 1), 5, per_day=2)


def stated(truth: MonthTruth, nights: Sequence[MonthNight]) -> MonthStatement:
    """The statement of a truth's month, by both engines."""
    cut_off = f"{truth.calendar.hour}:00"
    calendar = BusinessCalendar.of(timezone=truth.calendar.zone, cut_off=cut_off)
    month = BusinessMonth.named(f"{truth.first:%Y-%m}")
    statement = statement_of(month, account=PLACE, nights=nights, calendar=calendar)
    return proven_by_sql(statement, nights=nights, calendar=calendar)


@pytest.fixture(scope="module", params=[*PLAYED])
def played(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> tuple[MonthTruth, MonthStatement]:
    """A month and its statement."""
    truth = PLAYED[request.param]
    return truth, stated(truth, nights_of(truth, tmp_path_factory.mktemp("month")))


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> list[MonthNight]:
    """Some nights of a small month, for whoever changes them."""
    every = nights_of(SMALL, tmp_path_factory.mktemp("small"))
    return [*every[:-1:7], every[-1]]


def by_currency(items: pd.DataFrame, *, what: str = "") -> dict[str, int]:
    """Currency -> the sum of a list, of one class where it is named; none that is 0."""
    chosen = items[items["what"].eq(what)] if what else items
    sums = {
        str(key): int(value) for key, value in chosen.groupby("currency")["amount"].sum().items()
    }
    return {currency: amount for currency, amount in sums.items() if amount}


def test_movements_are_true_to_the_unit(played: tuple[MonthTruth, MonthStatement]) -> None:
    """Each kind of movement of each currency is what happened in the month, by count and amount."""
    truth, statement = played
    moved = {
        (figure.currency, figure.name): (figure.count, figure.amount)
        for figure in statement.figures
        if figure.at == "moved" and figure.of in {"gateway", "reserve"}
    }

    assert moved == truth.moved()


def test_what_is_owed_is_true_at_both_closes(played: tuple[MonthTruth, MonthStatement]) -> None:
    """Opening and closing items, and of them reserves and what was held back, are the truth's."""
    truth, statement = played

    assert by_currency(statement.opening_items) == truth.owed(truth.first_close)
    assert by_currency(statement.closing_items) == truth.owed(truth.last)
    assert by_currency(statement.closing_items, what="reserve") == truth.in_reserve(truth.last)
    assert by_currency(statement.closing_items, what="item") == truth.held_back(truth.last)


def test_cash_in_transit_is_true_at_the_close(played: tuple[MonthTruth, MonthStatement]) -> None:
    """What was paid out and was not at the bank is listed, to the unit."""
    truth, statement = played
    assert statement.transit is not None
    sums = statement.transit.groupby("currency")["amount"].sum()

    assert {str(key): int(value) for key, value in sums.items() if value} == truth.in_transit(
        truth.last
    )


def test_what_was_booked_is_true(played: tuple[MonthTruth, MonthStatement]) -> None:
    """Entries count in the month in which they were booked, by type, count and amount."""
    truth, statement = played
    booked = {
        (figure.currency, figure.name): (figure.count, figure.amount)
        for figure in statement.figures
        if figure.at == "moved" and figure.of == "books"
    }

    assert booked == truth.booked(since=truth.first, to=truth.last)


def test_late_facts_are_named(played: tuple[MonthTruth, MonthStatement]) -> None:
    """What a file brought after the last night is late, and nothing else of the settlement is."""
    truth, statement = played
    facts = statement.facts
    lined = facts[facts["is_late"] & facts["dated_by"].eq("settled") & facts["batch_id"].ne("")]

    assert {*lined["batch_id"]} == {
        line.batch for line in truth.lines if truth.within(line.day) and line.known > truth.last
    }


def test_every_equation_holds_in_both_engines(played: tuple[MonthTruth, MonthStatement]) -> None:
    """P3, P4 and P5 tie, and pandas and SQL say the same of each and of every movement."""
    _, statement = played

    assert [each for each in statement.equations if not each.holds] == []
    assert [*statement.unproven_figures] == []
    assert {each.id for each in statement.equations} == {"P3", "P4", "P5"}


def test_every_class_of_straddling_items_is_there(
    played: tuple[MonthTruth, MonthStatement],
) -> None:
    """Each class is played, and no item lies whole on one side of a close but late ones."""
    _, statement = played
    dates = defaultdict(list)
    for row in statement.straddling.itertuples():
        dates[str(row.what)].append((str(row.first_on)[:7], str(row.then_on)[:7]))

    assert {*dates} == {"sold", "settled", "at_bank", "old_sale", "late"}
    for what in ("sold", "settled", "at_bank", "old_sale"):
        assert all(first != then for first, then in dates[what])


def changed(
    nights: Sequence[MonthNight], name: str, folder: Path, **cells: object
) -> list[MonthNight]:
    """The nights with one cell of the newest one's file changed, as nobody who seals would."""
    newest = nights[-1]
    frame = pq.read_table(newest.files[name])
    rows = frame.to_pylist()
    at = next(n for n, row in enumerate(rows) if row.get("account_id", PLACE[1]) == PLACE[1])
    rows[at] = {**rows[at], **cells}
    path = folder / f"{name}.parquet"
    pq.write_table(frame.from_pylist(rows, schema=frame.schema), path)
    return [*nights[:-1], replace(newest, files={**newest.files, name: path})]


def broken_ids(statement: MonthStatement) -> set[str]:
    """The equations that do not hold."""
    return {each.id for each in statement.equations if not each.holds}


def test_a_small_month_holds(small: list[MonthNight]) -> None:
    """What the tests below change held before."""
    assert stated(SMALL, small).holds


@pytest.mark.parametrize(
    ("name", "cells", "broken"),
    [
        ("held", {"amount": 7}, {"P3"}),
        ("effects", {"amount": 7}, {"P5"}),
        ("ledger", {"amount": 7}, {"P5"}),
    ],
)
def test_what_does_not_tie_is_found(
    small: list[MonthNight], tmp_path: Path, name: str, cells: dict[str, object], broken: set[str]
) -> None:
    """A list of the newest night, an effect, an entry: each breaks its own equation."""
    assert broken_ids(stated(SMALL, changed(small, name, tmp_path, **cells))) == broken


@pytest.mark.parametrize("figure", ["capture", "pay_out", "fee_on_captures"])
def test_a_movement_that_pandas_loses_is_found(
    small: list[MonthNight], monkeypatch: pytest.MonkeyPatch, figure: str
) -> None:
    """P3 fails, and SQL still says the truth of the figure."""
    monkeypatch.setattr(
        "recon.period.month_statement.KINDS",
        tuple(
            kind for kind in ("capture", "refund", "pay_out", "fee_on_captures") if kind != figure
        ),
    )

    assert "P3" in broken_ids(stated(SMALL, small))


def test_a_receipt_that_pandas_loses_is_found(
    small: list[MonthNight], monkeypatch: pytest.MonkeyPatch
) -> None:
    """P4 fails where what came to the bank is in no movement."""
    monkeypatch.setattr("recon.period.month_statement.MOVES", ("paid", "returned", "kept"))

    assert "P4" in broken_ids(stated(SMALL, small))


@pytest.mark.parametrize(
    ("name", "before", "after"),
    [
        ("P3.sql", "kind <> 'reserve'", "kind = 'capture'"),
        ("P4.sql", "WHERE m.moved_on <= before", "WHERE m.moved_on < '2000-01-01'"),
        ("P5.sql", "-effect - unseen", "-effect"),
    ],
)
def test_an_equation_that_sql_says_otherwise_fails(
    small: list[MonthNight], monkeypatch: pytest.MonkeyPatch, name: str, before: str, after: str
) -> None:
    """Each statement of SQL is its own: one that says something else is seen."""
    from recon.period import statement_in_sql

    read = statement_in_sql._text
    text = read(name)
    assert before in text

    def bent(asked: str) -> str:
        return text.replace(before, after) if asked == name else read(asked)

    monkeypatch.setattr(statement_in_sql, "_text", bent)

    assert broken_ids(stated(SMALL, small)) == {name.removesuffix(".sql")}


def test_a_month_without_movement_is_a_statement(small: list[MonthNight]) -> None:
    """Of a month before all payments every figure is nothing, and every equation holds."""
    calendar, month = BusinessCalendar.of(), BusinessMonth.named("2026-01")
    nights = small[:1]
    statement = statement_of(month, account=PLACE, nights=nights, calendar=calendar)
    proven = proven_by_sql(statement, nights=nights, calendar=calendar)

    assert proven.holds
    assert not len(proven.facts)
    assert not len(proven.closing_items)


def test_sql_that_cannot_be_run_proves_nothing(small: list[MonthNight]) -> None:
    """A file that is gone when SQL wants it leaves every equation without its second side."""
    calendar, month = BusinessCalendar.of(), BusinessMonth.named("2026-11")
    statement = statement_of(month, account=PLACE, nights=small, calendar=calendar)
    gone = {**small[-1].files, "ledger": small[-1].files["ledger"].with_name("gone.parquet")}
    nights = [*small[:-1], dataclasses.replace(small[-1], files=gone)]

    proven = proven_by_sql(statement, nights=nights, calendar=calendar)

    assert not proven.holds
    assert "SQL could not be run" in proven.unproven_figures[0]
