"""Propose layouts from sample files: what has a single reading is decided, the rest is asked."""
