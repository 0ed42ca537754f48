"""The only place that reads bytes of foreign files: hardened, bounded, strict."""
