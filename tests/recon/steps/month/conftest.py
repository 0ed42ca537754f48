"""What states a month is killed as what proves a night."""

from tests.recon.proof.killed_sql import killed_at

__all__ = ["killed_at"]
