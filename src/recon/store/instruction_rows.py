"""Instructions as steps need them: what to plan, what waits, what is in doubt, what to show."""

from collections.abc import Iterable, Sequence
from dataclasses import asdict
from datetime import datetime
from typing import Any

import pandas as pd
from sqlalchemy import (
    ColumnElement,
    Connection,
    and_,
    case,
    func,
    insert,
    or_,
    select,
    update,
)

from recon.figures import BATCH_COLUMNS, INSTRUCTION_SHEET_COLUMNS
from recon.matching.sources import (
    INSTANT,
    INSTRUCTION_COLUMNS,
    MINOR_UNITS,
    MINOR_UNITS_OR_BLANK,
    TEXT,
)
from recon.model import InstructionKind, InstructionState
from recon.settlement.instruction import Instruction
from recon.settlement.planning import Action, Key, Known, Plan
from recon.store.frames import frame_of_select
from recon.store.history import Event, append
from recon.store.journal import instructions_where
from recon.store.runs import Run
from recon.store.schema import attempt, batch, instruction, order_action, order_file
from recon.store.schema import run as runs

origin = order_file.alias("origin")
"""The file that an instruction came with."""

UNFINISHED = (
    InstructionState.PLANNED,
    InstructionState.APPROVED,
    InstructionState.IN_FLIGHT,
    InstructionState.IN_DOUBT,
    InstructionState.NEEDS_HUMAN,
)


def unplanned_actions(connection: Connection, run: Run) -> list[Action]:
    """Actions of the account's order files that have no instruction yet, oldest first."""
    found = connection.execute(
        select(order_action, order_file.c.name.label("file_name"))
        .join(order_file, order_file.c.file_id == order_action.c.file_id)
        .where(
            order_action.c.merchant_id == run.merchant_id,
            order_action.c.account_id == run.account_id,
            order_action.c.instruction_id == "",
        )
        .order_by(order_action.c.action_id)
    ).mappings()
    return [
        Action(
            action_id=row["action_id"],
            file_id=row["file_id"],
            file_name=row["file_name"],
            line=row["line"],
            merchant_id=row["merchant_id"],
            account_id=row["account_id"],
            order_no=row["order_no"],
            transaction_id=row["transaction_id"],
            kind=InstructionKind(row["action"]),
            currency=row["currency"],
            order_amount=row["amount"],
            action_amount=row["action_amount"],
            reason=row["action_reason"],
            request_id=row["request_id"],
            occurrence=row["occurrence"],
        )
        for row in found
    ]


def known(connection: Connection, run: Run) -> Known:
    """What the journal already has of the account, for planning."""
    found = connection.execute(
        select(
            instruction.c.natural_key,
            instruction.c.instruction_id,
            order_file.c.name,
        )
        .outerjoin(order_file, order_file.c.file_id == instruction.c.file_id)
        .where(*_of(run))
        .order_by(instruction.c.planned_at, instruction.c.natural_key)
    )
    result = Known()
    for row in found:
        result.note(
            Key(row.natural_key), file_name=row.name or "", instruction_id=row.instruction_id
        )
    return result


def save_plan(connection: Connection, run: Run, *, plan: Plan, at: datetime) -> None:
    """Store new instructions and link every action to its instruction."""
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
        connection.execute(insert(instruction), rows)
    for action_id, instruction_id in plan.links:
        connection.execute(
            update(order_action)
            .where(order_action.c.action_id == action_id)
            .values(instruction_id=instruction_id)
        )
    events = [
        Event(
            "instruction",
            item.instruction_id,
            item.state.value,
            {"natural_key": item.natural_key, "approved_by": item.approved_by, "hold": item.hold},
        )
        for item in plan.new
    ]
    append(connection, events, at=at)


def of_account(
    connection: Connection, run: Run, *, states: Iterable[InstructionState]
) -> list[Instruction]:
    """Instructions of the run's account in these states, oldest first."""
    return instructions_where(
        connection, *_of(run), instruction.c.state.in_([state.value for state in states])
    )


def in_states(connection: Connection, *, states: Iterable[InstructionState]) -> list[Instruction]:
    """Instructions of every account in these states, oldest first."""
    return instructions_where(
        connection, instruction.c.state.in_([state.value for state in states])
    )


def of_id(connection: Connection, instruction_id: str) -> Instruction | None:
    """One instruction of any account."""
    found = instructions_where(connection, instruction.c.instruction_id == instruction_id)
    return found[0] if found else None


def of_orders(
    connection: Connection, run: Run, *, order_nos: Sequence[str]
) -> dict[str, list[Instruction]]:
    """All instructions of some orders, by order."""
    wanted = set(order_nos)
    by_order: dict[str, list[Instruction]] = {}
    for item in instructions_where(connection, *_of(run)):
        if item.order_no in wanted:
            by_order.setdefault(item.order_no, []).append(item)
    return by_order


def replaced(connection: Connection, run: Run) -> set[str]:
    """Approved instructions that the newest version of their order file no longer asks for."""
    newest = (
        select(func.max(order_file.c.file_id))
        .where(
            order_file.c.merchant_id == origin.c.merchant_id,
            order_file.c.account_id == origin.c.account_id,
            order_file.c.name == origin.c.name,
        )
        .scalar_subquery()
    )
    still_asked = (
        select(order_action.c.action_id)
        .where(
            order_action.c.file_id == newest,
            order_action.c.instruction_id == instruction.c.instruction_id,
        )
        .exists()
    )
    found = connection.execute(
        select(instruction.c.instruction_id)
        .join(origin, origin.c.file_id == instruction.c.file_id)
        .where(
            *_of(run),
            instruction.c.state == InstructionState.APPROVED.value,
            origin.c.file_id != newest,
            ~still_asked,
        )
    )
    return set(found.scalars())


def note_hold(connection: Connection, instruction_id: str, *, hold: str) -> None:
    """Keep in words why an approved instruction was not sent tonight."""
    connection.execute(
        update(instruction)
        .where(instruction.c.instruction_id == instruction_id)
        .values(hold=hold[:400])
    )


def open_batches(connection: Connection, run: Run) -> list[dict[str, Any]]:
    """Batches of the account that were claimed but not closed: their sender is gone."""
    found = connection.execute(
        select(batch)
        .where(
            batch.c.merchant_id == run.merchant_id,
            batch.c.account_id == run.account_id,
            batch.c.state != "closed",
        )
        .order_by(batch.c.claimed_at)
    ).mappings()
    return [dict(row) for row in found]


def rows_of_batch(connection: Connection, batch_id: str) -> list[Instruction]:
    """The instructions of a batch in its order."""
    ids = connection.execute(
        select(attempt.c.instruction_id)
        .where(attempt.c.batch_id == batch_id)
        .order_by(attempt.c.position)
    ).scalars()
    wanted = list(ids)
    found = instructions_where(connection, instruction.c.instruction_id.in_(wanted))
    by_id = {item.instruction_id: item for item in found}
    return [by_id[instruction_id] for instruction_id in wanted]


def unfinished_rows(connection: Connection, run: Run) -> list[dict[str, Any]]:
    """Whole journal rows of the account that are not settled."""
    found = connection.execute(
        select(instruction).where(
            *_of(run), instruction.c.state.in_([state.value for state in UNFINISHED])
        )
    ).mappings()
    return [dict(row) for row in found]


def touched(connection: Connection, run: Run) -> list[str]:
    """Orders of the account whose instructions this run sent, resolved or left in doubt."""
    found = connection.execute(
        select(instruction.c.order_no)
        .join(attempt, attempt.c.instruction_id == instruction.c.instruction_id)
        .join(batch, batch.c.batch_id == attempt.c.batch_id)
        .where(*_of(run), batch.c.run_id == run.run_id)
        .distinct()
    ).scalars()
    doubtful = of_account(
        connection, run, states=(InstructionState.IN_DOUBT, InstructionState.NEEDS_HUMAN)
    )
    return sorted(set(found) | {item.order_no for item in doubtful})


def engine_frame(connection: Connection, run: Run) -> pd.DataFrame:
    """INSTRUCTION_COLUMNS of every instruction of the account that was not withdrawn."""
    query = select(
        *(instruction.c[name] for name in INSTRUCTION_COLUMNS if name != "source"),
    ).where(*_of(run), instruction.c.state != InstructionState.WITHDRAWN.value)
    return frame_of_select(
        connection, query.order_by(instruction.c.natural_key), columns=INSTRUCTION_COLUMNS
    )


def sheet_frame(connection: Connection, run: Run) -> pd.DataFrame:
    """INSTRUCTION_SHEET_COLUMNS of what this run planned, sent or left unfinished."""
    in_run = (
        select(attempt.c.instruction_id)
        .join(batch, batch.c.batch_id == attempt.c.batch_id)
        .where(batch.c.run_id == run.run_id)
    )
    renamed: dict[str, Any] = {
        "attempt": instruction.c.attempts.label("attempt"),
        "source": order_file.c.name.label("source"),
    }
    query = (
        select(
            *(
                renamed[name] if name in renamed else instruction.c[name]
                for name in INSTRUCTION_SHEET_COLUMNS
            )
        )
        .outerjoin(order_file, order_file.c.file_id == instruction.c.file_id)
        .where(
            *_of(run),
            or_(
                instruction.c.run_id == run.run_id,
                instruction.c.instruction_id.in_(in_run),
                instruction.c.state.in_([state.value for state in UNFINISHED]),
                _settled_on(run),
            ),
        )
        .order_by(instruction.c.kind, instruction.c.order_no, instruction.c.natural_key)
    )
    kinds = {name: _SHEET_KINDS.get(name, TEXT) for name in INSTRUCTION_SHEET_COLUMNS}
    return frame_of_select(connection, query, columns=kinds)


def batch_frame(connection: Connection, run: Run) -> pd.DataFrame:
    """BATCH_COLUMNS: one row per batch and currency of this business date's runs."""
    outcome = attempt.c.outcome
    query = (
        select(
            batch.c.batch_id,
            batch.c.kind,
            instruction.c.currency,
            func.count().label("rows"),
            func.sum(instruction.c.amount).label("amount"),
            *(_tally(outcome, names).label(label) for label, names in _TALLIES.items()),
            batch.c.return_status,
            batch.c.message,
            batch.c.body_sha256,
            batch.c.claimed_at.label("sent_at"),
        )
        .join(attempt, attempt.c.batch_id == batch.c.batch_id)
        .join(instruction, instruction.c.instruction_id == attempt.c.instruction_id)
        .where(batch.c.run_id.in_(runs_of_night(run)))
        .group_by(*(batch.c[name] for name in _BATCH_GROUP), instruction.c.currency)
        .order_by(batch.c.claimed_at, batch.c.batch_id, instruction.c.currency)
    )
    kinds = {name: _BATCH_KINDS.get(name, TEXT) for name in BATCH_COLUMNS}
    return frame_of_select(connection, query, columns=kinds)


def runs_of_night(run: Run) -> Any:
    """Sub-query: ids of every run of the same business date, so that a resumed night is whole."""
    return select(runs.c.run_id).where(
        runs.c.merchant_id == run.merchant_id,
        runs.c.account_id == run.account_id,
        runs.c.business_date == run.business_date,
    )


_TALLIES = {
    "confirmed": ("done", "accepted"),
    "rejected": ("failed", "rejected"),
    "in_doubt": ("unknown", "pending", ""),
    "not_sent": ("not_sent",),
}
_BATCH_GROUP = ("batch_id", "kind", "return_status", "message", "body_sha256", "claimed_at")
_SHEET_KINDS = {
    "amount": MINOR_UNITS_OR_BLANK,
    "attempt": MINOR_UNITS,
    "line": MINOR_UNITS,
    "sent_at": INSTANT,
    "outcome_at": INSTANT,
    "in_doubt_since": INSTANT,
}
_BATCH_KINDS = {
    "rows": MINOR_UNITS,
    "amount": MINOR_UNITS_OR_BLANK,
    "confirmed": MINOR_UNITS,
    "rejected": MINOR_UNITS,
    "in_doubt": MINOR_UNITS,
    "not_sent": MINOR_UNITS,
    "sent_at": INSTANT,
}


def _tally(outcome: ColumnElement[str], names: Sequence[str]) -> ColumnElement[int]:
    return func.sum(case((outcome.in_(names), 1), else_=0))


def _settled_on(run: Run) -> ColumnElement[bool]:
    return instruction.c.batch_id.in_(
        select(batch.c.batch_id).where(batch.c.run_id.in_(runs_of_night(run)))
    )


def _of(run: Run) -> tuple[ColumnElement[bool], ...]:
    return (
        and_(
            instruction.c.merchant_id == run.merchant_id,
            instruction.c.account_id == run.account_id,
        ),
    )
