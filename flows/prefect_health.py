"""What the doctor asks Prefect: does it answer, who works for it, does it know every account?"""

import os
from collections.abc import Callable, Iterator

from prefect.client.orchestration import SyncPrefectClient, get_client
from prefect.client.schemas.objects import WorkerStatus
from prefect.exceptions import ObjectNotFound

from flows.automations import missing_automations
from flows.deployments import WORK_POOL, project_of
from recon.errors import ReconError
from recon.settings import Settings, load_settings

AUTOMATIONS_COMMAND = "`recon prefect automations` makes them"


def told() -> Iterator[tuple[str, Callable[[], str]]]:
    """Names of lines, and what looks; each gives a sentence or raises ReconError."""
    yield "Prefect", _answers
    yield "Prefect's worker", _works
    yield "Prefect's deployments", _deployments
    yield "Prefect's automations", _automations


def _client() -> SyncPrefectClient:
    return get_client(sync_client=True)


def _answers() -> str:
    with _client() as client:
        trouble = client.api_healthcheck()
        if trouble is not None:
            msg = f"{client.api_url} does not answer ({type(trouble).__name__}): is it running?"
            raise ReconError(msg)
        theirs, ours = client.api_version(), client.client_version()
    if theirs != ours:
        msg = f"the server is Prefect {theirs}, this environment has {ours}: use one version"
        raise ReconError(msg)
    return f"{client.api_url} answers, version {ours}"


def _works() -> str:
    with _client() as client:
        try:
            workers = client.read_workers_for_work_pool(WORK_POOL)
        except ObjectNotFound:
            msg = f"there is no work pool: prefect work-pool create {WORK_POOL} --type process"
            raise ReconError(msg) from None
    online = [worker.name for worker in workers if worker.status is WorkerStatus.ONLINE]
    if not online:
        msg = f"nobody works for the pool: prefect worker start --pool {WORK_POOL}"
        raise ReconError(msg)
    return f"{', '.join(online)} for the pool {WORK_POOL}"


def _deployments() -> str:
    settings: Settings = load_settings(os.environ)
    project = project_of(settings.accounts, retention=settings.retention)
    wanted = {entry["name"]: entry for entry in project["deployments"]}
    with _client() as client:
        found = {one.name: one for one in client.read_deployments()}
    wrong = [f"{name} is missing" for name in sorted({*wanted} - {*found})]
    for name in sorted({*wanted} & {*found}):
        planned = [
            (
                getattr(one.schedule, "cron", ""),
                getattr(one.schedule, "timezone", ""),
                one.parameters,
            )
            for one in found[name].schedules
            if one.active
        ]
        declared = [
            (one["cron"], one["timezone"], one["parameters"])
            for one in wanted[name].get("schedules", ())
        ]
        if planned != declared:
            wrong.append(f"{name} has another schedule, or none is active")
        elif found[name].paused:
            wrong.append(f"{name} is paused")
    if wrong:
        msg = f"{'; '.join(wrong)}: `recon prefect deployments`, then `prefect deploy --all`"
        raise ReconError(msg)
    return f"{len(wanted)} as the configuration has them"


def _automations() -> str:
    with _client() as client:
        missing = missing_automations(client)
    if missing:
        msg = f"missing or switched off: {', '.join(missing)}; {AUTOMATIONS_COMMAND}"
        raise ReconError(msg)
    return "all there"
