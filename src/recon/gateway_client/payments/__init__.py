"""A payment by card, by another method or by the hosted page: prepared, and its reply read."""
