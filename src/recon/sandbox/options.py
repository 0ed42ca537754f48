"""How one sandbox gateway is started, and its virtual clock.

The clock stands at its start, moves when told, or also with real time.
"""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, date, datetime, time
from pathlib import Path
from typing import Literal

DEMO_BUSINESS_DATE = date(2026, 11, 20)
"""The business date of the demo's sample night, a Friday."""
CLOCK_START = datetime.combine(DEMO_BUSINESS_DATE, time(22, 0), UTC)
"""Where the virtual clock stands until it is moved."""
MOVE_SECONDS_MAX = 10 * 366 * 86_400
"""The clock is never moved further than ten years in all."""
DAY_SECONDS = 86_400
HOUR_SECONDS = 3_600

LOOPBACK = "127.0.0.1"
ORDERS_MAX = 5_000_000
"""Orders of one population."""

Profile = Literal["base", "extended"]
CaptureMode = Literal["manual", "auto"]


@dataclass(frozen=True, slots=True)
class SandboxOptions:
    """Everything `recon sandbox` can be told."""

    port: int = 0
    """0 takes a free port; it changes no byte of the population."""
    seed: int = 42
    orders: int = 2000
    state: Path | None = None
    """SQLite file that outlives the process; None keeps the state in memory."""
    fault_plan: Path | None = None
    merchant: str = "100042"
    account: str = "100042001"
    sign_key: str = "sandbox"
    profile: Profile = "base"
    registered_ip: str = LOOPBACK
    """The one address that may query."""
    capture_mode: CaptureMode = "manual"
    real_clock: bool = False
    """The virtual clock also moves with real time."""
    notify_url: str = ""
    """Where notifications go that no request gives an address for; `{merchant_id}` and
    `{account_id}` are filled. "" leaves it to sandbox.toml."""

    @property
    def second_account(self) -> str:
        """Another account of the same merchant, with a small population of its own."""
        if self.account.isdecimal():
            return str(int(self.account) + 1).zfill(len(self.account))
        return f"{self.account}-2"

    @property
    def accounts(self) -> tuple[str, str]:
        """The accounts this gateway knows."""
        return (self.account, self.second_account)


def real_seconds() -> float:
    """Real time, seconds since 1970."""
    return datetime.now(UTC).timestamp()


class VirtualClock:
    """Whole seconds since 1970 as the sandbox counts them."""

    def __init__(self, *, moved: int = 0, real: Callable[[], float] | None = None) -> None:
        """A clock `moved` seconds past its start; with `real` it also runs."""
        self.moved = moved
        self._real = real
        self._real_start = real() if real else 0.0

    def now(self) -> int:
        """The virtual instant."""
        ran = int(self._real() - self._real_start) if self._real else 0
        return int(CLOCK_START.timestamp()) + self.moved + ran


def iso(instant: int) -> str:
    """An instant as `2026-11-20T22:00:00Z`."""
    return datetime.fromtimestamp(instant, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def as_text(instant: int | str) -> str:
    """An instant, or its text by `iso`, as people read it: `2026-11-20 22:00:00`."""
    text = iso(instant) if isinstance(instant, int) else instant
    return text.replace("T", " ").rstrip("Z")


def fourteen_digits(instant: int) -> str:
    """An instant as the gateway writes it: `20261120220000`, UTC."""
    return datetime.fromtimestamp(instant, UTC).strftime("%Y%m%d%H%M%S")
