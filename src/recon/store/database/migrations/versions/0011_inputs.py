"""What a run compared: its rules, how far it read, and the instructions as it found them."""

import sqlalchemy as sa
from alembic import op

from recon.store.schema.columns import Instant

revision = "0011"
down_revision = "0010"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "rules_version",
        sa.Column("digest", sa.String(length=64), nullable=False),
        sa.Column("document", sa.Text(), nullable=False),
        sa.Column("first_used_at", Instant(), nullable=False),
        sa.PrimaryKeyConstraint("digest", name=op.f("pk_rules_version")),
    )
    op.create_table(
        "run_input",
        sa.Column("run_id", sa.String(length=64), nullable=False),
        sa.Column("rules_digest", sa.String(length=64), nullable=False),
        sa.Column("previous_run_id", sa.String(length=64), server_default="", nullable=False),
        sa.Column("last_file", sa.Integer(), nullable=False),
        sa.Column("last_observation", sa.Integer(), nullable=False),
        sa.Column("last_instruction_version", sa.Integer(), nullable=False),
        sa.Column("product_version", sa.String(length=40), server_default="", nullable=False),
        sa.Column("document", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("run_id", name=op.f("pk_run_input")),
    )
    _instruction_versions()


def _instruction_versions() -> None:
    op.create_table(
        "instruction_version",
        sa.Column("version_id", sa.Integer(), nullable=False),
        sa.Column("run_id", sa.String(length=64), nullable=False),
        sa.Column("content", sa.String(length=64), server_default="", nullable=False),
        sa.Column("instruction_id", sa.String(length=64), nullable=False),
        sa.Column("merchant_id", sa.String(length=64), nullable=False),
        sa.Column("account_id", sa.String(length=64), nullable=False),
        sa.Column("order_no", sa.String(length=64), server_default="", nullable=False),
        sa.Column("transaction_id", sa.String(length=64), server_default="", nullable=False),
        sa.Column("kind", sa.String(length=20), nullable=False),
        sa.Column("currency", sa.String(length=3), server_default="", nullable=False),
        sa.Column("amount", sa.BigInteger(), nullable=False),
        sa.Column("state", sa.String(length=24), nullable=False),
        sa.Column("request_id", sa.String(length=64), server_default="", nullable=False),
        sa.Column("approved_at", Instant(), nullable=True),
        sa.Column("sent_at", Instant(), nullable=True),
        sa.Column("outcome_at", Instant(), nullable=True),
        sa.Column("refund_reference_id", sa.String(length=64), server_default="", nullable=False),
        sa.Column("line", sa.Integer(), server_default="0", nullable=False),
        sa.PrimaryKeyConstraint("version_id", name=op.f("pk_instruction_version")),
    )
    op.create_index(
        op.f("ix_instruction_version_instruction_id"), "instruction_version", ["instruction_id"]
    )
