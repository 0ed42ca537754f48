"""Control totals that must tie before money moves, counted where the rows lie.

T1 file, T2 load, T3 query and T9 bounds, each against what the readers and the sender reported.
The engine computes its own totals from frames; these are the ones the gate asks for.
"""

from collections.abc import Iterable, Mapping

from sqlalchemy import Column, ColumnElement, Connection, Select, bindparam, case, func, or_, select

from recon.model.words import ControlTotal, InstructionKind, InstructionState, SourceKind
from recon.store.nights.runs import Run
from recon.store.schema import (
    answer_part,
    bank_entry,
    bank_statement,
    instruction,
    order_action,
    order_file,
    reject,
)
from recon.store.schema.columns import account_values, in_account

MAY_HAVE_MOVED = (
    InstructionState.CONFIRMED,
    InstructionState.RESOLVED_APPLIED,
    InstructionState.IN_FLIGHT,
    InstructionState.IN_DOUBT,
    InstructionState.NEEDS_HUMAN,
)


def _sum(column: Column[int]) -> ColumnElement[int]:
    return func.coalesce(func.sum(column), 0)


def _amounts_of(kind: InstructionKind) -> ColumnElement[int]:
    return func.sum(case((instruction.c.kind == kind.value, instruction.c.amount), else_=0))


_MINE = (
    *in_account(order_file),
    order_file.c.business_date == bindparam("of_date"),
)
_FILES = select(order_file.c.file_id).where(*_MINE)
_REJECTED = select(func.count()).where(reject.c.file_id.in_(_FILES))
_ENTRIES = (
    select(func.count())
    .select_from(bank_entry)
    .join(bank_statement, bank_statement.c.statement_id == bank_entry.c.statement_id)
    .where(bank_statement.c.file_id.in_(_FILES), bank_entry.c.part == 0)
)
_ACTIONS = (
    select(func.count())
    .select_from(order_action)
    .join(order_file, order_file.c.file_id == order_action.c.file_id)
    .where(*_MINE, order_file.c.kind == SourceKind.INSTRUCTIONS.value)
)
_TOLD = select(
    _sum(order_file.c.rows_read),
    _sum(order_file.c.rows_accepted),
    _sum(order_file.c.rows_skipped),
    _sum(order_file.c.rows_repeat),
    _REJECTED.scalar_subquery(),
    *(query.scalar_subquery() for query in (_ENTRIES, _ACTIONS)),
).where(*_MINE)
_ANSWERED = select(_sum(answer_part.c.answered)).where(
    answer_part.c.run_id == bindparam("of_run"),
    answer_part.c.phase == bindparam("of_phase"),
)
_PAYMENT = func.max(instruction.c.payment_amount)
_CAPTURED = _amounts_of(InstructionKind.CAPTURE)
_REFUNDED = _amounts_of(InstructionKind.REFUND)
_BEYOND = select(func.count()).select_from(
    select(instruction.c.transaction_id)
    .where(
        *in_account(instruction),
        instruction.c.kind.in_([InstructionKind.CAPTURE.value, InstructionKind.REFUND.value]),
        # What waits for people after a restore was never held against a payment: it is of many.
        instruction.c.transaction_id != "",
        instruction.c.state.in_([state.value for state in MAY_HAVE_MOVED]),
    )
    .group_by(instruction.c.transaction_id)
    .having(
        or_(
            _CAPTURED > _PAYMENT,
            # Captured in part: only that can be given back. No capture of ours: by somebody else.
            case((_CAPTURED > 0, _CAPTURED), else_=_PAYMENT) < _REFUNDED,
        )
    )
    .subquery()
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
    of_night = account_values(run) | {"of_date": run.business_date}
    sums = connection.execute(_TOLD, of_night).one()
    read, accepted, skipped, repeat, rejected, *stored = (int(value) for value in sums)
    yield _total("T1", "rows read", run, left=read, right=accepted + rejected + skipped)
    yield _total("T2", "rows stored", run, left=accepted, right=in_files + sum(stored) + repeat)


def _query(connection: Connection, run: Run, *, universe: int, phase: str) -> ControlTotal:
    """T3: every key of the universe has exactly one final answer."""
    answered = _count(connection, _ANSWERED, {"of_run": run.run_id, "of_phase": phase})
    return _total("T3", "keys answered", run, left=universe, right=answered)


def _bounds(connection: Connection, run: Run) -> ControlTotal:
    """T9: payments whose captures exceed it, or refunds what was captured; doubts count."""
    beyond = _count(connection, _BEYOND, account_values(run))
    return _total("T9", "payments out of bounds", run, left=beyond, right=0)


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


def _count(connection: Connection, query: Select[tuple[int]], values: Mapping[str, str]) -> int:
    return int(connection.execute(query, values).scalar_one())
