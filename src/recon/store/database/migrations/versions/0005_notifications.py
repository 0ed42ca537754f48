"""What the gateway told by itself, and what claimed to come from it and was refused."""

import sqlalchemy as sa
from alembic import op

from recon.store.schema.columns import Instant

revision = "0005"
down_revision = "0004"
branch_labels = None
depends_on = None


def _text(name: str, length: int) -> sa.Column[str]:
    return sa.Column(name, sa.String(length=length), server_default="", nullable=False)


def upgrade() -> None:
    _notification()
    _case()


def _notification() -> None:
    op.create_table(
        "notification",
        sa.Column("notification_id", sa.Integer(), nullable=False),
        sa.Column("merchant_id", sa.String(length=64), nullable=False),
        sa.Column("account_id", sa.String(length=64), nullable=False),
        _text("kind", 40),
        sa.Column("identity_sha256", sa.String(length=64), nullable=False),
        sa.Column("sha256", sa.String(length=64), nullable=False),
        _text("order_no", 64),
        _text("transaction_id", 64),
        _text("currency", 3),
        sa.Column("amount", sa.BigInteger(), nullable=True),
        _text("status", 20),
        sa.Column("fields", sa.Text(), server_default="{}", nullable=False),
        sa.Column("received_at", Instant(), nullable=False),
        sa.Column("repeated_at", Instant(), nullable=True),
        sa.Column("times", sa.Integer(), server_default="1", nullable=False),
        sa.PrimaryKeyConstraint("notification_id", name=op.f("pk_notification")),
        sa.UniqueConstraint(
            "merchant_id",
            "account_id",
            "identity_sha256",
            name=op.f("uq_notification_merchant_id_account_id_identity_sha256"),
        ),
    )
    op.create_index(
        "ix_notification_transaction",
        "notification",
        ["merchant_id", "account_id", "transaction_id"],
    )


def _case() -> None:
    op.create_table(
        "notification_case",
        sa.Column("case_id", sa.Integer(), nullable=False),
        sa.Column("merchant_id", sa.String(length=64), nullable=False),
        sa.Column("account_id", sa.String(length=64), nullable=False),
        _text("problem", 20),
        _text("reason", 400),
        sa.Column("body_sha256", sa.String(length=64), nullable=False),
        sa.Column("fields", sa.Text(), server_default="{}", nullable=False),
        sa.Column("received_at", Instant(), nullable=False),
        sa.Column("times", sa.Integer(), server_default="1", nullable=False),
        sa.PrimaryKeyConstraint("case_id", name=op.f("pk_notification_case")),
        sa.UniqueConstraint(
            "merchant_id",
            "account_id",
            "problem",
            "body_sha256",
            name=op.f("uq_notification_case_merchant_id_account_id_problem_body_sha256"),
        ),
    )
