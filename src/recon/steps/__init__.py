"""The use cases in plain Python: ingest, query, settle, reconcile, report."""
