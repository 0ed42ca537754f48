"""The automations on a real server: made once, put right, and heard by a real webhook."""

import itertools
import json
import threading
from dataclasses import dataclass, field
from datetime import date

import pytest

from flows import automations
from flows.artifacts import WAITING
from flows.outcome import ANOTHER_RESULT, DONE, NAMES_AGAIN, NAMES_OF_PARTS
from recon.model.errors import UsageError
from recon.model.nights import Mode, NightRequest
from recon.model.terms import End
from tests.flows.flow_in_process import run_nightly
from tests.loopback import answering

pytestmark = pytest.mark.flow

REQUEST = NightRequest("100042", "100042001", date(2026, 11, 20), Mode.LIVE)
BLOCK = "custom-webhook/operators"
RING_TIMEOUT_SECONDS = 3
LATE_RING_SECONDS = 120
ZOMBIE = "recon: a run whose process is gone"
LATE = "recon: a night did not start in time"
LONG = "recon: a night works too long"
NOT_PROVEN = "recon: a night is NOT PROVEN or stopped"
APPROVAL = "recon: instructions wait for approval"
NIGHTS_MAX = 50
"""The server takes up a changed automation a moment later; a night before that rings nobody."""


@dataclass
class Bell:
    """What rang at a webhook, by subject."""

    url: str = ""
    rung: dict[str, str] = field(default_factory=dict)
    heard: list[str] = field(default_factory=list)
    changed: threading.Condition = field(default_factory=threading.Condition)

    def rings(self, *subjects):
        """Whether all of them ring within the time."""
        with self.changed:
            return self.changed.wait_for(
                lambda: set(subjects) <= set(self.rung), RING_TIMEOUT_SECONDS
            )

    def rings_for(self, run, *, timeout=RING_TIMEOUT_SECONDS):
        """How often it rang for this run, once it did or the time is over."""
        with self.changed:
            self.changed.wait_for(lambda: any(run in body for body in self.heard), timeout)
            return sum(run in body for body in self.heard)


@pytest.fixture(scope="module")
def bell():
    """An HTTP server that keeps what rings."""
    found = Bell()

    def ring(_, body):
        told = json.loads(body)
        with found.changed:
            found.rung[told["subject"]] = told["body"]
            found.heard.append(told["body"])
            found.changed.notify_all()
        return 200, {}, b""

    with answering(ring) as found.url:
        yield found


@pytest.fixture(scope="module")
def client(server, bell):
    """A client of the server, on which the operators' notification block is there."""
    from prefect.client.orchestration import SyncPrefectClient
    from prefect.client.schemas.actions import BlockDocumentCreate

    with SyncPrefectClient(server.api_url, auth_string=server.auth) as opened:
        kind = opened.read_block_type_by_slug("custom-webhook")
        schema = opened.get_most_recent_block_schema_for_block_type(kind.id)
        opened.create_block_document(
            BlockDocumentCreate(
                name="operators",
                block_type_id=kind.id,
                block_schema_id=schema.id,
                data={
                    "name": "operators",
                    "url": f"{bell.url}/",
                    "method": "POST",
                    "json_data": {"subject": "{{subject}}", "body": "{{body}}"},
                },
            )
        )
        yield opened
        # The nights of other tests must not ring at a bell that is gone.
        for automation in opened.read_automations():
            opened.delete_automation(automation.id)


def test_every_end_of_a_run_is_known_by_its_name():
    every = [*automations.expected_automations(automations.NOBODY)]
    expected = {each.name: each.model_dump()["trigger"]["expect"] for each, _ in every}
    by_prefect = {"Completed", "Failed", "Cancelled", "Crashed", "Cancelling"}
    ended = {*by_prefect, *End, "Held by another run", *NAMES_OF_PARTS, *NAMES_AGAIN}
    bad = {*(end for end in End if end not in DONE), ANOTHER_RESULT, "Failed", "Crashed"}

    assert expected[LONG] == {f"prefect.flow-run.{name}" for name in ended}
    assert expected[ZOMBIE] == expected[LONG] | {"prefect.flow-run.heartbeat"}
    assert expected[NOT_PROVEN] == {f"prefect.flow-run.{name}" for name in bad}
    assert expected[APPROVAL] == {WAITING}
    assert [each.name for each, rings in every if not rings] == [ZOMBIE]


def test_automations_are_made_in_place_of_those_that_are_there(client):
    """The command again leaves one of each name, as it must be; one switched off is missing."""
    bare = dict(automations.establish(client, block=""))
    silent = [one.name for one in client.read_automations()]
    dict(automations.establish(client, block=BLOCK))
    client.pause_automation(client.read_automations_by_name(LATE)[0].id)
    client.delete_automation(client.read_automations_by_name(ZOMBIE)[0].id)
    missing = automations.missing_automations(client)
    again = dict(automations.establish(client, block=BLOCK))

    assert silent == [name for name, done in bare.items() if done == "made"] == [ZOMBIE]
    assert sorted(missing) == sorted([LATE, ZOMBIE])
    assert again == dict.fromkeys(bare, "made")
    assert automations.missing_automations(client) == []
    assert len(client.read_automations()) == len(again) == 5


def test_a_block_that_is_not_there_is_told(client):
    with pytest.raises(UsageError, match="slack-webhook/operators"):
        dict(automations.establish(client, block="slack-webhook/nobody"))


def test_a_night_that_is_not_proven_and_one_that_leaves_work_ring(server, client, bell, night):
    dict(automations.establish(client, block=BLOCK))
    night.verdict, night.waiting = "NOT PROVEN", 2

    for _ in range(NIGHTS_MAX):
        run_nightly(REQUEST, server=server)
        if bell.rings(NOT_PROVEN, APPROVAL):
            break

    told = bell.rung[NOT_PROVEN]
    name = "nightly 100042/100042001 2026-11-20 live · NOT PROVEN"
    assert f"{name} ended as NOT PROVEN" in told
    assert "recon approve" in bell.rung[APPROVAL]


def test_one_failure_rings_once(client, bell):
    """At once, and not again for the same run: not when Prefect calls it failed, then crashed."""
    from prefect.client.schemas.objects import State, StateType

    from flows.nightly import nightly

    dict(automations.establish(client, block=BLOCK))

    def fail(*kinds, run=None):
        """A run of its own name in which these states follow each other."""
        run = run or client.create_flow_run(nightly, name=f"night {next(numbers):03}")
        for kind in kinds:
            client.set_flow_run_state(run.id, State(type=kind), force=True)
        return run

    numbers = itertools.count(1)
    for _ in range(NIGHTS_MAX):
        run = fail(StateType.RUNNING, StateType.FAILED)
        if bell.rings_for(run.name):
            break
    fail(StateType.CRASHED, run=run)
    later = fail(StateType.RUNNING, StateType.FAILED)

    assert bell.rings_for(later.name, timeout=LATE_RING_SECONDS) == 1, "the next failure rings"
    assert bell.rings_for(run.name) == 1
