"""The database: engine, migrations, roles, locks, the hash-chained history and its head files."""
