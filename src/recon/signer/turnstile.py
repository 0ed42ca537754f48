"""How often the signer may be asked: so many a second, a few more at once."""

from collections.abc import Callable
from dataclasses import dataclass, field

BURST_SECONDS = 2.0
"""So much of the pace may be used at once."""


@dataclass(slots=True)
class Turnstile:
    """Lets so many calls a second pass; `seconds` is a clock that never goes back."""

    calls_per_second: float
    seconds: Callable[[], float]
    _left: float = field(init=False)
    _looked_at: float = field(init=False)

    def __post_init__(self) -> None:
        self._left = self._most
        self._looked_at = self.seconds()

    @property
    def _most(self) -> float:
        return max(1.0, self.calls_per_second * BURST_SECONDS)

    def lets_pass(self) -> bool:
        """Whether one more may be asked now; it is counted when it may."""
        now = self.seconds()
        gained = (now - self._looked_at) * self.calls_per_second
        self._left = min(self._most, self._left + gained)
        self._looked_at = now
        if self._left < 1:
            return False
        self._left -= 1
        return True
