from datetime import UTC, datetime, timedelta

from recon.model.uptime import Uptime
from recon.settlement.resolution import SearchedRefund
from recon.store.database.engine import Store
from recon.store.money import evidence_rows

NOW = datetime(2026, 11, 21, 9, tzinfo=UTC)


def test_a_doubts_clock_starts_once(store: Store) -> None:
    """A second look does not start the wait again."""
    with store.writing() as connection:
        for milliseconds in (1_000, 900_000):
            uptime = Uptime("boot-1", milliseconds)
            evidence_rows.note_clocks(connection, ["i1"], uptime=uptime, at=NOW)

        waited = evidence_rows.waited(connection, "i1", uptime=Uptime("boot-1", 61_000))
    assert waited == timedelta(seconds=60)


def test_after_a_reboot_there_is_no_such_clock(store: Store) -> None:
    """Readings of two boots cannot be compared; other clocks decide then."""
    with store.writing() as connection:
        evidence_rows.note_clocks(connection, ["i1"], uptime=Uptime("boot-1", 1), at=NOW)

        assert evidence_rows.waited(connection, "i1", uptime=Uptime("boot-2", 99)) is None
        assert evidence_rows.waited(connection, "i2", uptime=Uptime("boot-1", 99)) is None


def test_searches_come_as_they_were_made(store: Store) -> None:
    """A clock that was put back between two searches does not change their order."""
    searches = [
        SearchedRefund("T1-01", NOW + timedelta(minutes=5), "T9-01"),
        SearchedRefund("", NOW),
    ]
    with store.writing() as connection:
        for search in searches:
            evidence_rows.save_search(connection, "i1", search=search)
        found = evidence_rows.searches(connection, "i1")

    assert found == searches
