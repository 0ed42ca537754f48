"""Cases: what the gateway showed after the end of an instruction, against the journal."""

from sqlalchemy import Table

from recon.store.schema.columns import (
    ID_CHARACTERS,
    REASON_CHARACTERS,
    account_columns,
    at_column,
    id_column,
    metadata,
    text_column,
)

APPLIED = "applied"
"""What two people may say of a case: that it took effect."""

# One row per instruction that the gateway contradicted after its end.
contradiction = Table(
    "contradiction",
    metadata,
    id_column("instruction_id", primary_key=True),
    *account_columns(),
    text_column("transaction_id", ID_CHARACTERS),
    text_column("believed", 24),  # the state that the journal has, and keeps
    text_column("told", REASON_CHARACTERS),
    at_column("noted_at", nullable=False),
    text_column("verdict", 12),  # applied, not_applied; "" while the case is open
    at_column("closed_at"),
)
