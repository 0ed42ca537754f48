"""Start options of a sandbox gateway, and its virtual clock.

The clock stays at its start until it is moved; optionally it also runs with real time.
"""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, date, datetime, time
from pathlib import Path
from typing import Literal

DEMO_BUSINESS_DATE = date(2026, 11, 20)
"""The business date of the demo's sample run, a Friday."""
CLOCK_START = datetime.combine(DEMO_BUSINESS_DATE, time(22, 0), UTC)
"""Initial instant of the virtual clock."""
MOVE_SECONDS_MAX = 10 * 366 * 86_400
"""The clock is never moved by more than ten years in all."""
DAY_SECONDS = 86_400
HOUR_SECONDS = 3_600

LOOPBACK = "127.0.0.1"
ORDERS_MAX = 5_000_000
"""Maximum number of orders of one population."""

Profile = Literal["base", "extended"]
CaptureMode = Literal["manual", "auto"]


@dataclass(frozen=True, slots=True)
class SandboxOptions:
    """Options of `recon sandbox`."""

    port: int = 0
    """0 takes a free port; the port changes no byte of the population."""
    seed: int = 42
    orders: int = 2000
    state: Path | None = None
    """SQLite file that persists the state; None keeps it in memory."""
    fault_plan: Path | None = None
    merchant: str = "100042"
    account: str = "100042001"
    sign_key: str = "sandbox"
    profile: Profile = "base"
    registered_ip: str = LOOPBACK
    """The only address that may query."""
    capture_mode: CaptureMode = "manual"
    real_clock: bool = False
    """The virtual clock also moves with real time."""
    notify_url: str = ""
    """Address for notifications of requests that name none, "" for that of sandbox.toml.

    `{merchant_id}` and `{account_id}` are filled in.
    """

    @property
    def second_account(self) -> str:
        """Another account of the same merchant, with a small population of its own."""
        if self.account.isdecimal():
            return str(int(self.account) + 1).zfill(len(self.account))
        return f"{self.account}-2"

    @property
    def accounts(self) -> tuple[str, str]:
        """The accounts of this gateway."""
        return (self.account, self.second_account)


def real_seconds() -> float:
    """Real time in seconds since 1970."""
    return datetime.now(UTC).timestamp()


class VirtualClock:
    """The sandbox's clock, in whole seconds since 1970."""

    def __init__(self, *, moved: int = 0, real: Callable[[], float] | None = None) -> None:
        """Create a clock `moved` seconds past its start; with `real` it also runs."""
        self.moved = moved
        self._real = real
        self._real_start = real() if real else 0.0

    def now(self) -> int:
        """The current virtual instant."""
        ran = int(self._real() - self._real_start) if self._real else 0
        return int(CLOCK_START.timestamp()) + self.moved + ran


def iso(instant: int) -> str:
    """Format an instant as `2026-11-20T22:00:00Z`."""
    return datetime.fromtimestamp(instant, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def as_text(instant: int | str) -> str:
    """Format an instant, or its `iso` text, for people: `2026-11-20 22:00:00`."""
    text = iso(instant) if isinstance(instant, int) else instant
    return text.replace("T", " ").rstrip("Z")


def fourteen_digits(instant: int) -> str:
    """Format an instant as the gateway does: `20261120220000`, UTC."""
    return datetime.fromtimestamp(instant, UTC).strftime("%Y%m%d%H%M%S")
