"""Control totals that must tie before money moves, counted where the rows lie.

T1 file, T2 load, T3 query and T9 bounds, each against what the readers and the sender reported.
The engine computes its own totals from frames; these are the ones the gate asks for.
"""

from collections.abc import Iterable

from sqlalchemy import ColumnElement, Connection, case, func, or_, select

from recon.model.words import ControlTotal, InstructionKind, InstructionState, SourceKind
from recon.store.nights import answer_parts
from recon.store.nights.runs import Run
from recon.store.schema import (
    bank_entry,
    bank_statement,
    instruction,
    order_action,
    order_file,
    reject,
)
from recon.store.schema.columns import in_account

MAY_HAVE_MOVED = (
    InstructionState.CONFIRMED,
    InstructionState.RESOLVED_APPLIED,
    InstructionState.IN_FLIGHT,
    InstructionState.IN_DOUBT,
    InstructionState.NEEDS_HUMAN,
)


def before_money(
    connection: Connection, run: Run, *, in_files: int, universe: int, phase: str
) -> tuple[ControlTotal, ...]:
    """T1, T2, T3 and T9 as they stand.

    Args:
        connection: the store.
        run: of the night.
        in_files: how many rows the files of facts of the night's files have.
        universe: how many keys were to be asked.
        phase: when they were.
    """
    return (
        *_files(connection, run, in_files=in_files),
        _query(connection, run, universe=universe, phase=phase),
        _bounds(connection, run),
    )


def _files(connection: Connection, run: Run, *, in_files: int) -> Iterable[ControlTotal]:
    """T1 read = accepted + rejected + skipped and T2 accepted = stored + repeat, over all files."""
    file = order_file.c
    mine = *in_account(order_file, run), file.business_date == run.business_date
    files = select(file.file_id).where(*mine)
    rejected = select(func.count()).where(reject.c.file_id.in_(files))
    entries = (
        select(func.count())
        .select_from(bank_entry)
        .join(bank_statement, bank_statement.c.statement_id == bank_entry.c.statement_id)
        .where(bank_statement.c.file_id.in_(files), bank_entry.c.part == 0)
    )
    instructing = files.where(file.kind == SourceKind.INSTRUCTIONS)
    actions = select(func.count()).where(order_action.c.file_id.in_(instructing))
    sums = (_sum(file[f"rows_{each}"]) for each in ("read", "accepted", "skipped", "repeat"))
    counts = (query.scalar_subquery() for query in (rejected, entries, actions))
    sums_and_counts = map(int, connection.execute(select(*sums, *counts).where(*mine)).one())
    read, accepted, skipped, repeat, refused, *stored = sums_and_counts
    yield _total("T1", "rows read", run, left=read, right=accepted + refused + skipped)
    yield _total("T2", "rows stored", run, left=accepted, right=in_files + sum(stored) + repeat)


def _query(connection: Connection, run: Run, *, universe: int, phase: str) -> ControlTotal:
    """T3: every key of the universe has exactly one final answer."""
    _, answered = answer_parts.counted(connection, run.run_id, phase=phase)
    return _total("T3", "keys answered", run, left=universe, right=answered)


def _bounds(connection: Connection, run: Run) -> ControlTotal:
    """T9: payments whose captures exceed it, or refunds what was captured; doubts count."""
    payment = func.max(instruction.c.payment_amount)
    captured, refunded = _amounts_of(InstructionKind.CAPTURE), _amounts_of(InstructionKind.REFUND)
    # Captured in part: only that can be given back. No capture of ours: by somebody else.
    given_back = case((captured > 0, captured), else_=payment) < refunded
    payments = (
        select(instruction.c.transaction_id)
        .where(
            *in_account(instruction, run),
            instruction.c.kind.in_([InstructionKind.CAPTURE, InstructionKind.REFUND]),
            # What waits for people after a restore was never held against a payment: it is of many.
            instruction.c.transaction_id != "",
            instruction.c.state.in_(MAY_HAVE_MOVED),
        )
        .group_by(instruction.c.transaction_id)
        .having(or_(captured > payment, given_back))
    )
    count = select(func.count()).select_from(payments.subquery())
    beyond = int(connection.execute(count).scalar_one())
    return _total("T9", "payments out of bounds", run, left=beyond, right=0)


def _sum(column: ColumnElement[int]) -> ColumnElement[int]:
    return func.coalesce(func.sum(column), 0)


def _amounts_of(kind: InstructionKind) -> ColumnElement[int]:
    return func.sum(case((instruction.c.kind == kind, instruction.c.amount), else_=0))


def _total(number: str, name: str, run: Run, *, left: int, right: int) -> ControlTotal:
    return ControlTotal(
        id=number,
        name=name,
        merchant_id=run.merchant_id,
        account_id=run.account_id,
        currency="",
        measure="count",
        left=left,
        right=right,
    )
