"""The rows of a result lie in the folder of its night; the database keeps what it came to.

`recon db upgrade` writes the folder of each night that has none before it comes here.
"""

import json
from typing import Any

import sqlalchemy as sa
from alembic import context, op

from recon.model.errors import StoreError
from recon.store.database.carried_rows import CARRIED, nights_with_rows

revision = "0028"
down_revision = "0027"
branch_labels = None
depends_on = None

KEPT = (
    *("as_of", "verdict", "unmapped_codes", "not_covered", "scope_of_assurance"),
    *("rules_digest", "digest"),
)
SECTIONS = ("break", "match", "pending", "unverified")
ROW = sa.table("result_row", *map(sa.column, ("run_id", "section", "id", "currency", "exposure")))
SUMMARY = sa.table("result_summary", *map(sa.column, ("run_id", "document")))
ANSWER = sa.table("break_answer", *map(sa.column, ("run_id", "break_id", "currency", "exposure")))


def upgrade() -> None:
    connection = op.get_bind()
    carried = context.config.attributes[CARRIED]
    if left := sorted({*nights_with_rows(connection)} - carried):
        msg = (
            f"the results of {len(left)} nights (the first: run {left[0]}) lie in this database "
            "alone, and this version keeps them in the folders of the nights: nothing was changed; "
            "run `recon db upgrade`, which writes them there first"
        )
        raise StoreError(msg)
    with op.batch_alter_table("break_answer") as table:
        table.add_column(sa.Column("currency", sa.String(3), server_default="", nullable=False))
        table.add_column(sa.Column("exposure", sa.BigInteger(), nullable=True))
    _keep_money_of_answers(connection)
    for run_id, document in connection.execute(sa.select(SUMMARY)).all():
        summary = _summary(connection, run_id, before=json.loads(document))
        kept = sa.update(SUMMARY).where(SUMMARY.c.run_id == run_id)
        connection.execute(kept.values(document=json.dumps(summary, sort_keys=True)))
    op.drop_table("result_effect")
    op.drop_table("result_row")


def _keep_money_of_answers(connection: sa.Connection) -> None:
    of_break = sa.and_(
        ROW.c.run_id == ANSWER.c.run_id,
        ROW.c.section == "break",
        ROW.c.id == ANSWER.c.break_id,
    )
    currency, exposure = (
        sa.select(column).where(of_break).correlate(ANSWER).scalar_subquery()
        for column in (ROW.c.currency, ROW.c.exposure)
    )
    connection.execute(
        sa.update(ANSWER).values(currency=sa.func.coalesce(currency, ""), exposure=exposure)
    )


def _summary(connection: sa.Connection, run_id: str, *, before: dict[str, Any]) -> dict[str, Any]:
    figures = sa.select(
        ROW.c.section, ROW.c.currency, sa.func.count(), sa.func.sum(ROW.c.exposure)
    ).where(ROW.c.run_id == run_id)
    rows, exposure = dict.fromkeys(SECTIONS, 0), {}
    for section, currency, count, at_risk in connection.execute(
        figures.group_by(ROW.c.section, ROW.c.currency)
    ):
        rows[section] += int(count)
        if section == "break":
            exposure[currency] = int(at_risk or 0)
    return {**{name: before[name] for name in KEPT}, "rows": rows, "exposure": exposure}
