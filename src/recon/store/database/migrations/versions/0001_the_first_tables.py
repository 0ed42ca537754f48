"""The first tables, and the triggers that keep the history append-only."""

import sqlalchemy as sa
from alembic import op

from recon.store.schema.columns import Instant

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "batch",
        sa.Column("batch_id", sa.String(length=64), nullable=False),
        sa.Column("run_id", sa.String(length=64), nullable=False),
        sa.Column("merchant_id", sa.String(length=64), nullable=False),
        sa.Column("account_id", sa.String(length=64), nullable=False),
        sa.Column("kind", sa.String(length=20), nullable=False),
        sa.Column("rows", sa.Integer(), server_default="0", nullable=False),
        sa.Column("state", sa.String(length=12), nullable=False),
        sa.Column("body_sha256", sa.String(length=255), server_default="", nullable=False),
        sa.Column("body", sa.LargeBinary(), nullable=False),
        sa.Column("claimed_at", Instant(), nullable=False),
        sa.Column("replied_at", Instant(), nullable=True),
        sa.Column("closed_at", Instant(), nullable=True),
        sa.Column("http_status", sa.Integer(), nullable=True),
        sa.Column("reply_headers", sa.Text(), server_default="{}", nullable=False),
        sa.Column("reply", sa.LargeBinary(), nullable=True),
        sa.Column("reply_sha256", sa.String(length=255), server_default="", nullable=False),
        sa.Column("return_status", sa.String(length=20), server_default="", nullable=False),
        sa.Column("message", sa.String(length=400), server_default="", nullable=False),
        sa.PrimaryKeyConstraint("batch_id", name=op.f("pk_batch")),
    )
    op.create_index("ix_batch_open", "batch", ["merchant_id", "account_id", "state"], unique=False)

    op.create_table(
        "control_total",
        sa.Column("run_id", sa.String(length=64), nullable=False),
        sa.Column("position", sa.Integer(), nullable=False),
        sa.Column("id", sa.String(length=8), server_default="", nullable=False),
        sa.Column("name", sa.String(length=255), server_default="", nullable=False),
        sa.Column("merchant_id", sa.String(length=64), server_default="", nullable=False),
        sa.Column("account_id", sa.String(length=64), server_default="", nullable=False),
        sa.Column("currency", sa.String(length=3), server_default="", nullable=False),
        sa.Column("measure", sa.String(length=10), server_default="", nullable=False),
        sa.Column("left", sa.BigInteger(), nullable=False),
        sa.Column("right", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("run_id", "position", name=op.f("pk_control_total")),
    )
    op.create_table(
        "history",
        sa.Column("sequence", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("at", Instant(), nullable=False),
        sa.Column("entity", sa.String(length=20), server_default="", nullable=False),
        sa.Column("entity_id", sa.String(length=64), server_default="", nullable=False),
        sa.Column("event", sa.String(length=40), server_default="", nullable=False),
        sa.Column("data", sa.Text(), nullable=False),
        sa.Column("previous_hash", sa.String(length=255), server_default="", nullable=False),
        sa.Column("hash", sa.String(length=255), server_default="", nullable=False),
        sa.PrimaryKeyConstraint("sequence", name=op.f("pk_history")),
    )
    op.create_table(
        "instruction",
        sa.Column("instruction_id", sa.String(length=64), nullable=False),
        sa.Column("natural_key", sa.String(length=400), server_default="", nullable=False),
        sa.Column("merchant_id", sa.String(length=64), nullable=False),
        sa.Column("account_id", sa.String(length=64), nullable=False),
        sa.Column("kind", sa.String(length=20), nullable=False),
        sa.Column("order_no", sa.String(length=64), nullable=False),
        sa.Column("transaction_id", sa.String(length=64), server_default="", nullable=False),
        sa.Column("currency", sa.String(length=3), nullable=False),
        sa.Column("amount", sa.BigInteger(), nullable=False),
        sa.Column("payment_amount", sa.BigInteger(), nullable=False),
        sa.Column("reason", sa.String(length=50), server_default="", nullable=False),
        sa.Column("request_id", sa.String(length=64), server_default="", nullable=False),
        sa.Column("file_id", sa.Integer(), nullable=True),
        sa.Column("line", sa.Integer(), server_default="0", nullable=False),
        sa.Column("state", sa.String(length=24), nullable=False),
        sa.Column("hold", sa.String(length=400), server_default="", nullable=False),
        sa.Column("attempts", sa.Integer(), server_default="0", nullable=False),
        sa.Column("batch_id", sa.String(length=64), server_default="", nullable=False),
        sa.Column("outcome", sa.String(length=20), server_default="", nullable=False),
        sa.Column("code", sa.String(length=40), server_default="", nullable=False),
        sa.Column("message", sa.String(length=400), server_default="", nullable=False),
        sa.Column("refund_reference_id", sa.String(length=64), server_default="", nullable=False),
        sa.Column("baseline_status", sa.String(length=20), server_default="", nullable=False),
        sa.Column("approved_by", sa.String(length=255), server_default="", nullable=False),
        sa.Column("run_id", sa.String(length=64), nullable=False),
        sa.Column("planned_at", Instant(), nullable=False),
        sa.Column("approved_at", Instant(), nullable=True),
        sa.Column("sent_at", Instant(), nullable=True),
        sa.Column("outcome_at", Instant(), nullable=True),
        sa.Column("in_doubt_since", Instant(), nullable=True),
        sa.PrimaryKeyConstraint("instruction_id", name=op.f("pk_instruction")),
        sa.UniqueConstraint("natural_key", name=op.f("uq_instruction_natural_key")),
    )
    op.create_index(
        "ix_instruction_state", "instruction", ["merchant_id", "account_id", "state"], unique=False
    )

    op.create_table(
        "ledger_entry",
        sa.Column("run_id", sa.String(length=64), nullable=False),
        sa.Column("position", sa.Integer(), nullable=False),
        sa.Column("entry_id", sa.String(length=64), server_default="", nullable=False),
        sa.Column("merchant_id", sa.String(length=64), nullable=False),
        sa.Column("account_id", sa.String(length=64), nullable=False),
        sa.Column("order_no", sa.String(length=64), server_default="", nullable=False),
        sa.Column("entry_type", sa.String(length=30), server_default="", nullable=False),
        sa.Column("currency", sa.String(length=3), nullable=False),
        sa.Column("amount", sa.BigInteger(), nullable=False),
        sa.Column("booked_at", Instant(), nullable=False),
        sa.Column("transaction_id", sa.String(length=64), server_default="", nullable=False),
        sa.Column("reference_no", sa.String(length=255), server_default="", nullable=False),
        sa.Column("reverses_entry_id", sa.String(length=64), server_default="", nullable=False),
        sa.Column("transaction_currency", sa.String(length=3), server_default="", nullable=False),
        sa.Column("transaction_amount", sa.BigInteger(), nullable=True),
        sa.Column("source", sa.String(length=255), server_default="", nullable=False),
        sa.Column("line", sa.Integer(), nullable=False),
        sa.PrimaryKeyConstraint("run_id", "position", name=op.f("pk_ledger_entry")),
    )
    op.create_table(
        "observation",
        sa.Column("observation_id", sa.Integer(), nullable=False),
        sa.Column("run_id", sa.String(length=64), nullable=False),
        sa.Column("phase", sa.String(length=80), nullable=False),
        sa.Column("merchant_id", sa.String(length=64), nullable=False),
        sa.Column("account_id", sa.String(length=64), nullable=False),
        sa.Column("order_no", sa.String(length=64), nullable=False),
        sa.Column("transaction_id", sa.String(length=64), server_default="", nullable=False),
        sa.Column("currency", sa.String(length=3), nullable=False),
        sa.Column("amount", sa.BigInteger(), nullable=False),
        sa.Column("payment_status", sa.String(length=20), server_default="", nullable=False),
        sa.Column("query_result", sa.String(length=20), server_default="", nullable=False),
        sa.Column("reference_no", sa.String(length=255), server_default="", nullable=False),
        sa.Column("transaction_date", Instant(), nullable=True),
        sa.Column("queried_at", Instant(), nullable=False),
        sa.Column("detail", sa.Text(), server_default="{}", nullable=False),
        sa.PrimaryKeyConstraint("observation_id", name=op.f("pk_observation")),
    )
    op.create_index(
        "ix_observation_key", "observation", ["merchant_id", "account_id", "order_no"], unique=False
    )
    op.create_index("ix_observation_run", "observation", ["run_id", "phase"], unique=False)

    op.create_table(
        "order_file",
        sa.Column("file_id", sa.Integer(), nullable=False),
        sa.Column("merchant_id", sa.String(length=64), nullable=False),
        sa.Column("account_id", sa.String(length=64), nullable=False),
        sa.Column("business_date", sa.String(length=10), nullable=False),
        sa.Column("run_id", sa.String(length=64), nullable=False),
        sa.Column("name", sa.String(length=255), server_default="", nullable=False),
        sa.Column("version", sa.Integer(), nullable=False),
        sa.Column("sha256", sa.String(length=255), server_default="", nullable=False),
        sa.Column("size_bytes", sa.BigInteger(), nullable=False),
        sa.Column("rows_read", sa.Integer(), server_default="0", nullable=False),
        sa.Column("rows_accepted", sa.Integer(), server_default="0", nullable=False),
        sa.Column("rows_rejected", sa.Integer(), server_default="0", nullable=False),
        sa.Column("rows_skipped", sa.Integer(), server_default="0", nullable=False),
        sa.Column("rows_unassigned", sa.Integer(), server_default="0", nullable=False),
        sa.Column("rows_new", sa.Integer(), server_default="0", nullable=False),
        sa.Column("rows_repeat", sa.Integer(), server_default="0", nullable=False),
        sa.Column("rows_superseding", sa.Integer(), server_default="0", nullable=False),
        sa.Column("read_at", Instant(), nullable=False),
        sa.PrimaryKeyConstraint("file_id", name=op.f("pk_order_file")),
        sa.UniqueConstraint(
            "merchant_id",
            "account_id",
            "name",
            "version",
            name=op.f("uq_order_file_merchant_id_account_id_name_version"),
        ),
        sa.UniqueConstraint(
            "merchant_id",
            "account_id",
            "sha256",
            name=op.f("uq_order_file_merchant_id_account_id_sha256"),
        ),
    )
    op.create_table(
        "query_key",
        sa.Column("run_id", sa.String(length=64), nullable=False),
        sa.Column("phase", sa.String(length=80), nullable=False),
        sa.Column("order_no", sa.String(length=64), nullable=False),
        sa.Column("answer", sa.String(length=20), server_default="", nullable=False),
        sa.Column("reason", sa.String(length=400), server_default="", nullable=False),
        sa.Column("answered_at", Instant(), nullable=True),
        sa.PrimaryKeyConstraint("run_id", "phase", "order_no", name=op.f("pk_query_key")),
    )
    op.create_table(
        "result_effect",
        sa.Column("run_id", sa.String(length=64), nullable=False),
        sa.Column("position", sa.Integer(), nullable=False),
        sa.Column("break_id", sa.String(length=64), server_default="", nullable=False),
        sa.Column("merchant_id", sa.String(length=64), nullable=False),
        sa.Column("account_id", sa.String(length=64), nullable=False),
        sa.Column("leg", sa.String(length=12), server_default="", nullable=False),
        sa.Column("currency", sa.String(length=3), server_default="", nullable=False),
        sa.Column("amount", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("run_id", "position", name=op.f("pk_result_effect")),
    )
    op.create_table(
        "result_row",
        sa.Column("run_id", sa.String(length=64), nullable=False),
        sa.Column("section", sa.String(length=12), nullable=False),
        sa.Column("position", sa.Integer(), nullable=False),
        sa.Column("id", sa.String(length=64), server_default="", nullable=False),
        sa.Column("merchant_id", sa.String(length=64), nullable=False),
        sa.Column("account_id", sa.String(length=64), nullable=False),
        sa.Column("code", sa.String(length=40), server_default="", nullable=False),
        sa.Column("flags", sa.String(length=1000), server_default="", nullable=False),
        sa.Column("order_no", sa.String(length=64), server_default="", nullable=False),
        sa.Column("transaction_id", sa.String(length=64), server_default="", nullable=False),
        sa.Column("entry_id", sa.String(length=64), server_default="", nullable=False),
        sa.Column("rule", sa.String(length=40), server_default="", nullable=False),
        sa.Column("state_orders", sa.String(length=24), server_default="", nullable=False),
        sa.Column("state_gateway", sa.String(length=24), server_default="", nullable=False),
        sa.Column("currency", sa.String(length=3), server_default="", nullable=False),
        sa.Column("order_amount", sa.BigInteger(), nullable=True),
        sa.Column("gateway_amount", sa.BigInteger(), nullable=True),
        sa.Column("ledger_amount", sa.BigInteger(), nullable=True),
        sa.Column("effect_orders", sa.BigInteger(), nullable=True),
        sa.Column("effect_ledger", sa.BigInteger(), nullable=True),
        sa.Column("exposure", sa.BigInteger(), nullable=True),
        sa.Column("owed_to", sa.String(length=12), server_default="", nullable=False),
        sa.Column("age_days", sa.Integer(), nullable=True),
        sa.Column("first_seen", sa.String(length=10), server_default="", nullable=False),
        sa.Column("severity", sa.String(length=12), server_default="", nullable=False),
        sa.Column("cause", sa.String(length=400), server_default="", nullable=False),
        sa.Column("reason", sa.String(length=1000), server_default="", nullable=False),
        sa.Column("expected_side", sa.String(length=20), server_default="", nullable=False),
        sa.Column("due_at", Instant(), nullable=True),
        sa.PrimaryKeyConstraint("run_id", "section", "position", name=op.f("pk_result_row")),
    )
    op.create_table(
        "result_summary",
        sa.Column("run_id", sa.String(length=64), nullable=False),
        sa.Column("document", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("run_id", name=op.f("pk_result_summary")),
    )
    op.create_table(
        "run",
        sa.Column("run_id", sa.String(length=64), nullable=False),
        sa.Column("merchant_id", sa.String(length=64), nullable=False),
        sa.Column("account_id", sa.String(length=64), nullable=False),
        sa.Column("business_date", sa.String(length=10), nullable=False),
        sa.Column("mode", sa.String(length=10), nullable=False),
        sa.Column("status", sa.String(length=10), nullable=False),
        sa.Column("step", sa.String(length=20), server_default="", nullable=False),
        sa.Column("owner", sa.String(length=255), server_default="", nullable=False),
        sa.Column("started_at", Instant(), nullable=False),
        sa.Column("finished_at", Instant(), nullable=True),
        sa.Column("as_of", Instant(), nullable=False),
        sa.Column("verdict", sa.String(length=20), server_default="", nullable=False),
        sa.Column("rules_digest", sa.String(length=255), server_default="", nullable=False),
        sa.Column("result_digest", sa.String(length=255), server_default="", nullable=False),
        sa.Column("workbook", sa.String(length=1000), server_default="", nullable=False),
        sa.Column("workbook_sha256", sa.String(length=255), server_default="", nullable=False),
        sa.Column("history_head", sa.String(length=255), server_default="", nullable=False),
        sa.Column("problem", sa.String(length=400), server_default="", nullable=False),
        sa.PrimaryKeyConstraint("run_id", name=op.f("pk_run")),
    )
    op.create_index(
        "ix_run_night", "run", ["merchant_id", "account_id", "business_date"], unique=False
    )
    op.create_index(
        "uq_run_active",
        "run",
        ["merchant_id", "account_id", "business_date"],
        unique=True,
        sqlite_where=sa.text("status = 'active'"),
        postgresql_where=sa.text("status = 'active'"),
    )

    op.create_table(
        "run_source",
        sa.Column("run_id", sa.String(length=64), nullable=False),
        sa.Column("kind", sa.String(length=20), nullable=False),
        sa.Column("name", sa.String(length=255), server_default="", nullable=False),
        sa.Column("sha256", sa.String(length=255), server_default="", nullable=False),
        sa.Column("size_bytes", sa.BigInteger(), nullable=False),
        sa.Column("rows_read", sa.Integer(), server_default="0", nullable=False),
        sa.Column("rows_accepted", sa.Integer(), server_default="0", nullable=False),
        sa.Column("rows_rejected", sa.Integer(), server_default="0", nullable=False),
        sa.Column("rows_skipped", sa.Integer(), server_default="0", nullable=False),
        sa.Column("rows_unassigned", sa.Integer(), server_default="0", nullable=False),
        sa.PrimaryKeyConstraint("run_id", "kind", name=op.f("pk_run_source")),
    )
    op.create_table(
        "attempt",
        sa.Column("batch_id", sa.String(length=64), nullable=False),
        sa.Column("position", sa.Integer(), nullable=False),
        sa.Column("instruction_id", sa.String(length=64), nullable=False),
        sa.Column("number", sa.Integer(), nullable=False),
        sa.Column("outcome", sa.String(length=20), server_default="", nullable=False),
        sa.Column("code", sa.String(length=40), server_default="", nullable=False),
        sa.Column("message", sa.String(length=400), server_default="", nullable=False),
        sa.ForeignKeyConstraint(
            ["instruction_id"],
            ["instruction.instruction_id"],
            name=op.f("fk_attempt_instruction_id"),
        ),
        sa.PrimaryKeyConstraint("batch_id", "position", name=op.f("pk_attempt")),
        sa.UniqueConstraint(
            "instruction_id", "number", name=op.f("uq_attempt_instruction_id_number")
        ),
    )
    op.create_table(
        "order_action",
        sa.Column("action_id", sa.Integer(), nullable=False),
        sa.Column("file_id", sa.Integer(), nullable=False),
        sa.Column("line", sa.Integer(), nullable=False),
        sa.Column("merchant_id", sa.String(length=64), nullable=False),
        sa.Column("account_id", sa.String(length=64), nullable=False),
        sa.Column("order_no", sa.String(length=64), nullable=False),
        sa.Column("transaction_id", sa.String(length=64), server_default="", nullable=False),
        sa.Column("action", sa.String(length=20), server_default="", nullable=False),
        sa.Column("currency", sa.String(length=3), nullable=False),
        sa.Column("amount", sa.BigInteger(), nullable=False),
        sa.Column("action_amount", sa.BigInteger(), nullable=True),
        sa.Column("action_reason", sa.String(length=50), server_default="", nullable=False),
        sa.Column("request_id", sa.String(length=64), server_default="", nullable=False),
        sa.Column("occurrence", sa.Integer(), nullable=False),
        sa.Column("instruction_id", sa.String(length=64), server_default="", nullable=False),
        sa.ForeignKeyConstraint(
            ["file_id"], ["order_file.file_id"], name=op.f("fk_order_action_file_id")
        ),
        sa.PrimaryKeyConstraint("action_id", name=op.f("pk_order_action")),
    )
    op.create_table(
        "order_row",
        sa.Column("row_id", sa.Integer(), nullable=False),
        sa.Column("file_id", sa.Integer(), nullable=False),
        sa.Column("line", sa.Integer(), nullable=False),
        sa.Column("merchant_id", sa.String(length=64), nullable=False),
        sa.Column("account_id", sa.String(length=64), nullable=False),
        sa.Column("order_no", sa.String(length=64), nullable=False),
        sa.Column("content_sha256", sa.String(length=255), server_default="", nullable=False),
        sa.Column("currency", sa.String(length=3), nullable=False),
        sa.Column("amount", sa.BigInteger(), nullable=False),
        sa.Column("status", sa.String(length=20), server_default="", nullable=False),
        sa.Column("ordered_at", Instant(), nullable=False),
        sa.Column("transaction_id", sa.String(length=64), server_default="", nullable=False),
        sa.Column("expected_captured_amount", sa.BigInteger(), nullable=True),
        sa.Column("refund_amount", sa.BigInteger(), nullable=True),
        sa.Column("updated_at", Instant(), nullable=True),
        sa.Column("superseded_in", sa.Integer(), nullable=True),
        sa.ForeignKeyConstraint(
            ["file_id"], ["order_file.file_id"], name=op.f("fk_order_row_file_id")
        ),
        sa.PrimaryKeyConstraint("row_id", name=op.f("pk_order_row")),
    )
    op.create_index(
        "ix_order_row_key", "order_row", ["merchant_id", "account_id", "order_no"], unique=False
    )

    op.create_table(
        "reject",
        sa.Column("reject_id", sa.Integer(), nullable=False),
        sa.Column("file_id", sa.Integer(), nullable=True),
        sa.Column("run_id", sa.String(length=64), nullable=False),
        sa.Column("kind", sa.String(length=20), server_default="", nullable=False),
        sa.Column("source", sa.String(length=255), server_default="", nullable=False),
        sa.Column("line", sa.Integer(), nullable=False),
        sa.Column("column", sa.String(length=100), server_default="", nullable=False),
        sa.Column("reason", sa.String(length=400), server_default="", nullable=False),
        sa.Column("value", sa.String(length=400), server_default="", nullable=False),
        sa.Column("merchant_id", sa.String(length=64), server_default="", nullable=False),
        sa.Column("account_id", sa.String(length=64), server_default="", nullable=False),
        sa.Column("order_no", sa.String(length=64), server_default="", nullable=False),
        sa.ForeignKeyConstraint(
            ["file_id"], ["order_file.file_id"], name=op.f("fk_reject_file_id")
        ),
        sa.PrimaryKeyConstraint("reject_id", name=op.f("pk_reject")),
    )
    _guard_history()


def _guard_history() -> None:
    """Rows of the history are only ever added."""
    if op.get_bind().dialect.name == "sqlite":
        for verb in ("UPDATE", "DELETE"):
            op.execute(
                f"CREATE TRIGGER history_no_{verb.lower()} BEFORE {verb} ON history "
                "BEGIN SELECT RAISE(ABORT, 'the history is append-only'); END"
            )
        return
    op.execute(
        "CREATE FUNCTION history_is_append_only() RETURNS trigger LANGUAGE plpgsql AS $$ "
        "BEGIN RAISE EXCEPTION 'the history is append-only'; END $$"
    )
    op.execute(
        "CREATE TRIGGER history_no_change BEFORE UPDATE OR DELETE OR TRUNCATE ON history "
        "FOR EACH STATEMENT EXECUTE FUNCTION history_is_append_only()"
    )
