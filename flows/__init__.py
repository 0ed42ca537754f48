"""Prefect flows: what runs, in which order, on which day."""
