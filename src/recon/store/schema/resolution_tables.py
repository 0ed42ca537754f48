"""What people answered to breaks, and the workbooks that brought the answers."""

from sqlalchemy import Boolean, Column, Integer, String, Table, UniqueConstraint

from recon.model.resolutions import COMMENT_CHARACTERS_MAX
from recon.store.schema.columns import (
    account_columns,
    amount_column,
    at_column,
    id_column,
    metadata,
    text_column,
)

# One row per answer to a break, never changed but for the second person of a write-off.
break_answer = Table(
    "break_answer",
    metadata,
    Column("answer_id", Integer, primary_key=True),
    *account_columns(),
    id_column("break_id"),
    Column("version", Integer, nullable=False),  # 1 for the first answer to this break
    text_column("resolution", 40),
    text_column("owner", 100),
    text_column("comment", COMMENT_CHARACTERS_MAX),
    text_column("resolved_on", 10),
    text_column("given_by", 100),
    at_column("given_at", nullable=False),
    Column("waits", Boolean, nullable=False),  # a write-off without its second person
    text_column("agreed_by", 100),
    at_column("agreed_at"),
    id_column("run_id"),
    text_column("file_sha256", 64),
    Column("sheet_row", Integer, nullable=False),
    Column("covers_cause", Boolean, nullable=False),  # came with the answer to another break
    text_column("currency", 3),
    amount_column("exposure", nullable=True),  # of the break, as the answered workbook showed it
    UniqueConstraint("merchant_id", "account_id", "break_id", "version"),
)

# One row per returned workbook that was taken in.
answer_file = Table(
    "answer_file",
    metadata,
    Column("file_sha256", String(64), primary_key=True),
    text_column("name"),
    id_column("run_id"),
    text_column("given_by", 100),
    at_column("imported_at", nullable=False),
    Column("taken", Integer, nullable=False),
    Column("refused", Integer, nullable=False),
)
