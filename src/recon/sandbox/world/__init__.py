"""A sample world derived from the ledger of effects: all files, and the expected findings."""
