"""What the gateway told by itself, and what claimed to come from it and was refused."""

from sqlalchemy import Column, Index, Integer, String, Table, Text, UniqueConstraint

from recon.store.schema.columns import (
    ID_CHARACTERS,
    REASON_CHARACTERS,
    account_columns,
    amount_column,
    at_column,
    metadata,
    text_column,
)

# One row per verified message of an account; its repeats only count up. Of what the signature does
# not cover several may say different things, since whoever holds one message can write another.
notification = Table(
    "notification",
    metadata,
    Column("notification_id", Integer, primary_key=True),
    *account_columns(),
    text_column("kind", 40),
    Column("identity_sha256", String(64), nullable=False),  # what it is about, and which stage
    Column("sha256", String(64), nullable=False),  # of all its kept fields, canonical
    text_column("order_no", ID_CHARACTERS),
    text_column("transaction_id", ID_CHARACTERS),
    text_column("currency", 3),
    amount_column("amount", nullable=True),  # of the refund where it tells of one
    text_column("status", 20),
    Column("fields", Text, nullable=False, server_default="{}"),  # JSON, allow-listed names only
    at_column("received_at", nullable=False),
    at_column("repeated_at"),
    Column("times", Integer, nullable=False, server_default="1"),
    UniqueConstraint("merchant_id", "account_id", "identity_sha256", "sha256"),
    Index("ix_notification_transaction", "merchant_id", "account_id", "transaction_id"),
)

# One row per refused message and reason: forged, contradicting or malformed.
notification_case = Table(
    "notification_case",
    metadata,
    Column("case_id", Integer, primary_key=True),
    *account_columns(),
    text_column("problem", 20),
    text_column("reason", REASON_CHARACTERS),
    Column("body_sha256", String(64), nullable=False),
    Column("fields", Text, nullable=False, server_default="{}"),  # JSON, allow-listed names only
    at_column("received_at", nullable=False),
    Column("times", Integer, nullable=False, server_default="1"),
    UniqueConstraint("merchant_id", "account_id", "problem", "body_sha256"),
)
