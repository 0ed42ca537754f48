"""Database rows of cases (evidence against final instructions) and of evidence about doubts."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import groupby
from operator import attrgetter
from typing import Any

from sqlalchemy import Connection, Select, func, or_, select

from recon.instructions.contradiction import NOT_DONE_STATES
from recon.instructions.instruction import Instruction
from recon.instructions.resolution import SearchedRefund
from recon.model.terms import CONFIRMED_STATES, InstructionKind, InstructionState
from recon.model.uptime import Uptime
from recon.store.database.history import Event, append, document_of, links_of
from recon.store.database.record import CASE, INSTRUCTION, record
from recon.store.money.instruction_rows import (
    INSTRUCTIONS,
    find,
    instruction_of,
    read_instructions,
)
from recon.store.nights.runs import Run
from recon.store.schema import APPLIED, contradiction, instruction
from recon.store.schema.columns import REASON_CHARACTERS, Owner, among, in_account

CLOCK = "doubt clock"
"""History entity of the readings of the boot clock, which nobody can set."""
DECIDED = "decided"
"""Key in the event of an instruction that two people decided: their verdict."""
SEARCH = "refund search"
"""History entity of the results of refund searches by our own reference."""


def note_clocks(
    connection: Connection, instruction_ids: Iterable[str], *, uptime: Uptime, at: datetime
) -> None:
    """Start the quarantine clock of each instruction that has no reading since this boot."""
    events = [
        clock_event(instruction_id, uptime=uptime)
        for instruction_id in instruction_ids
        if all(one.boot_id != uptime.boot_id for one in readings(connection, instruction_id))
    ]
    append(connection, events, at=at)


def clock_event(instruction_id: str, *, uptime: Uptime) -> Event:
    """Return the history event that records the boot clock's reading for an instruction."""
    return Event(CLOCK, instruction_id, "read", document_of(uptime))


def readings(connection: Connection, instruction_id: str, *, after: int = 0) -> list[Uptime]:
    """Return an instruction's clock readings after link `after` of the history, oldest first."""
    links = links_of(connection, [instruction_id], entity=CLOCK, after=after)
    return [link.value(Uptime) for link in links]


def last_change(connection: Connection, instruction_id: str) -> int:
    """Return the sequence number of the instruction's newest event in the history; 0 for none."""
    links = links_of(connection, [instruction_id], entity="instruction")
    return links[-1].sequence if links else 0


def note_search(connection: Connection, instruction_id: str, *, search: SearchedRefund) -> None:
    """Record what one refund search by our own reference found."""
    event = Event(SEARCH, instruction_id, "searched", document_of(search))
    append(connection, [event], at=search.queried_at)


def searches(connection: Connection, instruction_id: str) -> list[SearchedRefund]:
    """Return the recorded searches for a refund, in the order in which they were made."""
    links = links_of(connection, [instruction_id], entity=SEARCH)
    return [link.value(SearchedRefund) for link in links]


def known_refund(connection: Connection, run: Run) -> Instruction | None:
    """Return the account's newest confirmed refund that has a gateway reference id, or None.

    It is known to exist, so a search function that works must find it.
    """
    newest = (
        INSTRUCTIONS.where(
            *in_account(instruction, run),
            instruction.c.kind == InstructionKind.REFUND,
            instruction.c.state == InstructionState.CONFIRMED,
            instruction.c.refund_reference_id != "",
        )
        .order_by(None)
        .order_by(instruction.c.sent_at.desc(), instruction.c.instruction_id)
        .limit(1)
    )
    return next(iter(read_instructions(connection, newest)), None)


def own_refunds(connection: Connection, run: Run, *, transaction_id: str) -> list[str]:
    """Return the gateway's reference ids of all our refunds of one payment."""
    of_payment = find(connection, run, transaction_id=[transaction_id])
    return [item.refund_reference_id for item in of_payment if item.refund_reference_id]


FINAL = (*CONFIRMED_STATES, *NOT_DONE_STATES)
KINDS = (InstructionKind.CAPTURE, InstructionKind.CANCEL, InstructionKind.REFUND)


@dataclass(frozen=True, slots=True)
class Case:
    """An open case: a final instruction that evidence contradicts."""

    item: Instruction
    reason: str
    """The evidence that contradicts it."""
    noted_at: datetime


def ended_payments(connection: Connection, owner: Owner) -> list[str]:
    """Return the transaction ids of final instructions that have no case."""
    payments = _ended(owner).with_only_columns(instruction.c.transaction_id).distinct()
    return [*connection.execute(payments).scalars()]


def _ended(owner: Owner) -> Select[Any]:
    return (
        INSTRUCTIONS.outerjoin(
            contradiction, contradiction.c.instruction_id == instruction.c.instruction_id
        )
        .where(
            *in_account(instruction, owner),
            instruction.c.state.in_(FINAL),
            instruction.c.kind.in_(KINDS),
            instruction.c.outcome_at.is_not(None),
            contradiction.c.instruction_id.is_(None),
        )
        .order_by(None)
    )


def ended_and_reported(
    connection: Connection, owner: Owner, *, statuses: Mapping[str, Sequence[str]]
) -> list[tuple[Instruction, str]]:
    """Return final instructions without a case, each paired with a status the gateway showed.

    `statuses` maps transaction ids to the statuses in the answers of one run.
    """
    ended = _ended(owner).order_by(instruction.c.sent_at, instruction.c.instruction_id)
    shown_now = ended.where(among(connection, instruction.c.transaction_id, statuses))
    return [
        (item, status)
        for item in read_instructions(connection, shown_now)
        for status in statuses[item.transaction_id]
    ]


def numbered_refunds(connection: Connection, run: Run) -> list[list[Instruction]]:
    """Return refunds by payment, as sent, where there are several or one not numbered -01."""
    payment, number = instruction.c.transaction_id, instruction.c.refund_reference_id
    refunds = (
        *in_account(instruction, run),
        instruction.c.kind == InstructionKind.REFUND,
        payment != "",
    )
    payments = (
        select(payment)
        .where(*refunds, number != "")
        .group_by(payment)
        .having(or_(func.count() > 1, func.max(number) != payment + "-01"))
    )
    # A refund that was certainly not sent has no refund number at the gateway.
    unsent = (InstructionState.PLANNED, InstructionState.APPROVED, InstructionState.WITHDRAWN)
    sent = (
        instruction.c.sent_at.is_not(None),
        instruction.c.state.not_in(unsent),
    )
    query = INSTRUCTIONS.where(*refunds, *sent, payment.in_(payments)).order_by(None)
    by = (payment, instruction.c.sent_at, instruction.c.instruction_id)
    numbered = read_instructions(connection, query.order_by(*by))
    return [[*each] for _, each in groupby(numbered, key=attrgetter("transaction_id"))]


def with_case(connection: Connection, run: Run) -> frozenset[str]:
    """Return the ids of the account's instructions that have a case, open or closed."""
    own = select(contradiction.c.instruction_id).where(*in_account(contradiction, run))
    return frozenset(connection.execute(own).scalars())


def open_case(connection: Connection, item: Instruction, *, reason: str, at: datetime) -> None:
    """Open a case with the evidence against an instruction, whose state does not change."""
    case = {
        "instruction_id": item.instruction_id,
        "merchant_id": item.merchant_id,
        "account_id": item.account_id,
        "transaction_id": item.transaction_id,
        "believed": item.state,
        "reason": reason[:REASON_CHARACTERS],
        "noted_at": at,
    }
    record(connection, CASE, case, event="opened", at=at)


def close_case(
    connection: Connection, instruction_id: str, *, verdict: str, reason: str, at: datetime
) -> None:
    """Close a case with the verdict on which two people agreed."""
    values, of = {"verdict": verdict, "closed_at": at}, {"instruction_id": instruction_id}
    record(connection, CASE, values, of=of, event="closed", at=at, details={"reason": reason})


def decided_by_people(connection: Connection) -> Iterator[tuple[str, str]]:
    """Instruction and verdict of every decision that two people are said to have made."""
    closed = select(contradiction.c.instruction_id, contradiction.c.verdict)
    for row in connection.execute(closed.where(contradiction.c.closed_at.is_not(None))):
        yield row.instruction_id, row.verdict
    for state in (InstructionState.RESOLVED_APPLIED, InstructionState.RESOLVED_NOT_APPLIED):
        for link in links_of(connection, entity=INSTRUCTION.entity, event=state):
            if decided := link.data.get(DECIDED):
                yield link.entity_id, decided


def has_case(connection: Connection, instruction_id: str, *, open_only: bool = False) -> bool:
    """Return whether an instruction has a case; with `open_only`, one that is not closed yet."""
    query = select(contradiction).where(contradiction.c.instruction_id == instruction_id)
    still_open = contradiction.c.closed_at.is_(None)
    return connection.execute(query.where(still_open) if open_only else query).first() is not None


def open_cases(connection: Connection, run: Run) -> list[Case]:
    """Return the open cases of the account, oldest first."""
    rows = connection.execute(
        INSTRUCTIONS.add_columns(contradiction.c.reason.label("evidence"), contradiction.c.noted_at)
        .join(contradiction, contradiction.c.instruction_id == instruction.c.instruction_id)
        .where(*in_account(contradiction, run), contradiction.c.closed_at.is_(None))
        .order_by(None)
        .order_by(contradiction.c.noted_at, contradiction.c.instruction_id)
    )
    return [Case(instruction_of(row), row.evidence, row.noted_at) for row in rows]


def closed_payments(connection: Connection, run: Run) -> dict[str, str]:
    """Map each blocked payment to the reason: an open case, or one that proved the journal wrong.

    Instructions without a payment (the end of a subscription) are not included.
    """
    mine = *in_account(contradiction, run), contradiction.c.transaction_id != ""
    reasons = {}
    for case in connection.execute(select(contradiction).where(*mine)):
        of = f"instruction {case.instruction_id} of the same payment"
        if case.closed_at is None:
            reasons[case.transaction_id] = f"{of} has an open case: {case.reason}"
        elif (case.verdict == APPLIED) != (case.believed in CONFIRMED_STATES):
            reasons[case.transaction_id] = (
                f"two people found that {of} was in truth {case.verdict}: go on in the portal"
            )
    return reasons
