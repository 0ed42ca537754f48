"""One module per source, each reducing its rows to one row per set."""
