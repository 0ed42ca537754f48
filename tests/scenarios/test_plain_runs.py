"""Scenarios of `recon reconcile`, which are quick: `make test` plays them."""

from collections.abc import Mapping
from pathlib import Path

import pytest

from tests.scenarios.runner.folder import is_plain, scenario_of, scenarios_below
from tests.scenarios.runner.gateway import PlayedGateway
from tests.scenarios.runner.play import play

PLAIN = [path for path in scenarios_below(Path(__file__).parent) if is_plain(path)]


@pytest.mark.parametrize("path", PLAIN, ids=lambda path: f"{path.parent.name}/{path.name}")
def test_a_plain_run_comes_to_what_its_folder_states(
    path: Path, gateways: Mapping[str, PlayedGateway], migrated: Path, tmp_path: Path
) -> None:
    """Breaks, states, figures of sentences and control totals are those of rules.md."""
    scenario = scenario_of(path)
    played = play(
        scenario, folder=tmp_path / "M1", gateway=gateways[scenario.profile], empty=migrated
    )

    if played.differences:
        pytest.fail(str(played), pytrace=False)
    if played.known:
        pytest.xfail("\n".join(played.known))
