from datetime import UTC, date, datetime
from threading import Barrier, Thread

import pytest

from recon.model.errors import ConfigurationError, StoreError
from recon.model.resolutions import BreakAnswer, Import
from recon.store.people import closed_months, resolution_rows
from recon.store.people.decision_rows import code_turn, use_code
from recon.store.people.resolution_rows import NewAnswer

OWN = ("100042", "100042001")


def test_a_month_of_an_account_with_a_long_name_has_a_key_of_its_own():
    names = {closed_months.period_of(("m" * 60, account), "2026-11") for account in "ab"}

    assert {len(name) for name in names} == {64}
    assert len(names) == 2
    assert closed_months.period_of(OWN, "2026-11") == "100042/100042001/2026-11"


def test_a_folder_that_takes_nothing_is_told(store, tmp_path):
    with (
        pytest.raises(ConfigurationError, match="database of codes"),
        code_turn(tmp_path / "none" / "codes", store=store),
    ):
        pass


@pytest.mark.parametrize("store", ["sqlite"], indirect=True)
def test_a_code_counts_once_also_where_many_make_the_book(store, tmp_path):
    """Each waits for the one before, and finds a whole book."""
    taken, all_there = list[bool](), Barrier(8)

    def take():
        all_there.wait()
        with code_turn(tmp_path / "codes", store=store) as connection:
            taken.append(use_code(connection, "anna", time_step=7, at=ANSWERED_AT))

    threads = [Thread(target=take) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert sorted(taken) == [False] * 7 + [True]
    assert (tmp_path / "codes").stat().st_mode & 0o777 == 0o600


ANSWERED_AT = datetime(2026, 11, 21, 9, tzinfo=UTC)
PLACE = ("M", "1")
BROUGHT = Import("answered.xlsx", "a" * 64, "run-1", "jo")


def answer(version=1, *, waits=False, owner="Jo"):
    given = BreakAnswer("Order corrected", owner, "seen", date(2026, 11, 21))
    return NewAnswer(PLACE, "b1", version, given, waits, 7, "This break", "EUR", 1_000)


def test_one_version_is_given_once(store):
    """Two people who answer the same state at the same instant: one of them is told."""
    with store.writing() as connection:
        resolution_rows.save(connection, [answer()], brought=BROUGHT, at=ANSWERED_AT)
    other = Import("again.xlsx", "b" * 64, "run-1", "kim")

    with pytest.raises(StoreError, match="IntegrityError"), store.writing() as connection:
        resolution_rows.save(connection, [answer()], brought=other, at=ANSWERED_AT)


def test_a_write_off_waits_until_it_is_agreed_once(store):
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
