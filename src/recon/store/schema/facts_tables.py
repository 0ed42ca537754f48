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

# One row per version of an order file that brought rows which did not stand already.
order_facts = Table(
    "order_facts",
    metadata,
    Column("file_id", Integer, ForeignKey("order_file.file_id"), primary_key=True),
    Column("folder", Text, nullable=False),  # below the archive of the file's account
    id_column("rows_sha256"),
    id_column("keys_sha256"),
    text_column("gone_sha256", ID_CHARACTERS),  # "" where its rows take no other's place
    count_column("size_bytes"),  # of all of them
    count_column("row_count"),
    count_column("gone_from"),  # the oldest and the newest of the files whose rows are gone by it
    count_column("gone_to"),
)

# One row per file that has the keys of all order files of an inbox from one to another.
merged_keys = Table(
    "merged_keys",
    metadata,
    Column("last_file", Integer, ForeignKey("order_file.file_id"), primary_key=True),
    Column("first_file", Integer, primary_key=True),
    *(id_column(name) for name in ("merchant_id", "account_id")),  # of the inbox
    Column("folder", Text, nullable=False),  # below the archive of the inbox
    id_column("sha256"),
    count_column("size_bytes"),
    count_column("row_count"),  # keys, each once for each file that has it
    count_column("file_count"),
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
