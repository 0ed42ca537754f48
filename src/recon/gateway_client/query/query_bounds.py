"""Bounds of reading: how many keys a call, how many calls, how long to wait.

Pure; `query` does the calls.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

from recon.gateway_client.interface.transport import CONNECT_SECONDS, DEADLINE_SECONDS
from recon.gateway_client.query.pace import PATIENCE_SECONDS

RETRY_AFTER_DIGITS_MAX = 9


@dataclass(frozen=True, slots=True)
class QueryLimits:
    """Bounds of reading."""

    calls_per_second: float = 5.0
    in_flight: int = 4
    patience_seconds: float = PATIENCE_SECONDS
    """How long a group, or a silent gateway, is asked again; 0: every group once."""
    connect_seconds: float = CONNECT_SECONDS
    deadline_seconds: float = DEADLINE_SECONDS
    """Of one call."""


def grouped(keys: Sequence[str], *, rows_max: int, characters_max: int) -> list[tuple[str, ...]]:
    """Keys in groups of at most `rows_max` whose comma-joined text fits; 0 characters: no bound."""
    groups: list[tuple[str, ...]] = []
    group: list[str] = []
    characters = 0
    for key in keys:
        longer = characters + len(key) + (1 if group else 0)
        if group and (len(group) >= rows_max or (characters_max and longer > characters_max)):
            groups.append(tuple(group))
            group, longer = [], len(key)
        group.append(key)
        characters = longer
    return [*groups, tuple(group)] if group else groups


def retry_after_seconds(text: str, *, now: datetime) -> float:
    """The seconds a Retry-After header asks for (a count or a date); 0 when it says nothing."""
    if text.isascii() and text.isdigit():
        return float(text[:RETRY_AFTER_DIGITS_MAX])
    at = http_date(text)
    return 0.0 if at is None else max(0.0, (at - now).total_seconds())


def http_date(text: str) -> datetime | None:
    """The instant of a Date or Retry-After header; None when it says none."""
    try:
        at = parsedate_to_datetime(text)
        return at.replace(tzinfo=UTC) if at.tzinfo is None else at.astimezone(UTC)
    except (ValueError, TypeError, OverflowError):
        return None
