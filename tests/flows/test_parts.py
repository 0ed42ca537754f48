"""Parts of a night as forms start them, held as a night and never one; and a night again."""

from datetime import date

import pytest

from flows.housekeeping import housekeeping
from flows.parts import ingest, payouts, query, reconcile, report, settle
from recon.model.errors import NightHeldError
from recon.model.nights import FINISH, Mode, Part
from tests.conftest import migrated, sqlite_url  # noqa: F401 - fixtures
from tests.flows.flow_in_process import prefect_of
from tests.recon.steps.conftest import database_url, merchant, profile  # noqa: F401 - fixtures

PLACE = ("100042", "100042001")
DAY = date(2026, 11, 20)


@pytest.mark.parametrize("flow", [settle, payouts])
def test_a_part_that_is_just_submitted_moves_no_money(flow):
    assert flow.parameters.properties["mode"]["default"] == Mode.DRY_RUN
    assert (flow.retries, flow.persist_result) == (0, False)


@pytest.mark.flow
def test_each_part_does_its_steps_and_says_what_it_is(server, night):
    with prefect_of(server):
        states = [
            ingest(*PLACE, return_state=True),
            query(*PLACE, DAY, return_state=True),
            settle(*PLACE, DAY, return_state=True),
            payouts(*PLACE, DAY, Mode.LIVE, return_state=True),
        ]
        night.held = NightHeldError("run-7 holds it")
        states.append(settle(*PLACE, DAY, return_state=True))

    assert [state.name for state in states] == [
        *("FILES TAKEN IN", "ASKED", "PLANNED, NOTHING SENT", "SENT", "Held by another run"),
    ]
    assert [plan.part for plan in night.plans] == [*Part, Part.SETTLE]
    assert [str(one.business_date) for one in night.requests] == ["2026-11-22", *["2026-11-20"] * 4]
    assert [one.mode.value for one in night.requests[2:4]] == ["dry-run", "live"]
    money = ["query", "settle", "query again"]
    assert night.done == ["ingest", "query", *money, *money]
    assert night.indexed == []


@pytest.mark.flow
def test_a_stopped_night_ends_as_nights_end(server, night):
    night.stopped, night.verdict = True, "BREAKS OPEN"
    with prefect_of(server):
        state = reconcile(*PLACE, DAY, return_state=True)

    assert (state.type.value, state.name) == ("COMPLETED", "BREAKS OPEN")
    assert night.done == ["reconcile", "report"]
    assert night.plans == [FINISH]
    assert night.indexed == night.requests


@pytest.mark.flow
def test_a_finished_night_is_proven_and_written_again(server, merchant, monkeypatch):  # noqa: F811 - the fixture
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
