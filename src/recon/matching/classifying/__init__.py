"""Classification of sets: state table, comparison of amounts, grace and severity."""
