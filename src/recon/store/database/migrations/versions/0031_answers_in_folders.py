"""What the gateway answered lies in the folders of the nights; the database keeps the hashes.

`recon db upgrade` writes the files of each night that has none before it comes here.
"""

import sqlalchemy as sa
from alembic import context, op

from recon.model.errors import StoreError
from recon.store.database.carried_answers import ANSWERED, runs_with_answers

revision = "0031"
down_revision = "0030"
branch_labels = None
depends_on = None

SEEN = sa.table("observation", *map(sa.column, ("run_id", "observation_id")))
PART = sa.table("answer_part", *map(sa.column, ("run_id", "part_id")))
INPUT = sa.table("run_input", *map(sa.column, ("run_id", "last_observation")))


def upgrade() -> None:
    connection = op.get_bind()
    answered = context.config.attributes[ANSWERED]
    if left := sorted({*runs_with_answers(connection)} - answered):
        msg = (
            f"what the gateway answered {len(left)} runs (the first: {left[0]}) lies in this "
            "database alone, and this version keeps it in the folders of the nights: nothing was "
            "changed; run `recon db upgrade`, which writes it there first"
        )
        raise StoreError(msg)
    _count_files(connection)
    op.drop_table("observation")
    op.drop_table("query_key")


def _count_files(connection: sa.Connection) -> None:
    """How far each run read, as the number of a file in place of that of a payment."""
    began = dict(
        connection.execute(
            sa.select(SEEN.c.run_id, sa.func.min(SEEN.c.observation_id)).group_by(SEEN.c.run_id)
        )
        .tuples()
        .all()
    )
    last = dict(
        connection.execute(
            sa.select(PART.c.run_id, sa.func.max(PART.c.part_id)).group_by(PART.c.run_id)
        )
        .tuples()
        .all()
    )
    for run_id, until in connection.execute(sa.select(INPUT)).all():
        read = [last[name] for name, first in began.items() if first <= until and name in last]
        changed = sa.update(INPUT).where(INPUT.c.run_id == run_id)
        connection.execute(changed.values(last_observation=max(read, default=0)))
