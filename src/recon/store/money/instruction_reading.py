"""Rows of the journal as domain values."""

from collections.abc import Mapping
from typing import Any

from sqlalchemy import Connection, Select, select

from recon.instructions.instruction import Instruction
from recon.model.words import InstructionKind, InstructionState
from recon.store.schema import instruction

_PLAIN = frozenset(Instruction.__dataclass_fields__) - {"kind", "state"}
INSTRUCTION_COLUMNS = tuple(instruction.c[name] for name in Instruction.__dataclass_fields__)
"""What `instruction_of` reads."""
INSTRUCTIONS = select(*INSTRUCTION_COLUMNS).order_by(
    instruction.c.planned_at, instruction.c.file_id, instruction.c.line
)
"""Every instruction, oldest first, with what the domain knows of it."""


def instructions_where(connection: Connection, *conditions: Any) -> list[Instruction]:
    """Journal rows as domain values, oldest first."""
    return read_instructions(connection, INSTRUCTIONS.where(*conditions))


def read_instructions(
    connection: Connection, query: Select[Any], values: Mapping[str, Any] | None = None
) -> list[Instruction]:
    """Journal rows of a query that was made from `INSTRUCTIONS`, as domain values."""
    rows = connection.execute(query, values or {}).mappings()
    return [instruction_of(row) for row in rows]


def instruction_of(row: Mapping[Any, Any]) -> Instruction:
    """One journal row as a domain value."""
    return Instruction(
        kind=InstructionKind(row["kind"]),
        state=InstructionState(row["state"]),
        **{name: row[name] for name in _PLAIN},
    )
