"""What the unsettled instructions of an account come to: counts by kind, sums by currency."""

from collections import Counter
from collections.abc import Collection, Iterable
from dataclasses import dataclass, field

from sqlalchemy import Connection, bindparam, func, select

from recon.instructions.approval import sums_in_words
from recon.model.words import DOUBTFUL_STATES, InstructionKind, InstructionState
from recon.store.money.case_rows import open_cases
from recon.store.nights.runs import Run
from recon.store.schema import instruction
from recon.store.schema.account_filter import account_values, in_account

_SUMS = (
    select(
        instruction.c.kind,
        instruction.c.currency,
        func.count().label("rows"),
        func.sum(instruction.c.amount).label("amount"),
    )
    .where(
        *in_account(instruction),
        instruction.c.state.in_(bindparam("wanted", expanding=True)),
    )
    .group_by(instruction.c.kind, instruction.c.currency)
    .order_by(instruction.c.kind, instruction.c.currency)
)


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
            f"{count} {kind.value.replace('_', ' ')}{'s' * (count != 1)}"
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
    of_account = account_values(run)
    wanted = {"wanted": sorted(state.value for state in states)}
    rows = connection.execute(_SUMS, of_account | wanted)
    return [(row.kind, row.currency, row.rows, int(row.amount or 0)) for row in rows]


def _added(rows: Iterable[tuple[str, str, int, int]]) -> OpenMoney:
    money = OpenMoney()
    for kind, currency, count, amount in rows:
        money.kinds[InstructionKind(kind)] += count
        if currency:
            money.sums[currency] += amount
    return money
