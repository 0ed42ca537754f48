"""Compares payouts with bank statements: which statements count, and which entries are ours."""
