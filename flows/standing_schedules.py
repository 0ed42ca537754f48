"""Schedules that Prefect's server has and the configuration has not: found, and taken away.

A deploy changes the schedules that it names and leaves every other as it is: one that was declared
under another name, of an account that lost its schedule, of an account that is gone. Each would
start nights that nobody wants any more.
"""

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from prefect.client.orchestration import SyncPrefectClient
from prefect.client.schemas.objects import DeploymentSchedule
from prefect.client.schemas.responses import DeploymentResponse

DEPLOYMENTS_READ = 200
"""At once; the server gives no more."""
OURS = "flows."
"""How the entrypoint of every deployment of ours begins."""


class Surplus(NamedTuple):
    """A schedule that nobody declared, and the deployment that it starts."""

    deployment: DeploymentResponse
    schedule: DeploymentSchedule

    def __str__(self) -> str:
        """Deployment, name and clock, as people find them on Prefect's pages."""
        plan = self.schedule.schedule
        when = f"{getattr(plan, 'cron', plan)} {getattr(plan, 'timezone', None) or 'UTC'}"
        return (
            f"{self.deployment.name}: {self.schedule.slug or 'a schedule without a name'} ({when})"
        )


def standing_deployments(client: SyncPrefectClient) -> Iterator[DeploymentResponse]:
    """All that the server has, page by page."""
    offset = 0
    while page := client.read_deployments(limit=DEPLOYMENTS_READ, offset=offset):
        yield from page
        offset += len(page)


def surplus_schedules(client: SyncPrefectClient, *, project: Mapping[str, Any]) -> list[Surplus]:
    """What `project` (as prefect.yaml has it) does not declare, of deployments that are ours."""
    slugs = {
        entry["name"]: {schedule["slug"] for schedule in entry.get("schedules", ())}
        for entry in project["deployments"]
    }
    return [
        Surplus(deployment, schedule)
        for deployment in standing_deployments(client)
        if (deployment.entrypoint or "").startswith(OURS)
        for schedule in deployment.schedules
        if schedule.slug not in slugs.get(deployment.name, ())
    ]


def take_away(client: SyncPrefectClient, *, project: Mapping[str, Any]) -> list[Surplus]:
    """Delete them; gives what is gone."""
    surplus = surplus_schedules(client, project=project)
    for deployment, schedule in surplus:
        client.delete_deployment_schedule(deployment.id, schedule.id)
    return surplus
