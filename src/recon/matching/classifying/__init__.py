"""What a set is: the state table, both legs, grace, severity."""
