from datetime import UTC, datetime
from typing import Any

from recon.matching.frames.sources import ORDER_COLUMNS, LoadCounts, frame_of
from recon.model.words import SourceFile, SourceKind
from recon.proof import books_bridge
from recon.store.database.engine import Store
from recon.store.nights.facts_rows import StorageOf
from recon.store.nights.runs import Run
from recon.store.nights.stored_orders import InView, StoredOrders
from tests.recon.store.kept_files import keep

SINCE = datetime(2026, 10, 21, tzinfo=UTC)
LONG_AGO = "2026-01-01T00:00:00Z"
DECLARED = frozenset({("100042", "100042001"), ("100042", "100042002")})


def _order(order_no: str, amount: int = 100, **cells: Any) -> dict[str, Any]:
    place = {"merchant_id": "100042", "account_id": "100042001", "line": 2}
    row = {"order_no": order_no, "currency": "EUR", "amount": amount, "status": "paid"}
    return {**place, **row, "ordered_at": "2026-11-20T10:00:00Z", **cells}


def _load(store: Store, run: Run, name: str, *rows: dict[str, Any], storages: StorageOf) -> None:
    """Read one version of a file."""
    frame = frame_of(rows, columns=ORDER_COLUMNS)
    sha256 = f"{name}{len(rows)}".ljust(64, "0")
    source = SourceFile(SourceKind.ORDERS, name, sha256, 1, len(rows), len(rows), 0, 0)
    keep(store, run, frame, source=source, storages=storages)


def test_each_row_leaves_by_one_step(store: Store, run: Run, storages: StorageOf) -> None:
    """A newer version of a file, a repeat, another account, an old order: one step each."""
    _load(store, run, "a.csv", _order("A"), _order("B"), storages=storages)
    _load(
        store,
        run,
        "a.csv",
        _order("A"),
        _order("B", 200),
        _order("C", account_id="100042002"),
        _order("D", account_id="100042009"),
        _order("E", ordered_at=LONG_AGO),
        _order("F", ordered_at=LONG_AGO),
        storages=storages,
    )
    with store.reading() as connection:
        first, now = (StoredOrders(connection, run, storages, until) for until in (1, 2))
        found = now.steps(InView(SINCE, ["F"]), declared=DECLARED)
        as_first_read = first.steps(InView(SINCE, []), declared=DECLARED)
        nobodys = now.undeclared_accounts(DECLARED)

    # A is the row of the first version still; B's successor, and F which is asked about, are new.
    assert found.steps == {
        books_bridge.REPEATS: -1,
        books_bridge.REPLACED: 0,
        books_bridge.OTHER_ACCOUNTS: -1,
        books_bridge.UNDECLARED: -1,
        books_bridge.BEFORE_WINDOW: -1,
        books_bridge.KNOWN_BEFORE: 1,
    }
    assert not any(as_first_read.steps.values())
    assert found.taken == {"a.csv": LoadCounts(accepted=6, new=4, repeat=1, superseding=1)}
    assert nobodys == ["100042/100042009"]
