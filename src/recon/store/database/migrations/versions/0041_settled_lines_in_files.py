"""The lines of settlement files lie in files of facts; only pay-outs and chargebacks are rows.

`recon db upgrade` writes the files of each settlement file that has none before it comes here.
"""

import sqlalchemy as sa
from alembic import op

from recon.model.errors import StoreError
from recon.store.database.carried_lines import files_with_lines

revision = "0041"
down_revision = "0040"
branch_labels = None
depends_on = None

KEPT = ("chargeback", "chargeback_reversal", "payout")
LINE = sa.table("settlement_line", sa.column("entry_type"))


def upgrade() -> None:
    connection = op.get_bind()
    if left := files_with_lines(connection):
        msg = (
            f"the lines of {len(left)} settlement files (the first: number {left[0]}) lie in this "
            "database alone, and this version keeps them in files of the archive: nothing was "
            "changed; run `recon db upgrade`, which writes them there first"
        )
        raise StoreError(msg)
    connection.execute(sa.delete(LINE).where(LINE.c.entry_type.not_in(KEPT)))
