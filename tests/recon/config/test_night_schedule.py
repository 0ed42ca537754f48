import pytest
from pydantic import ValidationError

from recon.config.retention import NightSchedule


@pytest.mark.parametrize("cron", ["30 2 * * *", "0 3 * * 1-5", "*/15 0,4 1 JAN mon"])
def test_a_cron_line_of_five_fields_is_taken(cron: str) -> None:
    """Minute, hour, day, month and weekday, as cron writes them."""
    assert NightSchedule(cron=cron, zone="Europe/London").cron == cron


@pytest.mark.parametrize(
    ("cron", "zone", "words"),
    [
        ("30 2 * *", "UTC", "cron"),
        ("30 2 * * * *", "UTC", "cron"),
        ("30 2 * * *\nx", "UTC", "cron"),
        ("@daily", "UTC", "cron"),
        ("30 2 * * *", "Europe/Londn", "not a time zone"),
        ("30 2 * * *", "../../etc/passwd", "not a time zone"),
    ],
)
def test_a_schedule_that_would_never_start_is_refused(cron: str, zone: str, words: str) -> None:
    """Too few fields, too many, a nickname, and a zone that nobody has."""
    with pytest.raises(ValidationError, match=words):
        NightSchedule(cron=cron, zone=zone)
