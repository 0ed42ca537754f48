"""One thin Prefect wrapper per step."""
