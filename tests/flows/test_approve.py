"""What the approval form leaves behind, and what it must not."""

import json
from dataclasses import replace
from typing import Any

import pytest
from pydantic import SecretStr

from flows.approve import Decision, approve, markdown_of
from flows.prefect_server import PrefectServer
from recon.settlement.approval import list_of
from tests.flows.flow_in_process import prefect_of
from tests.recon.settlement.instructions import INSTRUCTION

CODE = "918273645546372819"
"""Longer than a phone's: in megabytes of ids and instants six digits stand by chance."""


def test_the_form_starts_by_only_looking() -> None:
    """Whoever just submits the form has decided nothing, and Prefect never repeats a decision."""
    assert approve.retries == 0
    assert approve.persist_result is False
    assert approve.parameters.properties["decision"]["default"] == "show"


def test_the_page_shows_all_that_waits() -> None:
    """Every instruction in a line, what looks like a repeat first; the sums are of all of them."""
    items = [
        replace(INSTRUCTION, instruction_id=f"i{number:02}", order_no=f"A{number}", amount=number)
        for number in range(1, 31)
    ]
    items[4] = replace(items[4], hold="looks like a repeat of A3")
    lines = markdown_of(list_of(items), "Waits: 30 instructions.").splitlines()
    orders = [
        line.split(" | ")[2] for line in lines if line.startswith(("| i0", "| i1", "| i2", "| i3"))
    ]

    assert sorted(orders) == sorted(f"A{number}" for number in range(1, 31))
    assert "A5" in orders[:1]


def test_a_page_that_is_too_long_says_where_the_rest_is(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is left out without a word."""
    monkeypatch.setattr("flows.approve.ROWS_SHOWN_MAX", 10)
    items = [replace(INSTRUCTION, instruction_id=f"i{number:02}") for number in range(12)]
    lines = markdown_of(list_of(items), "Waits: 12 instructions.").splitlines()

    assert sum(line.startswith(("| i0", "| i1", "| i2", "| i3")) for line in lines) == 10
    assert lines[-1] == "2 more wait; the workbooks' sheets Instructions have all of them."


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
