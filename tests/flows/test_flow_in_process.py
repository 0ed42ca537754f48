"""The flow run in this process, against a server of its own."""

from datetime import date

import pytest

from recon.model.errors import Defect, GateClosedError, NightHeldError
from recon.model.nights import NIGHT, Mode, NightRequest
from recon.model.terms import End
from tests.flows.flow_in_process import run_nightly

pytestmark = pytest.mark.flow

REQUEST = NightRequest(
    "100042", "100042001", date(2026, 11, 20), Mode.LIVE, opening=True, skip="the shop was closed"
)
CANARY = "4929 1234 5678 9012"


def last_run(server):
    """The newest flow run as the server stored it."""
    from prefect.client.orchestration import SyncPrefectClient
    from prefect.client.schemas.filters import FlowRunFilter
    from prefect.client.schemas.sorting import FlowRunSort

    ended = FlowRunFilter(state={"type": {"any_": ["COMPLETED", "FAILED", "CANCELLED"]}})
    with SyncPrefectClient(server.api_url, auth_string=server.auth) as client:
        return client.read_flow_runs(
            flow_run_filter=ended, sort=FlowRunSort.START_TIME_DESC, limit=1
        )[0]


def log_of(server, run_id):
    from prefect.client.orchestration import SyncPrefectClient
    from prefect.client.schemas.filters import LogFilter, LogFilterFlowRunId

    chosen = LogFilter(flow_run_id=LogFilterFlowRunId(any_=[run_id]))
    with SyncPrefectClient(server.api_url, auth_string=server.auth) as client:
        return "\n".join(line.message for line in client.read_logs(log_filter=chosen))


def test_a_night_runs_its_steps_in_order_and_gives_the_verdict(server, night):
    sentences: list[str] = []
    night.verdict = "BREAKS OPEN"
    night.unreported = "notice finance did not arrive"

    verdict = run_nightly(REQUEST, server=server, progress=sentences.append)

    assert verdict is End.BREAKS_OPEN
    assert night.done == ["ingest", "query", "settle", "query again", "reconcile", "report"]
    assert night.requests == [REQUEST]
    assert sentences == [*(f"{name} did its work." for name in night.done), night.unreported]
    assert night.plans == [NIGHT]
    assert night.indexed == [REQUEST]
    run = last_run(server)
    assert run.name == "nightly 100042/100042001 2026-11-20 live · BREAKS OPEN"
    assert (run.state.type.value, run.state.name) == ("COMPLETED", "BREAKS OPEN")


def test_a_night_that_is_not_proven_is_a_failed_run_with_a_verdict(server, night):
    night.verdict = "NOT PROVEN"

    verdict = run_nightly(REQUEST, server=server)

    assert verdict is End.NOT_PROVEN
    assert (last_run(server).state.type.value, last_run(server).state.name) == (
        "FAILED",
        "NOT PROVEN",
    )


def test_a_held_night_ends_at_once_with_the_sentence_that_names_the_holder(server, night):
    night.held = NightHeldError("process 4711 on settle-1 holds the night since 02:30")

    with pytest.raises(NightHeldError, match="process 4711 on settle-1"):
        run_nightly(REQUEST, server=server)

    assert night.done == []
    state = last_run(server).state
    assert (state.type.value, state.name) == ("CANCELLED", "Held by another run")
    assert "process 4711" in state.message


def test_an_error_of_a_step_reaches_the_caller_and_ends_the_run_failed(server, night):
    night.failing["settle"] = GateClosedError("T3 does not tie: 2 orders were not answered")

    with pytest.raises(GateClosedError, match="T3 does not tie"):
        run_nightly(REQUEST, server=server)

    assert night.done == ["ingest", "query", "settle"], "settle is never tried again"
    state = last_run(server).state
    assert state.type.value == "FAILED"
    assert "T3 does not tie: 2 orders were not answered" in state.message


def test_a_foreign_exception_never_takes_its_text_to_prefect(server, night):
    caused = GateClosedError("the gate is closed")
    caused.__cause__ = ValueError(CANARY)
    for error in (ValueError(CANARY), caused):
        night.failing["query"] = error

        with pytest.raises((Defect, GateClosedError)) as raised:
            run_nightly(REQUEST, server=server)

        run = last_run(server)
        assert CANARY not in str(raised.value)
        assert CANARY not in run.state.message
        assert "ingest did its work." in (log := log_of(server, run.id))
        assert CANARY not in log
    assert "ValueError" not in log
