"""The matching engine: items become matches, pending, breaks, unverified sets and control totals.

Pandas on int64 minor units; no I/O. `sources` is what goes in, `result` what comes out.
"""
