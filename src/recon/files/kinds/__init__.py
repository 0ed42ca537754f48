"""Each kind of file: orders, instructions, settlement, ledger; kept once it is read."""
