"""What a run compared, kept so that its night can be compared again."""

from sqlalchemy import Column, Integer, Table, Text

from recon.store.schema.columns import (
    ID_CHARACTERS,
    at_column,
    id_column,
    metadata,
    text_column,
)

# One row per set of rules that a run ever used, as canonical JSON.
rules_version = Table(
    "rules_version",
    metadata,
    id_column("digest", primary_key=True),
    Column("document", Text, nullable=False),
    at_column("first_used_at", nullable=False),
)

# One row per run that compared: up to which rows of the tables it read, and a digest of each input.
run_input = Table(
    "run_input",
    metadata,
    id_column("run_id", primary_key=True),
    id_column("rules_digest"),
    text_column("previous_run_id", ID_CHARACTERS),  # whose open breaks it carried forward
    Column("last_file", Integer, nullable=False),
    Column("last_observation", Integer, nullable=False),  # the newest file of answers
    text_column("product_version", 40),
    Column("document", Text, nullable=False),
)

# One row per break that was open the night before a run and is not open after it.
break_end = Table(
    "break_end",
    metadata,
    id_column("run_id", primary_key=True),
    id_column("break_id", primary_key=True),
    text_column("movement", 20),  # how it ended
    text_column("first_seen", 10),
)
