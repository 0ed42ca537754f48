"""Scenarios of `recon reconcile`, which are quick: `make test` plays them."""

from pathlib import Path

import pytest

from tests.recon.steps.compare.test_night_totals import verdict_by_hand
from tests.scenarios.runner.folder import scenarios_below
from tests.scenarios.runner.play import play

PLAIN = [one for one in scenarios_below(Path(__file__).parent) if one.plain]


@pytest.mark.parametrize("scenario", PLAIN, ids=lambda scenario: scenario.name)
def test_a_plain_run_comes_to_what_its_folder_states(scenario, gateways, migrated, tmp_path):
    """Breaks, states, figures of sentences and control totals are those of rules.md.

    And the folder of each run proves itself, with DuckDB alone.
    """
    played = play(
        scenario, folder=tmp_path / "M1", gateway=gateways[scenario.profile], empty=migrated
    )

    for night in (tmp_path / "M1").rglob("verify.sql"):
        assert verdict_by_hand(night.parent.parent) == ([], "PROVEN")
    if played.differences:
        pytest.fail(str(played), pytrace=False)
    if played.known:
        pytest.xfail("\n".join(played.known))
