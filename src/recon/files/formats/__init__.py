"""Bytes of foreign files as text columns: hardened, bounded, strict."""
