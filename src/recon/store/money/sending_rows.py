"""Whether money may be sent, what was sent so far, and what a dry run would send."""

from collections import Counter
from collections.abc import Collection, Iterable
from dataclasses import dataclass, field
from datetime import date, datetime

from sqlalchemy import ColumnElement, Connection, Select, func, select

from recon.instructions.approval import sums_in_words
from recon.instructions.eligibility import BatchPlan
from recon.instructions.instruction import MOVES_MONEY
from recon.instructions.planning import RULE_APPROVER
from recon.model.words import CONFIRMED_STATES, DOUBTFUL_STATES, InstructionKind, InstructionState
from recon.store.database.bulk_rows import replace_rows
from recon.store.database.record import SWITCH, record
from recon.store.money.case_rows import open_cases
from recon.store.nights.proofs import MAY_HAVE_MOVED
from recon.store.nights.runs import Run
from recon.store.schema import attempt, batch, dry_batch, instruction, sending_switch
from recon.store.schema import run as runs
from recon.store.schema.columns import in_account


@dataclass(frozen=True, slots=True)
class OpenMoney:
    """Some instructions of an account, added up."""

    kinds: Counter[InstructionKind] = field(default_factory=Counter)
    """How many of each kind."""
    sums: Counter[str] = field(default_factory=Counter)
    """Minor units by currency; what moves no money has none."""

    @property
    def count(self) -> int:
        """Instructions of every kind."""
        return self.kinds.total()

    @property
    def in_words(self) -> str:
        """`50 captures, 1 refund (1204.50 EUR)`; "" for none."""
        kinds = ", ".join(
            f"{count} {kind.replace('_', ' ')}{'s' * (count != 1)}"
            for kind in InstructionKind
            if (count := self.kinds[kind])
        )
        return f"{kinds} ({sums_in_words(self.sums)})" if self.sums else kinds


def doubtful(connection: Connection, run: Run) -> OpenMoney:
    """What may have moved and nobody can say: in flight, in doubt, undecided, contradicted."""
    cases = (
        (case.item.kind, case.item.currency, 1, case.item.amount)
        for case in open_cases(connection, run)
    )
    return _added((*_in_states(connection, run, states=DOUBTFUL_STATES), *cases))


def unsent(connection: Connection, run: Run) -> OpenMoney:
    """What is approved and was not sent."""
    return _added(_in_states(connection, run, states={InstructionState.APPROVED}))


def unapproved(connection: Connection, run: Run) -> OpenMoney:
    """What waits for people's approval."""
    return _added(_in_states(connection, run, states={InstructionState.PLANNED}))


def _in_states(
    connection: Connection, run: Run, *, states: Collection[InstructionState]
) -> Iterable[tuple[str, str, int, int]]:
    by = (instruction.c.kind, instruction.c.currency)
    wanted = instruction.c.state.in_(states)
    rows = connection.execute(
        select(*by, func.count(), func.sum(instruction.c.amount))
        .where(*in_account(instruction, run), wanted)
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


NAME_CHARACTERS = 100
"""Of the name beside the switch; the history has all of it."""
_UNSENT = (
    InstructionState.PLANNED,
    InstructionState.APPROVED,
    InstructionState.WITHDRAWN,
)
_MAY_HAVE_MOVED = instruction.c.state.in_(MAY_HAVE_MOVED)
_BY_RULE = instruction.c.approved_by == RULE_APPROVER


@dataclass(frozen=True, slots=True)
class Stopped:
    """Nobody sends money until somebody allows it again."""

    by: str
    reason: str
    at: datetime
    turn: int = 0
    """Which turn of the switch it was."""

    def __str__(self) -> str:
        return (
            f"sending was stopped by {self.by} at {self.at:%Y-%m-%d %H:%M} UTC ({self.reason}); "
            "two people end it (`recon allow-sending`)"
        )


def stopped(connection: Connection) -> Stopped | None:
    """Who stopped all sending and why; None while money may be sent."""
    turns = select(sending_switch).order_by(sending_switch.c.turn.desc())
    newest = connection.execute(turns.limit(1)).one_or_none()
    if newest is None or not newest.stopped:
        return None
    return Stopped(newest.turned_by, newest.reason, newest.at, newest.turn)


def turn_switch(connection: Connection, *, stop: bool, by: str, reason: str, at: datetime) -> None:
    """Stop all sending, or allow it again; the turn stands in the history for ever."""
    newest = connection.execute(select(func.max(sending_switch.c.turn))).scalar_one() or 0
    turn = {"turn": newest + 1, "turned_by": by[:NAME_CHARACTERS], "reason": reason, "at": at}
    event = "stopped" if stop else "allowed"
    record(connection, SWITCH, turn | {"stopped": stop}, event=event, at=at, details={"by": by})


def approved_by_rule(connection: Connection, run: Run) -> dict[str, int]:
    """Currency -> minor units that a rule approved on this night, withdrawn ones left out."""
    withdrawn = instruction.c.state == InstructionState.WITHDRAWN
    planned = instruction.c.run_id.in_(runs_of_night(run, run.business_date))
    return _moving(connection, run, _BY_RULE, ~withdrawn, planned)


def nights_planned(connection: Connection, run: Run) -> dict[str, date]:
    """Approved instruction -> the business date of the night that planned it."""
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
    """Business date -> currency -> minor units that a rule approved then and that left since."""
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
    """Currency -> minor units of what may have moved in this night's batches."""
    sent = (
        select(attempt.c.instruction_id)
        .join(batch, batch.c.batch_id == attempt.c.batch_id)
        .where(batch.c.run_id.in_(runs_of_night(run, run.business_date)))
    )
    return _moving(connection, run, _MAY_HAVE_MOVED, instruction.c.instruction_id.in_(sent))


def sent_between(
    connection: Connection, run: Run, *, start: datetime, end: datetime
) -> dict[str, int]:
    """Currency -> minor units of what may have moved, by when it was last sent."""
    sent_at = instruction.c.sent_at
    return _moving(connection, run, _MAY_HAVE_MOVED, sent_at >= start, sent_at < end)


def sent_outside(connection: Connection, run: Run) -> str:
    """A batch of the account claimed after a run began, and not by it; "" without one."""
    rows = connection.execute(
        select(batch.c.batch_id)
        .where(*in_account(batch, run))
        .where(batch.c.claimed_at > run.started_at, batch.c.run_id != run.run_id)
        .limit(1)
    )
    return rows.scalar_one_or_none() or ""


def paid_payees(connection: Connection, run: Run) -> frozenset[str]:
    """Digests of the payees to whom a payout of the merchant took effect."""
    paid = (
        instruction.c.merchant_id == run.merchant_id,
        instruction.c.kind == InstructionKind.PAYOUT,
        instruction.c.state.in_(CONFIRMED_STATES),
    )
    digests = select(instruction.c.payee_digest).where(*paid).distinct()
    return frozenset(connection.execute(digests).scalars())


def keep_dry_batches(connection: Connection, run_id: str, *, plans: Iterable[BatchPlan]) -> None:
    """Keep what a dry run would have sent; a repeated step keeps the newest."""
    rows = [
        {
            "position": plan.position,
            "currency": currency,
            "kind": plan.kind,
            "rows": rows,
            "amount": amount,
        }
        for plan in plans
        for currency, (rows, amount) in plan.sums.items()
    ]
    replace_rows(connection, dry_batch, run_id, rows)


def dry_batches(connection: Connection, run_id: str) -> list[BatchPlan]:
    """What a dry run would have sent, in order."""
    rows = connection.execute(
        select(dry_batch)
        .where(dry_batch.c.run_id == run_id)
        .order_by(dry_batch.c.position, dry_batch.c.currency)
    )
    plans: dict[int, tuple[str, dict[str, tuple[int, int]]]] = {}
    for row in rows:
        _, sums = plans.setdefault(row.position, (row.kind, {}))
        sums[row.currency] = (row.rows, row.amount)
    return [
        BatchPlan(position, InstructionKind(kind), sums) for position, (kind, sums) in plans.items()
    ]


def runs_of_night(run: Run, night: date) -> Select[tuple[str]]:
    """Ids of every run of an account and business date, so that a resumed night is whole."""
    return select(runs.c.run_id).where(*in_account(runs, run), runs.c.business_date == night)


def _moving(connection: Connection, run: Run, *conditions: ColumnElement[bool]) -> dict[str, int]:
    """Currency -> minor units of an account's instructions of the kinds that limits count."""
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
