"""The first sheet."""
