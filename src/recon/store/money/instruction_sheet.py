"""What the Instructions sheet shows: every instruction of a night, and the batches it sent."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd
from sqlalchemy import ColumnElement, Connection, and_, case, func, literal, or_, select

from recon.instructions.eligibility import BatchPlan
from recon.matching.frames.sources import INSTANT, MINOR_UNITS, MINOR_UNITS_OR_BLANK, TEXT, frame_of
from recon.model.figures import BATCH_COLUMNS, INSTRUCTION_SHEET_COLUMNS
from recon.model.words import InstructionState
from recon.store.database.bulk_rows import frame_of_select
from recon.store.money.instruction_rows import UNFINISHED
from recon.store.money.journal import FOREIGN_ROW
from recon.store.money.sending_rows import dry_batches, runs_of_night
from recon.store.nights.runs import BY_HAND, Run
from recon.store.schema import attempt, batch, history, instruction, order_file
from recon.store.schema import run as runs
from recon.store.schema.columns import in_account

_SUBJECT = case(
    (instruction.c.order_no != "", instruction.c.order_no),
    (instruction.c.recurring_id != "", literal("subscription ") + instruction.c.recurring_id),
    (instruction.c.payee != "", literal("payee ") + instruction.c.payee),
    else_="",
).label("order_no")
"""What it is done to, where no order names it, in the column in which people look for it."""


def shown_frame(connection: Connection, run: Run) -> pd.DataFrame:
    """The same for the sheet, where what no order names stands by its payee or subscription."""
    return sheet_frame(connection, run, order_no=_SUBJECT)


def sheet_frame(
    connection: Connection, run: Run, *, order_no: ColumnElement[str] = instruction.c.order_no
) -> pd.DataFrame:
    """INSTRUCTION_SHEET_COLUMNS of what this run planned, sent, left unfinished or ended."""
    in_run = (
        select(attempt.c.instruction_id)
        .join(batch, batch.c.batch_id == attempt.c.batch_id)
        .where(batch.c.run_id == run.run_id)
    )
    of_night = select(batch.c.batch_id).where(
        batch.c.run_id.in_(runs_of_night(run, run.business_date))
    )
    renamed: dict[str, Any] = {
        "order_no": order_no,
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
            *in_account(instruction, run),
            or_(
                instruction.c.run_id == run.run_id,
                instruction.c.instruction_id.in_(in_run),
                instruction.c.state.in_(UNFINISHED),
                instruction.c.batch_id.in_(of_night),
                _ended_in(run),
            ),
        )
        .order_by(instruction.c.kind, instruction.c.order_no, instruction.c.natural_key)
    )
    kinds = {name: _SHEET_KINDS.get(name, TEXT) for name in INSTRUCTION_SHEET_COLUMNS}
    return frame_of_select(connection, query, columns=kinds)


def batch_frame(connection: Connection, run: Run) -> pd.DataFrame:
    """BATCH_COLUMNS: one row per batch and currency of this business date's runs.

    What went by hand since the night before stands among them, by its time.
    """
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
        .where(_sent_since_yesterday(connection, run))
        .group_by(*(batch.c[name] for name in _BATCH_GROUP), instruction.c.currency)
        .order_by(batch.c.claimed_at, batch.c.batch_id, instruction.c.currency)
    )
    kinds = {name: _BATCH_KINDS.get(name, TEXT) for name in BATCH_COLUMNS}
    sent = frame_of_select(connection, query, columns=kinds)
    would = dry_batches(connection, run.run_id)
    return pd.concat([sent, _dry_frame(would, columns=kinds)]) if would else sent


def foreign_rows(connection: Connection, run: Run) -> list[str]:
    """Rows of replies to the batches of `batch_frame` that belong to no request of ours."""
    query = (
        select(history.c.data)
        .join(batch, batch.c.batch_id == history.c.entity_id)
        .where(history.c.entity == "batch", history.c.event == FOREIGN_ROW)
        .where(_sent_since_yesterday(connection, run))
        .order_by(history.c.sequence)
    )
    return [str(json.loads(data)["what"]) for data in connection.execute(query).scalars()]


def _sent_since_yesterday(connection: Connection, run: Run) -> ColumnElement[bool]:
    """Batches of this night, and of none that were claimed between the day before and this one."""
    earlier = *in_account(runs, run), runs.c.as_of < run.as_of
    before = connection.scalar(select(func.max(runs.c.as_of)).where(*earlier))
    by_hand = and_(
        batch.c.run_id.startswith(BY_HAND),
        *in_account(batch, run),
        batch.c.claimed_at <= run.as_of,
        *([] if before is None else [batch.c.claimed_at > before]),
    )
    return or_(batch.c.run_id.in_(runs_of_night(run, run.business_date)), by_hand)


def _dry_frame(plans: Sequence[BatchPlan], *, columns: Mapping[str, str]) -> pd.DataFrame:
    """What a dry run would have sent, in the words of the batches that were."""
    rows = [
        {
            "batch_id": f"(dry run: would be batch {plan.position})",
            "kind": plan.kind,
            "currency": currency,
            "rows": rows,
            "amount": amount,
            "not_sent": rows,
            "message": "dry run: not sent",
        }
        for plan in plans
        for currency, (rows, amount) in plan.sums.items()
    ]
    blanks = dict.fromkeys(("confirmed", "rejected", "in_doubt"), 0)
    return frame_of([{**blanks, **row} for row in rows], columns=columns)


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


def _ended_in(run: Run) -> ColumnElement[bool]:
    """Doubts that ended while the run was under way, whoever sent them when."""
    ended = (InstructionState.RESOLVED_APPLIED, InstructionState.RESOLVED_NOT_APPLIED)
    end = select(runs.c.finished_at).where(runs.c.run_id == run.run_id).scalar_subquery()
    return and_(
        instruction.c.state.in_(ended),
        instruction.c.outcome_at >= run.started_at,
        instruction.c.outcome_at <= func.coalesce(end, instruction.c.outcome_at),
    )
