"""Instructions as steps need them: what to plan, what waits, what is in doubt, what to show."""

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import (
    ColumnElement,
    Connection,
    Row,
    and_,
    bindparam,
    func,
    insert,
    or_,
    select,
    update,
)

from recon.gateway_client import RawReply
from recon.instructions.eligibility import Refused
from recon.instructions.instruction import Instruction
from recon.instructions.intention import named
from recon.instructions.planning import Plan
from recon.instructions.terms import terms_of
from recon.model.words import InstructionKind, InstructionState, SourceKind
from recon.store.database.bound_tables import ROW
from recon.store.database.history import Event, append
from recon.store.money.instruction_reading import (
    INSTRUCTIONS,
    instruction_of,
    instructions_where,
    read_instructions,
)
from recon.store.money.journal import move
from recon.store.nights.runs import Run
from recon.store.schema import attempt, batch, instruction, order_action, order_file
from recon.store.schema.account_filter import OfAccount, account_values, in_account
from recon.store.schema.columns import REASON_CHARACTERS, reason_that_fits

origin = order_file.alias("origin")
"""The file that an instruction came with."""

VALUES_PER_QUERY_MAX = 500
"""Ids named in one query; databases bound how many there may be."""

UNFINISHED = (
    InstructionState.PLANNED,
    InstructionState.APPROVED,
    InstructionState.IN_FLIGHT,
    InstructionState.IN_DOUBT,
    InstructionState.NEEDS_HUMAN,
)


_OF = in_account(instruction)
_INSERT = insert(instruction)
_SECOND_KEYS = select(instruction.c.natural_key).where(*_OF, instruction.c.again_for != "")
_HOLD = (
    update(instruction)
    .where(
        instruction.c.instruction_id == bindparam("wanted"),
        instruction.c.state == InstructionState.APPROVED.value,
    )
    .values(hold=bindparam("because"))
)


@dataclass(frozen=True, slots=True)
class OpenBatch:
    """A batch that was claimed and not closed, with the reply where one was kept."""

    batch_id: str
    body_sha256: str
    reply: RawReply | None


@dataclass(frozen=True, slots=True)
class Unfinished:
    """An instruction that is not settled, with when it moved and what was said of it."""

    item: Instruction
    message: str
    planned_at: datetime
    approved_at: datetime | None
    sent_at: datetime | None


_UNFINISHED = INSTRUCTIONS.add_columns(
    *(instruction.c[name] for name in Unfinished.__dataclass_fields__ if name != "item")
).where(*_OF, instruction.c.state.in_([state.value for state in UNFINISHED]))
_OPEN_BATCHES = (
    select(
        *(batch.c[name] for name in ("batch_id", "body_sha256")),
        *(batch.c[name] for name in ("http_status", "reply_headers", "reply", "replied_at")),
    )
    .where(
        *in_account(batch),
        batch.c.state != "closed",
    )
    .order_by(batch.c.claimed_at)
)
_SENT_ORDERS = (
    select(instruction.c.order_no)
    .join(attempt, attempt.c.instruction_id == instruction.c.instruction_id)
    .join(batch, batch.c.batch_id == attempt.c.batch_id)
    .where(*_OF, batch.c.run_id == bindparam("of_run"))
    .distinct()
)
_NEWEST_FILE = (
    select(func.max(order_file.c.file_id))
    .where(
        order_file.c.merchant_id == origin.c.merchant_id,
        order_file.c.account_id == origin.c.account_id,
        order_file.c.name == origin.c.name,
    )
    # Said, since it is not seen two levels deep: there it would be the newest file of any name.
    .correlate(origin)
    .scalar_subquery()
)
_STILL_ASKED = (
    select(order_action.c.action_id)
    .where(
        order_action.c.file_id == _NEWEST_FILE,
        or_(
            order_action.c.instruction_id == instruction.c.instruction_id,
            order_action.c.instruction_id == func.nullif(instruction.c.again_for, ""),
        ),
    )
    .exists()
)
_REPLACED = (
    select(instruction.c.instruction_id)
    .join(origin, origin.c.file_id == instruction.c.file_id)
    .where(
        *_OF,
        instruction.c.state.in_(bindparam("wanted", expanding=True)),
        origin.c.file_id != _NEWEST_FILE,
        ~_STILL_ASKED,
    )
)
_OF_ORDER_FILES = (
    select(instruction.c.instruction_id)
    .join(origin, origin.c.file_id == instruction.c.file_id)
    .where(
        *_OF,
        instruction.c.state == InstructionState.APPROVED.value,
        origin.c.kind == SourceKind.ORDERS.value,
    )
)


_LINK = (
    update(order_action)
    .where(order_action.c.action_id == bindparam("wanted"))
    # What was sealed moved to the instruction; one copy is one to erase.
    .values(instruction_id=bindparam("given"), sealed="")
)


def save_plan(connection: Connection, run: Run, *, plan: Plan, at: datetime) -> None:
    """Store new instructions and link every action to its instruction."""
    if not plan.new and not plan.links:
        return
    rows = [
        {
            **asdict(item),
            "kind": item.kind.value,
            "state": item.state.value,
            "run_id": run.run_id,
            "planned_at": at,
            "approved_at": at if item.state is InstructionState.APPROVED else None,
        }
        for item in plan.new
    ]
    if rows:
        connection.execute(_INSERT, rows)
    links = [{"wanted": action, "given": instruction} for action, instruction in plan.links]
    if links:
        connection.execute(_LINK, links)
    events = [
        Event(
            "instruction",
            item.instruction_id,
            item.state.value,
            {"natural_key": item.natural_key, "approved_by": item.approved_by, "hold": item.hold}
            | {ROW: terms_of(item)},
        )
        for item in plan.new
    ]
    append(connection, events, at=at)


_OF_ACCOUNT = INSTRUCTIONS.where(*_OF, instruction.c.state.in_(bindparam("wanted", expanding=True)))


def of_account(
    connection: Connection, run: Run, *, states: Iterable[InstructionState]
) -> list[Instruction]:
    """Instructions of the run's account in these states, oldest first."""
    wanted = {"wanted": [state.value for state in states]}
    return read_instructions(connection, _OF_ACCOUNT, account_values(run) | wanted)


def in_states(connection: Connection, *, states: Iterable[InstructionState]) -> list[Instruction]:
    """Instructions of every account in these states, oldest first."""
    return instructions_where(
        connection, instruction.c.state.in_([state.value for state in states])
    )


def of_id(connection: Connection, instruction_id: str) -> Instruction | None:
    """One instruction of any account."""
    instructions = instructions_where(connection, instruction.c.instruction_id == instruction_id)
    return instructions[0] if instructions else None


def of_ids(connection: Connection, wanted: Sequence[str]) -> list[Instruction]:
    """Some instructions of any account, oldest first."""
    if not wanted:
        return []
    return instructions_where(connection, instruction.c.instruction_id.in_(wanted))


def of_payments(
    connection: Connection, owner: OfAccount, *, transaction_ids: Iterable[str]
) -> dict[str, list[Instruction]]:
    """All instructions of some payments, under whatever order they were sent, by payment."""
    by_payment: dict[str, list[Instruction]] = {}
    wanted = sorted(set(transaction_ids) - {""})
    for item in _where_in(connection, owner, column=instruction.c.transaction_id, values=wanted):
        by_payment.setdefault(item.transaction_id, []).append(item)
    return by_payment


def of_subscriptions(
    connection: Connection, run: Run, *, recurring_ids: Iterable[str]
) -> dict[str, list[Instruction]]:
    """All instructions about some subscriptions, by recurring id."""
    by_subscription: dict[str, list[Instruction]] = {}
    wanted = sorted(set(recurring_ids) - {""})
    for item in _where_in(connection, run, column=instruction.c.recurring_id, values=wanted):
        by_subscription.setdefault(item.recurring_id, []).append(item)
    return by_subscription


def of_payees(
    connection: Connection, run: Run, *, payee_digests: Iterable[str]
) -> dict[str, list[Instruction]]:
    """All payouts to some payees, by the digest of the payee."""
    by_payee: dict[str, list[Instruction]] = {}
    wanted = sorted(set(payee_digests) - {""})
    for item in _where_in(connection, run, column=instruction.c.payee_digest, values=wanted):
        by_payee.setdefault(item.payee_digest, []).append(item)
    return by_payee


def _where_in(
    connection: Connection, owner: OfAccount, *, column: ColumnElement[str], values: Sequence[str]
) -> Iterator[Instruction]:
    for start in range(0, len(values), VALUES_PER_QUERY_MAX):
        part = values[start : start + VALUES_PER_QUERY_MAX]
        yield from instructions_where(connection, *_of(owner), column.in_(part))


def replaced(
    connection: Connection,
    run: Run,
    *,
    states: Iterable[InstructionState] = (InstructionState.APPROVED,),
) -> set[str]:
    """Instructions in `states` that the newest version of their file no longer asks for."""
    wanted = {"wanted": [state.value for state in states]}
    return set(connection.execute(_REPLACED, account_values(run) | wanted).scalars())


def of_order_files(connection: Connection, run: Run) -> set[str]:
    """Approved instructions that came as actions of order rows."""
    return set(connection.execute(_OF_ORDER_FILES, account_values(run)).scalars())


def ended_captures(connection: Connection, run: Run) -> list[Instruction]:
    """Captures of order files whose doubt ended as not applied before this run began."""
    return instructions_where(
        connection,
        *_of(run),
        instruction.c.kind == InstructionKind.CAPTURE.value,
        instruction.c.state == InstructionState.RESOLVED_NOT_APPLIED.value,
        instruction.c.file_id.is_not(None),
        instruction.c.outcome_at < run.started_at,
    )


def second_keys(connection: Connection, run: Run) -> set[str]:
    """Natural keys of captures that were planned a second time."""
    return set(connection.execute(_SECOND_KEYS, account_values(run)).scalars())


def note_hold(connection: Connection, instruction_id: str, *, hold: str) -> None:
    """Keep in words why an approved instruction was not sent tonight."""
    connection.execute(_HOLD, {"wanted": instruction_id, "because": reason_that_fits(hold)})


def give_to_people(connection: Connection, refused: Refused, *, at: datetime) -> None:
    """An approval that counts no more: two people look at it, and at what it repeats."""
    item = refused.instruction
    seen = dict.fromkeys((*item.repeats.split(), *refused.repeats))
    values = {
        "hold": refused.reason[:REASON_CHARACTERS],
        "approved_by": "",
        "approved_at": None,
        "repeats": named(seen),
    }
    event = move(connection, item, to=InstructionState.PLANNED, values=values)
    append(connection, [event], at=at)


def open_batches(connection: Connection, run: Run) -> list[OpenBatch]:
    """Batches of the account that were claimed but not closed: their sender is gone."""
    rows = connection.execute(_OPEN_BATCHES, account_values(run))
    return [OpenBatch(row.batch_id, row.body_sha256, _kept_reply(row)) for row in rows]


def _kept_reply(row: Row[Any]) -> RawReply | None:
    """The reply with its head: some of its lines say whether anything was processed."""
    if row.reply is None:
        return None
    return RawReply(row.http_status, json.loads(row.reply_headers), row.reply, row.replied_at)


def rows_of_batch(connection: Connection, batch_id: str) -> list[Instruction]:
    """The instructions of a batch in its order."""
    ids = connection.execute(
        select(attempt.c.instruction_id)
        .where(attempt.c.batch_id == batch_id)
        .order_by(attempt.c.position)
    ).scalars()
    wanted = list(ids)
    instructions = instructions_where(connection, instruction.c.instruction_id.in_(wanted))
    by_id = {item.instruction_id: item for item in instructions}
    return [by_id[instruction_id] for instruction_id in wanted]


def unfinished(connection: Connection, run: Run) -> list[Unfinished]:
    """The instructions of the account that are not settled, oldest first."""
    rows = connection.execute(_UNFINISHED, account_values(run)).mappings()
    return [
        Unfinished(
            instruction_of(row),
            row["message"],
            row["planned_at"],
            row["approved_at"],
            row["sent_at"],
        )
        for row in rows
    ]


def touched(connection: Connection, run: Run) -> list[str]:
    """Orders of the account whose instructions this run sent, resolved or left in doubt."""
    order_nos = connection.execute(
        _SENT_ORDERS, account_values(run) | {"of_run": run.run_id}
    ).scalars()
    doubtful = of_account(
        connection, run, states=(InstructionState.IN_DOUBT, InstructionState.NEEDS_HUMAN)
    )
    return sorted((set(order_nos) | {item.order_no for item in doubtful}) - {""})


def _of(owner: OfAccount) -> tuple[ColumnElement[bool], ...]:
    return (
        and_(
            instruction.c.merchant_id == owner.merchant_id,
            instruction.c.account_id == owner.account_id,
        ),
    )
