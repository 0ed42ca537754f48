"""Automations of Prefect that ring for people: made, or put back, by one command.

They inform and tidy up; none moves money or lifts a lock. A run that an automation calls crashed
may still work: its lock in recon's database holds until its process ends.
"""

from collections.abc import Iterator, Sequence
from datetime import timedelta
from typing import TYPE_CHECKING, Any
from uuid import UUID

from prefect.client.schemas.objects import StateType
from prefect.events.actions import ChangeFlowRunState, SendNotification
from prefect.events.schemas.automations import AutomationCore, EventTrigger, Posture
from prefect.exceptions import ObjectNotFound

from flows.outcome import ANOTHER_RESULT, DONE, NAMES_AGAIN, NAMES_OF_PARTS
from recon.model.errors import UsageError
from recon.model.words import End

if TYPE_CHECKING:
    from prefect.client.orchestration import SyncPrefectClient

HEARTBEAT_SECONDS = 180
"""How often a run says that it lives (PREFECT_FLOWS_HEARTBEAT_FREQUENCY of the worker)."""
SILENCE_MAX = timedelta(seconds=3 * HEARTBEAT_SECONDS)
NIGHT_MAX = timedelta(hours=3)
"""A night that works longer is late, though it may be well."""

ENDED = frozenset(
    f"prefect.flow-run.{name}"
    for name in (
        *("Completed", "Failed", "Cancelled", "Crashed", "Cancelling"),
        *(*End, "Held by another run", *NAMES_OF_PARTS, *NAMES_AGAIN),
    )
)
"""How Prefect tells of a night's end: by the name of its last state."""
WAITING = "recon.approval.waiting"
"""What a night tells Prefect when instructions wait for people."""
_NAME = "prefect.resource.name"
NIGHTS: dict[str, str | list[str]] = {"prefect.resource.role": "flow", _NAME: "nightly"}
WATCHED = NIGHTS | {_NAME: ["nightly", "settle", "payouts", "reconcile"]}
"""Flows whose bad end rings: what moves money, and what proves a night again."""
ONCE_WITHIN = timedelta(minutes=5)
"""A bell rings at once, and for the same run not again so soon. With 0 Prefect's server, which may
look at one event twice, rang twice for one failure."""
RUN_NAME = "{{ flow_run.name }}"
NOBODY = UUID(int=0)

ZOMBIE = "recon: a run whose process is gone"
LATE = "recon: a night did not start in time"
LONG = "recon: a night works too long"
NOT_PROVEN = "recon: a night is NOT PROVEN or stopped"
APPROVAL = "recon: instructions wait for approval"


def wanted_automations(block_id: UUID) -> list[AutomationCore]:
    """All automations; `block_id` is the notification block that rings for people."""
    return [
        _zombie(),
        _automation(LATE, {"prefect.flow-run.Late"}, _ring(block_id, LATE, _LATE_WORDS)),
        _long(block_id),
        _automation(
            NOT_PROVEN,
            {*_BAD_ENDS},
            _ring(block_id, NOT_PROVEN, _NOT_PROVEN_WORDS),
            match_related=WATCHED,
        ),
        _waiting(block_id),
    ]


def establish(client: "SyncPrefectClient", *, block: str) -> Iterator[tuple[str, str]]:
    """Make each automation, or bring it back to what it must be; yields its name and what was done.

    Args:
        client: Of the server.
        block: The notification block as `<type>/<name>`, such as `slack-webhook/operators`. Without
            one only what rings for nobody is made.

    Raises:
        UsageError: there is no such block.
    """
    all_wanted = wanted_automations(_block_id(client, block) if block else NOBODY)
    for wanted in all_wanted:
        if not block and _rings(wanted):
            yield wanted.name, "left as it is: it rings, so say for whom (--block)"
            continue
        standing = client.read_automations_by_name(wanted.name)
        if not standing:
            client.create_automation(wanted)
            yield wanted.name, "made"
            continue
        client.update_automation(standing[0].id, wanted)
        for more in standing[1:]:
            client.delete_automation(more.id)
        yield wanted.name, "as it must be"


def missing_automations(client: "SyncPrefectClient") -> list[str]:
    """Names of automations that the server does not have, or has switched off."""
    names = [automation.name for automation in wanted_automations(NOBODY)]
    there = {automation.name for automation in client.read_automations() if automation.enabled}
    return [name for name in names if name not in there]


def _rings(automation: AutomationCore) -> bool:
    return any(isinstance(action, SendNotification) for action in automation.actions)


def _block_id(client: "SyncPrefectClient", block: str) -> UUID:
    kind, _, name = block.partition("/")
    try:
        document = client.read_block_document_by_name(name, kind, include_secrets=False)
    except ObjectNotFound:
        msg = (
            f"Prefect has no block {block!r}; make a notification block on its pages (Blocks) and "
            "name it as type/name, such as slack-webhook/operators"
        )
        raise UsageError(msg) from None
    return document.id


def _automation(
    name: str, events: set[str], action: SendNotification, **changed: Any
) -> AutomationCore:
    trigger = EventTrigger(
        expect=events,
        match_related=NIGHTS,
        for_each={"prefect.resource.id"},
        posture=Posture.Reactive,
        threshold=1,
        within=ONCE_WITHIN,
    )
    return AutomationCore(
        name=name,
        description="Made by `python -m flows apply`.",
        enabled=True,
        trigger=trigger.model_copy(update=changed),
        actions=[action],
    )


def _zombie() -> AutomationCore:
    """After three heartbeats that did not come Prefect's page calls the run crashed."""
    beat = "prefect.flow-run.heartbeat"
    return AutomationCore(
        name=ZOMBIE,
        description="Made by `python -m flows apply`.",
        enabled=True,
        trigger=EventTrigger(
            after={beat},
            expect={beat, *ENDED},
            match={"prefect.resource.id": "prefect.flow-run.*"},
            match_related=WATCHED,
            for_each={"prefect.resource.id"},
            posture=Posture.Proactive,
            threshold=1,
            within=SILENCE_MAX,
        ),
        actions=[
            ChangeFlowRunState(
                state=StateType.CRASHED,
                message="No sign of life for three heartbeats. Start the night again: nothing is "
                "sent twice, and if it still works, recon's own lock says so.",
            )
        ],
    )


def _long(block_id: UUID) -> AutomationCore:
    return _automation(
        LONG,
        {*ENDED},
        _ring(block_id, LONG, _LONG_WORDS),
        after={"prefect.flow-run.Running"},
        posture=Posture.Proactive,
        within=NIGHT_MAX,
    )


def _waiting(block_id: UUID) -> AutomationCore:
    # The account is its resource; no flow is needed to know it.
    ring = _ring(block_id, APPROVAL, _WAITING_WORDS)
    return _automation(APPROVAL, {WAITING}, ring, match_related={})


def _ring(block_id: UUID, name: str, words: Sequence[str]) -> SendNotification:
    return SendNotification(block_document_id=block_id, subject=name, body=" ".join(words))


_BAD_ENDS = tuple(
    f"prefect.flow-run.{name}"
    for name in (*(end for end in End if end not in DONE), ANOTHER_RESULT, "Failed", "Crashed")
)
_LATE_WORDS = (
    f"{RUN_NAME} was due and has not started: is a worker of the pool at work?",
    "`recon doctor` says more. The night can also be started from the command line.",
)
_LONG_WORDS = (
    f"{RUN_NAME} works for more than {NIGHT_MAX.seconds // 3600} hours.",
    "`recon status` says who holds the account; see At 3 a.m. in the handbook.",
)
_NOT_PROVEN_WORDS = (
    f"{RUN_NAME} ended as {{{{ flow_run.state.name }}}}.",
    "See At 3 a.m. in the handbook; starting the same night again is always safe.",
)
_WAITING_WORDS = (
    "Instructions wait for two people: the form `approve`, or `recon approve`.",
    "What nobody approves is not sent.",
)
