"""Statements of banks, and of their entries only those that are the merchant's business."""

from sqlalchemy import BigInteger, Column, ForeignKey, Index, Integer, String, Table, Text

from recon.store.schema.columns import (
    ID_CHARACTERS,
    amount_column,
    count_column,
    metadata,
    text_column,
)

# One row per statement of a version of a file; whoever's night read it, it is the bank's.
bank_statement = Table(
    "bank_statement",
    metadata,
    Column("statement_id", Integer, primary_key=True),
    Column("file_id", Integer, ForeignKey("order_file.file_id"), nullable=False, index=True),
    text_column("bank"),
    text_column("source"),
    text_column("sha256"),
    text_column("iban", ID_CHARACTERS),
    text_column("statement_no"),
    Column("currency", String(3), nullable=False),
    text_column("from_date", 10),
    text_column("to_date", 10),
    text_column("form", 20),
    amount_column("opening", nullable=True),
    amount_column("closing", nullable=True),
    amount_column("booked"),
    count_column("entries"),
    amount_column("others"),  # of entries that are not kept
    text_column("content", 64),
    text_column("created", 40),
    count_column("days_given"),
    Column("known_file", Integer, nullable=False),  # the last file that said which batches are ours
    Index("ix_bank_statement_bank", "bank", "sha256"),
)

# One row per entry in scope, and per payment that it stands for.
bank_entry = Table(
    "bank_entry",
    metadata,
    Column("entry_id", Integer, primary_key=True),
    Column(
        "statement_id",
        Integer,
        ForeignKey("bank_statement.statement_id"),
        nullable=False,
        index=True,
    ),
    Column("entry_no", Text, nullable=False),
    Column("part", Integer, nullable=False),
    text_column("booked_on", 10),
    text_column("value_on", 10),
    Column("currency", String(3), nullable=False),
    amount_column("amount"),
    Column("end_to_end_id", Text, nullable=False),
    Column("reference", Text, nullable=False),
    Column("counterparty", Text, nullable=False),
    Column("text", Text, nullable=False),
    text_column("status", 20),
    amount_column("charges"),
    text_column("instructed_currency", 3),
    Column("instructed_amount", BigInteger, nullable=True),
)
