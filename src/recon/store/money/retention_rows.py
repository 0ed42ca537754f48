"""What of the database may be let go, and what money keeps it: nothing that is not decided goes."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import ColumnElement, Connection, and_, func, select, update

from recon.store.money.instruction_rows import UNFINISHED
from recon.store.schema import attempt, batch, contradiction, instruction, run, sign_off
from recon.store.schema.account_filter import OfAccount, account_values, in_account

_UNDECIDED = (
    select(attempt.c.batch_id)
    .join(instruction, instruction.c.instruction_id == attempt.c.instruction_id)
    .where(instruction.c.state.in_([state.value for state in UNFINISHED]))
)
_IN_A_CASE = (
    select(attempt.c.batch_id)
    .join(contradiction, contradiction.c.instruction_id == attempt.c.instruction_id)
    .where(contradiction.c.verdict == "")
)


@dataclass(frozen=True, slots=True)
class OldReplies:
    """How many replies are old enough, and their size."""

    count: int
    size_bytes: int
    oldest: datetime | None


def old_replies(connection: Connection, *, before: datetime) -> OldReplies:
    """Replies of batches that were closed before an instant, and of which nothing is open."""
    row = connection.execute(
        select(
            func.count(),
            func.coalesce(func.sum(func.length(batch.c.reply)), 0),
            func.min(batch.c.closed_at),
        ).where(_spared(before))
    ).one()
    return OldReplies(int(row[0]), int(row[1]), row[2])


def forget_replies(connection: Connection, *, before: datetime) -> None:
    """Take the bytes of those replies away; their hash, status and outcome stay."""
    connection.execute(update(batch).where(_spared(before)).values(reply=None))


def replaced_workbooks(connection: Connection) -> dict[str, datetime]:
    """Path -> start of the run, for workbooks of replaced runs that nobody signed."""
    rows = connection.execute(
        select(run)
        .where(run.c.status == "finished", run.c.workbook != "")
        .order_by(run.c.started_at)
    ).all()
    newest = {_night(row): row for row in rows}
    signed = set(connection.execute(select(sign_off.c.run_id)).scalars())
    kept = {row.workbook for row in rows if row.run_id in signed or newest[_night(row)] is row}
    return {row.workbook: row.started_at for row in rows if row.workbook not in kept}


def open_money(connection: Connection, owner: OfAccount, *, before: datetime) -> bool:
    """Whether an instruction or a case of an account that began before an instant is not ended."""
    unfinished = select(instruction.c.instruction_id).where(
        *in_account(instruction),
        instruction.c.state.in_([state.value for state in UNFINISHED]),
        instruction.c.planned_at < before,
    )
    in_a_case = select(contradiction.c.instruction_id).where(
        *in_account(contradiction), contradiction.c.verdict == ""
    )
    return any(
        connection.execute(query.limit(1), account_values(owner)).first() is not None
        for query in (unfinished, in_a_case)
    )


def _spared(before: datetime) -> ColumnElement[bool]:
    return and_(
        batch.c.state == "closed",
        batch.c.reply.is_not(None),
        batch.c.closed_at < before,
        batch.c.batch_id.not_in(_UNDECIDED),
        batch.c.batch_id.not_in(_IN_A_CASE),
    )


def _night(row: Any) -> tuple[str, str, str, str]:
    """A live run is never replaced by a dry one."""
    return row.merchant_id, row.account_id, row.business_date, row.mode
