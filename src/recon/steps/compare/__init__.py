"""Comparing a night: its inputs, the comparison, its result files; past nights compared again."""
