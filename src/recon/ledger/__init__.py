"""Ledgers, from a SQL query or a file, as entries."""

from recon.ledger.reader import Ledger, read_ledger, refuse_wrong_mapping

__all__ = ["Ledger", "read_ledger", "refuse_wrong_mapping"]
