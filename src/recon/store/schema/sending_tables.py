"""Whether money may be sent at all, and what a dry run would have sent."""

from sqlalchemy import BigInteger, Boolean, Column, Integer, String, Table

from recon.store.schema.columns import (
    REASON_CHARACTERS,
    amount_column,
    at_column,
    count_column,
    id_column,
    metadata,
    text_column,
)

# One row per turn of the switch that stops all sending; the newest holds, none means allowed.
sending_switch = Table(
    "sending_switch",
    metadata,
    Column("turn", BigInteger, primary_key=True, autoincrement=False),
    Column("stopped", Boolean, nullable=False),
    text_column("turned_by", 100),
    text_column("reason", REASON_CHARACTERS),
    at_column("at", nullable=False),
)

# One row per batch and currency that a dry run would have sent, in the order of sending.
dry_batch = Table(
    "dry_batch",
    metadata,
    id_column("run_id", primary_key=True),
    Column("position", Integer, primary_key=True),
    Column("currency", String(3), primary_key=True),
    Column("kind", String(20), nullable=False),
    count_column("rows"),
    amount_column("amount"),
)
