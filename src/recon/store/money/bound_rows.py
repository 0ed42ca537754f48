"""Instructions as the history binds them, against what the journal's table says now."""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import groupby
from typing import Any

from sqlalchemy import Connection, Row, and_, bindparam, select

from recon.model.errors import GateClosedError
from recon.model.words import InstructionState
from recon.settlement.eligibility import Cleared
from recon.settlement.instruction import Instruction
from recon.settlement.terms import Terms, changed, folded
from recon.store.database.history import LINKS_AT_ONCE
from recon.store.money.instruction_reading import INSTRUCTIONS, instruction_of, instructions_where
from recon.store.schema import history, instruction

TERMS = "terms"
"""Where an event of an instruction has what it binds."""
ENTITY = "instruction"
VALUES_PER_QUERY_MAX = 500
PROBLEMS_MAX = 20
"""Instructions that are named; one is reason enough to stop."""
UNSENT = (InstructionState.PLANNED, InstructionState.APPROVED)

_EVENTS = (
    select(history.c.entity_id, history.c.data)
    .where(history.c.entity == ENTITY, history.c.entity_id.in_(bindparam("wanted", expanding=True)))
    .order_by(history.c.entity_id, history.c.sequence)
)
_BESIDE = (
    INSTRUCTIONS.order_by(None)
    .outerjoin_from(
        instruction,
        history,
        and_(history.c.entity == ENTITY, history.c.entity_id == instruction.c.instruction_id),
    )
    .add_columns(history.c.data.label("bound_data"))
    .where(instruction.c.state.in_(bindparam("states", expanding=True)))
    .order_by(instruction.c.instruction_id, history.c.sequence)
    .execution_options(yield_per=LINKS_AT_ONCE)
)


_OVER = frozenset(InstructionState) - {
    InstructionState.PLANNED,
    InstructionState.APPROVED,
    InstructionState.IN_FLIGHT,
}
"""States that nothing leads back from to one in which it may be sent (`instruction.FOLLOWS`)."""
_WAS_OVER = (
    select(history.c.entity_id, history.c.event, instruction.c.state)
    .join(instruction, instruction.c.instruction_id == history.c.entity_id)
    .where(
        history.c.entity == ENTITY,
        history.c.event.in_([state.value for state in _OVER]),
        instruction.c.state.in_(bindparam("states", expanding=True)),
    )
    .order_by(history.c.sequence)
    .limit(PROBLEMS_MAX)
)


def events_of(
    connection: Connection, instruction_ids: Sequence[str]
) -> dict[str, list[Mapping[str, Any]]]:
    """What the history tells of some instructions: id -> data of its events, oldest first."""
    by_id: dict[str, list[Mapping[str, Any]]] = {}
    for start in range(0, len(instruction_ids), VALUES_PER_QUERY_MAX):
        wanted = {"wanted": instruction_ids[start : start + VALUES_PER_QUERY_MAX]}
        for row in connection.execute(_EVENTS, wanted):
            by_id.setdefault(row.entity_id, []).append(json.loads(row.data))
    return by_id


def holds_of(connection: Connection, instruction_ids: Sequence[str]) -> list[str]:
    """Every reason to wait that some instructions ever had; a later one takes its place there."""
    events = events_of(connection, instruction_ids)
    return [
        str(event.get("hold", "")) for events_of_item in events.values() for event in events_of_item
    ]


def refuse_changed(connection: Connection, items: Iterable[Instruction]) -> None:
    """Stop at an instruction that is not what the history bound.

    Raises:
        GateClosedError: naming it and what differs; the caller's transaction must end.
    """
    wanted = list(items)
    events = events_of(connection, [item.instruction_id for item in wanted])
    for item in wanted:
        _refuse(changed(item, bound=bound_by(events.get(item.instruction_id, ()))))


def refuse_changed_rows(connection: Connection, rows: Sequence[Cleared]) -> None:
    """The last look before a claim: what would leave, and what the table says by now.

    Raises:
        GateClosedError: naming the instruction and what differs; nothing may be claimed.
    """
    ids = [row.instruction.instruction_id for row in rows]
    events = events_of(connection, ids)
    for row in rows:
        bound = bound_by(events.get(row.instruction.instruction_id, ()))
        _refuse(changed(meant(row, bound=bound), bound=bound))
    refuse_changed(
        connection, instructions_where(connection, instruction.c.instruction_id.in_(ids))
    )


def meant(row: Cleared, *, bound: Terms) -> Instruction:
    """A cleared row as it would leave.

    The payment that an earlier claim of this night filled in is not in it; a payment that was named
    from the beginning is the one that is sent.
    """
    named = str(bound.get("transaction_id", ""))
    return replace(
        row.instruction,
        transaction_id=row.payment.transaction_id if named else "",
        payment_amount=int(bound.get("payment_amount", 0)),
    )


def _refuse(problem: str) -> None:
    if problem:
        msg = f"the history does not hold: {problem}; nothing of this was sent or approved"
        raise GateClosedError(msg)


def bound_by(events: Iterable[Mapping[str, Any]]) -> Terms:
    """The terms that some events of one instruction bind, oldest first."""
    return folded(event.get(TERMS, {}) | _repeats(event) for event in events)


def _repeats(event: Mapping[str, Any]) -> Terms:
    """What an approval must have seen grows when more of the same intention is found."""
    return {"repeats": str(event["repeats"])} if "repeats" in event else {}


def back_again(connection: Connection, *, states: Iterable[InstructionState]) -> Iterator[str]:
    """Instructions in these states that the history knows to be over: sent, or taken back."""
    wanted = {"states": [state.value for state in states]}
    for row in connection.execute(_WAS_OVER, wanted):
        yield (
            f"instruction {row.entity_id} is {row.state}, but was {row.event.replace('_', ' ')} "
            "before, from which nothing leads back: it was changed past the journal"
        )


def changed_instructions(
    connection: Connection, *, states: Iterable[InstructionState]
) -> Iterator[str]:
    """Instructions in these states whose table says otherwise than the history, in words."""
    wanted = {"states": [state.value for state in states]}
    count = 0
    with connection.execute(_BESIDE, wanted) as rows_beside:
        for _, group in groupby(rows_beside, key=lambda row: str(row.instruction_id)):
            rows: list[Row[Any]] = list(group)
            item = instruction_of(rows[0]._mapping)  # noqa: SLF001 - SQLAlchemy's public name
            data = [json.loads(row.bound_data) for row in rows if row.bound_data]
            if problem := changed(item, bound=bound_by(data)):
                yield problem
                count += 1
            if count >= PROBLEMS_MAX:
                return
