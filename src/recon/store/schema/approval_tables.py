"""What people decided: approvals of lists, verdicts on doubts, releases, and used codes."""

from sqlalchemy import BigInteger, Boolean, Column, Integer, Table, Text

from recon.store.schema.columns import (
    ID_CHARACTERS,
    REASON_CHARACTERS,
    at_column,
    id_column,
    metadata,
    text_column,
)

# One row per list that somebody said yes to.
approval = Table(
    "approval",
    metadata,
    Column("approval_id", Integer, primary_key=True),
    text_column("digest", ID_CHARACTERS),
    Column("instruction_ids", Text, nullable=False),  # JSON
    text_column("state", 12),  # first, complete, void
    text_column("first_by", 100),
    Column("first_authenticated", Boolean, nullable=False),
    at_column("first_at", nullable=False),
    at_column("valid_until", nullable=False),
    text_column("second_by", 100),
    Column("second_authenticated", Boolean, nullable=False),
    at_column("second_at"),
    text_column("why", REASON_CHARACTERS),  # why it is void
)

# One row per word of a person about an instruction that evidence cannot decide.
verdict = Table(
    "verdict",
    metadata,
    Column("verdict_id", Integer, primary_key=True),
    id_column("instruction_id"),
    text_column("verdict", 12),  # applied, not_applied
    text_column("evidence", 1000),
    text_column("given_by", 100),
    Column("authenticated", Boolean, nullable=False),
    at_column("given_at", nullable=False),
    text_column("state", 12),  # open, agreed, replaced
)

# One row per run whose hold people lifted.
release = Table(
    "release",
    metadata,
    id_column("run_id", primary_key=True),
    text_column("reason", REASON_CHARACTERS),
    text_column("first_by", 100),
    Column("first_authenticated", Boolean, nullable=False),
    at_column("first_at", nullable=False),
    text_column("second_by", 100),  # "" while the second person is missing
    Column("second_authenticated", Boolean, nullable=False),
    at_column("second_at"),
)

# One row per one-time code that was used, so that none is used twice.
used_code = Table(
    "used_code",
    metadata,
    id_column("person", primary_key=True),
    Column("time_step", BigInteger, primary_key=True),
    at_column("used_at", nullable=False),
)

# One row per wrong code.
wrong_code = Table(
    "wrong_code",
    metadata,
    Column("wrong_id", Integer, primary_key=True),
    id_column("person"),
    at_column("at", nullable=False),
    text_column("origin", 100),  # whose login on this machine gave it
)
