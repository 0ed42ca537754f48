"""What stands of orders, asked in every way, beside the rule followed row by row."""

import random
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple

import pandas as pd
import pyarrow as pa
import pytest

from recon.matching.frames.sources import ORDER_COLUMNS, frame_of
from recon.model.words import SourceFile, SourceKind
from recon.store.database.engine import Store
from recon.store.nights import facts_rows
from recon.store.nights.facts_rows import StorageOf, facts_problems
from recon.store.nights.runs import Run
from recon.store.nights.stored_orders import StoredOrders
from tests.recon.store.kept_files import keep

DAY_0 = datetime(2026, 11, 1, tzinfo=UTC)
ACCOUNTS = ("100042001", "100042002")
ROWS_OF_A_FILE, FILES = 12, 6


class Row(NamedTuple):
    """A row of an order file; also which day it was ordered and changed on."""

    account: str
    order_no: str
    amount: int
    day: int
    changed: int | None
    file: int


def _cells(row: Row) -> dict[str, Any]:
    at = {"ordered_at": (DAY_0 + timedelta(days=row.day)).isoformat()}
    if row.changed is not None:
        at["updated_at"] = (DAY_0 + timedelta(days=row.changed)).isoformat()
    place = {"merchant_id": "100042", "account_id": row.account, "line": 2, "currency": "EUR"}
    return {**place, **at, "order_no": row.order_no, "amount": row.amount, "status": "paid"}


def _standing(files: list[tuple[str, list[Row]]]) -> list[Row]:
    """What stands after these files, by the rule, one row after another."""
    words = [row for _, rows in files for row in rows]
    left = [row for row in words if not _is_over(row, words=words, files=files)]
    stands: dict[tuple[Any, ...], Row] = {}
    for row in left:
        newest = max(_age(other) for other in left if other[:2] == row[:2])
        if _age(row) == newest:
            stands.setdefault(row[:5], row)
    return [*stands.values()]


def _age(row: Row) -> int:
    return -1 if row.changed is None else row.changed


def _is_over(row: Row, *, words: list[Row], files: list[tuple[str, list[Row]]]) -> bool:
    """Whether a newer file of its name speaks anew of its order, and does not say it is older."""
    again = [
        other
        for other in words
        if other[:2] == row[:2]
        and other.file > row.file
        and files[other.file][0] == files[row.file][0]
    ]
    versions = {other.file for other in again}
    if versions == {other.file for other in again if other[:5] == row[:5]}:
        return False
    changes = [other.changed for other in again]
    if row.changed is None or None in changes:
        return True
    return max(change for change in changes if change is not None) >= row.changed


def _numbers(columns: Iterable[Any]) -> set[str]:
    return {number for column in columns for number in column.to_pylist()}


def _of(frame: pd.DataFrame, *names: str) -> list[tuple[Any, ...]]:
    return sorted(zip(*(frame[name] for name in names), strict=True))


@pytest.mark.parametrize("seed", range(6))
def test_every_question_is_answered_as_the_rule_says(
    store: Store, run: Run, storages: StorageOf, seed: int
) -> None:
    """By window, number, age and lateness, now and as of each file, of files in any order."""
    chance = random.Random(seed)
    files = []
    for number in range(FILES):
        rows = [
            Row(
                chance.choice(ACCOUNTS),
                f"O-{chance.randrange(8)}",
                chance.randrange(2),
                chance.randrange(number, number + 3),
                chance.choice((None, 1, 2)),
                number,
            )
            for _ in range(ROWS_OF_A_FILE)
        ]
        files.append((chance.choice("ab"), rows))
    for number, (name, rows) in enumerate(files):
        frame = frame_of([_cells(row) for row in rows], columns=ORDER_COLUMNS)
        source = SourceFile(SourceKind.ORDERS, name, f"{number}", 1, len(rows), len(rows), 0, 0)
        keep(store, run, frame.iloc[:5], frame.iloc[5:], source=source, storages=storages)
    after = [_standing(files[: number + 1]) for number in range(FILES)]
    mine = [row for row in after[-1] if row.account == run.account_id]
    days = [DAY_0 + timedelta(days=day) for day in range(FILES + 3)]
    with store.reading() as connection:
        ids = [each.file_id for each in facts_rows.every(connection)]
        assert [*facts_problems(facts_rows.every(connection), storages=storages)] == []
        for until, stands in enumerate(after):
            then = StoredOrders(connection, run, storages, ids[until])
            for day in (0, 3, 6):
                frame = then.since(days[day])
                assert _of(frame, "order_no", "amount", "source") == sorted(
                    (row.order_no, row.amount, files[row.file][0])
                    for row in stands
                    if row.account == run.account_id and row.day >= day
                )
            by_key = then.of_keys(ACCOUNTS, order_nos=["O-1", "O-5", "O-99"])
            assert _of(by_key, "account_id", "order_no", "amount") == sorted(
                (row.account, row.order_no, row.amount)
                for row in stands
                if row.order_no in {"O-1", "O-5"}
            )
        orders = StoredOrders(connection, run, storages)
        since = _numbers(orders.numbers(spans=[(days[4], None)]))
        late = _numbers(orders.numbers(behind=ids[2], spans=[(days[1], days[5])]))
        between = _numbers(orders.numbers(spans=[(days[1], days[3]), (days[6], days[7])]))
        nothing = _numbers(orders.numbers(spans=[]))
        view = orders.in_view(since=days[6], asked=pa.array(["O-1"]))

    assert since == {row.order_no for row in mine if row.day >= 4}
    assert late == {row.order_no for row in mine if row.file > 2 and 1 <= row.day < 5}
    assert between == {row.order_no for row in mine if row.day in {1, 2, 6}}
    assert nothing == set()
    seen = {"O-1", *(row.order_no for row in mine if row.day >= 6)}
    assert sorted(
        zip(view["order_no"].to_pylist(), view["amount"].to_pylist(), strict=True)
    ) == sorted((row.order_no, row.amount) for row in mine if row.order_no in seen)
