from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from pathlib import Path

import pytest
from sqlalchemy import event

from recon.model.errors import ConfigurationError, StoreError
from recon.model.resolutions import BreakAnswer, Import
from recon.store.database import history
from recon.store.database.engine import Store
from recon.store.people import closed_months, decision_rows, resolution_rows
from recon.store.people.closed_months import ClosedMonth, MonthState, ReopenedMonth, SignedMonth
from recon.store.people.decision_rows import code_turn
from recon.store.people.resolution_rows import NewAnswer

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
    names = {closed_months.period_of(("m" * 60, account), "2026-11") for account in "ab"}

    assert {len(name) for name in names} == {64}
    assert len(names) == 2
    assert closed_months.period_of(OWN, "2026-11") == "100042/100042001/2026-11"


TAKEN_AT = datetime(2026, 11, 20, tzinfo=UTC)


def test_a_code_is_taken_once_by_whoever_comes_first(store: Store, tmp_path: Path) -> None:
    """Twenty at once, as of two desks with one key: one of them has it."""

    def use(_: int) -> bool:
        with code_turn(tmp_path / "codes", store=store) as book:
            return decision_rows.use_code(book, "anna", time_step=7, at=TAKEN_AT)

    with ThreadPoolExecutor(20) as pool:
        assert sorted(pool.map(use, range(20))) == [False] * 19 + [True]
    assert ((tmp_path / "codes").stat().st_mode & 0o777) == 0o600


def test_without_a_file_the_database_has_them(store: Store) -> None:
    for taken in (True, False):
        with code_turn(None, store=store) as connection:
            assert decision_rows.use_code(connection, "anna", time_step=7, at=TAKEN_AT) is taken


def test_a_folder_that_takes_nothing_is_told(store: Store, tmp_path: Path) -> None:
    with (
        pytest.raises(ConfigurationError, match="book of codes"),
        code_turn(tmp_path / "none" / "codes", store=store),
    ):
        pass


ANSWERED_AT = datetime(2026, 11, 21, 9, tzinfo=UTC)
PLACE = ("M", "1")
BROUGHT = Import("answered.xlsx", "a" * 64, "run-1", "jo")


def answer(version: int = 1, *, waits: bool = False, owner: str = "Jo") -> NewAnswer:
    given = BreakAnswer("Order corrected", owner, "seen", date(2026, 11, 21))
    return NewAnswer(PLACE, "b1", version, given, waits, 7, False, "EUR", 1_000)


def test_one_version_is_given_once(store: Store) -> None:
    """Two people who answer the same state at the same instant: one of them is told."""
    with store.writing() as connection:
        resolution_rows.save(connection, [answer()], brought=BROUGHT, at=ANSWERED_AT)
    other = Import("again.xlsx", "b" * 64, "run-1", "kim")

    with pytest.raises(StoreError, match="IntegrityError"), store.writing() as connection:
        resolution_rows.save(connection, [answer()], brought=other, at=ANSWERED_AT)


def test_a_write_off_waits_until_it_is_agreed_once(store: Store) -> None:
    """A second person ends the wait; a third has nothing left to agree to."""
    with store.writing() as connection:
        resolution_rows.save(connection, [answer(waits=True)], brought=BROUGHT, at=ANSWERED_AT)
        (waiting,) = resolution_rows.waiting_write_offs(connection)
        agreed = [
            resolution_rows.agree(connection, waiting.answer_id, by=name, at=ANSWERED_AT)
            for name in ("kim", "lee")
        ]
        left = resolution_rows.waiting_write_offs(connection)

    assert agreed == [True, False]
    assert left == []
