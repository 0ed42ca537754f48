"""Creates the tables of the schema and the triggers that keep the history append-only.

Before the first release no database needs to be preserved, so a change of the schema needs no
migration. `.ci/release.py` refuses a tag while this module uses the schema; the commit before the
first tag writes the tables out here, and each later change brings its own migration.
"""

from alembic import op

from recon.store import schema

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Create every table, then the triggers."""
    schema.run.metadata.create_all(op.get_bind(), checkfirst=False)
    _guard_history()


def _guard_history() -> None:
    if op.get_bind().dialect.name == "sqlite":
        for verb in ("UPDATE", "DELETE"):
            op.execute(
                f"CREATE TRIGGER history_no_{verb.lower()} BEFORE {verb} ON history "
                "BEGIN SELECT RAISE(ABORT, 'the history is append-only'); END"
            )
        return
    op.execute(
        "CREATE FUNCTION history_is_append_only() RETURNS trigger LANGUAGE plpgsql AS $$ "
        "BEGIN RAISE EXCEPTION 'the history is append-only'; END $$"
    )
    op.execute(
        "CREATE TRIGGER history_no_change BEFORE UPDATE OR DELETE OR TRUNCATE ON history "
        "FOR EACH STATEMENT EXECUTE FUNCTION history_is_append_only()"
    )
