"""Parts of a night as forms start them: their steps alone, held as a night, and never one."""

from datetime import date
from typing import Any

import pytest

from flows.parts import ingest, payouts, query, settle
from flows.serve import PrefectServer
from recon.model.errors import NightHeldError
from recon.model.nights import Mode, Part
from tests.flows.flow_in_process import prefect_of

PLACE = ("100042", "100042001")
DAY = date(2026, 11, 20)


@pytest.mark.parametrize("flow", [settle, payouts])
def test_a_part_that_is_just_submitted_moves_no_money(flow: Any) -> None:
    """The forms start as dry runs, and Prefect never repeats them."""
    assert flow.parameters.properties["mode"]["default"] == Mode.DRY_RUN
    assert (flow.retries, flow.persist_result) == (0, False)


@pytest.mark.flow
def test_each_part_does_its_steps_and_says_what_it_is(server: PrefectServer, night: Any) -> None:
    """Files for the night to come, questions for the one that closed; money as the form says."""
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
    assert night.parts == [*Part, Part.SETTLE]
    assert [str(one.business_date) for one in night.requests] == ["2026-11-22", *["2026-11-20"] * 4]
    assert [one.mode.value for one in night.requests[2:4]] == ["dry-run", "live"]
    money = ["query", "settle", "query again"]
    assert night.done == ["ingest", "query", *money, *money]
    assert (night.told, night.indexed) == ([], [])
