import random
from datetime import UTC, datetime
from typing import Any

import pandas as pd
import pytest

from recon.matching.frames.sources import ORDER_COLUMNS, LoadCounts, frame_of
from recon.model.words import SourceFile, SourceKind
from recon.store.database.engine import Store
from recon.store.nights import facts_rows, order_facts, stored_orders
from recon.store.nights.order_facts import StorageOf
from recon.store.nights.proofs import before_money
from recon.store.nights.runs import Run
from tests.recon.store.kept_files import keep

OPENING = datetime(2026, 1, 1, tzinfo=UTC)
Row = tuple[str, int, int | None]
"""Order, amount, hour of the update."""


def _row(row: Row) -> dict[str, Any]:
    order_no, amount, hour = row
    updated = "" if hour is None else f"2026-11-20T{hour:02}:00:00Z"
    return {
        "merchant_id": "100042",
        "account_id": "100042001",
        "order_no": order_no,
        "currency": "EUR",
        "amount": amount,
        "status": "paid",
        "ordered_at": "2026-11-20T10:00:00Z",
        "line": 2,
    } | ({"updated_at": updated} if updated else {})


def _load(
    store: Store, run: Run, rows: list[Row], *, name: str, at_once: int, storages: StorageOf
) -> LoadCounts:
    frames = [
        frame_of([_row(row) for row in rows[start : start + at_once]], columns=ORDER_COLUMNS)
        for start in range(0, len(rows), at_once)
    ]
    source = SourceFile(SourceKind.ORDERS, name, f"{name}{rows}", 1, len(rows), len(rows), 0, 0)
    return keep(store, run, *frames, source=source, storages=storages)


def _expected(files: list[tuple[str, list[Row]]]) -> tuple[list[Row], list[LoadCounts]]:
    """The rule, row by row: what stands in the end, and what each file counted."""
    standing: list[tuple[Row, int, str]] = []
    told = []
    for number, (name, rows) in enumerate(files):
        repeat = superseding = 0
        for row in rows:
            beside = [old for old in standing if old[0][0] == row[0]]
            if row in [old[0] for old in beside]:
                repeat += 1
                continue
            gone = []
            for old in beside:
                if row[2] is not None and old[0][2] is not None:
                    gone += [old] if row[2] > old[0][2] else []
                elif old[2] == name and old[1] != number:
                    gone.append(old)
            superseding += bool(gone)
            standing = [old for old in standing if old not in gone] + [(row, number, name)]
        told.append(LoadCounts(len(rows), len(rows) - repeat - superseding, repeat, superseding))
    return sorted((row for row, _, _ in standing), key=str), told


def _standing(store: Store, run: Run, storages: StorageOf) -> list[Row]:
    with store.reading() as connection:
        frame = stored_orders.current_orders(connection, run, since=OPENING, storages=storages)
    hours = [None if pd.isna(at) else at.hour for at in frame["updated_at"]]
    return sorted(zip(frame["order_no"], frame["amount"], hours, strict=True), key=str)


@pytest.mark.parametrize("at_once", [1, 3, 50])
def test_the_parts_of_a_file_do_not_matter(
    store: Store, run: Run, storages: StorageOf, at_once: int
) -> None:
    """Whatever comes twice, again or newer: counts and rows are those of one row after another."""
    chance = random.Random(at_once)
    names = ("a.csv", "b.csv", "a.csv", "a.csv", "b.csv")
    files = [
        (
            name,
            [
                (f"O-{chance.randrange(6)}", chance.randrange(2), chance.choice((None, 1, 2)))
                for _ in range(12)
            ],
        )
        for name in names
    ]
    standing, told = _expected(files)

    assert [
        _load(store, run, rows, name=name, at_once=at_once, storages=storages)
        for name, rows in files
    ] == told
    assert _standing(store, run, storages) == standing


def test_two_versions_in_one_file_are_both_kept(
    store: Store, run: Run, storages: StorageOf
) -> None:
    """The older row is stored with its successor: rows stored tie with rows read."""
    rows: list[Row] = [("A", 1, 1), ("A", 2, 2), ("A", 2, 2)]
    assert _load(store, run, rows, name="a.csv", at_once=9, storages=storages) == LoadCounts(
        3, 1, 1, 1
    )

    assert _standing(store, run, storages) == [("A", 2, 2)]
    with store.reading() as connection:
        stored = order_facts.stored_rows(facts_rows.of_night(connection, run), storages=storages)
        totals = before_money(connection, run, in_files=stored, universe=0, phase="baseline")
    assert stored == 2
    assert [total.passed for total in totals if total.id == "T2"] == [True]
