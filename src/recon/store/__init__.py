"""The database: tables, migrations, the journal and the history."""
