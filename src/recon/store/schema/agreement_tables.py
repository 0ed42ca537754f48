"""What two people agree to beside approvals: overrides of a stop."""

from sqlalchemy import Boolean, Column, Integer, Table

from recon.store.schema.columns import (
    ID_CHARACTERS,
    REASON_CHARACTERS,
    at_column,
    metadata,
    text_column,
)

# One row per override that a first person asked for.
agreement = Table(
    "agreement",
    metadata,
    Column("agreement_id", Integer, primary_key=True),
    text_column(
        "what", 40
    ),  # allow sending, accept restore, set file aside, close month, reopen month
    text_column("subject", ID_CHARACTERS),  # which stop, database, file; of a month what is signed
    text_column("reason", REASON_CHARACTERS),
    text_column("state", 12),  # first, complete, void
    text_column("first_by", 100),
    Column("first_authenticated", Boolean, nullable=False),
    at_column("first_at", nullable=False),
    at_column("valid_until", nullable=False),
    text_column("second_by", 100),
    Column("second_authenticated", Boolean, nullable=False),
    at_column("second_at"),
)
