"""Ledger entries as a run read them."""

from sqlalchemy import Column, Integer, String, Table

from recon.store.schema.columns import (
    ID_CHARACTERS,
    account_columns,
    amount_column,
    at_column,
    id_column,
    metadata,
    text_column,
)

# One row per ledger entry as the run read it.
ledger_entry = Table(
    "ledger_entry",
    metadata,
    id_column("run_id", primary_key=True),
    Column("position", Integer, primary_key=True),
    text_column("entry_id", ID_CHARACTERS),
    *account_columns(),
    text_column("order_no", ID_CHARACTERS),
    text_column("entry_type", 30),
    Column("currency", String(3), nullable=False),
    amount_column("amount"),
    at_column("booked_at", nullable=False),
    text_column("transaction_id", ID_CHARACTERS),
    text_column("reference_no"),
    text_column("reverses_entry_id", ID_CHARACTERS),
    text_column("transaction_currency", 3),
    amount_column("transaction_amount", nullable=True),
    text_column("source"),
    Column("line", Integer, nullable=False),
)
