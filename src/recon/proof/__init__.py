"""What proves a result: control totals, bridges, scope of assurance, verdict."""
