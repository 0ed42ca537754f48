"""Which files of facts hold the rows of an order file; the rows themselves lie in the archive."""

from sqlalchemy import Column, ForeignKey, Index, Integer, String, Table, Text

from recon.store.schema.columns import (
    ID_CHARACTERS,
    at_column,
    count_column,
    id_column,
    metadata,
    text_column,
)

# One row per order file that brought rows, or arrived with those of another, and settlement file.
order_facts = Table(
    "order_facts",
    metadata,
    Column("file_id", Integer, ForeignKey("order_file.file_id"), primary_key=True),
    Column("folder", Text, nullable=False),  # below the archive of the file's account
    id_column("rows_sha256"),
    count_column("size_bytes"),  # of all of them
    count_column("row_count"),
    text_column("sender"),  # of orders: whose inbox, the first account of several
)

# One row per account that such a file has rows of.
order_facts_account = Table(
    "order_facts_account",
    metadata,
    Column("file_id", Integer, ForeignKey("order_file.file_id"), primary_key=True),
    *(
        Column(name, String(ID_CHARACTERS), primary_key=True, nullable=False)
        for name in ("merchant_id", "account_id")
    ),
    count_column("row_count"),
    at_column("ordered_from", nullable=False),
    at_column("ordered_to", nullable=False),
    Index("ix_order_facts_account_ordered", "merchant_id", "account_id", "ordered_to"),
)
