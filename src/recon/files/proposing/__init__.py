"""Layouts proposed from samples: what only one reading fits is written down, all else is asked."""
