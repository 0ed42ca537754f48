"""What stands of orders, asked in every way, beside the rule followed row by row."""

import random
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple

import pandas as pd
import pytest

from recon.matching.frames.sources import ORDER_COLUMNS, frame_of
from recon.model.words import SourceFile, SourceKind
from recon.store.database.engine import Store
from recon.store.nights import facts_keys, facts_rows, stored_orders
from recon.store.nights.order_facts import StorageOf, facts_problems
from recon.store.nights.runs import Run
from tests.recon.store.kept_files import keep

DAY_0 = datetime(2026, 11, 1, tzinfo=UTC)
ACCOUNTS = ("100042001", "100042002")
ACCOUNT = ("100042", "100042001")
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


def _takes_place(row: Row, old: Row, *, names: list[str]) -> bool:
    if row.changed is not None and old.changed is not None:
        return row.changed > old.changed
    return row.file != old.file and names[row.file] == names[old.file]


def _standing(files: list[tuple[str, list[Row]]]) -> list[list[Row]]:
    """What stands after each file, by the rule."""
    names = [name for name, _ in files]
    stands: list[Row] = []
    after = []
    for _, rows in files:
        for row in rows:
            beside = [old for old in stands if old[:2] == row[:2]]
            if row[:5] in [old[:5] for old in beside]:
                continue
            gone = [old for old in beside if _takes_place(row, old, names=names)]
            stands = [old for old in stands if old not in gone] + [row]
        after.append([*stands])
    return after


def _numbers(columns: Iterable[Any]) -> set[str]:
    return {number for column in columns for number in column.to_pylist()}


def _of(frame: pd.DataFrame, *names: str) -> list[tuple[Any, ...]]:
    return sorted(zip(*(frame[name] for name in names), strict=True))


def _merge_keys(store: Store, *, storages: StorageOf, at_least: int) -> None:
    """Now and then the keys of some files lie in one."""
    with store.writing() as connection:
        merged = facts_keys.merge(connection, ACCOUNT, storages=storages, at_least=at_least)
        if merged is not None:
            facts_keys.save(connection, merged, at=DAY_0)


@pytest.mark.parametrize("seed", [1, 2, 3])
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
        _merge_keys(store, storages=storages, at_least=2 + seed % 2)
    after = _standing(files)
    mine = [row for row in after[-1] if row.account == run.account_id]
    days = [DAY_0 + timedelta(days=day) for day in range(FILES + 3)]
    with store.reading() as connection:
        ids = [each.file_id for each in facts_rows.every(connection)]
        assert [*facts_problems(facts_rows.every(connection), storages=storages)] == []
        for until, stands in enumerate(after):
            for day in (0, 3, 6):
                frame = stored_orders.current_orders(
                    connection, run, since=days[day], storages=storages, until=ids[until]
                )
                assert _of(frame, "order_no", "amount", "source") == sorted(
                    (row.order_no, row.amount, files[row.file][0])
                    for row in stands
                    if row.account == run.account_id and row.day >= day
                )
            by_key = stored_orders.orders_of_keys(
                connection,
                merchant_id="100042",
                accounts=ACCOUNTS,
                order_nos=["O-1", "O-5", "O-99"],
                storages=storages,
                until=ids[until],
            )
            assert _of(by_key, "account_id", "order_no", "amount") == sorted(
                (row.account, row.order_no, row.amount)
                for row in stands
                if row.order_no in {"O-1", "O-5"}
            )
        terms: dict[str, Any] = {"storages": storages}
        since = _numbers(stored_orders.ordered_since(connection, run, since=days[4], **terms))
        late = _numbers(
            stored_orders.came_after(
                connection, run, last_file=ids[2], span=(days[1], days[5]), **terms
            )
        )
        spans = [(days[0], days[2]), (days[5], days[6])]
        between = _numbers(stored_orders.ordered_between(connection, run, spans=spans, **terms))
        nothing = _numbers(stored_orders.ordered_between(connection, run, spans=[], **terms))

    assert since == {row.order_no for row in mine if row.day >= 4}
    assert late == {row.order_no for row in mine if row.file > 2 and 1 <= row.day < 5}
    assert between == {row.order_no for row in mine if row.day in {1, 2, 6}}
    assert nothing == set()
