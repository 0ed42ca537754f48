"""Evidence about doubts beside the gateway's answers: their clocks, and searches for refunds."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta

from sqlalchemy import Connection, bindparam, insert, select

from recon.model.uptime import Uptime
from recon.model.words import InstructionKind, InstructionState
from recon.settlement.resolution import SearchedRefund
from recon.store.nights.runs import Run
from recon.store.schema import doubt_clock, instruction, refund_search
from recon.store.schema.account_filter import account_values, in_account

_CLOCK = select(doubt_clock.c.boot_id, doubt_clock.c.uptime_ms).where(
    doubt_clock.c.instruction_id == bindparam("of_instruction")
)
_CLOCKED = select(doubt_clock.c.instruction_id)
_START_CLOCK = insert(doubt_clock)
_OWN_REFUNDS = select(instruction.c.refund_reference_id).where(
    *in_account(instruction),
    instruction.c.transaction_id == bindparam("of_payment"),
    instruction.c.refund_reference_id != "",
)
_SEARCHES = (
    select(refund_search)
    .where(refund_search.c.instruction_id == bindparam("of_instruction"))
    .order_by(refund_search.c.search_id)
)


@dataclass(frozen=True, slots=True)
class KnownRefund:
    """A refund of ours that surely happened: a search that works finds it."""

    instruction_id: str
    amount: int
    currency: str
    refund_reference_id: str


def note_clocks(
    connection: Connection, instruction_ids: Iterable[str], *, uptime: Uptime, at: datetime
) -> None:
    """Start the clock of every doubt that has none yet."""
    wanted_ids = list(instruction_ids)
    if not wanted_ids:
        return
    known = set(connection.execute(_CLOCKED).scalars())
    rows = [
        {
            "instruction_id": wanted,
            "boot_id": uptime.boot_id,
            "uptime_ms": uptime.milliseconds,
            "noted_at": at,
        }
        for wanted in wanted_ids
        if wanted not in known
    ]
    if rows:
        connection.execute(_START_CLOCK, rows)


def waited(connection: Connection, instruction_id: str, *, uptime: Uptime) -> timedelta | None:
    """Time since a doubt's clock was started; None when the machine was started anew since.

    Then the clock on the wall decides: where each night has a machine of its own, which is thrown
    away after it, the time since its start would never be long enough.
    """
    row = connection.execute(_CLOCK, {"of_instruction": instruction_id}).one_or_none()
    if row is None or row.boot_id != uptime.boot_id:
        return None
    return timedelta(milliseconds=uptime.milliseconds - row.uptime_ms)


def save_search(connection: Connection, instruction_id: str, *, search: SearchedRefund) -> None:
    """What one search for our own reference found."""
    connection.execute(
        insert(refund_search).values(
            instruction_id=instruction_id,
            refund_reference_id=search.refund_reference_id,
            queried_at=search.queried_at,
            shown_beside=search.shown_beside,
        )
    )


def known_refund(connection: Connection, run: Run) -> KnownRefund | None:
    """The newest refund of the account that the gateway confirmed with an id of its own."""
    wanted = ("instruction_id", "amount", "currency", "refund_reference_id")
    row = connection.execute(
        select(*(instruction.c[name] for name in wanted))
        .where(
            instruction.c.merchant_id == run.merchant_id,
            instruction.c.account_id == run.account_id,
            instruction.c.kind == InstructionKind.REFUND.value,
            instruction.c.state == InstructionState.CONFIRMED.value,
            instruction.c.refund_reference_id != "",
        )
        .order_by(instruction.c.sent_at.desc(), instruction.c.instruction_id)
        .limit(1)
    ).first()
    return None if row is None else KnownRefund(*row)


def own_refunds(connection: Connection, run: Run, *, transaction_id: str) -> list[str]:
    """The gateway's ids of all refunds of ours of one payment."""
    of_account = account_values(run)
    rows = connection.execute(_OWN_REFUNDS, of_account | {"of_payment": transaction_id})
    return list(rows.scalars())


def searches(connection: Connection, instruction_id: str) -> list[SearchedRefund]:
    """All searches for a refund as they came, whatever the clock said."""
    rows = connection.execute(_SEARCHES, {"of_instruction": instruction_id})
    return [
        SearchedRefund(row.refund_reference_id, row.queried_at, row.shown_beside) for row in rows
    ]
