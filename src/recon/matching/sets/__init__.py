"""Assigns the rows of all sources to sets and compares their sides."""
