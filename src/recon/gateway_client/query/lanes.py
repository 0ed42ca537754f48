"""How processes that read one account side by side keep its pace: each calls in slots of its own.

Time is cut into slots by the clock on the wall, which the machines share, and each slot belongs to
one lane. So whenever each of them begins, however late it is, no two ever call in one slot; nobody
has to tell anybody anything.
"""

import math
import time
from collections.abc import Callable
from dataclasses import dataclass, field

WINDOW_SECONDS = 0.05
"""A call starts so soon after its slot began, or waits for its lane's next one."""
_SECOND = 1_000_000_000
"""In the nanoseconds in which slots are counted, so that no fraction is ever between two."""


@dataclass(slots=True)
class Lane:
    """One process's slots."""

    number: int
    """From 0."""
    of: int
    """Lanes of the account."""
    calls_per_second: float
    """The account's, not this lane's."""
    nanoseconds: Callable[[], int] = time.time_ns
    """The clock on the wall, which all lanes share."""
    _slot: int = field(default=-1, init=False)
    """In which the last call started."""
    _calls: int = field(default=0, init=False)
    """Of this lane in that slot."""

    @classmethod
    def taken_over(cls, number: int, *, of: int, calls_per_second: float) -> "Lane":
        """A lane in which another may have called a moment ago: its present slot counts as used."""
        lane = cls(number, of, calls_per_second)
        lane._slot = lane.nanoseconds() // lane.slot_nanoseconds
        lane._calls = lane.slot_calls
        return lane

    @property
    def slot_calls(self) -> int:
        """Calls of one slot: slots are not shorter than a machine can wake up in time."""
        return max(1, math.ceil(self.calls_per_second * WINDOW_SECONDS))

    @property
    def slot_nanoseconds(self) -> int:
        """So much longer than the pace needs that a call late in its window breaks no bound."""
        needed = self.slot_calls / self.calls_per_second
        return math.ceil(needed * (1 + WINDOW_SECONDS) * _SECOND)

    def wait_seconds(self, ahead: float, *, share: float) -> float:
        """How long the next call has to wait; 0 when it may start.

        Args:
            ahead: Seconds in which none may start for another cause.
            share: Of the pace, while the gateway wants less: 0 < share <= 1.
        """
        now, length = self.nanoseconds(), self.slot_nanoseconds
        at = now + math.ceil(max(ahead, 0.0) * _SECOND)
        slot, late = divmod(at, length)
        is_ours = slot % self.of == self.number and self._is_free(slot, share=share)
        if is_ours and late <= WINDOW_SECONDS * _SECOND:
            return (at - now) / _SECOND
        slot += 1 + (self.number - slot - 1) % self.of
        while not self._is_free(slot, share=share):
            slot += self.of
        return (slot * length - now) / _SECOND

    def started(self) -> None:
        """Count a call that starts now."""
        slot = self.nanoseconds() // self.slot_nanoseconds
        self._calls = self._calls + 1 if slot == self._slot else 1
        self._slot = slot

    def _is_free(self, slot: int, *, share: float) -> bool:
        calls = self.slot_calls * share
        if slot == self._slot:
            return self._calls < math.floor(calls)
        left_out = self.of * math.ceil(1 / calls) if calls < 1 else 0
        return abs(slot - self._slot) >= left_out
