"""The first tables, and the triggers that keep the history append-only.

A database that a release candidate made stands at this revision already, with the same tables.
"""

from collections.abc import Iterator
from datetime import datetime

import sqlalchemy as sa
from alembic import op

from recon.store.schema.columns import Instant

revision = "0026"
down_revision = None
branch_labels = None
depends_on = None


def upgrade() -> None:
    _nights()
    _files()
    _gateway()
    _money()
    _guard_history()
    _people()


def _nights() -> None:
    """Runs, what they compared and what came of it."""
    op.create_table(
        "run",
        sa.Column("run_id", sa.String(64), primary_key=True),
        *_keys(merchant_id=64, account_id=64, business_date=10, mode=10, status=10),
        *_texts(step=20, owner=255),
        *_at("started_at"),
        *_at("finished_at", nullable=True),
        *_at("as_of"),
        *_texts(
            verdict=20,
            rules_digest=255,
            result_digest=255,
            workbook=1000,
            workbook_sha256=255,
            history_head=255,
            problem=400,
            owner_process=120,
            part=10,
            predecessor=400,
        ),
    )
    op.create_index("ix_run_night", "run", ["merchant_id", "account_id", "business_date"])
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
        sa.Column("run_id", sa.String(64), primary_key=True),
        sa.Column("kind", sa.String(20), primary_key=True),
        *_texts(name=255, sha256=255),
        *_amounts("size_bytes"),
        *_counts("rows_read", "rows_accepted", "rows_rejected", "rows_skipped", "rows_unassigned"),
    )
    op.create_table(
        "rules_version",
        sa.Column("digest", sa.String(64), primary_key=True),
        sa.Column("document", sa.Text, nullable=False),
        *_at("first_used_at"),
    )
    op.create_table(
        "run_input",
        sa.Column("run_id", sa.String(64), primary_key=True),
        *_keys(rules_digest=64),
        *_texts(previous_run_id=64),
        *_numbers("last_file", "last_observation", "last_instruction_version"),
        *_texts(product_version=40),
        sa.Column("document", sa.Text, nullable=False),
    )
    op.create_table(
        "instruction_version",
        sa.Column("version_id", sa.Integer, primary_key=True),
        *_keys(run_id=64),
        *_texts(content=64),
        *_keys(instruction_id=64, merchant_id=64, account_id=64),
        *_texts(order_no=64, transaction_id=64),
        *_keys(kind=20),
        *_texts(currency=3),
        *_amounts("amount"),
        *_keys(state=24),
        *_texts(request_id=64),
        *_at("approved_at", "sent_at", "outcome_at", nullable=True),
        *_texts(refund_reference_id=64),
        *_counts("line"),
    )
    op.create_index(
        "ix_instruction_version_instruction_id", "instruction_version", ["instruction_id"]
    )
    op.create_table(
        "control_total",
        sa.Column("run_id", sa.String(64), primary_key=True),
        sa.Column("position", sa.Integer, primary_key=True),
        *_texts(id=8, name=255, merchant_id=64, account_id=64, currency=3, measure=10),
        *_amounts("left", "right"),
    )
    op.create_table(
        "result_summary",
        sa.Column("run_id", sa.String(64), primary_key=True),
        sa.Column("document", sa.Text, nullable=False),
    )
    op.create_table(
        "result_row",
        sa.Column("run_id", sa.String(64), primary_key=True),
        sa.Column("section", sa.String(12), primary_key=True),
        sa.Column("position", sa.Integer, primary_key=True),
        *_texts(id=64),
        *_keys(merchant_id=64, account_id=64),
        *_texts(
            code=40,
            flags=1000,
            order_no=64,
            transaction_id=64,
            entry_id=64,
            rule=40,
            state_orders=24,
            state_gateway=24,
            currency=3,
        ),
        *_amounts(
            "order_amount",
            "gateway_amount",
            "ledger_amount",
            "effect_orders",
            "effect_ledger",
            "exposure",
            nullable=True,
        ),
        *_texts(owed_to=12),
        *_numbers("age_days", nullable=True),
        *_texts(first_seen=10, severity=12, cause=400, reason=1000, expected_side=20),
        *_at("due_at", nullable=True),
        *_amounts("bank_amount", "effect_bank", nullable=True),
    )
    op.create_table(
        "result_effect",
        sa.Column("run_id", sa.String(64), primary_key=True),
        sa.Column("position", sa.Integer, primary_key=True),
        *_texts(break_id=64),
        *_keys(merchant_id=64, account_id=64),
        *_texts(leg=12, currency=3),
        *_amounts("amount"),
    )
    op.create_table(
        "break_end",
        sa.Column("run_id", sa.String(64), primary_key=True),
        sa.Column("break_id", sa.String(64), primary_key=True),
        *_texts(movement=20, first_seen=10),
    )
    op.create_table(
        "sign_off",
        sa.Column("run_id", sa.String(64), primary_key=True),
        sa.Column("role", sa.String(12), primary_key=True),
        *_texts(signed_by=100),
        *_flags("authenticated"),
        *_at("signed_at"),
        *_texts(workbook_sha256=64),
    )


def _files() -> None:
    """Rows of order files, books and settlement files, and what could not be read."""
    op.create_table(
        "order_file",
        sa.Column("file_id", sa.Integer, primary_key=True),
        *_keys(merchant_id=64, account_id=64, business_date=10, run_id=64),
        *_texts(name=255),
        *_numbers("version"),
        *_texts(sha256=255),
        *_amounts("size_bytes"),
        *_counts(
            "rows_read",
            "rows_accepted",
            "rows_rejected",
            "rows_skipped",
            "rows_unassigned",
            "rows_new",
            "rows_repeat",
            "rows_superseding",
        ),
        *_at("read_at"),
        sa.Column("kind", sa.String(20), nullable=False, server_default="orders"),
        sa.UniqueConstraint("merchant_id", "account_id", "name", "version"),
    )
    op.create_table(
        "order_row",
        sa.Column("row_id", sa.Integer, primary_key=True),
        sa.Column("file_id", sa.Integer, sa.ForeignKey("order_file.file_id"), nullable=False),
        *_numbers("line"),
        *_keys(merchant_id=64, account_id=64, order_no=64, currency=3),
        *_amounts("amount"),
        *_texts(status=20),
        *_at("ordered_at"),
        *_texts(transaction_id=64),
        *_amounts("expected_captured_amount", "refund_amount", nullable=True),
        *_at("updated_at", nullable=True),
        *_numbers("superseded_in", nullable=True),
    )
    op.create_index("ix_order_row_key", "order_row", ["merchant_id", "account_id", "order_no"])
    op.create_table(
        "order_action",
        sa.Column("action_id", sa.Integer, primary_key=True),
        sa.Column("file_id", sa.Integer, sa.ForeignKey("order_file.file_id"), nullable=False),
        *_numbers("line"),
        *_keys(merchant_id=64, account_id=64, order_no=64),
        *_texts(transaction_id=64, action=20),
        *_keys(currency=3),
        *_amounts("amount"),
        *_amounts("action_amount", nullable=True),
        *_texts(
            action_reason=50,
            request_id=64,
            instruction_id=64,
            review_flag=20,
            recurring_id=64,
            contract_name=255,
            payee=40,
            payee_digest=64,
            content_digest=64,
        ),
        sa.Column("sealed", sa.Text, nullable=False, server_default=""),
    )
    op.create_table(
        "reject",
        sa.Column("reject_id", sa.Integer, primary_key=True),
        sa.Column("file_id", sa.Integer, sa.ForeignKey("order_file.file_id")),
        *_keys(run_id=64),
        *_texts(kind=20, source=255),
        *_numbers("line"),
        *_texts(column=100, reason=400, value=400, merchant_id=64, account_id=64, order_no=64),
    )
    op.create_table(
        "reject_end",
        sa.Column("end_id", sa.Integer, primary_key=True),
        sa.Column("reject_id", sa.Integer, sa.ForeignKey("reject.reject_id"), nullable=False),
        *_texts(ended=20),
        sa.Column("file_id", sa.Integer, sa.ForeignKey("order_file.file_id")),
        *_texts(said_by=64, why=400),
        *_at("ended_at"),
    )
    op.create_index("ix_reject_end_reject", "reject_end", ["reject_id"])
    op.create_table(
        "ledger_entry",
        sa.Column("run_id", sa.String(64), primary_key=True),
        sa.Column("position", sa.Integer, primary_key=True),
        *_texts(entry_id=64),
        *_keys(merchant_id=64, account_id=64),
        *_texts(order_no=64, entry_type=30),
        *_keys(currency=3),
        *_amounts("amount"),
        *_at("booked_at"),
        *_texts(transaction_id=64, reference_no=255, reverses_entry_id=64, transaction_currency=3),
        *_amounts("transaction_amount", nullable=True),
        *_texts(source=255),
        *_numbers("line"),
    )
    op.create_table(
        "settlement_line",
        sa.Column("line_id", sa.Integer, primary_key=True),
        sa.Column("file_id", sa.Integer, sa.ForeignKey("order_file.file_id"), nullable=False),
        *_numbers("line"),
        *_keys(merchant_id=64, account_id=64, batch_id=64, settled_on=10, entry_type=30),
        *_texts(order_no=64, transaction_id=64, reference_no=64, own_reference=64),
        *_keys(currency=3),
        *_amounts("gross", "fee", "net"),
    )
    op.create_index(
        "ix_settlement_line_day", "settlement_line", ["merchant_id", "account_id", "settled_on"]
    )
    op.create_index("ix_settlement_line_file_id", "settlement_line", ["file_id"])
    op.create_index(
        "ix_settlement_line_payment",
        "settlement_line",
        ["merchant_id", "account_id", "transaction_id"],
    )


def _gateway() -> None:
    """What the gateway answered, what it told by itself, and what contradicts."""
    op.create_table(
        "query_key",
        sa.Column("run_id", sa.String(64), primary_key=True),
        sa.Column("phase", sa.String(80), primary_key=True),
        sa.Column("order_no", sa.String(64), primary_key=True),
        *_texts(answer=20, reason=400),
        *_at("answered_at", nullable=True),
    )
    op.create_table(
        "observation",
        sa.Column("observation_id", sa.Integer, primary_key=True),
        *_keys(run_id=64, phase=80, merchant_id=64, account_id=64, order_no=64),
        *_texts(transaction_id=64),
        *_keys(currency=3),
        *_amounts("amount"),
        *_texts(payment_status=20, query_result=20, reference_no=255),
        *_at("transaction_date", nullable=True),
        *_at("queried_at"),
        sa.Column("detail", sa.Text, nullable=False, server_default="{}"),
    )
    op.create_index("ix_observation_key", "observation", ["merchant_id", "account_id", "order_no"])
    op.create_index("ix_observation_run", "observation", ["run_id", "phase"])
    op.create_table(
        "notification",
        sa.Column("notification_id", sa.Integer, primary_key=True),
        *_keys(merchant_id=64, account_id=64),
        *_texts(kind=40),
        *_keys(identity_sha256=64, sha256=64),
        *_texts(order_no=64, transaction_id=64, currency=3),
        *_amounts("amount", nullable=True),
        *_texts(status=20),
        sa.Column("fields", sa.Text, nullable=False, server_default="{}"),
        *_at("received_at"),
        *_at("repeated_at", nullable=True),
        sa.Column("times", sa.Integer, nullable=False, server_default="1"),
        sa.UniqueConstraint("merchant_id", "account_id", "identity_sha256", "sha256"),
    )
    op.create_index(
        "ix_notification_transaction",
        "notification",
        ["merchant_id", "account_id", "transaction_id"],
    )
    op.create_table(
        "notification_case",
        sa.Column("case_id", sa.Integer, primary_key=True),
        *_keys(merchant_id=64, account_id=64),
        *_texts(problem=20, reason=400),
        *_keys(body_sha256=64),
        sa.Column("fields", sa.Text, nullable=False, server_default="{}"),
        *_at("received_at"),
        sa.Column("times", sa.Integer, nullable=False, server_default="1"),
        sa.UniqueConstraint("merchant_id", "account_id", "problem", "body_sha256"),
    )
    op.create_table(
        "contradiction",
        sa.Column("instruction_id", sa.String(64), primary_key=True),
        *_keys(merchant_id=64, account_id=64),
        *_texts(transaction_id=64, believed=24, told=400),
        *_at("noted_at"),
        *_texts(verdict=12),
        *_at("closed_at", nullable=True),
    )


def _money() -> None:
    """Instructions, the batches that carry them, and the chained history of both."""
    op.create_table(
        "instruction",
        sa.Column("instruction_id", sa.String(64), primary_key=True),
        *_texts(natural_key=400),
        *_keys(merchant_id=64, account_id=64, kind=20, order_no=64),
        *_texts(transaction_id=64),
        *_keys(currency=3),
        *_amounts("amount", "payment_amount"),
        *_texts(reason=50, request_id=64),
        *_numbers("file_id", nullable=True),
        *_counts("line"),
        *_keys(state=24),
        *_texts(hold=400),
        *_counts("attempts"),
        *_texts(
            batch_id=64,
            outcome=20,
            code=40,
            message=400,
            refund_reference_id=64,
            baseline_status=20,
            approved_by=255,
        ),
        *_keys(run_id=64),
        *_at("planned_at"),
        *_at("approved_at", "sent_at", "outcome_at", "in_doubt_since", nullable=True),
        *_texts(
            review_flag=20,
            recurring_id=64,
            contract_name=255,
            payee=40,
            payee_digest=64,
            gateway_request_id=64,
        ),
        sa.Column("sealed", sa.Text, nullable=False, server_default=""),
        *_texts(again_for=64),
        sa.Column("repeats", sa.Text, nullable=False, server_default=""),
        sa.UniqueConstraint("natural_key"),
    )
    op.create_index(
        "ix_instruction_payment", "instruction", ["merchant_id", "account_id", "transaction_id"]
    )
    op.create_index("ix_instruction_state", "instruction", ["merchant_id", "account_id", "state"])
    op.create_table(
        "batch",
        sa.Column("batch_id", sa.String(64), primary_key=True),
        *_keys(run_id=64, merchant_id=64, account_id=64, kind=20),
        *_counts("rows"),
        *_keys(state=12),
        *_texts(body_sha256=255),
        sa.Column("body", sa.LargeBinary, nullable=False),
        *_at("claimed_at"),
        *_at("replied_at", "closed_at", nullable=True),
        *_numbers("http_status", nullable=True),
        sa.Column("reply_headers", sa.Text, nullable=False, server_default="{}"),
        sa.Column("reply", sa.LargeBinary),
        *_texts(reply_sha256=255, return_status=20, message=400),
    )
    op.create_index("ix_batch_open", "batch", ["merchant_id", "account_id", "state"])
    op.create_table(
        "attempt",
        sa.Column("batch_id", sa.String(64), primary_key=True),
        sa.Column("position", sa.Integer, primary_key=True),
        sa.Column(
            "instruction_id",
            sa.String(64),
            sa.ForeignKey("instruction.instruction_id"),
            nullable=False,
        ),
        *_numbers("number"),
        *_texts(outcome=20, code=40, message=400),
        sa.UniqueConstraint("instruction_id", "number"),
    )
    op.create_table(
        "dry_batch",
        sa.Column("run_id", sa.String(64), primary_key=True),
        sa.Column("position", sa.Integer, primary_key=True),
        sa.Column("currency", sa.String(3), primary_key=True),
        *_keys(kind=20),
        *_counts("rows"),
        *_amounts("amount"),
    )
    op.create_table(
        "doubt_clock",
        sa.Column("instruction_id", sa.String(64), primary_key=True),
        *_texts(boot_id=64),
        *_amounts("uptime_ms"),
        *_at("noted_at"),
    )
    op.create_table(
        "refund_search",
        sa.Column("search_id", sa.Integer, primary_key=True),
        *_keys(instruction_id=64),
        *_texts(refund_reference_id=64),
        *_at("queried_at"),
        *_texts(shown_beside=64),
    )
    op.create_index("ix_refund_search_instruction", "refund_search", ["instruction_id"])
    op.create_table(
        "sending_switch",
        sa.Column("turn", sa.BigInteger, primary_key=True, autoincrement=False),
        *_flags("stopped"),
        *_texts(turned_by=100, reason=400),
        *_at("at"),
    )
    op.create_table(
        "history",
        sa.Column("sequence", sa.BigInteger, primary_key=True, autoincrement=False),
        *_at("at"),
        *_texts(entity=20, entity_id=64, event=40),
        sa.Column("data", sa.Text, nullable=False),
        *_texts(previous_hash=255, hash=255),
    )
    op.create_index("ix_history_entity_id", "history", ["entity_id", "sequence"])


def _people() -> None:
    """What people decided: approvals, verdicts, releases, answers, codes."""
    op.create_table(
        "approval",
        sa.Column("approval_id", sa.Integer, primary_key=True),
        *_texts(digest=64),
        sa.Column("instruction_ids", sa.Text, nullable=False),
        *_texts(state=12, first_by=100),
        *_flags("first_authenticated"),
        *_at("first_at", "valid_until"),
        *_texts(second_by=100),
        *_flags("second_authenticated"),
        *_at("second_at", nullable=True),
        *_texts(why=400),
    )
    op.create_table(
        "verdict",
        sa.Column("verdict_id", sa.Integer, primary_key=True),
        *_keys(instruction_id=64),
        *_texts(verdict=12, evidence=1000, given_by=100),
        *_flags("authenticated"),
        *_at("given_at"),
        *_texts(state=12),
    )
    op.create_table(
        "release",
        sa.Column("run_id", sa.String(64), primary_key=True),
        *_texts(reason=400, first_by=100),
        *_flags("first_authenticated"),
        *_at("first_at"),
        *_texts(second_by=100),
        *_flags("second_authenticated"),
        *_at("second_at", nullable=True),
    )
    op.create_table(
        "used_code",
        sa.Column("person", sa.String(64), primary_key=True),
        sa.Column("time_step", sa.BigInteger, primary_key=True),
        *_at("used_at"),
    )
    op.create_table(
        "wrong_code",
        sa.Column("wrong_id", sa.Integer, primary_key=True),
        *_keys(person=64),
        *_at("at"),
        *_texts(origin=100),
    )
    op.create_table(
        "agreement",
        sa.Column("agreement_id", sa.Integer, primary_key=True),
        *_texts(what=40, subject=64, reason=400, state=12, first_by=100),
        *_flags("first_authenticated"),
        *_at("first_at", "valid_until"),
        *_texts(second_by=100),
        *_flags("second_authenticated"),
        *_at("second_at", nullable=True),
    )
    op.create_table(
        "endorsement",
        sa.Column("sequence", sa.Integer, primary_key=True, autoincrement=False),
        *_texts(kind=20, subject=400),
        *_keys(person=64),
        *_at("at"),
        *_at("valid_until", nullable=True),
        sa.Column("document", sa.Text, nullable=False),
        *_texts(signature=128, key_id=64),
    )
    op.create_index("ix_endorsement_kind_subject", "endorsement", ["kind", "subject"])
    op.create_table(
        "break_answer",
        sa.Column("answer_id", sa.Integer, primary_key=True),
        *_keys(merchant_id=64, account_id=64, break_id=64),
        *_numbers("version"),
        *_texts(resolution=40, owner=100, comment=500, resolved_on=10, given_by=100),
        *_at("given_at"),
        *_flags("waits"),
        *_texts(agreed_by=100),
        *_at("agreed_at", nullable=True),
        *_keys(run_id=64),
        *_texts(file_sha256=64),
        *_numbers("sheet_row"),
        *_flags("covers_cause"),
        sa.UniqueConstraint("merchant_id", "account_id", "break_id", "version"),
    )
    op.create_table(
        "answer_file",
        sa.Column("file_sha256", sa.String(64), primary_key=True),
        *_texts(name=255),
        *_keys(run_id=64),
        *_texts(given_by=100),
        *_at("imported_at"),
        *_numbers("taken", "refused"),
    )
    op.create_table(
        "exported_journal",
        sa.Column("journal_id", sa.String(64), primary_key=True),
        *_keys(merchant_id=64, account_id=64, break_id=64),
        *_texts(currency=3),
        *_numbers("version"),
        *_keys(run_id=64),
        *_at("exported_at"),
        *_texts(booked_in=64),
    )


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


def _texts(**characters: int) -> Iterator[sa.Column[str]]:
    """Texts of so many characters at the most, "" when not given."""
    for name, length in characters.items():
        yield sa.Column(name, sa.String(length), nullable=False, server_default="")


def _keys(**characters: int) -> Iterator[sa.Column[str]]:
    """Texts that every row gives."""
    for name, length in characters.items():
        yield sa.Column(name, sa.String(length), nullable=False)


def _amounts(*names: str, nullable: bool = False) -> Iterator[sa.Column[int]]:
    """Minor units, or other numbers above two thousand million."""
    for name in names:
        yield sa.Column(name, sa.BigInteger, nullable=nullable)


def _numbers(*names: str, nullable: bool = False) -> Iterator[sa.Column[int]]:
    """Numbers that count rows and lines."""
    for name in names:
        yield sa.Column(name, sa.Integer, nullable=nullable)


def _counts(*names: str) -> Iterator[sa.Column[int]]:
    """How many; 0 until known."""
    for name in names:
        yield sa.Column(name, sa.Integer, nullable=False, server_default="0")


def _flags(*names: str) -> Iterator[sa.Column[bool]]:
    for name in names:
        yield sa.Column(name, sa.Boolean, nullable=False)


def _at(*names: str, nullable: bool = False) -> Iterator[sa.Column[datetime]]:
    """Instants in UTC."""
    for name in names:
        yield sa.Column(name, Instant, nullable=nullable)
