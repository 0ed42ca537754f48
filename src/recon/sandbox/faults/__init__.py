"""Faults on demand: the plan, its kinds, what they alter."""
