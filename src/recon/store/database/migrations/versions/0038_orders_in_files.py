"""The rows of order files lie in files of facts; the database keeps which, and their hashes.

`recon db upgrade` writes the files of each order file that has none before it comes here.
"""

import sqlalchemy as sa
from alembic import context, op

from recon.model.errors import StoreError
from recon.store.database.carried_orders import STORED, files_with_rows

revision = "0038"
down_revision = "0037"
branch_labels = None
depends_on = None

ROW = sa.table("order_row", *map(sa.column, ("file_id", "merchant_id", "account_id", "order_no")))
FILE = sa.table("order_file", *map(sa.column, ("file_id", "merchant_id", "read_at")))
REJECT = sa.table(
    "reject", *map(sa.column, ("reject_id", "kind", "file_id", "account_id", "order_no"))
)
END = sa.table(
    "reject_end",
    *map(sa.column, ("reject_id", "ended", "file_id", "said_by", "why", "ended_at")),
)


def upgrade() -> None:
    connection = op.get_bind()
    stored = context.config.attributes[STORED]
    if left := [name for name in files_with_rows(connection) if name not in stored]:
        msg = (
            f"the rows of {len(left)} order files (the first: number {left[0]}) lie in this "
            "database alone, and this version keeps them in files of the archive: nothing was "
            "changed; run `recon db upgrade`, which writes them there first"
        )
        raise StoreError(msg)
    _note_deliveries(connection)
    op.drop_table("order_row")


def _note_deliveries(connection: sa.Connection) -> None:
    """Which rejected rows later rows of their orders ended: so far the rows themselves said it."""
    inbox, later = FILE.alias("inbox"), FILE.alias("later")
    noted = sa.select(END.c.reject_id).where(
        END.c.reject_id == REJECT.c.reject_id, END.c.ended == "delivered"
    )
    brought = (
        sa.select(REJECT.c.reject_id, sa.func.min(ROW.c.file_id).label("file_id"))
        .join(inbox, inbox.c.file_id == REJECT.c.file_id)
        .join(
            ROW,
            sa.and_(
                ROW.c.order_no == REJECT.c.order_no,
                ROW.c.merchant_id == inbox.c.merchant_id,
                sa.or_(REJECT.c.account_id == "", ROW.c.account_id == REJECT.c.account_id),
                ROW.c.file_id > REJECT.c.file_id,
            ),
        )
        .where(REJECT.c.kind == "orders", REJECT.c.order_no != "", ~noted.exists())
        .group_by(REJECT.c.reject_id)
        .subquery()
    )
    rows = sa.select(
        brought.c.reject_id,
        sa.literal("delivered"),
        brought.c.file_id,
        sa.literal(""),
        sa.literal(""),
        later.c.read_at,
    ).join(later, later.c.file_id == brought.c.file_id)
    names = ["reject_id", "ended", "file_id", "said_by", "why", "ended_at"]
    connection.execute(sa.insert(END).from_select(names, rows.order_by(brought.c.reject_id)))
