from dataclasses import replace
from datetime import date

from recon.store.database.engine import Store
from recon.store.nights.facts_rows import StorageOf
from recon.store.nights.runs import Run
from recon.store.nights.settlement_rows import Settlements
from tests.recon.store.nights.test_settlement_rows import save


def days(
    store: Store, run: Run, storages: StorageOf, *, until: int | None = None
) -> list[tuple[str, str, int, int]]:
    """Day, entry type, whether it came late, and what it comes to."""
    with store.reading() as connection:
        frame = Settlements(connection, run, storages, until).volumes(since="2026-11-01")
    names = ("settled_on", "entry_type", "late", "base")
    return [*zip(*(frame[name].tolist() for name in names), strict=True)]


def test_days_are_summed_up_by_what_the_newest_files_tell(
    store: Store, run: Run, storages: StorageOf
) -> None:
    """Amounts without their sign, no pay-out, nothing before the day, repeats once."""
    lines = (
        {"order_no": "A"},
        {"order_no": "B"},
        {"order_no": "A", "entry_type": "refund", "gross": -30},
        {"entry_type": "payout"},
        {"order_no": "O", "settled_on": "2026-10-31"},
    )
    save(store, run, storages, "settlement/1", *lines)
    save(store, run, storages, "settlement/2", lines[0])
    assert days(store, run, storages) == [
        ("2026-11-20", "capture", 0, 200),
        ("2026-11-20", "refund", 0, 30),
    ]


def test_late_is_what_tells_of_days_that_were_told_before(
    store: Store, run: Run, storages: StorageOf
) -> None:
    """Of the files of the business date; as of an earlier file it is not there yet."""
    before = replace(run, business_date=date(2026, 11, 19))
    save(store, before, storages, "settlement/1", {"order_no": "A", "settled_on": "2026-11-18"})
    late, new = {"settled_on": "2026-11-17"}, {"settled_on": "2026-11-19"}
    save(store, run, storages, "settlement/2", {"order_no": "B", **late}, {"order_no": "C", **new})
    assert days(store, run, storages, until=1) == [("2026-11-18", "capture", 0, 100)]
    assert days(store, run, storages) == [
        ("2026-11-17", "capture", 1, 100),
        ("2026-11-18", "capture", 0, 100),
        ("2026-11-19", "capture", 0, 100),
    ]
