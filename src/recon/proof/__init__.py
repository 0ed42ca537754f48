"""Reconciles in parts and proves results: control totals, bridges, scope of assurance, verdict."""
