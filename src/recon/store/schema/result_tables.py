"""What a run's reconciliation came to."""

from sqlalchemy import BigInteger, Column, Integer, Table, Text

from recon.store.schema.columns import (
    ID_CHARACTERS,
    id_column,
    metadata,
    text_column,
)

# One row per equation of a run's proof.
control_total = Table(
    "control_total",
    metadata,
    id_column("run_id", primary_key=True),
    Column("position", Integer, primary_key=True),
    text_column("id", 8),
    text_column("name"),
    text_column("merchant_id", ID_CHARACTERS),
    text_column("account_id", ID_CHARACTERS),
    text_column("currency", 3),
    text_column("measure", 10),
    Column("left", BigInteger, nullable=False),
    Column("right", BigInteger, nullable=False),
)

# One row per run: its result in a few words, as JSON; the rows lie in the folder of the night.
result_summary = Table(
    "result_summary",
    metadata,
    id_column("run_id", primary_key=True),
    Column("document", Text, nullable=False),
)
