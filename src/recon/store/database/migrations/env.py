"""Alembic environment: runs migrations on the connection from `store.database.migrate`."""

from alembic import context

from recon.store import schema

context.configure(
    connection=context.config.attributes["connection"],
    target_metadata=schema.run.metadata,
    render_as_batch=True,
)
with context.begin_transaction():
    context.run_migrations()
