"""Runs of nights and the sources they read."""

from sqlalchemy import BigInteger, Column, Index, String, Table, text

from recon.store.schema.columns import (
    REASON_CHARACTERS,
    account_columns,
    at_column,
    business_date_column,
    count_column,
    id_column,
    metadata,
    text_column,
)

# One row per run of a night, or of a part of one (merchant, account, business date).
run = Table(
    "run",
    metadata,
    id_column("run_id", primary_key=True),
    *account_columns(),
    business_date_column(),
    Column("mode", String(10), nullable=False),
    Column(
        "status", String(10), nullable=False
    ),  # active, finished, stopped; part: a part that ended
    text_column("part", 10),  # model.Part; "" is a whole night
    text_column(
        "predecessor", REASON_CHARACTERS
    ),  # what stands in place of the night before; "" where it is there (steps.predecessor)
    text_column("step", 20),  # last step that was finished
    text_column(
        "owner"
    ),  # host, process id and its start time, for the sentence that names the holder
    text_column("owner_process", 120),  # the same for programs: store.owner.Owner
    at_column("started_at", nullable=False),
    at_column("finished_at"),
    at_column("as_of", nullable=False),
    text_column("verdict", 20),
    text_column("rules_digest"),
    text_column("result_digest"),
    text_column("workbook", 1000),
    text_column("workbook_sha256"),
    text_column("history_head"),
    text_column("problem", REASON_CHARACTERS),
    Index(
        "uq_run_active",
        "merchant_id",
        "account_id",
        "business_date",
        unique=True,
        sqlite_where=text("status = 'active'"),
        postgresql_where=text("status = 'active'"),
    ),
    Index("ix_run_night", "merchant_id", "account_id", "business_date"),
)

# One row per source other than order files that a run read (the ledger).
run_source = Table(
    "run_source",
    metadata,
    id_column("run_id", primary_key=True),
    Column("kind", String(20), primary_key=True),
    text_column("name"),
    text_column("sha256"),
    Column("size_bytes", BigInteger, nullable=False),
    count_column("rows_read"),
    count_column("rows_accepted"),
    count_column("rows_rejected"),
    count_column("rows_skipped"),
    count_column("rows_unassigned"),
)
