"""Journals of a close as files that bookkeeping programs import: rows to text, nothing else."""
