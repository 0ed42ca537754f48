"""Which files of the archive hold what the gateway answered.

`recon db upgrade` writes the files of each night before the tables with answers go (0031).
"""

import sqlalchemy as sa
from alembic import op

revision = "0030"
down_revision = "0029"
branch_labels = None
depends_on = None


def _text(name: str, length: int) -> sa.Column[str]:
    return sa.Column(name, sa.String(length=length), server_default="", nullable=False)


def _count(name: str) -> sa.Column[int]:
    return sa.Column(name, sa.Integer(), server_default="0", nullable=False)


def upgrade() -> None:
    op.create_table(
        "answer_part",
        sa.Column("part_id", sa.Integer(), nullable=False),
        sa.Column("run_id", sa.String(length=64), nullable=False),
        sa.Column("phase", sa.String(length=80), nullable=False),
        sa.Column("merchant_id", sa.String(length=64), nullable=False),
        sa.Column("account_id", sa.String(length=64), nullable=False),
        sa.Column("path", sa.Text(), nullable=False),
        sa.Column("schema_label", sa.String(length=40), nullable=False),
        _text("sha256", 64),
        _text("content", 64),
        _count("size_bytes"),
        _count("row_count"),
        _count("asked"),
        _count("answered"),
        sa.Column("last_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("codes", sa.Text(), server_default="{}", nullable=False),
        _text("chargeback_codes", 255),
        sa.PrimaryKeyConstraint("part_id", name=op.f("pk_answer_part")),
    )
    op.create_index("ix_answer_part_run", "answer_part", ["run_id", "phase"])
    op.create_index(
        "ix_answer_part_account", "answer_part", ["merchant_id", "account_id", "last_at"]
    )
    op.create_table(
        "charged_back_order",
        sa.Column("merchant_id", sa.String(length=64), nullable=False),
        sa.Column("account_id", sa.String(length=64), nullable=False),
        sa.Column("order_no", sa.String(length=64), nullable=False),
        sa.Column("payment_status", sa.String(length=20), nullable=False),
        sa.Column("run_id", sa.String(length=64), nullable=False),
        sa.Column("part_id", sa.Integer(), nullable=False),
        sa.PrimaryKeyConstraint(
            "merchant_id",
            "account_id",
            "order_no",
            "payment_status",
            name=op.f("pk_charged_back_order"),
        ),
    )
