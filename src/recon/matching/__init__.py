"""The matching engine: classifies items as matched, pending, broken or unverified, with no I/O.

Pandas on int64 minor units. `frames/sources.py` is its input, `breaks/result.py` its output.
"""
