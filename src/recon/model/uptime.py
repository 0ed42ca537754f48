"""Clocks that nobody here can set: how long this machine has run, and the gateway's own."""

from dataclasses import dataclass
from datetime import datetime, timedelta

from recon.model.words import Clock

UNKNOWN_BOOT = "unknown"


@dataclass(frozen=True, slots=True)
class Uptime:
    """One reading."""

    boot_id: str = UNKNOWN_BOOT
    milliseconds: int = 0
    """Since that boot, sleep included."""
    gateway_at: datetime | None = None
    """The Date of the gateway's reply, where there was one."""


NEVER_READ = Uptime()


def between(earlier: Uptime, later: Uptime) -> timedelta | None:
    """How much time passed from one reading to another; None when no clock ties them.

    Of one boot its uptime decides. After another boot, or on another machine, only the gateway's
    Date does.
    """
    if earlier.boot_id == later.boot_id != UNKNOWN_BOOT:
        return timedelta(milliseconds=later.milliseconds - earlier.milliseconds)
    if earlier.gateway_at is None or later.gateway_at is None:
        return None
    return later.gateway_at - earlier.gateway_at


def uptime_of(clock: Clock) -> Uptime:
    """A reading from a clock that is passed in; for nights that are replayed."""
    return Uptime("replayed", int(clock().timestamp() * 1000))
