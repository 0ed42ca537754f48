"""Strict, size-limited readers that turn the bytes of external files into text columns."""
