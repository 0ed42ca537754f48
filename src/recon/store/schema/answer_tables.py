"""What was asked of the gateway and what its answers showed."""

from sqlalchemy import Column, Index, Integer, String, Table, Text

from recon.store.schema.columns import (
    ID_CHARACTERS,
    REASON_CHARACTERS,
    account_columns,
    amount_column,
    at_column,
    id_column,
    metadata,
    text_column,
)

# One row per key that a run asked the gateway for, and phase (baseline, after, or the baseline of
# another account of the merchant).
query_key = Table(
    "query_key",
    metadata,
    id_column("run_id", primary_key=True),
    Column("phase", String(80), primary_key=True),
    id_column("order_no", primary_key=True),
    text_column("answer", 20),  # found, not_found, failed; "" while it is not answered
    text_column("reason", REASON_CHARACTERS),
    at_column("answered_at"),
)

# One row per payment that an answer showed.
observation = Table(
    "observation",
    metadata,
    Column("observation_id", Integer, primary_key=True),
    id_column("run_id"),
    Column("phase", String(80), nullable=False),
    *account_columns(),
    id_column("order_no"),
    text_column("transaction_id", ID_CHARACTERS),
    Column("currency", String(3), nullable=False),
    amount_column("amount"),
    text_column("payment_status", 20),
    text_column("query_result", 20),
    text_column("reference_no"),
    at_column("transaction_date"),
    at_column("queried_at", nullable=False),
    Column("detail", Text, nullable=False, server_default="{}"),
    Index("ix_observation_run", "run_id", "phase"),
    Index("ix_observation_key", "merchant_id", "account_id", "order_no"),
)
