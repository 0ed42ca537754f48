"""Readers for each kind of file (instructions, bank, ledger), layout checks and the archive."""
