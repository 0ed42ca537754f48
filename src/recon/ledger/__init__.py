"""Ledgers, from a SQL query or a file, as entries."""
