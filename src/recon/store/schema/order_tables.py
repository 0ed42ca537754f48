"""Order files, the actions they ask for, and what could not be read."""

from sqlalchemy import (
    BigInteger,
    Column,
    ForeignKey,
    Index,
    Integer,
    String,
    Table,
    Text,
    UniqueConstraint,
)

from recon.store.schema.columns import (
    ID_CHARACTERS,
    REASON_CHARACTERS,
    account_columns,
    amount_column,
    at_column,
    business_date_column,
    count_column,
    id_column,
    metadata,
    text_column,
)

# One row per version of an order file of a merchant's inbox.
order_file = Table(
    "order_file",
    metadata,
    Column("file_id", Integer, primary_key=True),
    *account_columns(),
    business_date_column(),
    id_column("run_id"),
    text_column("name"),
    Column("version", Integer, nullable=False),
    text_column("sha256"),
    Column("size_bytes", BigInteger, nullable=False),
    count_column("rows_read"),
    count_column("rows_accepted"),
    count_column("rows_rejected"),
    count_column("rows_skipped"),
    count_column("rows_unassigned"),
    count_column("rows_new"),
    count_column("rows_repeat"),
    at_column("read_at", nullable=False),
    Column("kind", String(20), nullable=False, server_default="orders"),  # orders, instructions
    UniqueConstraint("merchant_id", "account_id", "name", "version"),
)

# One row per action that an order file row carries.
order_action = Table(
    "order_action",
    metadata,
    Column("action_id", Integer, primary_key=True),
    Column("file_id", Integer, ForeignKey("order_file.file_id"), nullable=False),
    Column("line", Integer, nullable=False),
    *account_columns(),
    id_column("order_no"),
    text_column("transaction_id", ID_CHARACTERS),
    text_column("action", 20),
    Column("currency", String(3), nullable=False),
    amount_column("amount"),  # of the order
    amount_column("action_amount", nullable=True),
    text_column("action_reason", 50),
    text_column("request_id", ID_CHARACTERS),
    # Of the order row that carries it; "" where it stands in an instruction file.
    text_column("status", 20),
    amount_column("expected_captured_amount", nullable=True),
    amount_column("refund_amount", nullable=True),
    text_column("instruction_id", ID_CHARACTERS),  # what it became; "" until it is planned
    text_column("review_flag", 20),
    text_column("recurring_id", ID_CHARACTERS),
    text_column("contract_name"),
    text_column("payee", 80),  # as people may see it
    text_column("payee_digest", 64),
    text_column("content_digest", 64),
    Column("sealed", Text, nullable=False, server_default=""),  # encrypted; "" once it is planned
)

# One row per row of a source that could not be read.
reject = Table(
    "reject",
    metadata,
    Column("reject_id", Integer, primary_key=True),
    Column("file_id", Integer, ForeignKey("order_file.file_id"), nullable=True),
    id_column("run_id"),
    text_column("kind", 20),
    text_column("source"),
    Column("line", Integer, nullable=False),
    text_column("column", 100),
    text_column("reason", REASON_CHARACTERS),
    text_column("value", REASON_CHARACTERS),
    text_column("merchant_id", ID_CHARACTERS),
    text_column("account_id", ID_CHARACTERS),
    text_column("order_no", ID_CHARACTERS),
    # Of an entry of the books of which all three can be read; of a settlement line its currency.
    text_column("entry_type", 40),
    text_column("currency", 3),
    Column("amount", BigInteger, nullable=False, server_default="0"),
    text_column("batch_id", ID_CHARACTERS),  # of a settlement line, where it could be read
)

# How a rejected order row stopped standing for its order; never changed, never removed.
reject_end = Table(
    "reject_end",
    metadata,
    Column("end_id", Integer, primary_key=True),
    Column("reject_id", Integer, ForeignKey("reject.reject_id"), nullable=False),
    text_column("ended", 20),  # delivered, dismissed
    Column("file_id", Integer, ForeignKey("order_file.file_id"), nullable=True),  # that brought it
    text_column("said_by", ID_CHARACTERS),
    text_column("why", REASON_CHARACTERS),
    at_column("ended_at", nullable=False),
    Index("ix_reject_end_reject", "reject_id"),
)
