"""Several messages about one thing in one state, where they say different things of it."""

from alembic import op

revision = "0023"
down_revision = "0022"
branch_labels = None
depends_on = None

_BEFORE = "uq_notification_merchant_id_account_id_identity_sha256"
_NOW = "uq_notification_merchant_id_account_id_identity_sha256_sha256"


def upgrade() -> None:
    with op.batch_alter_table("notification") as table:
        table.drop_constraint(_BEFORE, type_="unique")
        table.create_unique_constraint(
            _NOW, ["merchant_id", "account_id", "identity_sha256", "sha256"]
        )
