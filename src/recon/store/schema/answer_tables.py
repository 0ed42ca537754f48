"""Which files hold what the gateway answered, and the few answers that are asked for by key."""

from sqlalchemy import BigInteger, Column, Index, Integer, String, Table, Text

from recon.store.schema.columns import (
    ID_CHARACTERS,
    account_columns,
    at_column,
    count_column,
    id_column,
    metadata,
    text_column,
)

PHASE_CHARACTERS = 80

# One row per file of keys or answers in the archive, made before anything is built on it.
answer_part = Table(
    "answer_part",
    metadata,
    Column("part_id", Integer, primary_key=True),
    id_column("run_id"),
    Column("phase", String(PHASE_CHARACTERS), nullable=False),
    *account_columns(),  # whose answers; another account's than the run's where it was asked, too
    Column("path", Text, nullable=False),  # below the archive
    Column("schema_label", String(40), nullable=False),
    text_column("sha256", ID_CHARACTERS),
    text_column("content", ID_CHARACTERS),
    count_column("size_bytes"),
    count_column("row_count"),
    count_column("asked"),  # keys that are to be asked for
    count_column("answered"),  # keys with a final answer
    at_column("last_at"),  # of the newest answer
    # the newest link of the history when the last of them was asked
    Column("asked_after", BigInteger, nullable=False, server_default="0"),
    Column("codes", Text, nullable=False, server_default="{}"),
    text_column("chargeback_codes"),  # those that the rules took for chargebacks
    Index("ix_answer_part_run", "run_id", "phase"),
    Index("ix_answer_part_account", "merchant_id", "account_id", "last_at"),
)

# One row per order and code of a chargeback, as an answer first showed it.
charged_back_order = Table(
    "charged_back_order",
    metadata,
    *(
        Column(name, String(ID_CHARACTERS), primary_key=True, nullable=False)
        for name in ("merchant_id", "account_id", "order_no")
    ),
    Column("payment_status", String(20), primary_key=True, nullable=False),
    id_column("run_id"),
    Column("part_id", Integer, nullable=False),
)
