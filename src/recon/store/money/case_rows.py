"""Cases about final instructions, and evidence about doubts beside the gateway's answers."""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import groupby
from operator import attrgetter
from typing import Any

from sqlalchemy import Connection, bindparam, func, insert, or_, select

from recon.instructions.contradiction import NOT_DONE_STATES
from recon.instructions.instruction import Instruction
from recon.instructions.resolution import SearchedRefund
from recon.model.uptime import Uptime
from recon.model.words import CONFIRMED_STATES, InstructionKind, InstructionState
from recon.store.database.history import Event, append, of_entity
from recon.store.database.record import CASE, record
from recon.store.money.instruction_rows import (
    INSTRUCTIONS,
    find,
    in_parts,
    instruction_of,
    read_instructions,
)
from recon.store.nights.runs import Run
from recon.store.schema import APPLIED, contradiction, instruction, refund_search
from recon.store.schema.columns import REASON_CHARACTERS, OfAccount, account_values, in_account

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


FINAL = (*CONFIRMED_STATES, *NOT_DONE_STATES)
KINDS = (InstructionKind.CAPTURE, InstructionKind.CANCEL, InstructionKind.REFUND)


_OF_ACCOUNT = in_account(contradiction)
_CASES = select(contradiction).where(*_OF_ACCOUNT)
_OF_INSTRUCTION = select(contradiction.c.closed_at).where(
    contradiction.c.instruction_id == bindparam("wanted")
)
_OPEN = (
    INSTRUCTIONS.add_columns(contradiction.c.told, contradiction.c.noted_at)
    .join(contradiction, contradiction.c.instruction_id == instruction.c.instruction_id)
    .where(*_OF_ACCOUNT, contradiction.c.closed_at.is_(None))
    .order_by(None)
    .order_by(contradiction.c.noted_at, contradiction.c.instruction_id)
)
_REFUND_OF_ACCOUNT = (
    *in_account(instruction),
    instruction.c.kind == InstructionKind.REFUND.value,
    instruction.c.transaction_id != "",
)
_NUMBERED_PAYMENTS = (
    select(instruction.c.transaction_id)
    .where(*_REFUND_OF_ACCOUNT, instruction.c.refund_reference_id != "")
    .group_by(instruction.c.transaction_id)
    .having(
        or_(
            func.count() > 1,
            func.max(instruction.c.refund_reference_id) != instruction.c.transaction_id + "-01",
        )
    )
)
_NUMBERED = (
    INSTRUCTIONS.where(
        *_REFUND_OF_ACCOUNT,
        instruction.c.sent_at.is_not(None),
        # What surely did not leave took no number.
        instruction.c.state.not_in(
            [
                InstructionState.PLANNED.value,
                InstructionState.APPROVED.value,
                InstructionState.WITHDRAWN.value,
            ]
        ),
        instruction.c.transaction_id.in_(_NUMBERED_PAYMENTS),
    )
    .order_by(None)
    .order_by(instruction.c.transaction_id, instruction.c.sent_at, instruction.c.instruction_id)
)
_ENDED = (
    *in_account(instruction),
    instruction.c.state.in_([state.value for state in FINAL]),
    instruction.c.kind.in_([kind.value for kind in KINDS]),
    instruction.c.outcome_at.is_not(None),
    contradiction.c.instruction_id.is_(None),
)
_WITHOUT_CASE = INSTRUCTIONS.outerjoin(
    contradiction, contradiction.c.instruction_id == instruction.c.instruction_id
).where(*_ENDED)
_ENDED_PAYMENTS = (
    _WITHOUT_CASE.order_by(None).with_only_columns(instruction.c.transaction_id).distinct()
)
_ENDED_OF = (
    _WITHOUT_CASE.where(instruction.c.transaction_id.in_(bindparam("wanted", expanding=True)))
    .order_by(None)
    .order_by(instruction.c.sent_at, instruction.c.instruction_id)
)


@dataclass(frozen=True, slots=True)
class Case:
    """A final instruction that evidence contradicts."""

    item: Instruction
    told: str
    """What contradicts it."""
    noted_at: datetime


def ended_payments(connection: Connection, owner: OfAccount) -> list[str]:
    """The payments of final instructions without a case."""
    return [*connection.execute(_ENDED_PAYMENTS, account_values(owner)).scalars()]


def shown_ended(
    connection: Connection, owner: OfAccount, *, shown: Mapping[str, Sequence[str]]
) -> list[tuple[Instruction, str]]:
    """Final instructions without a case whose payment is shown, each with its status.

    `shown` is what a run's answers showed: transaction -> statuses.
    """
    of_account = account_values(owner)
    wanted = sorted(payment for payment in ended_payments(connection, owner) if payment in shown)
    return [
        (item, status)
        for some in in_parts(wanted)
        for item in read_instructions(connection, _ENDED_OF, of_account | {"wanted": some})
        for status in shown[item.transaction_id]
    ]


def numbered_refunds(connection: Connection, run: Run) -> list[list[Instruction]]:
    """Refunds by payment, as they were sent; of payments with more than one plain first number."""
    numbered = read_instructions(connection, _NUMBERED, account_values(run))
    return [[*refunds] for _, refunds in groupby(numbered, key=attrgetter("transaction_id"))]


def with_case(connection: Connection, run: Run) -> frozenset[str]:
    """Instructions of the account that have a case, open or closed."""
    rows = connection.execute(
        _CASES.with_only_columns(contradiction.c.instruction_id), account_values(run)
    )
    return frozenset(rows.scalars())


def open_case(connection: Connection, item: Instruction, *, reason: str, at: datetime) -> None:
    """Keep what contradicts an instruction; its state stays as it is."""
    case = {
        "instruction_id": item.instruction_id,
        "merchant_id": item.merchant_id,
        "account_id": item.account_id,
        "transaction_id": item.transaction_id,
        "believed": item.state.value,
        "told": reason[:REASON_CHARACTERS],
        "noted_at": at,
    }
    record(connection, CASE, case, event="opened", at=at)


def close_case(
    connection: Connection, instruction_id: str, *, verdict: str, reason: str, at: datetime
) -> None:
    """Two people said what is true of it."""
    values, of = {"verdict": verdict, "closed_at": at}, {"instruction_id": instruction_id}
    record(connection, CASE, values, of=of, event="closed", at=at, details={"told": reason})


def had_case(connection: Connection, instruction_id: str) -> bool:
    """Whether it has a case, open or closed."""
    return connection.execute(_OF_INSTRUCTION, {"wanted": instruction_id}).first() is not None


def has_open_case(connection: Connection, instruction_id: str) -> bool:
    """Whether people still have to look at it."""
    row = connection.execute(_OF_INSTRUCTION, {"wanted": instruction_id}).first()
    return row is not None and row.closed_at is None


def open_cases(connection: Connection, run: Run) -> list[Case]:
    """Open cases of the account, oldest first."""
    rows = connection.execute(_OPEN, account_values(run))
    return [Case(instruction_of(row), row.told, row.noted_at) for row in rows]


def closed_payments(connection: Connection, run: Run) -> dict[str, str]:
    """Payment -> why nothing more is sent for it: a case is open, or the journal was wrong."""
    return dict(_reasons(connection.execute(_CASES, account_values(run)).mappings()))


def _reasons(rows: Iterable[Any]) -> Iterable[tuple[str, str]]:
    for row in rows:
        wanted = row["instruction_id"]
        if not row["transaction_id"]:
            continue  # an end of a subscription: of no payment
        if row["closed_at"] is None:
            reason = f"instruction {wanted} of the same payment has an open case: {row['told']}"
            yield row["transaction_id"], reason
        elif (row["verdict"] == APPLIED) != (row["believed"] in CONFIRMED_STATES):
            reason = f"two people found that instruction {wanted} of the same payment was in truth "
            yield row["transaction_id"], f"{reason}{row['verdict']}: go on in the portal"
