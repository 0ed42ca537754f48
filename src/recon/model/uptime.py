"""A clock that nobody can set: how long this machine has been running, sleep included."""

from dataclasses import dataclass

from recon.model.words import Clock


@dataclass(frozen=True, slots=True)
class Uptime:
    """One reading; two are comparable when they are of one boot."""

    boot_id: str
    milliseconds: int


def uptime_of(clock: Clock) -> Uptime:
    """A reading from a clock that is passed in; for nights that are replayed."""
    return Uptime("replayed", int(clock().timestamp() * 1000))
