"""Who signed which workbook."""

from sqlalchemy import Boolean, Column, String, Table

from recon.store.schema.columns import at_column, id_column, metadata, text_column

# One row per run and role. A later run of the night, or of an earlier one, makes it void.
sign_off = Table(
    "sign_off",
    metadata,
    id_column("run_id", primary_key=True),
    Column("role", String(12), primary_key=True),  # reviewer, approver
    text_column("signed_by", 100),
    Column("authenticated", Boolean, nullable=False),
    at_column("signed_at", nullable=False),
    text_column("workbook_sha256", 64),
)
