"""The tables: one row's grain stands beside each. Money is BIGINT minor units + currency.

Instants are UTC. Text columns hold "" for "not given". Everything a night did can be rebuilt from
here; `history` is append-only and hash-chained (see `history`).
"""

from datetime import UTC, datetime
from typing import Any

from sqlalchemy import (
    BigInteger,
    Column,
    DateTime,
    Dialect,
    ForeignKey,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    String,
    Table,
    Text,
    TypeDecorator,
    UniqueConstraint,
    text,
)

ID_CHARACTERS = 64
NAME_CHARACTERS = 255
REASON_CHARACTERS = 400


class Instant(TypeDecorator[datetime]):
    """An instant with a zone, stored in UTC on every database."""

    impl = DateTime(timezone=True)
    cache_ok = True

    def process_bind_param(self, value: datetime | None, dialect: Dialect) -> datetime | None:
        """UTC going in; SQLite keeps no zone."""
        if value is None:
            return None
        moved = value.astimezone(UTC)
        return moved.replace(tzinfo=None) if dialect.name == "sqlite" else moved

    def process_result_value(self, value: datetime | None, dialect: Dialect) -> datetime | None:  # noqa: ARG002 - signature of TypeDecorator
        """UTC coming out."""
        if value is None:
            return None
        return value.replace(tzinfo=UTC) if value.tzinfo is None else value.astimezone(UTC)


metadata = MetaData(
    naming_convention={
        "ix": "ix_%(table_name)s_%(column_0_N_name)s",
        "uq": "uq_%(table_name)s_%(column_0_N_name)s",
        "fk": "fk_%(table_name)s_%(column_0_N_name)s",
        "pk": "pk_%(table_name)s",
    }
)


def _id(name: str, **options: Any) -> Column[str]:
    return Column(name, String(ID_CHARACTERS), nullable=False, **options)


def _text(name: str, length: int = NAME_CHARACTERS) -> Column[str]:
    return Column(name, String(length), nullable=False, server_default="")


def _amount(name: str, *, nullable: bool = False) -> Column[int]:
    return Column(name, BigInteger, nullable=nullable)


def _count(name: str) -> Column[int]:
    return Column(name, Integer, nullable=False, server_default="0")


def _at(name: str, *, nullable: bool = True) -> Column[datetime]:
    return Column(name, Instant, nullable=nullable)


def _account() -> tuple[Column[str], Column[str]]:
    return _id("merchant_id"), _id("account_id")


# One row per run of a night (merchant, account, business date).
run = Table(
    "run",
    metadata,
    _id("run_id", primary_key=True),
    *_account(),
    Column("business_date", String(10), nullable=False),
    Column("mode", String(10), nullable=False),
    Column("status", String(10), nullable=False),  # active, finished, stopped
    _text("step", 20),  # last step that was finished
    _text("owner"),  # host, process id and its start time, for the sentence that names the holder
    _at("started_at", nullable=False),
    _at("finished_at"),
    _at("as_of", nullable=False),
    _text("verdict", 20),
    _text("rules_digest"),
    _text("result_digest"),
    _text("workbook", 1000),
    _text("workbook_sha256"),
    _text("history_head"),
    _text("problem", REASON_CHARACTERS),
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
    *_account(),
    Column("business_date", String(10), nullable=False),
    _id("run_id"),
    _text("name"),
    Column("version", Integer, nullable=False),
    _text("sha256"),
    Column("size_bytes", BigInteger, nullable=False),
    _count("rows_read"),
    _count("rows_accepted"),
    _count("rows_rejected"),
    _count("rows_skipped"),
    _count("rows_unassigned"),
    _count("rows_new"),
    _count("rows_repeat"),
    _count("rows_superseding"),
    _at("read_at", nullable=False),
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
    *_account(),
    _id("order_no"),
    _text("content_sha256"),
    Column("currency", String(3), nullable=False),
    _amount("amount"),
    _text("status", 20),
    _at("ordered_at", nullable=False),
    _text("transaction_id", ID_CHARACTERS),
    _amount("expected_captured_amount", nullable=True),
    _amount("refund_amount", nullable=True),
    _at("updated_at"),
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
    *_account(),
    _id("order_no"),
    _text("transaction_id", ID_CHARACTERS),
    _text("action", 20),
    Column("currency", String(3), nullable=False),
    _amount("amount"),  # of the order
    _amount("action_amount", nullable=True),
    _text("action_reason", 50),
    _text("request_id", ID_CHARACTERS),
    Column("occurrence", Integer, nullable=False),  # of equal actions within one file
    _text("instruction_id", ID_CHARACTERS),  # what it became; "" until it is planned
)

# One row per row of a source that could not be read.
reject = Table(
    "reject",
    metadata,
    Column("reject_id", Integer, primary_key=True),
    Column("file_id", Integer, ForeignKey("order_file.file_id"), nullable=True),
    _id("run_id"),
    _text("kind", 20),
    _text("source"),
    Column("line", Integer, nullable=False),
    _text("column", 100),
    _text("reason", REASON_CHARACTERS),
    _text("value", REASON_CHARACTERS),
    _text("merchant_id", ID_CHARACTERS),
    _text("account_id", ID_CHARACTERS),
    _text("order_no", ID_CHARACTERS),
)

# One row per key that a run asked the gateway for, and phase (baseline, after).
query_key = Table(
    "query_key",
    metadata,
    _id("run_id", primary_key=True),
    Column("phase", String(10), primary_key=True),
    _id("order_no", primary_key=True),
    _text("answer", 20),  # found, not_found, failed; "" while it is not answered
    _text("reason", REASON_CHARACTERS),
    _at("answered_at"),
)

# One row per payment that an answer showed.
observation = Table(
    "observation",
    metadata,
    Column("observation_id", Integer, primary_key=True),
    _id("run_id"),
    Column("phase", String(10), nullable=False),
    *_account(),
    _id("order_no"),
    _text("transaction_id", ID_CHARACTERS),
    Column("currency", String(3), nullable=False),
    _amount("amount"),
    _text("payment_status", 20),
    _text("query_result", 20),
    _text("reference_no"),
    _at("transaction_date"),
    _at("queried_at", nullable=False),
    Column("detail", Text, nullable=False, server_default="{}"),
    Index("ix_observation_run", "run_id", "phase"),
    Index("ix_observation_key", "merchant_id", "account_id", "order_no"),
)

# One row per ledger entry as the run read it.
ledger_entry = Table(
    "ledger_entry",
    metadata,
    _id("run_id", primary_key=True),
    Column("position", Integer, primary_key=True),
    _text("entry_id", ID_CHARACTERS),
    *_account(),
    _text("order_no", ID_CHARACTERS),
    _text("entry_type", 30),
    Column("currency", String(3), nullable=False),
    _amount("amount"),
    _at("booked_at", nullable=False),
    _text("transaction_id", ID_CHARACTERS),
    _text("reference_no"),
    _text("reverses_entry_id", ID_CHARACTERS),
    _text("transaction_currency", 3),
    _amount("transaction_amount", nullable=True),
    _text("source"),
    Column("line", Integer, nullable=False),
)

# One row per source other than order files that a run read (the ledger).
run_source = Table(
    "run_source",
    metadata,
    _id("run_id", primary_key=True),
    Column("kind", String(20), primary_key=True),
    _text("name"),
    _text("sha256"),
    Column("size_bytes", BigInteger, nullable=False),
    _count("rows_read"),
    _count("rows_accepted"),
    _count("rows_rejected"),
    _count("rows_skipped"),
    _count("rows_unassigned"),
)

# One row per intended money movement.
instruction = Table(
    "instruction",
    metadata,
    _id("instruction_id", primary_key=True),
    _text("natural_key", 400),
    *_account(),
    Column("kind", String(20), nullable=False),
    _id("order_no"),
    _text("transaction_id", ID_CHARACTERS),
    Column("currency", String(3), nullable=False),
    _amount("amount"),  # what moves: captured, refunded, cancelled
    _amount("payment_amount"),  # the payment's own amount, as the gateway wants it beside
    _text("reason", 50),
    _text("request_id", ID_CHARACTERS),
    Column("file_id", Integer, nullable=True),
    Column("line", Integer, nullable=False, server_default="0"),
    Column("state", String(24), nullable=False),
    _text("hold", REASON_CHARACTERS),  # why it waits for a person; "" when nothing holds it
    _count("attempts"),
    _text("batch_id", ID_CHARACTERS),  # of the last attempt
    _text("outcome", 20),
    _text("code", 40),
    _text("message", REASON_CHARACTERS),
    _text("refund_reference_id", ID_CHARACTERS),
    _text("baseline_status", 20),  # payment_status before the first attempt
    _text("approved_by"),
    _id("run_id"),  # that planned it
    _at("planned_at", nullable=False),
    _at("approved_at"),
    _at("sent_at"),
    _at("outcome_at"),
    _at("in_doubt_since"),
    UniqueConstraint("natural_key"),
    Index("ix_instruction_state", "merchant_id", "account_id", "state"),
)

# One row per request that moves money. Written, with its body's hash, before the first byte.
batch = Table(
    "batch",
    metadata,
    _id("batch_id", primary_key=True),
    _id("run_id"),
    *_account(),
    Column("kind", String(20), nullable=False),
    _count("rows"),
    Column("state", String(12), nullable=False),  # claimed, replied, closed
    _text("body_sha256"),
    Column("body", LargeBinary, nullable=False),
    _at("claimed_at", nullable=False),
    _at("replied_at"),
    _at("closed_at"),
    Column("http_status", Integer, nullable=True),
    Column("reply_headers", Text, nullable=False, server_default="{}"),
    Column("reply", LargeBinary, nullable=True),  # card numbers masked
    _text("reply_sha256"),  # of the bytes as received
    _text("return_status", 20),
    _text("message", REASON_CHARACTERS),
    Index("ix_batch_open", "merchant_id", "account_id", "state"),
)

# One row per instruction in a batch.
attempt = Table(
    "attempt",
    metadata,
    _id("batch_id", primary_key=True),
    Column("position", Integer, primary_key=True),
    Column("instruction_id", ForeignKey("instruction.instruction_id"), nullable=False),
    Column("number", Integer, nullable=False),
    _text("outcome", 20),
    _text("code", 40),
    _text("message", REASON_CHARACTERS),
    UniqueConstraint("instruction_id", "number"),
)

# One row per event, chained: hash = SHA-256(previous hash, canonical row). Never changed.
history = Table(
    "history",
    metadata,
    Column("sequence", BigInteger, primary_key=True, autoincrement=False),
    _at("at", nullable=False),
    _text("entity", 20),  # instruction, batch, run
    _text("entity_id", ID_CHARACTERS),
    _text("event", 40),
    Column("data", Text, nullable=False),
    _text("previous_hash"),
    _text("hash"),
)

# One row per set of a run: match, pending, break or unverified.
result_row = Table(
    "result_row",
    metadata,
    _id("run_id", primary_key=True),
    Column("section", String(12), primary_key=True),
    Column("position", Integer, primary_key=True),
    _text("id", ID_CHARACTERS),
    *_account(),
    _text("code", 40),
    _text("flags", 1000),
    _text("order_no", ID_CHARACTERS),
    _text("transaction_id", ID_CHARACTERS),
    _text("entry_id", ID_CHARACTERS),
    _text("rule", 40),
    _text("state_orders", 24),
    _text("state_gateway", 24),
    _text("currency", 3),
    _amount("order_amount", nullable=True),
    _amount("gateway_amount", nullable=True),
    _amount("ledger_amount", nullable=True),
    _amount("effect_orders", nullable=True),
    _amount("effect_ledger", nullable=True),
    _amount("exposure", nullable=True),
    _text("owed_to", 12),
    Column("age_days", Integer, nullable=True),
    _text("first_seen", 10),
    _text("severity", 12),
    _text("cause", REASON_CHARACTERS),
    _text("reason", 1000),
    _text("expected_side", 20),
    _at("due_at"),
)

# One row per break, leg and currency.
result_effect = Table(
    "result_effect",
    metadata,
    _id("run_id", primary_key=True),
    Column("position", Integer, primary_key=True),
    _text("break_id", ID_CHARACTERS),
    *_account(),
    _text("leg", 12),
    _text("currency", 3),
    _amount("amount"),
)

# One row per equation of a run's proof.
control_total = Table(
    "control_total",
    metadata,
    _id("run_id", primary_key=True),
    Column("position", Integer, primary_key=True),
    _text("id", 8),
    _text("name"),
    _text("merchant_id", ID_CHARACTERS),
    _text("account_id", ID_CHARACTERS),
    _text("currency", 3),
    _text("measure", 10),
    Column("left", BigInteger, nullable=False),
    Column("right", BigInteger, nullable=False),
)

# One row per run: everything else of a result, as JSON (sides, scope of assurance, notes).
result_summary = Table(
    "result_summary",
    metadata,
    _id("run_id", primary_key=True),
    Column("document", Text, nullable=False),
)
