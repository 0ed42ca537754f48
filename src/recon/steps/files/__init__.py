"""The files of a night: arrival, ingestion, setting aside, reading again."""
