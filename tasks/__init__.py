"""Prefect tasks: one thin wrapper per step of a night."""
