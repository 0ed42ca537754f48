"""Prefect automations that notify people (automations.yaml): created, replacing existing ones."""

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any
from uuid import UUID

import yaml
from prefect.events.schemas.automations import AutomationCore
from prefect.exceptions import ObjectNotFound

from recon.model.errors import UsageError

if TYPE_CHECKING:
    from prefect.client.orchestration import SyncPrefectClient

NOBODY = UUID(int=0)
RINGS = "send-notification"


def expected_automations(block_id: UUID) -> Iterator[tuple[AutomationCore, bool]]:
    """Yield all automations, and whether each notifies through the block with id `block_id`."""
    for entry in yaml.safe_load(Path(__file__).with_name("automations.yaml").read_text("utf-8")):
        actions: list[dict[str, Any]] = entry["actions"]
        rings = [action for action in actions if action["type"] == RINGS]
        for action in rings:
            action |= {"block_document_id": block_id, "subject": entry["name"]}
        made = {"description": "Made by `python -m flows apply`.", "enabled": True}
        yield AutomationCore.model_validate(entry | made), bool(rings)


def establish(client: "SyncPrefectClient", *, block: str) -> Iterator[tuple[str, str]]:
    """Create each automation, replacing those of its name; yields its name and what was done.

    Args:
        client: Of the server.
        block: The notification block as `<type>/<name>`, such as `slack-webhook/operators`. Without
            one only automations that notify nobody are created.

    Raises:
        UsageError: there is no such block.
    """
    for expected, rings in expected_automations(_block_id(client, block) if block else NOBODY):
        if rings and not block:
            yield expected.name, "left as it is: it rings, so say for whom (--block)"
            continue
        for status in client.read_automations_by_name(expected.name):
            client.delete_automation(status.id)
        client.create_automation(expected)
        yield expected.name, "made"


def missing_automations(client: "SyncPrefectClient") -> list[str]:
    """Return names of automations that the server does not have, or has disabled."""
    there = {automation.name for automation in client.read_automations() if automation.enabled}
    return [each.name for each, _ in expected_automations(NOBODY) if each.name not in there]


def _block_id(client: "SyncPrefectClient", block: str) -> UUID:
    kind, _, name = block.partition("/")
    try:
        return client.read_block_document_by_name(name, kind, include_secrets=False).id
    except ObjectNotFound:
        msg = (
            f"Prefect has no block {block!r}; make a notification block on its pages (Blocks) and "
            "name it as type/name, such as slack-webhook/operators"
        )
        raise UsageError(msg) from None
