"""Statements of banks, and of their entries those that are in scope."""

import sqlalchemy as sa
from alembic import op

revision = "0029"
down_revision = "0028"
branch_labels = None
depends_on = None


def _text(name: str, length: int = 255) -> sa.Column[str]:
    return sa.Column(name, sa.String(length=length), server_default="", nullable=False)


def _number(name: str) -> sa.Column[int]:
    return sa.Column(name, sa.Integer(), server_default="0", nullable=False)


def upgrade() -> None:
    op.create_table(
        "bank_statement",
        sa.Column("statement_id", sa.Integer(), nullable=False),
        sa.Column("file_id", sa.Integer(), nullable=False),
        _text("bank"),
        _text("source"),
        _text("sha256"),
        _text("iban", 64),
        _text("statement_no"),
        sa.Column("currency", sa.String(length=3), nullable=False),
        _text("from_date", 10),
        _text("to_date", 10),
        _text("form", 20),
        sa.Column("opening", sa.BigInteger(), nullable=True),
        sa.Column("closing", sa.BigInteger(), nullable=True),
        sa.Column("booked", sa.BigInteger(), nullable=False),
        _number("entries"),
        sa.Column("others", sa.BigInteger(), nullable=False),
        _text("content", 64),
        _text("created", 40),
        _number("days_given"),
        sa.Column("known_file", sa.Integer(), nullable=False),
        sa.ForeignKeyConstraint(
            ["file_id"], ["order_file.file_id"], name=op.f("fk_bank_statement_file_id")
        ),
        sa.PrimaryKeyConstraint("statement_id", name=op.f("pk_bank_statement")),
    )
    op.create_index("ix_bank_statement_file_id", "bank_statement", ["file_id"])
    op.create_index("ix_bank_statement_bank", "bank_statement", ["bank", "sha256"])
    op.create_table(
        "bank_entry",
        sa.Column("entry_id", sa.Integer(), nullable=False),
        sa.Column("statement_id", sa.Integer(), nullable=False),
        sa.Column("entry_no", sa.Text(), nullable=False),
        sa.Column("part", sa.Integer(), nullable=False),
        _text("booked_on", 10),
        _text("value_on", 10),
        sa.Column("currency", sa.String(length=3), nullable=False),
        sa.Column("amount", sa.BigInteger(), nullable=False),
        sa.Column("end_to_end_id", sa.Text(), nullable=False),
        sa.Column("reference", sa.Text(), nullable=False),
        sa.Column("counterparty", sa.Text(), nullable=False),
        sa.Column("text", sa.Text(), nullable=False),
        _text("status", 20),
        sa.Column("charges", sa.BigInteger(), nullable=False),
        _text("instructed_currency", 3),
        sa.Column("instructed_amount", sa.BigInteger(), nullable=True),
        sa.ForeignKeyConstraint(
            ["statement_id"],
            ["bank_statement.statement_id"],
            name=op.f("fk_bank_entry_statement_id"),
        ),
        sa.PrimaryKeyConstraint("entry_id", name=op.f("pk_bank_entry")),
    )
    op.create_index("ix_bank_entry_statement_id", "bank_entry", ["statement_id"])
