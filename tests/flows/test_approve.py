"""What the approval form leaves behind, and what it must not."""

import json
from typing import Any

import pytest
from pydantic import SecretStr

from flows.approve import Decision, approve
from flows.prefect_server import PrefectServer
from tests.flows.flow_in_process import prefect_of

CODE = "918273"


def test_the_form_starts_by_only_looking() -> None:
    """Whoever just submits the form has decided nothing, and Prefect never repeats a decision."""
    assert approve.retries == 0
    assert approve.persist_result is False
    assert approve.parameters.properties["decision"]["default"] == "show"


def decided(server: PrefectServer, decision: Decision, digest: str, name: str) -> Any:
    """The last state of a run of the form with these values."""
    with prefect_of(server):
        return approve(decision, digest, name, SecretStr(CODE), return_state=True)


@pytest.mark.flow
@pytest.mark.usefixtures("people")
def test_looking_at_an_empty_list_is_an_answer(server: PrefectServer) -> None:
    """Nothing waits: the run says so and ends well."""
    last = decided(server, Decision.SHOW, "", "")

    assert (last.name, last.message) == ("Shown", "Waits: 0 instructions.")


@pytest.mark.flow
@pytest.mark.usefixtures("people")
def test_a_code_given_in_the_form_is_kept_nowhere(server: PrefectServer) -> None:
    """A wrong code is refused in words, and no table of Prefect has it in clear."""
    from prefect.client.orchestration import SyncPrefectClient
    from prefect.client.schemas.sorting import FlowRunSort

    last = decided(server, Decision.APPROVE, "0" * 16, "anna")
    with SyncPrefectClient(server.api_url, auth_string=server.auth) as client:
        (run,) = client.read_flow_runs(sort=FlowRunSort.START_TIME_DESC, limit=1)
    kept = [path.read_bytes() for path in server.home.rglob("*") if path.is_file()]

    assert "not right" in last.message
    assert run.name.startswith("approve")
    assert CODE not in json.dumps(run.model_dump(mode="json"))
    assert not any(CODE.encode() in content for content in kept)
