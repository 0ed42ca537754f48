"""Queries and state changes of instructions: planning, sending, doubts, replies and reports."""

import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import (
    ColumnElement,
    Connection,
    Row,
    Select,
    Table,
    and_,
    bindparam,
    func,
    or_,
    select,
    update,
)

from recon.gateway_client import RawReply
from recon.instructions.eligibility import Ineligible
from recon.instructions.instruction import FOLLOWS, Instruction, named, terms_of
from recon.instructions.planning import Action, Known, OrderRow, Plan
from recon.model.errors import Defect
from recon.model.terms import InstructionKind, InstructionState, OrderStatus, SourceKind
from recon.store.database.bulk_rows import add_rows
from recon.store.database.history import Event, append
from recon.store.database.record import INSTRUCTION, ROW, cells_of
from recon.store.nights.runs import Run
from recon.store.schema import (
    attempt,
    batch,
    contradiction,
    instruction,
    order_action,
    order_file,
)
from recon.store.schema.columns import (
    REASON_CHARACTERS,
    Owner,
    among,
    in_account,
    reason_that_fits,
)

origin = order_file.alias("origin")
"""The order file with which an instruction arrived."""

INSTRUCTIONS = select(*(instruction.c[name] for name in Instruction.__dataclass_fields__)).order_by(
    instruction.c.planned_at, instruction.c.file_id, instruction.c.line
)
"""Selects all instructions, oldest first. Columns that a query adds follow its own."""


def find(
    connection: Connection, owner: Owner | None = None, **chosen: Iterable[str]
) -> list[Instruction]:
    """Return the instructions that match all given columns, oldest first.

    Args:
        connection: Of the database.
        owner: Only instructions of this account; None for all accounts.
        chosen: Column name -> accepted values.
    """
    query = INSTRUCTIONS if owner is None else INSTRUCTIONS.where(*in_account(instruction, owner))
    for name, values in chosen.items():
        query = query.where(among(connection, instruction.c[name], map(str, values)))
    return read_instructions(connection, query)


def find_by(
    connection: Connection, owner: Owner | None, *, column: str, values: Iterable[str]
) -> dict[str, list[Instruction]]:
    """Return instructions grouped by the value of one column; blank values are ignored."""
    found: dict[str, list[Instruction]] = {}
    for item in find(connection, owner, **{column: {*values} - {""}}):
        found.setdefault(getattr(item, column), []).append(item)
    return found


def of_id(connection: Connection, instruction_id: str) -> Instruction | None:
    """Return one instruction by id, of any account; None if it does not exist."""
    return next(iter(find(connection, instruction_id=[instruction_id])), None)


def read_instructions(connection: Connection, query: Select[Any]) -> list[Instruction]:
    """Return the instructions of a query that was built from `INSTRUCTIONS`."""
    return [instruction_of(row) for row in connection.execute(query)]


def instruction_of(row: Row[Any]) -> Instruction:
    """Convert one row of `INSTRUCTIONS` to an instruction; further columns are ignored."""
    cells: dict[str, Any] = dict(zip(Instruction.__dataclass_fields__, row, strict=False))
    cells["kind"] = InstructionKind(cells["kind"])
    cells["state"] = InstructionState(cells["state"])
    return Instruction(**cells)


def move(
    connection: Connection,
    item: Instruction,
    *,
    to: InstructionState,
    values: Mapping[str, Any],
    details: Mapping[str, Any] | None = None,
) -> Event:
    """Change an instruction's state by compare-and-set and return the event, not yet appended.

    Args:
        connection: Of the transaction.
        item: The instruction as it was read.
        to: The new state.
        values: The other columns to change.
        details: What the event records besides the terms; None records the changed columns.

    Raises:
        Defect: The transition is not allowed, or the state has changed since it was read.
    """
    if to not in FOLLOWS[item.state]:
        msg = f"instruction {item.instruction_id}: {item.state} cannot become {to}"
        raise Defect(msg)
    changed = connection.execute(
        update(instruction)
        .where(
            instruction.c.instruction_id == item.instruction_id,
            instruction.c.state == item.state,
        )
        # A final payout no longer needs the encrypted details of its payee.
        .values(state=to, **values, **({} if FOLLOWS[to] else {"sealed": ""}))
    )
    if changed.rowcount != 1:
        msg = f"instruction {item.instruction_id} is no longer {item.state}"
        raise Defect(msg)
    if details is None:
        details = {"from": item.state} | {name: str(value) for name, value in values.items()}
    cells = cells_of(INSTRUCTION, values)
    data = {**details, **({ROW: cells} if cells else {})}
    return Event("instruction", item.instruction_id, to, data)


UNFINISHED = (
    InstructionState.PLANNED,
    InstructionState.APPROVED,
    InstructionState.IN_FLIGHT,
    InstructionState.IN_DOUBT,
    InstructionState.NEEDS_HUMAN,
)


@dataclass(frozen=True, slots=True)
class OpenBatch:
    """A batch that was claimed and not closed, with its reply if one was stored."""

    batch_id: str
    body_sha256: str
    reply: RawReply | None


_NEWEST_FILE = (
    select(func.max(order_file.c.file_id))
    .where(
        order_file.c.merchant_id == origin.c.merchant_id,
        order_file.c.account_id == origin.c.account_id,
        order_file.c.name == origin.c.name,
    )
    # Explicit, because automatic correlation does not reach two levels of subqueries.
    .correlate(origin)
    .scalar_subquery()
)
_STILL_REQUESTED = (
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


def save_plan(connection: Connection, run: Run, *, plan: Plan, at: datetime) -> None:
    """Store a plan's new instructions and link each action to its instruction."""
    if not plan.new and not plan.links:
        return
    rows = [
        {
            **asdict(item),
            "run_id": run.run_id,
            "planned_at": at,
            "approved_at": at if item.state is InstructionState.APPROVED else None,
        }
        for item in plan.new
    ]
    add_rows(connection, instruction, rows)
    if plan.links:
        # Encrypted payee details move to the instruction, so that only one copy must be erased.
        link = (
            update(order_action)
            .where(order_action.c.action_id == bindparam("wanted"))
            .values(instruction_id=bindparam("given"), sealed="")
        )
        connection.execute(link, [{"wanted": own, "given": given} for own, given in plan.links])
    events = [
        Event(
            "instruction",
            item.instruction_id,
            item.state,
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
    """Return instructions in `states` that the newest version of their file no longer requests."""
    in_states = instruction.c.state.in_(states)
    superseded = origin.c.file_id != _NEWEST_FILE
    return _ids_by_file(connection, run, in_states, superseded, ~_STILL_REQUESTED)


def of_order_files(connection: Connection, run: Run) -> set[str]:
    """Return the approved instructions that came as actions in order files."""
    approved = instruction.c.state == InstructionState.APPROVED
    return _ids_by_file(connection, run, approved, origin.c.kind == SourceKind.ORDERS)


def _ids_by_file(connection: Connection, run: Run, *which: ColumnElement[bool]) -> set[str]:
    query = (
        select(instruction.c.instruction_id)
        .join(origin, origin.c.file_id == instruction.c.file_id)
        .where(*in_account(instruction, run), *which)
    )
    return {*connection.execute(query).scalars()}


def note_hold(connection: Connection, instruction_id: str, *, hold: str) -> None:
    """Store why an approved instruction was not sent tonight."""
    own = (
        instruction.c.instruction_id == instruction_id,
        instruction.c.state == InstructionState.APPROVED,
    )
    connection.execute(update(instruction).where(*own).values(hold=reason_that_fits(hold)))


def give_to_people(connection: Connection, ineligible: Ineligible, *, at: datetime) -> None:
    """Move an approved instruction back to PLANNED: two people review it and what it repeats."""
    item = ineligible.instruction
    repeats = dict.fromkeys((*item.repeats.split(), *ineligible.repeats))
    values = {
        "hold": ineligible.reason[:REASON_CHARACTERS],
        "approved_by": "",
        "approved_at": None,
        "repeats": named(repeats),
    }
    event = move(connection, item, to=InstructionState.PLANNED, values=values)
    append(connection, [event], at=at)


def open_batches(connection: Connection, run: Run) -> list[OpenBatch]:
    """Return claimed batches of the account that are not closed: their sender has ended."""
    mine = *in_account(batch, run), batch.c.state != "closed"
    return [
        OpenBatch(
            row.batch_id,
            row.body_sha256,
            # Headers are included: some of them show whether the request was processed.
            RawReply(row.http_status, json.loads(row.reply_headers), row.reply, row.replied_at)
            if row.reply is not None
            else None,
        )
        for row in connection.execute(select(batch).where(*mine).order_by(batch.c.claimed_at))
    ]


def rows_of_batch(connection: Connection, batch_id: str) -> list[Instruction]:
    """Return the instructions of a batch in the order in which they were sent."""
    query = INSTRUCTIONS.join(attempt, attempt.c.instruction_id == instruction.c.instruction_id)
    of_batch = query.where(attempt.c.batch_id == batch_id)
    return read_instructions(connection, of_batch.order_by(None).order_by(attempt.c.position))


def touched(connection: Connection, run: Run) -> list[str]:
    """Return the account's orders with instructions that this run sent or that are in doubt."""
    order_nos = connection.execute(
        select(instruction.c.order_no)
        .join(attempt, attempt.c.instruction_id == instruction.c.instruction_id)
        .join(batch, batch.c.batch_id == attempt.c.batch_id)
        .where(*in_account(instruction, run), batch.c.run_id == run.run_id)
        .distinct()
    ).scalars()
    doubtful = find(
        connection, run, state=(InstructionState.IN_DOUBT, InstructionState.NEEDS_HUMAN)
    )
    return sorted((set(order_nos) | {item.order_no for item in doubtful}) - {""})


_AS_IT_IS = (
    *("action_id", "file_id", "file_name", "line", "merchant_id", "account_id", "order_no"),
    *("transaction_id", "currency", "action_amount", "request_id"),
    *("review_flag", "recurring_id", "contract_name"),
    *("payee", "payee_digest", "content_digest", "sealed"),
)
"""Fields of `Action` that have the same name as a column of `order_action`."""


def unplanned_actions(connection: Connection, run: Run) -> list[Action]:
    """Return the account's actions that have no instruction yet, oldest first."""
    rows = connection.execute(
        select(
            order_action, order_file.c.name.label("file_name"), order_file.c.kind.label("file_kind")
        )
        .join(order_file, order_file.c.file_id == order_action.c.file_id)
        .where(*in_account(order_action, run), order_action.c.instruction_id == "")
        .order_by(order_action.c.action_id)
    ).mappings()
    return [
        Action(
            **{name: row[name] for name in _AS_IT_IS},
            kind=InstructionKind(row["action"]),
            order_amount=row["amount"],
            reason=row["action_reason"],
            strict=row["file_kind"] == SourceKind.INSTRUCTIONS,
            row=_order_row(row),
        )
        for row in rows
    ]


def _order_row(row: Mapping[Any, Any]) -> OrderRow | None:
    if not row["status"]:
        return None
    names = ("currency", "amount", "expected_captured_amount", "refund_amount")
    return OrderRow(OrderStatus(row["status"]), **{name: row[name] for name in names})


def unplanned_orders(connection: Connection, run: Run) -> set[str]:
    """Return the order numbers of the account's actions that have no instruction yet."""
    unplanned = order_action.c.instruction_id == ""
    return _order_nos(connection, order_action, run, unplanned)


def _order_nos(
    connection: Connection, table: Table, run: Run, *which: ColumnElement[bool]
) -> set[str]:
    query = select(table.c.order_no).where(*in_account(table, run), *which).distinct()
    return {*connection.execute(query).scalars()} - {""}


def ended_orders(
    connection: Connection, run: Run, *, spans: Iterable[tuple[datetime, datetime]]
) -> set[str]:
    """Return orders whose instructions ended within one of the spans (after, up to].

    They may be in no order file, and what the gateway shows later may contradict the outcome.
    """
    ended_at = instruction.c.outcome_at
    inside = (and_(ended_at > after, ended_at <= up_to) for after, up_to in spans)
    return _order_nos(connection, instruction, run, or_(False, *inside))


def known(connection: Connection, run: Run, *, only_payments: Mapping[str, str]) -> Known:
    """Return the account's existing instructions, for planning.

    `only_payments` maps an order to the one transaction that the gateway shows for it.
    """
    rows = connection.execute(
        INSTRUCTIONS.add_columns(order_file.c.name.label("file_name"))
        .outerjoin(order_file, order_file.c.file_id == instruction.c.file_id)
        .where(*in_account(instruction, run))
    )
    return Known(
        ((instruction_of(row), row.file_name or "") for row in rows), only_payments=only_payments
    )


def unnamed_orders(connection: Connection, run: Run) -> set[str]:
    """Return orders with a requested or unsent instruction that names no transaction yet."""
    unplanned = order_action.c.instruction_id == "", order_action.c.transaction_id == ""
    waits = [InstructionState.PLANNED, InstructionState.APPROVED]
    unsent = instruction.c.transaction_id == "", instruction.c.state.in_(waits)
    requested = _order_nos(connection, order_action, run, *unplanned)
    return requested | _order_nos(connection, instruction, run, *unsent)


_UNDECIDED = (
    select(attempt.c.batch_id)
    .join(instruction, instruction.c.instruction_id == attempt.c.instruction_id)
    .where(instruction.c.state.in_(UNFINISHED))
)
_IN_A_CASE = (
    select(attempt.c.batch_id)
    .join(contradiction, contradiction.c.instruction_id == attempt.c.instruction_id)
    .where(contradiction.c.verdict == "")
)


def old_replies(connection: Connection, *, before: datetime) -> tuple[int, int, datetime | None]:
    """Return count, total bytes and oldest closing time of the replies that may be deleted.

    These are replies of batches closed before an instant, without undecided rows or open cases.
    """
    size = func.coalesce(func.sum(func.length(batch.c.reply)), 0)
    query = select(func.count(), size, func.min(batch.c.closed_at)).where(_spared(before))
    count, size_bytes, oldest = connection.execute(query).one()
    return int(count), int(size_bytes), oldest


def forget_replies(connection: Connection, *, before: datetime) -> None:
    """Delete the bytes of those replies; hash, status and outcome remain."""
    connection.execute(update(batch).where(_spared(before)).values(reply=None))


def open_money(connection: Connection, owner: Owner, *, before: datetime) -> bool:
    """Return whether the account has an open case or an unfinished instruction planned before."""
    unfinished = select(instruction.c.instruction_id).where(
        *in_account(instruction, owner),
        instruction.c.state.in_(UNFINISHED),
        instruction.c.planned_at < before,
    )
    in_a_case = select(contradiction.c.instruction_id).where(
        *in_account(contradiction, owner), contradiction.c.verdict == ""
    )
    return any(
        connection.execute(query.limit(1)).first() is not None for query in (unfinished, in_a_case)
    )


def _spared(before: datetime) -> ColumnElement[bool]:
    return and_(
        batch.c.state == "closed",
        batch.c.reply.is_not(None),
        batch.c.closed_at < before,
        batch.c.batch_id.not_in(_UNDECIDED),
        batch.c.batch_id.not_in(_IN_A_CASE),
    )
