"""Arriving files: fetched from remote folders, and held until they are complete."""
