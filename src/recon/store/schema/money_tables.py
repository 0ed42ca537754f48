"""Instructions, the batches that carry them, and the chained history of both."""

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
)

from recon.store.schema.columns import (
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
    text_column("review_flag", 20),
    text_column("recurring_id", ID_CHARACTERS),
    text_column("contract_name"),
    text_column("payee", 80),  # as people may see it
    text_column("payee_digest", 64),
    text_column("again_for", ID_CHARACTERS),  # the first of two captures; "" for all others
    Column("repeats", Text, nullable=False, server_default=""),  # ids of its like, with spaces
    text_column("gateway_request_id", ID_CHARACTERS),  # of a payout; kept for ever
    Column("sealed", Text, nullable=False, server_default=""),  # encrypted; "" once it is final
    UniqueConstraint("natural_key"),
    Index("ix_instruction_state", "merchant_id", "account_id", "state"),
    Index("ix_instruction_payment", "merchant_id", "account_id", "transaction_id"),
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
    Index("ix_history_entity_id", "entity_id", "sequence"),
)
