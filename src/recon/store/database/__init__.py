"""The database itself: engine, migrations, roles, locks, the hash chain and its heads outside."""
