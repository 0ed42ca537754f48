"""What proves a result is tried on the cases of the engine."""

from tests.recon.matching.conftest import case, make_case, new_case

__all__ = ["case", "make_case", "new_case"]
