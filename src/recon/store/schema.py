"""The tables: one row's grain stands beside each. Money is BIGINT minor units + currency.

Instants are UTC. Text columns hold "" for "not given". Everything a night did can be rebuilt from
here; `history` is append-only and hash-chained (see `history`).
"""

from sqlalchemy import (
    BigInteger,
    Column,
    ForeignKey,
    Index,
    Integer,
    LargeBinary,
    String,
    Table,
    Text,
    UniqueConstraint,
    text,
)

from recon.store.columns import (
    ID_CHARACTERS,
    REASON_CHARACTERS,
    account_columns,
    amount_column,
    at_column,
    count_column,
    id_column,
    metadata,
    text_column,
)

# One row per run of a night (merchant, account, business date).
run = Table(
    "run",
    metadata,
    id_column("run_id", primary_key=True),
    *account_columns(),
    Column("business_date", String(10), nullable=False),
    Column("mode", String(10), nullable=False),
    Column("status", String(10), nullable=False),  # active, finished, stopped
    text_column("step", 20),  # last step that was finished
    text_column(
        "owner"
    ),  # host, process id and its start time, for the sentence that names the holder
    at_column("started_at", nullable=False),
    at_column("finished_at"),
    at_column("as_of", nullable=False),
    text_column("verdict", 20),
    text_column("rules_digest"),
    text_column("result_digest"),
    text_column("workbook", 1000),
    text_column("workbook_sha256"),
    text_column("history_head"),
    text_column("problem", REASON_CHARACTERS),
    Index(
        "uq_run_active",
        "merchant_id",
        "account_id",
        "business_date",
        unique=True,
        sqlite_where=text("status = 'active'"),
        postgresql_where=text("status = 'active'"),
    ),
    Index("ix_run_night", "merchant_id", "account_id", "business_date"),
)

# One row per order file content of a merchant's inbox.
order_file = Table(
    "order_file",
    metadata,
    Column("file_id", Integer, primary_key=True),
    *account_columns(),
    Column("business_date", String(10), nullable=False),
    id_column("run_id"),
    text_column("name"),
    Column("version", Integer, nullable=False),
    text_column("sha256"),
    Column("size_bytes", BigInteger, nullable=False),
    count_column("rows_read"),
    count_column("rows_accepted"),
    count_column("rows_rejected"),
    count_column("rows_skipped"),
    count_column("rows_unassigned"),
    count_column("rows_new"),
    count_column("rows_repeat"),
    count_column("rows_superseding"),
    at_column("read_at", nullable=False),
    UniqueConstraint("merchant_id", "account_id", "sha256"),
    UniqueConstraint("merchant_id", "account_id", "name", "version"),
)

# One row per accepted and different content of an order key; the current ones have no successor.
order_row = Table(
    "order_row",
    metadata,
    Column("row_id", Integer, primary_key=True),
    Column("file_id", Integer, ForeignKey("order_file.file_id"), nullable=False),
    Column("line", Integer, nullable=False),
    *account_columns(),
    id_column("order_no"),
    text_column("content_sha256"),
    Column("currency", String(3), nullable=False),
    amount_column("amount"),
    text_column("status", 20),
    at_column("ordered_at", nullable=False),
    text_column("transaction_id", ID_CHARACTERS),
    amount_column("expected_captured_amount", nullable=True),
    amount_column("refund_amount", nullable=True),
    at_column("updated_at"),
    Column("superseded_in", Integer, nullable=True),  # the file whose row took its place
    Index("ix_order_row_key", "merchant_id", "account_id", "order_no"),
)

# One row per action that an order file row carries.
order_action = Table(
    "order_action",
    metadata,
    Column("action_id", Integer, primary_key=True),
    Column("file_id", Integer, ForeignKey("order_file.file_id"), nullable=False),
    Column("line", Integer, nullable=False),
    *account_columns(),
    id_column("order_no"),
    text_column("transaction_id", ID_CHARACTERS),
    text_column("action", 20),
    Column("currency", String(3), nullable=False),
    amount_column("amount"),  # of the order
    amount_column("action_amount", nullable=True),
    text_column("action_reason", 50),
    text_column("request_id", ID_CHARACTERS),
    Column("occurrence", Integer, nullable=False),  # of equal actions within one file
    text_column("instruction_id", ID_CHARACTERS),  # what it became; "" until it is planned
)

# One row per row of a source that could not be read.
reject = Table(
    "reject",
    metadata,
    Column("reject_id", Integer, primary_key=True),
    Column("file_id", Integer, ForeignKey("order_file.file_id"), nullable=True),
    id_column("run_id"),
    text_column("kind", 20),
    text_column("source"),
    Column("line", Integer, nullable=False),
    text_column("column", 100),
    text_column("reason", REASON_CHARACTERS),
    text_column("value", REASON_CHARACTERS),
    text_column("merchant_id", ID_CHARACTERS),
    text_column("account_id", ID_CHARACTERS),
    text_column("order_no", ID_CHARACTERS),
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

# One row per source other than order files that a run read (the ledger).
run_source = Table(
    "run_source",
    metadata,
    id_column("run_id", primary_key=True),
    Column("kind", String(20), primary_key=True),
    text_column("name"),
    text_column("sha256"),
    Column("size_bytes", BigInteger, nullable=False),
    count_column("rows_read"),
    count_column("rows_accepted"),
    count_column("rows_rejected"),
    count_column("rows_skipped"),
    count_column("rows_unassigned"),
)

# One row per intended money movement.
instruction = Table(
    "instruction",
    metadata,
    id_column("instruction_id", primary_key=True),
    text_column("natural_key", 400),
    *account_columns(),
    Column("kind", String(20), nullable=False),
    id_column("order_no"),
    text_column("transaction_id", ID_CHARACTERS),
    Column("currency", String(3), nullable=False),
    amount_column("amount"),  # what moves: captured, refunded, cancelled
    amount_column("payment_amount"),  # the payment's own amount, as the gateway wants it beside
    text_column("reason", 50),
    text_column("request_id", ID_CHARACTERS),
    Column("file_id", Integer, nullable=True),
    Column("line", Integer, nullable=False, server_default="0"),
    Column("state", String(24), nullable=False),
    text_column("hold", REASON_CHARACTERS),  # why it waits for a person; "" when nothing holds it
    count_column("attempts"),
    text_column("batch_id", ID_CHARACTERS),  # of the last attempt
    text_column("outcome", 20),
    text_column("code", 40),
    text_column("message", REASON_CHARACTERS),
    text_column("refund_reference_id", ID_CHARACTERS),
    text_column("baseline_status", 20),  # payment_status before the first attempt
    text_column("approved_by"),
    id_column("run_id"),  # that planned it
    at_column("planned_at", nullable=False),
    at_column("approved_at"),
    at_column("sent_at"),
    at_column("outcome_at"),
    at_column("in_doubt_since"),
    UniqueConstraint("natural_key"),
    Index("ix_instruction_state", "merchant_id", "account_id", "state"),
)

# One row per request that moves money. Written, with its body's hash, before the first byte.
batch = Table(
    "batch",
    metadata,
    id_column("batch_id", primary_key=True),
    id_column("run_id"),
    *account_columns(),
    Column("kind", String(20), nullable=False),
    count_column("rows"),
    Column("state", String(12), nullable=False),  # claimed, replied, closed
    text_column("body_sha256"),
    Column("body", LargeBinary, nullable=False),
    at_column("claimed_at", nullable=False),
    at_column("replied_at"),
    at_column("closed_at"),
    Column("http_status", Integer, nullable=True),
    Column("reply_headers", Text, nullable=False, server_default="{}"),
    Column("reply", LargeBinary, nullable=True),  # card numbers masked
    text_column("reply_sha256"),  # of the bytes as received
    text_column("return_status", 20),
    text_column("message", REASON_CHARACTERS),
    Index("ix_batch_open", "merchant_id", "account_id", "state"),
)

# One row per instruction in a batch.
attempt = Table(
    "attempt",
    metadata,
    id_column("batch_id", primary_key=True),
    Column("position", Integer, primary_key=True),
    Column("instruction_id", ForeignKey("instruction.instruction_id"), nullable=False),
    Column("number", Integer, nullable=False),
    text_column("outcome", 20),
    text_column("code", 40),
    text_column("message", REASON_CHARACTERS),
    UniqueConstraint("instruction_id", "number"),
)

# One row per event, chained: hash = SHA-256(previous hash, canonical row). Never changed.
history = Table(
    "history",
    metadata,
    Column("sequence", BigInteger, primary_key=True, autoincrement=False),
    at_column("at", nullable=False),
    text_column("entity", 20),  # instruction, batch, run
    text_column("entity_id", ID_CHARACTERS),
    text_column("event", 40),
    Column("data", Text, nullable=False),
    text_column("previous_hash"),
    text_column("hash"),
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
