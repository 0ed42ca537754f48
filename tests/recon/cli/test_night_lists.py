"""`recon breaks` of a night that has none to list."""

import json
import os
from datetime import UTC, date, datetime

import pytest

from recon.cli import main
from recon.model.nights import Mode, NightRequest
from recon.steps.runtime.environment import environment_of, system_clock
from recon.store.nights import runs

NOW = datetime(2026, 11, 21, tzinfo=UTC)


@pytest.mark.usefixtures("installation")
def test_a_night_without_a_result_has_no_number_of_breaks(capsys):
    """Zero would say that somebody compared."""
    request = NightRequest("100042", "100042001", date(2026, 11, 20), Mode.LIVE)
    with (
        environment_of(os.environ, clock=system_clock, signs=False) as environment,
        environment.store.writing() as connection,
    ):
        runs.start(connection, request, run_id="20261120-0a", as_of=NOW, now=NOW)
        runs.finish(connection, "20261120-0a", status="finished", problem="", now=NOW)

    assert main(["breaks", "2026-11-20"]) == 0
    assert "never came to a result" in capsys.readouterr().out
    assert main(["breaks", "2026-11-20", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["breaks"] is None
