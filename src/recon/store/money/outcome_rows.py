"""What one instruction came to, for the person who asked for it."""

from dataclasses import dataclass

from sqlalchemy import Connection, select

from recon.model.words import InstructionState
from recon.store.schema import instruction


@dataclass(frozen=True, slots=True)
class CameTo:
    """What one instruction came to."""

    state: InstructionState
    hold: str
    message: str
    refund_reference_id: str


_CAME_TO = select(*(instruction.c[name] for name in CameTo.__dataclass_fields__))


def outcome_of(connection: Connection, instruction_id: str) -> CameTo:
    """State, hold, message and refund reference of one instruction."""
    row = connection.execute(_CAME_TO.where(instruction.c.instruction_id == instruction_id)).one()
    return CameTo(InstructionState(row.state), row.hold, row.message, row.refund_reference_id)
