"""Lines of the gateway's settlement files."""

import sqlalchemy as sa
from alembic import op

revision = "0018"
down_revision = "0017"
branch_labels = None
depends_on = None


def _text(name: str) -> sa.Column[str]:
    return sa.Column(name, sa.String(length=64), server_default="", nullable=False)


def upgrade() -> None:
    op.create_table(
        "settlement_line",
        sa.Column("line_id", sa.Integer(), nullable=False),
        sa.Column("file_id", sa.Integer(), nullable=False),
        sa.Column("line", sa.Integer(), nullable=False),
        sa.Column("merchant_id", sa.String(length=64), nullable=False),
        sa.Column("account_id", sa.String(length=64), nullable=False),
        sa.Column("batch_id", sa.String(length=64), nullable=False),
        sa.Column("settled_on", sa.String(length=10), nullable=False),
        sa.Column("entry_type", sa.String(length=30), nullable=False),
        _text("order_no"),
        _text("transaction_id"),
        _text("reference_no"),
        _text("own_reference"),
        sa.Column("currency", sa.String(length=3), nullable=False),
        sa.Column("gross", sa.BigInteger(), nullable=False),
        sa.Column("fee", sa.BigInteger(), nullable=False),
        sa.Column("net", sa.BigInteger(), nullable=False),
        sa.ForeignKeyConstraint(
            ["file_id"], ["order_file.file_id"], name=op.f("fk_settlement_line_file_id")
        ),
        sa.PrimaryKeyConstraint("line_id", name=op.f("pk_settlement_line")),
    )
    op.create_index("ix_settlement_line_file_id", "settlement_line", ["file_id"])
    op.create_index(
        "ix_settlement_line_payment",
        "settlement_line",
        ["merchant_id", "account_id", "transaction_id"],
    )
    op.create_index(
        "ix_settlement_line_day", "settlement_line", ["merchant_id", "account_id", "settled_on"]
    )
