"""One thing that is not as it should be, or not yet."""

from enum import StrEnum
from typing import NamedTuple

from recon.matching.judging.state_table import Due
from recon.model.words import BreakCode, Flag


class Leg(StrEnum):
    """Which comparison a finding belongs to."""

    ORDERS = "orders"
    LEDGER = "ledger"
    OURS = "instructions"
    SETTLEMENT = "settlement"


class Finding(NamedTuple):
    """A code, the leg it concerns and the grace that delays it."""

    code: BreakCode | None
    leg: Leg
    due: Due = Due.NOW
    expected_side: str = "gateway"
    """Whose next word would settle it while the grace runs."""
    flag: Flag | None = None
    """Shown once the grace has ended, where the finding is no break."""
