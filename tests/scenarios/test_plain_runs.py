"""Scenarios of `recon reconcile`, which are quick: `make test` plays them."""

from collections.abc import Mapping
from pathlib import Path

import pytest

from tests.scenarios.runner.folder import Scenario, scenarios_below
from tests.scenarios.runner.gateway import PlayedGateway
from tests.scenarios.runner.play import play

PLAIN = [one for one in scenarios_below(Path(__file__).parent) if one.plain]


@pytest.mark.parametrize("scenario", PLAIN, ids=lambda scenario: scenario.name)
def test_a_plain_run_comes_to_what_its_folder_states(
    scenario: Scenario, gateways: Mapping[str, PlayedGateway], migrated: Path, tmp_path: Path
) -> None:
    """Breaks, states, figures of sentences and control totals are those of rules.md."""
    played = play(
        scenario, folder=tmp_path / "M1", gateway=gateways[scenario.profile], empty=migrated
    )

    if played.differences:
        pytest.fail(str(played), pytrace=False)
    if played.known:
        pytest.xfail("\n".join(played.known))
