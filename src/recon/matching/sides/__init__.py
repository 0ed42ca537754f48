"""Each source as one row for each key: orders, gateway, ledger, instructions, settlement."""
