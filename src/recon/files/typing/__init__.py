"""Convert text columns to typed columns, with a reject for each row that cannot be read."""
