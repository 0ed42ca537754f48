"""Scenarios of nights: `make test-nights` plays them."""

from pathlib import Path

import pytest

from tests.scenarios.runner.folder import scenarios_below
from tests.scenarios.runner.play import play

pytestmark = pytest.mark.timeout(900)  # seconds: five nights, of which one is killed, are one test
NIGHTS = [one for one in scenarios_below(Path(__file__).parent) if not one.plain]


@pytest.mark.parametrize("scenario", NIGHTS, ids=lambda scenario: scenario.name)
def test_nights_come_to_what_its_folder_states(scenario, gateways, migrated, tmp_path):
    """Also what truly moved, what people were told, and what is bound in the history."""
    played = play(
        scenario, folder=tmp_path / "M1", gateway=gateways[scenario.profile], empty=migrated
    )

    if played.differences:
        pytest.fail(str(played), pytrace=False)
    if played.known:
        pytest.xfail("\n".join(played.known))
