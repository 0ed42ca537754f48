"""Sending switch, sums of instructions by state and limit, and the instruction and batch sheets.

Also queries for the control totals that are checked before money moves: what is stored of the
night's files, and the journal's movements by payment.
"""

import json
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from datetime import date, datetime
from typing import Any

import pandas as pd
from sqlalchemy import ColumnElement, Connection, Select, and_, case, func, literal, or_, select

from recon.instructions.approval import sums_text
from recon.instructions.eligibility import BatchPlan
from recon.instructions.instruction import MOVES_MONEY
from recon.instructions.planning import RULE_APPROVER
from recon.matching.frames.sources import (
    INSTANT,
    MINOR_UNITS,
    MINOR_UNITS_OR_BLANK,
    TEXT,
    LoadCounts,
    frame_of,
)
from recon.model.figures import BATCH_COLUMNS, INSTRUCTION_SHEET_COLUMNS
from recon.model.terms import (
    CONFIRMED_STATES,
    DOUBTFUL_STATES,
    InstructionKind,
    InstructionState,
    SourceKind,
)
from recon.store.database.bulk_rows import frame_of_select
from recon.store.database.history import Event, append
from recon.store.database.record import SWITCH, record
from recon.store.money.case_rows import open_cases
from recon.store.money.instruction_rows import UNFINISHED
from recon.store.nights.runs import BY_HAND, Run, run_links
from recon.store.schema import (
    attempt,
    bank_entry,
    bank_statement,
    batch,
    history,
    instruction,
    order_action,
    order_file,
    sending_switch,
)
from recon.store.schema import run as runs
from recon.store.schema.columns import in_account

MAY_HAVE_MOVED = (
    InstructionState.CONFIRMED,
    InstructionState.RESOLVED_APPLIED,
    InstructionState.IN_FLIGHT,
    InstructionState.IN_DOUBT,
    InstructionState.NEEDS_HUMAN,
)


@dataclass(frozen=True, slots=True)
class OpenMoney:
    """Instructions of an account, counted and summed."""

    kinds: Counter[InstructionKind] = field(default_factory=Counter)
    """Number of instructions by kind."""
    sums: Counter[str] = field(default_factory=Counter)
    """Minor units by currency; kinds that move no money have none."""

    @property
    def count(self) -> int:
        """Number of instructions of all kinds."""
        return self.kinds.total()

    @property
    def as_text(self) -> str:
        """Counts and sums, such as `50 captures, 1 refund (1204.50 EUR)`; "" for none."""
        kinds = ", ".join(
            f"{count} {kind.replace('_', ' ')}{'s' * (count != 1)}"
            for kind in InstructionKind
            if (count := self.kinds[kind])
        )
        return f"{kinds} ({sums_text(self.sums)})" if self.sums else kinds


def doubtful(connection: Connection, run: Run) -> OpenMoney:
    """Sum what may have moved: instructions in flight, in doubt, undecided or with a case."""
    cases = (
        (each.item.kind, each.item.currency, 1, each.item.amount)
        for each in open_cases(connection, run)
    )
    return _added((*_in_states(connection, run, states=DOUBTFUL_STATES), *cases))


def unsent(connection: Connection, run: Run) -> OpenMoney:
    """Sum what is approved and was not sent."""
    return _added(_in_states(connection, run, states={InstructionState.APPROVED}))


def unapproved(connection: Connection, run: Run) -> OpenMoney:
    """Sum what waits for people's approval."""
    return _added(_in_states(connection, run, states={InstructionState.PLANNED}))


def _in_states(
    connection: Connection, run: Run, *, states: Collection[InstructionState]
) -> Iterable[tuple[str, str, int, int]]:
    by = (instruction.c.kind, instruction.c.currency)
    chosen = instruction.c.state.in_(states)
    rows = connection.execute(
        select(*by, func.count(), func.sum(instruction.c.amount))
        .where(*in_account(instruction, run), chosen)
        .group_by(*by)
        .order_by(*by)
    ).tuples()
    return [(kind, currency, count, int(amount or 0)) for kind, currency, count, amount in rows]


def _added(rows: Iterable[tuple[str, str, int, int]]) -> OpenMoney:
    money = OpenMoney()
    for kind, currency, count, amount in rows:
        money.kinds[InstructionKind(kind)] += count
        if currency:
            money.sums[currency] += amount
    return money


WOULD_SEND = "would send"
"""Event of a dry run that planned batches."""
FOREIGN_ROW = "foreign row"
"""Event for a row in a batch's reply that belongs to no request of ours."""
NAME_CHARACTERS = 100
"""Maximum length of the name stored with the switch; the history has the full name."""
_UNSENT = (
    InstructionState.PLANNED,
    InstructionState.APPROVED,
    InstructionState.WITHDRAWN,
)
_MAY_HAVE_MOVED = instruction.c.state.in_(MAY_HAVE_MOVED)
_BY_RULE = instruction.c.approved_by == RULE_APPROVER


@dataclass(frozen=True, slots=True)
class Stopped:
    """Who stopped all sending, when and why; it applies until two people release it."""

    by: str
    reason: str
    at: datetime
    turn: int = 0
    """Sequence number of this change of the switch."""

    def __str__(self) -> str:
        return (
            f"sending was stopped by {self.by} at {self.at:%Y-%m-%d %H:%M} UTC ({self.reason}); "
            "two people end it (`recon approve --hold sending`)"
        )


def stopped(connection: Connection) -> Stopped | None:
    """Return who stopped all sending and why; None while sending is allowed."""
    turns = select(sending_switch).order_by(sending_switch.c.turn.desc())
    newest = connection.execute(turns.limit(1)).one_or_none()
    if newest is None or not newest.stopped:
        return None
    return Stopped(newest.turned_by, newest.reason, newest.at, newest.turn)


def turn_switch(connection: Connection, *, stop: bool, by: str, reason: str, at: datetime) -> None:
    """Stop all sending or allow it again; the history records the change permanently."""
    newest = connection.execute(select(func.max(sending_switch.c.turn))).scalar_one() or 0
    turn = {"turn": newest + 1, "turned_by": by[:NAME_CHARACTERS], "reason": reason, "at": at}
    event = "stopped" if stop else "allowed"
    record(connection, SWITCH, turn | {"stopped": stop}, event=event, at=at, details={"by": by})


def approved_by_rule(connection: Connection, run: Run) -> dict[str, int]:
    """Return minor units by currency that a rule approved on this night, less withdrawn ones."""
    withdrawn = instruction.c.state == InstructionState.WITHDRAWN
    planned = instruction.c.run_id.in_(runs_of_night(run, run.business_date))
    return _moving(connection, run, _BY_RULE, ~withdrawn, planned)


def nights_planned(connection: Connection, run: Run) -> dict[str, date]:
    """Map each approved instruction to the business date of the night that planned it."""
    approved = instruction.c.state == InstructionState.APPROVED
    query = (
        select(instruction.c.instruction_id, runs.c.business_date)
        .join(runs, runs.c.run_id == instruction.c.run_id)
        .where(*in_account(instruction, run), approved)
    )
    return dict(connection.execute(query).tuples().all())


def used_by_rule(
    connection: Connection, run: Run, *, nights: Iterable[date]
) -> dict[date, dict[str, int]]:
    """Return minor units by business date and currency, approved by a rule then and since sent."""
    return {
        night: _moving(
            connection,
            run,
            _BY_RULE,
            instruction.c.state.not_in(_UNSENT),
            instruction.c.run_id.in_(runs_of_night(run, night)),
        )
        for night in {*nights}
    }


def sent_this_night(connection: Connection, run: Run) -> dict[str, int]:
    """Return minor units by currency of what may have moved in this night's batches."""
    sent = (
        select(attempt.c.instruction_id)
        .join(batch, batch.c.batch_id == attempt.c.batch_id)
        .where(batch.c.run_id.in_(runs_of_night(run, run.business_date)))
    )
    return _moving(connection, run, _MAY_HAVE_MOVED, instruction.c.instruction_id.in_(sent))


def sent_between(
    connection: Connection, run: Run, *, start: datetime, end: datetime
) -> dict[str, int]:
    """Return minor units by currency of what may have moved, by time of last sending."""
    sent_at = instruction.c.sent_at
    return _moving(connection, run, _MAY_HAVE_MOVED, sent_at >= start, sent_at < end)


def sent_outside(connection: Connection, run: Run) -> str:
    """Return a batch of the account claimed since the run began by another run; "" if none."""
    rows = connection.execute(
        select(batch.c.batch_id)
        .where(*in_account(batch, run))
        .where(batch.c.claimed_at > run.started_at, batch.c.run_id != run.run_id)
        .limit(1)
    )
    return rows.scalar_one_or_none() or ""


def paid_payees(connection: Connection, run: Run) -> frozenset[str]:
    """Return digests of the payees to whom a payout of the merchant took effect."""
    paid = (
        instruction.c.merchant_id == run.merchant_id,
        instruction.c.kind == InstructionKind.PAYOUT,
        instruction.c.state.in_(CONFIRMED_STATES),
    )
    digests = select(instruction.c.payee_digest).where(*paid).distinct()
    return frozenset(connection.execute(digests).scalars())


def note_dry_batches(
    connection: Connection, run_id: str, *, plans: Iterable[BatchPlan], at: datetime
) -> None:
    """Record what a dry run would have sent; a repeated step records it again."""
    reported = {"batches": [asdict(plan) for plan in plans]}
    append(connection, [Event("run", run_id, WOULD_SEND, reported)], at=at)


def runs_of_night(run: Run, night: date) -> Select[tuple[str]]:
    """Select the ids of all runs of an account and business date, including resumed ones."""
    return select(runs.c.run_id).where(*in_account(runs, run), runs.c.business_date == night)


def _moving(connection: Connection, run: Run, *conditions: ColumnElement[bool]) -> dict[str, int]:
    """Return minor units by currency of an account's instructions of kinds that limits count."""
    query = (
        select(instruction.c.currency, func.sum(instruction.c.amount))
        .where(
            *in_account(instruction, run),
            instruction.c.kind.in_(MOVES_MONEY),
            *conditions,
        )
        .group_by(instruction.c.currency)
    )
    rows = connection.execute(query)
    return {currency: int(total) for currency, total in rows}


def stored_of_files(
    connection: Connection, run: Run, *, in_facts: Mapping[int, int]
) -> dict[str, LoadCounts]:
    """Return how many rows of each file of the night were accepted, stored and repeated.

    Args:
        connection: Of the database.
        run: The run of the night.
        in_facts: File id -> number of rows in its archived facts files.
    """
    file = order_file.c
    mine = *in_account(order_file, run), file.business_date == run.business_date
    files = select(file.file_id).where(*mine)
    entries = (
        select(bank_statement.c.file_id, func.count())
        .join(bank_entry, bank_statement.c.statement_id == bank_entry.c.statement_id)
        .where(bank_statement.c.file_id.in_(files), bank_entry.c.part == 0)
        .group_by(bank_statement.c.file_id)
    )
    actions = (
        select(order_action.c.file_id, func.count())
        .where(order_action.c.file_id.in_(files.where(file.kind == SourceKind.INSTRUCTIONS)))
        .group_by(order_action.c.file_id)
    )
    stored = Counter(in_facts)
    for query in (entries, actions):
        stored.update(dict(connection.execute(query).tuples().all()))
    return {
        f"{row.name} ({row.file_id})": LoadCounts(
            row.rows_accepted, stored[row.file_id], row.rows_repeat, 0
        )
        for row in connection.execute(select(order_file).where(*mine).order_by(file.file_id))
    }


JOURNAL_COLUMNS = {
    "transaction_id": TEXT,
    "kind": TEXT,
    "amount": MINOR_UNITS,
    "payment_amount": MINOR_UNITS_OR_BLANK,
}


def moved_of_payments(connection: Connection, run: Run) -> pd.DataFrame:
    """Return JOURNAL_COLUMNS of all the account's captures and refunds that may have moved.

    Movements without a payment (those that wait for people after a restore) are left out.
    """
    query = select(*(instruction.c[name] for name in JOURNAL_COLUMNS)).where(
        *in_account(instruction, run),
        instruction.c.kind.in_([InstructionKind.CAPTURE, InstructionKind.REFUND]),
        instruction.c.transaction_id != "",
        _MAY_HAVE_MOVED,
    )
    return frame_of_select(connection, query, columns=JOURNAL_COLUMNS)


_SUBJECT = case(
    (instruction.c.order_no != "", instruction.c.order_no),
    (instruction.c.recurring_id != "", literal("subscription ") + instruction.c.recurring_id),
    (instruction.c.payee != "", literal("payee ") + instruction.c.payee),
    else_="",
).label("order_no")
"""The payee or subscription where no order number exists, shown in the order column."""


def sheet_frame(connection: Connection, run: Run, *, for_people: bool = False) -> pd.DataFrame:
    """Return INSTRUCTION_SHEET_COLUMNS of what this run planned, sent, left unfinished or ended.

    With `for_people`, rows without an order show their payee or subscription instead.
    """
    in_run = (
        select(attempt.c.instruction_id)
        .join(batch, batch.c.batch_id == attempt.c.batch_id)
        .where(batch.c.run_id == run.run_id)
    )
    of_night = select(batch.c.batch_id).where(
        batch.c.run_id.in_(runs_of_night(run, run.business_date))
    )
    renamed: dict[str, Any] = {
        "order_no": _SUBJECT if for_people else instruction.c.order_no,
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
    kinds = {name: _KINDS.get(name, TEXT) for name in INSTRUCTION_SHEET_COLUMNS}
    return frame_of_select(connection, query, columns=kinds)


def batch_frame(connection: Connection, run: Run) -> pd.DataFrame:
    """Return BATCH_COLUMNS: one row per batch and currency of this business date's runs.

    Batches sent by hand since the previous night are included, in order of time.
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
    kinds = {name: _KINDS.get(name, TEXT) for name in BATCH_COLUMNS}
    sent = frame_of_select(connection, query, columns=kinds)
    known = run_links(connection, run.run_id, event=WOULD_SEND)
    would = known[-1].data["batches"] if known else ()
    return pd.concat([sent, _dry_frame(would, columns=kinds)]) if would else sent


def foreign_rows(connection: Connection, run: Run) -> list[str]:
    """Return reply rows that belong to no request of ours, for the batches of `batch_frame`."""
    query = (
        select(history.c.data)
        .join(batch, batch.c.batch_id == history.c.entity_id)
        .where(history.c.entity == "batch", history.c.event == FOREIGN_ROW)
        .where(_sent_since_yesterday(connection, run))
        .order_by(history.c.sequence)
    )
    return [str(json.loads(data)["what"]) for data in connection.execute(query).scalars()]


def _sent_since_yesterday(connection: Connection, run: Run) -> ColumnElement[bool]:
    """Match batches of this night, and those sent by hand since the previous night."""
    earlier = *in_account(runs, run), runs.c.as_of < run.as_of
    before = connection.scalar(select(func.max(runs.c.as_of)).where(*earlier))
    by_hand = and_(
        batch.c.run_id.startswith(BY_HAND),
        *in_account(batch, run),
        batch.c.claimed_at <= run.as_of,
        *([] if before is None else [batch.c.claimed_at > before]),
    )
    return or_(batch.c.run_id.in_(runs_of_night(run, run.business_date)), by_hand)


def _dry_frame(plans: Sequence[Mapping[str, Any]], *, columns: Mapping[str, str]) -> pd.DataFrame:
    """Return what a dry run would have sent, in the columns of real batches."""
    rows = [
        {
            "batch_id": f"(dry run: would be batch {plan['position']})",
            "kind": plan["kind"],
            "currency": currency,
            "rows": rows,
            "amount": amount,
            "not_sent": rows,
            "message": "dry run: not sent",
        }
        for plan in plans
        for currency, (rows, amount) in plan["sums"].items()
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
_KINDS = {
    "amount": MINOR_UNITS_OR_BLANK,
    **dict.fromkeys(("rows", *_TALLIES, "attempt", "line"), MINOR_UNITS),
    **dict.fromkeys(("sent_at", "outcome_at", "in_doubt_since"), INSTANT),
}
"""Types of sheet columns that are not text."""


def _tally(outcome: ColumnElement[str], names: Sequence[str]) -> ColumnElement[int]:
    return func.sum(case((outcome.in_(names), 1), else_=0))


def _ended_in(run: Run) -> ColumnElement[bool]:
    """Match doubts that were resolved while the run was active, whenever they were sent."""
    ended = (InstructionState.RESOLVED_APPLIED, InstructionState.RESOLVED_NOT_APPLIED)
    end = select(runs.c.finished_at).where(runs.c.run_id == run.run_id).scalar_subquery()
    return and_(
        instruction.c.state.in_(ended),
        instruction.c.outcome_at >= run.started_at,
        instruction.c.outcome_at <= func.coalesce(end, instruction.c.outcome_at),
    )
