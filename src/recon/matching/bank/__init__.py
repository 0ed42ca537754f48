"""Payouts against what arrived at the bank: which statements count, which entries are ours."""
