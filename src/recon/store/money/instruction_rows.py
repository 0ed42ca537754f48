"""Instructions as steps need them: what to plan, what waits, what is in doubt, what to show."""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime
from itertools import islice
from typing import Any

from sqlalchemy import (
    Connection,
    Row,
    Select,
    bindparam,
    func,
    insert,
    or_,
    select,
    update,
)

from recon.gateway_client import RawReply
from recon.instructions.eligibility import Refused
from recon.instructions.instruction import FOLLOWS, Instruction
from recon.instructions.intention import named
from recon.instructions.planning import Plan
from recon.instructions.terms import terms_of
from recon.model.errors import Defect
from recon.model.words import InstructionKind, InstructionState, SourceKind
from recon.store.database.bound_tables import INSTRUCTION, ROW
from recon.store.database.history import Event, append
from recon.store.database.record import cells_of
from recon.store.nights.runs import Run
from recon.store.schema import attempt, batch, instruction, order_action, order_file
from recon.store.schema.account_filter import OfAccount, account_values, in_account
from recon.store.schema.columns import REASON_CHARACTERS, reason_that_fits

origin = order_file.alias("origin")
"""The file that an instruction came with."""

VALUES_PER_QUERY_MAX = 500
"""Ids named in one query; databases bound how many there may be."""
_COLUMNS = tuple(instruction.c[name] for name in Instruction.__dataclass_fields__)
_KIND, _STATE = ([*Instruction.__dataclass_fields__].index(name) for name in ("kind", "state"))
INSTRUCTIONS = select(*_COLUMNS).order_by(
    instruction.c.planned_at, instruction.c.file_id, instruction.c.line
)
"""Every instruction, oldest first. What a query adds stands behind its own columns."""


def find(
    connection: Connection, owner: OfAccount | None = None, **wanted: Iterable[str]
) -> list[Instruction]:
    """Instructions whose columns have one of the values that are wanted of each, oldest first.

    Args:
        connection: Of the database.
        owner: Only those of this account; None: of every one.
        wanted: Column -> so many values as one query may have.
    """
    query = INSTRUCTIONS
    if owner is not None:
        wanted |= {"merchant_id": [owner.merchant_id], "account_id": [owner.account_id]}
    for name, values in wanted.items():
        query = query.where(instruction.c[name].in_([str(value) for value in values]))
    return read_instructions(connection, query)


def find_by(
    connection: Connection, owner: OfAccount | None, *, column: str, values: Iterable[str]
) -> dict[str, list[Instruction]]:
    """Instructions by what one column says, for any number of values; a blank one finds none."""
    found: dict[str, list[Instruction]] = {}
    for some in in_parts(sorted({*values} - {""})):
        for item in find(connection, owner, **{column: some}):
            found.setdefault(getattr(item, column), []).append(item)
    return found


def of_id(connection: Connection, instruction_id: str) -> Instruction | None:
    """One instruction of any account."""
    return next(iter(find(connection, instruction_id=[instruction_id])), None)


def in_parts(values: Iterable[str]) -> Iterator[Sequence[str]]:
    """Any number of values, in so many parts as there must be queries."""
    left = iter(values)
    while part := [*islice(left, VALUES_PER_QUERY_MAX)]:
        yield part


def read_instructions(
    connection: Connection, query: Select[Any], values: Mapping[str, Any] | None = None
) -> list[Instruction]:
    """Journal rows of a query that was made from `INSTRUCTIONS`, as domain values."""
    return [instruction_of(row) for row in connection.execute(query, values or {})]


def instruction_of(row: Row[Any]) -> Instruction:
    """One journal row, by its first columns, as a domain value."""
    cells: list[Any] = [*row[: len(_COLUMNS)]]
    cells[_KIND] = InstructionKind(cells[_KIND])
    cells[_STATE] = InstructionState(cells[_STATE])
    return Instruction(*cells)


def move(
    connection: Connection,
    wanted: Instruction,
    *,
    to: InstructionState,
    values: Mapping[str, Any],
) -> Event:
    """Change the state of one instruction by compare-and-set; the caller appends the event."""
    if to not in FOLLOWS[wanted.state]:
        msg = f"instruction {wanted.instruction_id}: {wanted.state} cannot become {to}"
        raise Defect(msg)
    changed = connection.execute(
        update(instruction)
        .where(
            instruction.c.instruction_id == wanted.instruction_id,
            instruction.c.state == wanted.state.value,
        )
        # A final payout needs its payee's details no more.
        .values(state=to.value, **values, **({} if FOLLOWS[to] else {"sealed": ""}))
    )
    if changed.rowcount != 1:
        msg = f"instruction {wanted.instruction_id} is no longer {wanted.state}"
        raise Defect(msg)
    texts = {name: str(value) for name, value in values.items()}
    cells = cells_of(INSTRUCTION, values)
    data = {"from": wanted.state, **texts, **({ROW: cells} if cells else {})}
    return Event("instruction", wanted.instruction_id, to.value, data)


UNFINISHED = (
    InstructionState.PLANNED,
    InstructionState.APPROVED,
    InstructionState.IN_FLIGHT,
    InstructionState.IN_DOUBT,
    InstructionState.NEEDS_HUMAN,
)


_OF = in_account(instruction)
_INSERT = insert(instruction)
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
    query = INSTRUCTIONS.join(attempt, attempt.c.instruction_id == instruction.c.instruction_id)
    of_batch = query.where(attempt.c.batch_id == batch_id)
    return read_instructions(connection, of_batch.order_by(None).order_by(attempt.c.position))


def touched(connection: Connection, run: Run) -> list[str]:
    """Orders of the account whose instructions this run sent, resolved or left in doubt."""
    order_nos = connection.execute(
        _SENT_ORDERS, account_values(run) | {"of_run": run.run_id}
    ).scalars()
    doubtful = find(
        connection, run, state=(InstructionState.IN_DOUBT, InstructionState.NEEDS_HUMAN)
    )
    return sorted((set(order_nos) | {item.order_no for item in doubtful}) - {""})
