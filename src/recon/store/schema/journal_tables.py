"""Journals that were handed out for import into the books."""

from sqlalchemy import Column, Integer, Table

from recon.store.schema.columns import (
    ID_CHARACTERS,
    account_columns,
    at_column,
    id_column,
    metadata,
    text_column,
)

# One row per journal handed out. Proposed ones stand in the result of their run only.
exported_journal = Table(
    "exported_journal",
    metadata,
    id_column("journal_id", primary_key=True),
    *account_columns(),
    id_column("break_id"),
    text_column("currency", 3),
    Column("version", Integer, nullable=False),
    id_column("run_id"),  # whose proposal it was
    at_column("exported_at", nullable=False),
    text_column("booked_in", ID_CHARACTERS),  # the run whose ledger showed it; "" until then
)
