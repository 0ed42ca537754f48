"""Evidence about doubts beside the gateway's answers: their clocks, and searches for refunds."""

import json
from collections.abc import Iterable
from datetime import datetime

from sqlalchemy import Connection, bindparam, insert, select

from recon.instructions.instruction import Instruction
from recon.instructions.resolution import SearchedRefund
from recon.model.uptime import Uptime
from recon.model.words import InstructionKind, InstructionState
from recon.store.database.history import Event, append, of_entity
from recon.store.money.instruction_rows import INSTRUCTIONS, find, read_instructions
from recon.store.nights.runs import Run
from recon.store.schema import instruction, refund_search
from recon.store.schema.account_filter import account_values, in_account

CLOCK = "doubt clock"
"""Entity of the history: its events are readings."""
_SEARCHES = (
    select(refund_search)
    .where(refund_search.c.instruction_id == bindparam("of_instruction"))
    .order_by(refund_search.c.search_id)
)


def note_clocks(
    connection: Connection, instruction_ids: Iterable[str], *, uptime: Uptime, at: datetime
) -> None:
    """Start the wait of every doubt that has none on this boot of this machine."""
    events = [
        clock_event(wanted, uptime=uptime)
        for wanted in instruction_ids
        if all(one.boot_id != uptime.boot_id for one in readings(connection, wanted))
    ]
    append(connection, events, at=at)


def clock_event(instruction_id: str, *, uptime: Uptime) -> Event:
    """What the clock showed that nobody can set, when somebody looked at an instruction."""
    shown = {"boot_id": uptime.boot_id, "uptime_ms": uptime.milliseconds}
    return Event(CLOCK, instruction_id, "read", shown)


def readings(connection: Connection, instruction_id: str, *, after: int = 0) -> list[Uptime]:
    """The noted readings of an instruction's clock, behind a link of the history, oldest first."""
    shown = (
        json.loads(str(link["data"]))
        for link in of_entity(connection, instruction_id)
        if link["entity"] == CLOCK and int(str(link["sequence"])) > after
    )
    return [Uptime(one["boot_id"], one["uptime_ms"]) for one in shown]


def last_change(connection: Connection, instruction_id: str) -> int:
    """The link of the history by which an instruction came to the state that it is in."""
    links = of_entity(connection, instruction_id)
    changes = (int(str(link["sequence"])) for link in links if link["entity"] == "instruction")
    return max(changes, default=0)


def save_search(connection: Connection, instruction_id: str, *, search: SearchedRefund) -> None:
    """What one search for our own reference found."""
    connection.execute(
        insert(refund_search).values(
            instruction_id=instruction_id,
            refund_reference_id=search.refund_reference_id,
            queried_at=search.queried_at,
            shown_beside=search.shown_beside,
            boot_id=search.uptime.boot_id,
            uptime_ms=search.uptime.milliseconds,
            gateway_at=search.uptime.gateway_at,
        )
    )


def known_refund(connection: Connection, run: Run) -> Instruction | None:
    """The newest refund of the account that the gateway confirmed with an id of its own.

    It surely happened: a search that works finds it.
    """
    newest = (
        INSTRUCTIONS.where(
            *in_account(instruction),
            instruction.c.kind == InstructionKind.REFUND.value,
            instruction.c.state == InstructionState.CONFIRMED.value,
            instruction.c.refund_reference_id != "",
        )
        .order_by(None)
        .order_by(instruction.c.sent_at.desc(), instruction.c.instruction_id)
        .limit(1)
    )
    return next(iter(read_instructions(connection, newest, account_values(run))), None)


def own_refunds(connection: Connection, run: Run, *, transaction_id: str) -> list[str]:
    """The gateway's ids of all refunds of ours of one payment."""
    of_payment = find(connection, run, transaction_id=[transaction_id])
    return [item.refund_reference_id for item in of_payment if item.refund_reference_id]


def searches(connection: Connection, instruction_id: str) -> list[SearchedRefund]:
    """All searches for a refund as they came, whatever the clock said."""
    rows = connection.execute(_SEARCHES, {"of_instruction": instruction_id})
    return [
        SearchedRefund(
            row.refund_reference_id,
            row.queried_at,
            row.shown_beside,
            Uptime(row.boot_id, row.uptime_ms, row.gateway_at),
        )
        for row in rows
    ]
