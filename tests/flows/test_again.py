"""A night again from what is stored, as forms start it."""

from datetime import date
from typing import Any

import pytest

from flows.again import reconcile, report
from flows.housekeeping import housekeeping
from flows.serve import PrefectServer
from tests.conftest import migrated, sqlite_url  # noqa: F401 - fixtures
from tests.flows.flow_in_process import prefect_of
from tests.recon.steps.conftest import database_url, merchant, profile  # noqa: F401 - fixtures

pytestmark = pytest.mark.flow

PLACE = ("100042", "100042001")
DAY = date(2026, 11, 20)


def test_a_stopped_night_ends_as_nights_end(server: PrefectServer, night: Any) -> None:
    """Compared and reported under its own run, told to people, named by its verdict."""
    night.stopped, night.verdict = True, "BREAKS OPEN"
    with prefect_of(server):
        state = reconcile(*PLACE, DAY, return_state=True)

    assert (state.type.value, state.name) == ("COMPLETED", "BREAKS OPEN")
    assert night.done == ["reconcile", "report"]
    assert night.told == ["run-1"]
    assert night.indexed == night.requests


def test_a_finished_night_is_proven_and_written_again(
    server: PrefectServer,
    merchant: Any,  # noqa: F811 - the fixture
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The same result from what it had read; the file is the one that is there; never another."""
    merchant.drop("o.csv", merchant.order(merchant.payments("captured")[0]))
    with prefect_of(server):
        for name, value in merchant.variables.items():
            monkeypatch.setenv(name, value)
        absent = report(*PLACE, DAY, return_state=True)
        merchant.night()
        same = reconcile(*PLACE, DAY, return_state=True)
        with merchant.environment() as environment, environment.store.writing() as connection:
            connection.exec_driver_sql("UPDATE run SET result_digest = 'other'")
        other = reconcile(*PLACE, DAY, return_state=True)
        written = report(*PLACE, DAY, return_state=True)
        shown = housekeeping(return_state=True)
        nobody = housekeeping(delete=True, return_state=True)

    assert (absent.type.value, "no finished live night" in absent.message) == ("FAILED", True)
    assert (shown.type.value, shown.name) == ("COMPLETED", "SHOWN")
    assert (nobody.type.value, "say who deletes" in nobody.message) == ("FAILED", True)
    assert (same.type.value, same.name) == ("COMPLETED", "THE SAME RESULT")
    assert (other.type.value, other.name) == ("FAILED", "ANOTHER RESULT")
    assert (written.type.value, written.name) == ("COMPLETED", "WRITTEN AGAIN")
    assert len(list((merchant.folder / "reports").glob("*.xlsx"))) == 2  # another writer's file
