"""Breaks that are not open any more, over all nights that led to a run."""

from collections.abc import Iterable, Iterator

from sqlalchemy import Connection, delete, insert, select

from recon.matching.breaks.reopened import BreakEnd
from recon.store.nights.runs import Run
from recon.store.schema import break_end, run, run_input


def save_ends(connection: Connection, run_id: str, *, ends: Iterable[BreakEnd]) -> None:
    """Keep what ended on a run, in place of an earlier attempt's."""
    connection.execute(delete(break_end).where(break_end.c.run_id == run_id))
    rows = [
        {
            "run_id": run_id,
            "break_id": end.break_id,
            "movement": end.movement,
            "first_seen": end.first_seen,
        }
        for end in ends
    ]
    if rows:
        connection.execute(insert(break_end), rows)


def ends_until(connection: Connection, last: Run) -> dict[str, BreakEnd]:
    """Break id -> its newest end, over a run and the nights that it carried forward."""
    rows = connection.execute(
        select(break_end)
        .join(run, run.c.run_id == break_end.c.run_id)
        .where(run.c.merchant_id == last.merchant_id, run.c.account_id == last.account_id)
    )
    by_run: dict[str, list[BreakEnd]] = {}
    for row in rows:
        end = BreakEnd(row.break_id, row.movement, row.first_seen)
        by_run.setdefault(row.run_id, []).append(end)
    ends: dict[str, BreakEnd] = {}
    for run_id in nights_before(connection, last):
        for end in by_run.get(run_id, ()):
            ends.setdefault(end.break_id, end)
    return ends


def nights_before(connection: Connection, last: Run) -> Iterator[str]:
    """A run, the one it carried forward, and so on, the newest first."""
    rows = connection.execute(
        select(run_input.c.run_id, run_input.c.previous_run_id)
        .join(run, run.c.run_id == run_input.c.run_id)
        .where(run.c.merchant_id == last.merchant_id, run.c.account_id == last.account_id)
    )
    before = {row.run_id: row.previous_run_id for row in rows}
    run_id = last.run_id
    while run_id:
        yield run_id
        run_id = before.get(run_id, "")
