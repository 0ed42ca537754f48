from dataclasses import replace
from datetime import UTC, date, datetime, timedelta

import pytest
from sqlalchemy import event

from recon.store.database import history
from recon.store.database.engine import Store
from recon.store.people import closed_months
from recon.store.people.closed_months import ClosedMonth, MonthState, ReopenedMonth, SignedMonth

NOW = datetime(2026, 12, 2, 8, tzinfo=UTC)
OWN = ("100042", "100042001")
SIGNED = SignedMonth("d" * 64, "Dan Orr", NOW, {"figures": [["EUR", 1]], "lists": {}}, "reviewer")
CLOSED = ClosedMonth(
    OWN, "2026-11", 1, "d" * 64, "periods/a/b/2026-11/close-1", "m" * 64, "Dan and Anna", NOW, "x"
)


def states(store: Store, *months: str) -> list[MonthState]:
    with store.reading() as connection:
        return [closed_months.state_of(connection, OWN, month=month) for month in months]


def test_a_month_is_what_was_said_of_it_last(store: Store) -> None:
    """Signed, lapsed, signed, closed, reopened, closed again: each close and its folder stay."""
    with store.writing() as connection:
        closed_months.note_signed(connection, OWN, month="2026-11", signed=SIGNED)
        assert closed_months.state_of(connection, OWN, month="2026-11") == MonthState(signed=SIGNED)
        closed_months.note_lapsed(connection, OWN, month="2026-11", why="moved", at=NOW)
        assert closed_months.state_of(connection, OWN, month="2026-11") == MonthState()
        closed_months.note_signed(connection, OWN, month="2026-11", signed=SIGNED)
        closed_months.note_closed(connection, CLOSED)
    assert states(store, "2026-11", "2026-12") == [MonthState((CLOSED,), True), MonthState()]

    word = ReopenedMonth("Anna and Ben", NOW + timedelta(days=1), "the bank sent it anew")
    second = replace(CLOSED, number=2, folder="periods/a/b/2026-11/close-2")
    with store.writing() as connection:
        closed_months.note_reopened(connection, CLOSED, word=word)
        state = closed_months.state_of(connection, OWN, month="2026-11")
        assert (state.closed, state.reopened, state.closes) == (None, word, (CLOSED,))
        closed_months.note_closed(connection, second)

    (state,) = states(store, "2026-11")
    assert (state.closed, state.reopened, state.closes) == (second, None, (CLOSED, second))
    with store.reading() as connection:
        assert history.verify(connection)[1] == ""
        assert closed_months.all_closes(connection) == [CLOSED, second]
        assert closed_months.all_reopened(connection) == [CLOSED.manifest]


@pytest.mark.parametrize(
    ("month", "until", "is_found"),
    [
        ("2026-11", date(2026, 12, 3), True),
        ("2025-12", date(2026, 11, 1), True),
        ("2026-12", date(2027, 1, 1), False),
        ("2026-09", date(2026, 10, 31), False),
    ],
)
def test_the_first_closed_month_from_one_on_is_found(
    store: Store, month: str, until: date, *, is_found: bool
) -> None:
    with store.writing() as connection:
        closed_months.note_closed(connection, CLOSED)
        found = closed_months.closed_since(connection, OWN, month=month, until=until)
        other = closed_months.closed_since(connection, ("1", "2"), month=month, until=until)

    assert (found, other) == (CLOSED if is_found else None, None)


def test_closed_months_before_one_are_asked_for_once(store: Store) -> None:
    """The oldest first, without those that are open again; each by one question."""
    october = replace(CLOSED, month="2026-10")
    with store.writing() as connection:
        for closed in (replace(CLOSED, month="2026-09"), october, CLOSED):
            closed_months.note_closed(connection, closed)
        word = ReopenedMonth("Anna and Ben", NOW, "the bank sent it anew")
        closed_months.note_reopened(connection, CLOSED, word=word)

    asked: list[str] = []
    with store.reading() as connection:
        event.listen(connection, "before_cursor_execute", lambda *told: asked.append(told[2]))
        before = closed_months.closed_before(connection, OWN, month="2026-12", months=24)
        two = closed_months.closed_before(connection, OWN, month="2026-12", months=2)
        since = closed_months.closed_since(
            connection, OWN, month="2020-01", until=date(2026, 12, 1)
        )

    assert since == before[0]
    assert [each.month for each in before] == ["2026-09", "2026-10"]
    assert two == [october]
    assert len(asked) == 3


def test_a_month_of_an_account_with_a_long_name_has_a_key_of_its_own() -> None:
    """It fits the history's column, and no two are alike."""
    names = {closed_months.period_of(("m" * 60, account), "2026-11") for account in "ab"}

    assert {len(name) for name in names} == {64}
    assert len(names) == 2
    assert closed_months.period_of(OWN, "2026-11") == "100042/100042001/2026-11"
