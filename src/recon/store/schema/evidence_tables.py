"""Evidence about doubts beside the answers of the order query."""

from sqlalchemy import BigInteger, Column, Index, Integer, Table

from recon.store.schema.columns import ID_CHARACTERS, at_column, id_column, metadata, text_column

# One row per search for our own refund reference.
refund_search = Table(
    "refund_search",
    metadata,
    Column("search_id", Integer, primary_key=True),
    id_column("instruction_id"),
    text_column("refund_reference_id", ID_CHARACTERS),  # "" when the gateway knows none
    at_column("queried_at", nullable=False),
    text_column("shown_beside", ID_CHARACTERS),  # a refund of ours that the same search did show
    text_column("boot_id", ID_CHARACTERS),  # of the machine that asked
    Column("uptime_ms", BigInteger, nullable=False, server_default="0"),
    at_column("gateway_at"),  # the Date of the reply
    Index("ix_refund_search_instruction", "instruction_id"),
)
