"""How commands take a night: a date or a run, as an argument or by --run."""

from datetime import UTC, datetime
from pathlib import Path

import pytest
import typer

from recon.cli.night_choices import closed_day, named_night, run_of


@pytest.mark.parametrize(
    ("now", "day"),
    [
        (datetime(2026, 11, 21, 0, 30, tzinfo=UTC), "2026-11-20"),
        (datetime(2026, 11, 20, 23, 30, tzinfo=UTC), "2026-11-20"),
        (datetime(2026, 11, 20, 22, 30, tzinfo=UTC), "2026-11-19"),
    ],
    ids=["after midnight of UTC", "after midnight in Berlin only", "before midnight"],
)
def test_without_a_date_it_is_the_last_day_that_has_closed(
    now: datetime, day: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The zone of the business calendar decides, as it does when a night refuses an open day."""
    (tmp_path / "rules.toml").write_text('[calendar]\ntimezone = "Europe/Berlin"\n')
    monkeypatch.setenv("RECON_CONFIG_DIR", str(tmp_path))
    monkeypatch.setattr("recon.steps.ground.environment.system_clock", lambda: now)

    assert closed_day() == day
    assert closed_day("2026-10-01") == "2026-10-01"


def test_an_argument_and_the_option_name_the_same_night_once() -> None:
    """Either is enough; two different ones, or none, are refused."""
    assert named_night("20261120-0a", "") == named_night("", "20261120-0a") == "20261120-0a"
    assert run_of("20261120-0a", "20261120-0a") == "20261120-0a"
    for night, run in (("", ""), ("2026-11-20", "2026-11-19")):
        with pytest.raises(typer.BadParameter):
            named_night(night, run)
