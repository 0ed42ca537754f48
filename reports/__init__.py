"""Workbooks: building them and reading them back."""
