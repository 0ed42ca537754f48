"""What is known of a file of orders; which row stands: `test_stored_orders.py`."""

import hashlib
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from recon.matching.frames.sources import ORDER_COLUMNS, frame_of
from recon.model.nights import Mode, NightRequest
from recon.model.words import Reject, SourceFile, SourceKind
from recon.store.database.engine import Store
from recon.store.nights import facts_rows, order_rows, runs
from recon.store.nights.facts_rows import StorageOf, facts_problems
from recon.store.nights.runs import Run
from recon.store.nights.stored_orders import StoredOrders
from tests.recon.store.kept_files import keep

OPENING = datetime(2026, 1, 1, tzinfo=UTC)
AS_OF = datetime(2026, 11, 21, tzinfo=UTC)
ORDER = {
    "merchant_id": "100042",
    "account_id": "100042001",
    "order_no": "A-1",
    "currency": "EUR",
    "amount": 10_000,
    "status": "paid",
    "ordered_at": "2026-11-20T10:00:00Z",
    "line": 2,
}


def _sha256(*rows: dict[str, Any], rejects: tuple[Reject, ...] = ()) -> str:
    return hashlib.sha256(f"{rows}-{rejects}".encode()).hexdigest()


def _load(
    store: Store,
    run: Run,
    *rows: dict[str, Any],
    storages: StorageOf,
    name: str = "orders.csv",
    rejects: tuple[Reject, ...] = (),
) -> None:
    frame = frame_of(rows, columns=ORDER_COLUMNS)
    sha256 = _sha256(*rows, rejects=rejects)
    source = SourceFile(
        SourceKind.ORDERS, name, sha256, 1, len(rows) + len(rejects), len(rows), len(rejects), 0
    )
    keep(store, run, frame, source=source, rejects=rejects, storages=storages)


def _current(store: Store, run: Run, storages: StorageOf) -> list[tuple[str, int, str]]:
    with store.reading() as connection:
        frame = StoredOrders(connection, run, storages).since(OPENING)
    cells = zip(frame["order_no"], frame["amount"], frame["source"], strict=True)
    return [(str(key), int(amount), str(source)) for key, amount, source in cells]


def test_accounts_may_have_names_as_long_as_they_come(store: Store, storages: StorageOf) -> None:
    """Whose inbox a file lay in names merchant and account together."""
    merchant, account = "M" * 50, "A" * 50
    request = NightRequest(merchant, account, AS_OF.date(), Mode.LIVE)
    with store.writing() as connection:
        runs.start(connection, request, run_id="long", as_of=AS_OF, now=AS_OF)
        run = runs.get(connection, "long")
    row = {**ORDER, "merchant_id": merchant, "account_id": account}
    _load(store, run, row, storages=storages)

    with store.reading() as connection:
        senders = [file.sender for file in facts_rows.every(connection)]
    assert senders == [f"{merchant}/{account}"]


def test_lost_rows_that_several_files_brought_are_told_once(
    store: Store, run: Run, storages: StorageOf, tmp_path: Path
) -> None:
    """A content that is known under another name lies in the archive once."""
    _load(store, run, ORDER, storages=storages)
    with store.writing() as connection:
        ((known, _),) = order_rows.files_of_night(connection, run)
        order_rows.save_copy(connection, run, of=known, name="again.csv", at=AS_OF)
        both = facts_rows.every(connection)
    (tmp_path / "archive" / both[0].rows.path).unlink()

    assert len(both) == 2
    assert len([*facts_problems(both, storages=storages)]) == 1


def test_a_known_file_is_recognised_by_content(store: Store, run: Run, storages: StorageOf) -> None:
    """The same bytes under any name are known; other bytes are not."""
    _load(store, run, ORDER, storages=storages)
    with store.reading() as connection:
        files = order_rows.files_of_night(connection, run)
        place = {"name": files[0][0].name, "sha256": files[0][0].sha256}

        assert order_rows.known_file(connection, run, **place) == files[0][0]
        assert order_rows.known_file(connection, run, **place | {"name": "b.csv"}) == files[0][0]
        assert order_rows.known_file(connection, run, **place | {"sha256": "other"}) is None


def test_content_that_came_back_is_a_new_version(
    store: Store, run: Run, storages: StorageOf
) -> None:
    """After A and B, A again is not known but version 3, and its rows stand again."""
    for amount in (10_000, 9_000):
        _load(store, run, {**ORDER, "amount": amount}, storages=storages)
    first = {"name": "orders.csv", "sha256": _sha256(ORDER)}
    with store.reading() as connection:
        assert order_rows.known_file(connection, run, **first) is None
        assert order_rows.known_file(connection, run, **first | {"name": "b.csv"}) is None
    _load(store, run, ORDER, storages=storages)

    assert _current(store, run, storages) == [("A-1", 10_000, "orders.csv")]
    with store.reading() as connection:
        assert order_rows.known_file(connection, run, **first) is not None


def test_known_content_under_a_new_name_is_an_arrival_of_no_row(
    store: Store, run: Run, storages: StorageOf
) -> None:
    """It is a file of the night, and its rows stand once the other file is corrected."""
    _load(store, run, ORDER, storages=storages)
    with store.writing() as connection:
        ((first, _),) = order_rows.files_of_night(connection, run)
        copy = order_rows.save_copy(connection, run, of=first, name="b.csv", at=OPENING)
        named = {"name": "b.csv", "sha256": first.sha256}
        assert order_rows.known_file(connection, run, **named) == copy
        assert order_rows.known_file(connection, run, **named | {"name": "c.csv"}) == first
        files = order_rows.files_of_night(connection, run)

    assert [(file.name, file.rows_skipped) for file, _ in files] == [
        ("b.csv", 1),
        ("orders.csv", 0),
    ]
    assert [counts.accepted for _, counts in files] == [0, 1]
    assert _current(store, run, storages) == [("A-1", 10_000, "orders.csv")]
    _load(store, run, {**ORDER, "amount": 9_000}, storages=storages)
    with store.reading() as connection:
        assert order_rows.known_file(connection, run, **named) == copy
    assert sorted(_current(store, run, storages)) == [
        ("A-1", 9_000, "orders.csv"),
        ("A-1", 10_000, "b.csv"),
    ]


def test_rejects_of_the_newest_version_count(store: Store, run: Run, storages: StorageOf) -> None:
    """A mended file takes its old rejects away; a night shows those of the newest version."""
    bad = Reject(SourceKind.ORDERS, "orders.csv", 2, "amount", "not an amount", "x", "m", "a", "k")
    _load(store, run, rejects=(bad,), storages=storages)
    with store.reading() as connection:
        before = order_rows.rejects_of_night(connection, run)
    _load(store, run, ORDER, storages=storages)
    with store.reading() as connection:
        after = order_rows.rejects_of_night(connection, run)

    assert (before, after) == ([bad], [])


def test_a_file_of_the_same_name_in_another_inbox_corrects_nothing(
    store: Store, run: Run, storages: StorageOf
) -> None:
    """Another inbox is another sender: both rows stand, and a person decides."""
    _load(store, run, ORDER, storages=storages)
    other = replace(run, account_id="100042002")
    _load(store, other, {**ORDER, "amount": 9_000}, storages=storages)

    assert [amount for _, amount, _ in _current(store, run, storages)] == [10_000, 9_000]
