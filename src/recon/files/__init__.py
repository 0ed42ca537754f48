"""Files of others as typed rows and rejects: where from, how written, which kinds."""
