"""Rows that the history does not bind, changed past the code: they move no money twice or unasked.

Campaign `chaos` plays every column of every row at both times; an ordinary run a share of them.
"""

import os
import random
import sqlite3
from contextlib import suppress
from datetime import timedelta
from typing import NamedTuple

import pytest
from deliveries import ORDERS, Guise
from journal_checker import unwanted
from protocol_world import settle_step
from scripted_gateway import Script

from recon.model.errors import ReconError
from recon.model.terms import InstructionKind

TABLES = ("order_file", "reject", "answer_part", "batch", "attempt")
"""Those of `NOT_BOUND` (tests/recon/steps/test_forged_rows.py) but the messages of the gateway."""
TIMES = ("between nights", "behind the query")
ROWS_MAX = 4
"""Of one table, the newest first."""
CASES = 0 if os.environ.get("CHAOS") else 12
"""0: all."""
SECONDS_MAX = 240 if CASES else 1_800
"""All of them are some 600 worlds of two nights."""
WISHES = (("C-0", 250), ("C-0", 400), ("C-2", 300))


class Forging(NamedTuple):
    """One change past the code."""

    table: str
    column: str
    """Or DELETE, or INSERT."""
    row: int
    """Counted from the newest."""
    time: str


BAD = "100042,100042001,B-1,EUR,ten,paid,2026-11-19T10:00:00Z,,,,\n"


def begun(world):
    """Refunds: one confirmed, two in doubt of which one happened; and a row that cannot be read."""
    (world.merchant.inbox / "orders-bad.csv").write_text(f"{','.join(ORDERS)}\n{BAD}")
    silent = [Script(), Script("now", "silence"), Script("none", "silence")]
    for (place, amount), script in zip(WISHES, silent, strict=True):
        world.instruct(InstructionKind.REFUND, place, amount=amount, guise=Guise(request_id="own"))
        world.night(scripts=[script])
        world.pass_time(timedelta(minutes=1))


def places(world):
    """Everything that can be changed after the beginning."""
    for table in TABLES:
        names = [row[1] for row in world.store.looking.execute(f"PRAGMA table_info({table})")]
        (count,) = world.store.looking.execute(f"SELECT count(*) FROM {table}").fetchone()  # noqa: S608
        for row in range(min(count, ROWS_MAX)):
            for column in (*names, "DELETE", "INSERT"):
                yield from (Forging(table, column, row, time) for time in TIMES)


def forge(world, it):
    """Whatever refuses it by itself is no danger."""
    base = world.store.looking
    with suppress(sqlite3.IntegrityError):
        newest = f"SELECT rowid FROM {it.table} ORDER BY rowid DESC LIMIT 1 OFFSET {it.row}"  # noqa: S608
        row = base.execute(newest).fetchone()
        if row is None:
            return
        if it.column == "DELETE":
            base.execute(f"DELETE FROM {it.table} WHERE rowid = ?", row)  # noqa: S608
        elif it.column == "INSERT":
            _insert_like(base, it.table, row[0])
        else:
            where = f"FROM {it.table} WHERE rowid = ?"
            (before,) = base.execute(f"SELECT {it.column} {where}", row).fetchone()
            base.execute(
                f"UPDATE {it.table} SET {it.column} = ? WHERE rowid = ?",  # noqa: S608
                (_other(base, it, before), row[0]),
            )


def _insert_like(base, table, row):
    columns = base.execute(f"PRAGMA table_info({table})").fetchall()
    values = list(base.execute(f"SELECT * FROM {table} WHERE rowid = ?", (row,)).fetchone())  # noqa: S608
    for at, column in enumerate(columns):
        if column[5]:
            values[at] = values[at] + 1_000 if isinstance(values[at], int) else f"{values[at]}x"
    base.execute(f"INSERT INTO {table} VALUES ({', '.join('?' * len(values))})", values)  # noqa: S608


def _other(base, it, before):
    """What somebody would write, a value that the column has elsewhere, or one that is like it."""
    if (word := WORDS.get((it.table, it.column), before)) != before:
        return word
    others = base.execute(
        f"SELECT DISTINCT {it.column} FROM {it.table} WHERE {it.column} IS NOT ?",  # noqa: S608
        (before,),
    ).fetchall()
    if others:
        return others[0][0]
    if it.column.endswith("_at") or it.column == "at":
        return "2026-11-20 01:02:03.000000"
    if isinstance(before, int):
        return 1 - before if before in {0, 1} else before + 1_000
    return f"{before or ''}x"


WORDS = {
    ("attempt", "outcome"): "rejected",
    ("batch", "state"): "closed",
}
"""What somebody would write there who wants a refund sent once more."""


def played(world, it):
    """What moved that nobody wanted: after a forging, more nights and the same wishes once more."""
    begun(world)
    if it.time == "between nights":
        forge(world, it)
    with pytest.MonkeyPatch.context() as patch:
        if it.time == "behind the query":
            real = settle_step.settle

            def settle(*run, **how):
                forge(world, it)
                return real(*run, **how)

            patch.setattr(settle_step, "settle", settle)
        return _moved_later(world)


def _moved_later(world):
    """What moved that nobody wanted when the same wishes come once more in later nights."""
    _later(world)
    for number in range(len(WISHES)):
        world.merchant.notify_again(number, guise=Guise(request_id="other"))
    for _ in range(3):
        _later(world)
    return unwanted(world.gateway.effects(), may_happen=world.merchant.may_happen())


def _later(world):
    world.pass_time(timedelta(hours=9))
    with suppress(ReconError, ValueError):
        world.night()


def chosen(world):
    """All of them, or a share in an order of chance."""
    begun(world)
    found = [*places(world)]
    random.Random("unbound rows").shuffle(found)
    return found[: CASES or None]


@pytest.mark.timeout(SECONDS_MAX)
def test_a_row_that_is_not_bound_moves_no_money(world_of):
    """Changed in any column, added or taken away: nothing happens twice, nor unasked."""
    bad = [(it, moved) for it in chosen(world_of(1)) if (moved := played(world_of(1), it))]
    assert bad == []
