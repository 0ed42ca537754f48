"""Order files, as orders, instructions and rejects."""
