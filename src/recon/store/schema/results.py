"""What a run's reconciliation came to."""

from sqlalchemy import BigInteger, Column, Integer, String, Table, Text

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

# One row per set of a run: match, pending, break or unverified.
result_row = Table(
    "result_row",
    metadata,
    id_column("run_id", primary_key=True),
    Column("section", String(12), primary_key=True),
    Column("position", Integer, primary_key=True),
    text_column("id", ID_CHARACTERS),
    *account_columns(),
    text_column("code", 40),
    text_column("flags", 1000),
    text_column("order_no", ID_CHARACTERS),
    text_column("transaction_id", ID_CHARACTERS),
    text_column("entry_id", ID_CHARACTERS),
    text_column("rule", 40),
    text_column("state_orders", 24),
    text_column("state_gateway", 24),
    text_column("currency", 3),
    amount_column("order_amount", nullable=True),
    amount_column("gateway_amount", nullable=True),
    amount_column("ledger_amount", nullable=True),
    amount_column("effect_orders", nullable=True),
    amount_column("effect_ledger", nullable=True),
    amount_column("bank_amount", nullable=True),
    amount_column("effect_bank", nullable=True),
    amount_column("exposure", nullable=True),
    text_column("owed_to", 12),
    Column("age_days", Integer, nullable=True),
    text_column("first_seen", 10),
    text_column("severity", 12),
    text_column("cause", REASON_CHARACTERS),
    text_column("reason", 1000),
    text_column("expected_side", 20),
    at_column("due_at"),
)

# One row per break, leg and currency.
result_effect = Table(
    "result_effect",
    metadata,
    id_column("run_id", primary_key=True),
    Column("position", Integer, primary_key=True),
    text_column("break_id", ID_CHARACTERS),
    *account_columns(),
    text_column("leg", 12),
    text_column("currency", 3),
    amount_column("amount"),
)

# One row per equation of a run's proof.
control_total = Table(
    "control_total",
    metadata,
    id_column("run_id", primary_key=True),
    Column("position", Integer, primary_key=True),
    text_column("id", 8),
    text_column("name"),
    text_column("merchant_id", ID_CHARACTERS),
    text_column("account_id", ID_CHARACTERS),
    text_column("currency", 3),
    text_column("measure", 10),
    Column("left", BigInteger, nullable=False),
    Column("right", BigInteger, nullable=False),
)

# One row per run: everything else of a result, as JSON (sides, scope of assurance, notes).
result_summary = Table(
    "result_summary",
    metadata,
    id_column("run_id", primary_key=True),
    Column("document", Text, nullable=False),
)
