"""When Prefect starts something: the nights of an account, housekeeping; as it is declared."""

from typing import Annotated
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from pydantic import StringConstraints, field_validator

from recon.config.declared import DeclaredTable

CRON_FIELD = r"[0-9A-Za-z*/,-]{1,40}"


class NightSchedule(DeclaredTable):
    """A cron line and the zone whose clock it means."""

    cron: Annotated[str, StringConstraints(pattern=rf"^{CRON_FIELD}( {CRON_FIELD}){{4}}$")]
    """Minute, hour, day, month, weekday: `30 2 * * *`."""
    zone: str
    """`Europe/London`; business dates of scheduled nights are of this zone."""

    @field_validator("zone")
    @classmethod
    def _known_zone(cls, name: str) -> str:
        try:
            ZoneInfo(name)
        except (ZoneInfoNotFoundError, ValueError, OSError):
            msg = "is no time zone such as Europe/London"
            raise ValueError(msg) from None
        return name
