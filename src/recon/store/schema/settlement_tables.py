"""Lines of the gateway's settlement files: what they come to, and the few that are rows.

The lines themselves lie in files of facts (`order_facts`).
"""

from sqlalchemy import Column, ForeignKey, Index, Integer, String, Table

from recon.store.schema.columns import (
    ID_CHARACTERS,
    account_columns,
    amount_column,
    count_column,
    id_column,
    metadata,
    text_column,
)

# One row per account, batch, day, entry type, tariff and currency that a file has lines of.
settled_sum = Table(
    "settled_sum",
    metadata,
    Column("file_id", Integer, ForeignKey("order_file.file_id"), primary_key=True),
    Column("position", Integer, primary_key=True),
    *account_columns(),
    id_column("batch_id"),
    Column("settled_on", String(10), nullable=False),
    Column("entry_type", String(30), nullable=False),
    text_column("method", ID_CHARACTERS),
    text_column("brand", ID_CHARACTERS),
    text_column("region", ID_CHARACTERS),
    Column("currency", String(3), nullable=False),
    count_column("is_own"),  # 1: lines with a reference of our own
    count_column("line_count"),
    *(amount_column(name) for name in ("gross", "fee", "net")),
    amount_column("base"),  # gross amounts without their sign
    Index("ix_settled_sum_batch", "batch_id"),
)

# One row per pay-out and chargeback of a version of a settlement file: they are asked for over all
# nights. The file of facts has them, too.
settlement_line = Table(
    "settlement_line",
    metadata,
    Column("line_id", Integer, primary_key=True),
    Column("file_id", Integer, ForeignKey("order_file.file_id"), nullable=False, index=True),
    Column("line", Integer, nullable=False),
    *account_columns(),
    id_column("batch_id"),
    Column("settled_on", String(10), nullable=False),
    Column("entry_type", String(30), nullable=False),
    text_column("order_no", ID_CHARACTERS),
    text_column("transaction_id", ID_CHARACTERS),
    text_column("reference_no", ID_CHARACTERS),
    text_column("own_reference", ID_CHARACTERS),
    text_column("method", ID_CHARACTERS),
    text_column("brand", ID_CHARACTERS),
    text_column("region", ID_CHARACTERS),
    Column("currency", String(3), nullable=False),
    amount_column("gross"),
    amount_column("fee"),
    amount_column("net"),
    Index("ix_settlement_line_payment", "merchant_id", "account_id", "transaction_id"),
    Index("ix_settlement_line_day", "merchant_id", "account_id", "settled_on"),
)
