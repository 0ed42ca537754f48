"""Ledgers, from a SQL query or a file, as entries."""

from recon.ledger.reader import read_ledger

__all__ = ["read_ledger"]
