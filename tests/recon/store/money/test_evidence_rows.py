from datetime import UTC, datetime, timedelta

from recon.model.uptime import Uptime
from recon.settlement.resolution import SearchedRefund
from recon.store.database.engine import Store
from recon.store.database.history import Event, append, verify
from recon.store.money import evidence_rows

NOW = datetime(2026, 11, 21, 9, tzinfo=UTC)


def test_a_doubts_clock_starts_once_on_each_boot(store: Store) -> None:
    """A second look starts no wait again; what was read is bound in the history."""
    read = [Uptime("boot-1", 1_000), Uptime("boot-1", 900_000), Uptime("boot-2", 5)]
    with store.writing() as connection:
        for uptime in read:
            evidence_rows.note_clocks(connection, ["i1"], uptime=uptime, at=NOW)

        assert evidence_rows.readings(connection, "i1") == [read[0], read[2]]
        assert evidence_rows.readings(connection, "i1", after=1) == [read[2]]
        assert evidence_rows.readings(connection, "i2") == []
        assert verify(connection)[0].sequence == 2


def test_only_a_change_of_state_is_one(store: Store) -> None:
    """A reading of its clock behind it moves no instruction's beginning of doubt."""
    with store.writing() as connection:
        append(connection, [Event("instruction", "i1", "in_doubt", {})], at=NOW)
        evidence_rows.note_clocks(connection, ["i1", "i2"], uptime=Uptime("boot-1", 1), at=NOW)

        assert evidence_rows.last_change(connection, "i1") == 1
        assert evidence_rows.last_change(connection, "i2") == 0


def test_searches_come_as_they_were_made(store: Store) -> None:
    """A clock that was put back between two searches does not change their order."""
    searches = [
        SearchedRefund("T1-01", NOW + timedelta(minutes=5), "T9-01", Uptime("boot-1", 7, NOW)),
        SearchedRefund("", NOW),
    ]
    with store.writing() as connection:
        for search in searches:
            evidence_rows.save_search(connection, "i1", search=search)
        found = evidence_rows.searches(connection, "i1")

    assert found == searches
