"""What proves a result is tried on the cases of the engine."""

from tests.recon.matching.conftest import case, make_case, new_case
from tests.recon.proof.killed_sql import killed_at

__all__ = ["case", "killed_at", "make_case", "new_case"]
