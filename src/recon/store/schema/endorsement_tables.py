"""What people agreed to, as the desk signed it."""

from sqlalchemy import Column, Index, Integer, Table, Text

from recon.store.schema.columns import (
    ID_CHARACTERS,
    REASON_CHARACTERS,
    at_column,
    id_column,
    metadata,
    text_column,
)

# One row per word of one person. Only added to; what counts is the document under its signature,
# the other columns are there to find it by.
endorsement = Table(
    "endorsement",
    metadata,
    Column("sequence", Integer, primary_key=True, autoincrement=False),
    text_column("kind", 20),
    text_column("subject", REASON_CHARACTERS),
    id_column("person"),
    at_column("at", nullable=False),
    at_column("valid_until"),
    Column("document", Text, nullable=False),  # canonical JSON
    text_column("signature", 128),
    text_column("key_id", ID_CHARACTERS),
    Index("ix_endorsement_kind_subject", "kind", "subject"),
)
