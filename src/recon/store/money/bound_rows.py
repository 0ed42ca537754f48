"""What the history binds of instructions, for those who approve, claim and send them."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from sqlalchemy import Connection, select

from recon.instructions.eligibility import Eligible
from recon.instructions.instruction import BOUND, Instruction, Terms, terms_of
from recon.model.errors import GateClosedError
from recon.model.words import InstructionState
from recon.store.database.history import links_of
from recon.store.database.record import INSTRUCTION, PROBLEMS_MAX, ROW, difference, folded, named
from recon.store.money.instruction_rows import find, in_parts
from recon.store.schema import history, instruction

ENTITY = INSTRUCTION.entity
UNSENT = (InstructionState.PLANNED, InstructionState.APPROVED)
MAY_LEAVE = instruction.c.state.in_(UNSENT)

_OVER = frozenset(InstructionState) - {
    InstructionState.PLANNED,
    InstructionState.APPROVED,
    InstructionState.IN_FLIGHT,
}
"""States that nothing leads back from to one in which it may be sent (`instruction.FOLLOWS`)."""


def events_of(
    connection: Connection, instruction_ids: Sequence[str]
) -> dict[str, list[Mapping[str, Any]]]:
    """What the history tells of some instructions: id -> data of its events, oldest first."""
    by_id: dict[str, list[Mapping[str, Any]]] = {}
    for some in in_parts(instruction_ids):
        for link in links_of(connection, some, entity=ENTITY):
            by_id.setdefault(link.entity_id, []).append(link.data)
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
        _refuse(item, bound=bound_by(events.get(item.instruction_id, ())))


def refuse_changed_rows(connection: Connection, rows: Sequence[Eligible]) -> None:
    """The last look before a claim: what would leave, and what the table says by now.

    Raises:
        GateClosedError: naming the instruction and what differs; nothing may be claimed.
    """
    ids = [row.instruction.instruction_id for row in rows]
    events = events_of(connection, ids)
    for row in rows:
        bound = bound_by(events.get(row.instruction.instruction_id, ()))
        _refuse(meant(row, bound=bound), bound=bound)
    refuse_changed(connection, find(connection, instruction_id=ids))


def meant(row: Eligible, *, bound: Terms) -> Instruction:
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


def _refuse(item: Instruction, *, bound: Terms) -> None:
    if problem := difference(INSTRUCTION, terms_of(item), then=bound):
        what = named(INSTRUCTION, item.instruction_id, problem=problem)
        msg = f"the history does not hold: {what}; nothing of this was sent or approved"
        raise GateClosedError(msg)


def bound_by(events: Iterable[Mapping[str, Any]]) -> Terms:
    """The terms that some events of one instruction bind, oldest first."""
    cells = folded(event.get(ROW, {}) for event in events)
    return {name: cell for name, cell in cells.items() if name in BOUND}


def back_again(connection: Connection) -> Iterator[str]:
    """Instructions that may leave by their row, and that the history knows to be over."""
    was_over = (
        select(history.c.entity_id, history.c.event, instruction.c.state)
        .join(instruction, instruction.c.instruction_id == history.c.entity_id)
        .where(
            history.c.entity == ENTITY,
            history.c.event.in_(_OVER),
            MAY_LEAVE,
        )
        .order_by(history.c.sequence)
        .limit(PROBLEMS_MAX)
    )
    for row in connection.execute(was_over):
        yield (
            f"instruction {row.entity_id} is {row.state}, but was {row.event.replace('_', ' ')} "
            "before, from which nothing leads back: it was changed past the journal"
        )
