"""What one instruction came to, for the person who asked for it."""

from collections.abc import Mapping
from typing import Any

from sqlalchemy import Connection, select

from recon.store.schema import instruction


def outcome_of(connection: Connection, instruction_id: str) -> Mapping[Any, Any]:
    """State, hold, message and refund reference of one instruction."""
    query = select(
        instruction.c.state,
        instruction.c.hold,
        instruction.c.message,
        instruction.c.refund_reference_id,
    ).where(instruction.c.instruction_id == instruction_id)
    return connection.execute(query).mappings().one()
