"""The books as each night read them lie in its folder; the database keeps where they came from.

`recon db upgrade` writes the folder's file of each night that has none before it comes here.
"""

from alembic import context, op

from recon.model.errors import StoreError
from recon.store.database.carried_entries import BOOKED, runs_with_entries

revision = "0032"
down_revision = "0031"
branch_labels = None
depends_on = None


def upgrade() -> None:
    connection = op.get_bind()
    booked = context.config.attributes[BOOKED]
    if left := sorted({*runs_with_entries(connection)} - booked):
        msg = (
            f"the books that {len(left)} runs read (the first: {left[0]}) lie in this database "
            "alone, and this version keeps them in the folders of the nights: nothing was "
            "changed; run `recon db upgrade`, which writes them there first"
        )
        raise StoreError(msg)
    op.drop_table("ledger_entry")
