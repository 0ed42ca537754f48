"""Which rows of the sides belong together."""
