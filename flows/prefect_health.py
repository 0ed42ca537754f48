"""The doctor's checks of Prefect: server, access, worker, deployments and automations."""

import os
from collections.abc import Callable, Iterator, Mapping
from functools import partial

import httpx
from prefect.client.orchestration import SyncPrefectClient, get_client
from prefect.client.schemas.objects import WorkerStatus
from prefect.client.schemas.responses import DeploymentResponse
from prefect.exceptions import ObjectNotFound
from prefect.settings import get_current_settings

from flows.automations import missing_automations
from flows.deployments import WORK_POOL, project_of
from recon.config.settings import load_settings
from recon.model.errors import ReconError

DEPLOYMENTS_READ = 200
"""Deployments read per request; the server returns no more."""
OURS = "flows."
"""The prefix of the entrypoint of every deployment of ours."""


STRANGER = "https://stranger.example"
"""An origin unrelated to this server."""
LOOK_TIMEOUT_SECONDS = 10
OPENING_VARIABLES = ("command", "env", "working_dir")
"""Template keys by which a run could bring a program of its own."""
DEPLOYMENTS_COMMANDS = (
    "`python -m flows files`, then `prefect --no-prompt deploy --all`; delete what nobody "
    "declares on Prefect's pages"
)
AUTOMATIONS_COMMAND = "`python -m flows apply` makes them"


def health_checks() -> Iterator[tuple[str, Callable[[], str]]]:
    """Yield the checks: name, and the function that returns a sentence or raises ReconError."""

    def reply_of(check: Callable[[SyncPrefectClient], str]) -> str:
        with _client() as client:
            return check(client)

    for name, check in CHECKS.items():
        yield name, partial(reply_of, check)


def _client() -> SyncPrefectClient:
    return get_client(sync_client=True)


def _answers(client: SyncPrefectClient) -> str:
    trouble = client.api_healthcheck()
    if trouble is not None:
        msg = f"{client.api_url} does not answer ({type(trouble).__name__}): is it running?"
        raise ReconError(msg)
    theirs, ours = client.api_version(), client.client_version()
    if theirs != ours:
        msg = f"the server is Prefect {theirs}, this environment has {ours}: use one version"
        raise ReconError(msg)
    return f"{client.api_url} answers, version {ours}"


def _doors(client: SyncPrefectClient) -> str:
    if wrong := open_doors(str(client.api_url), auth=_auth()):
        msg = f"the server {'; it '.join(wrong)} (docs/SECURITY.md)"
        raise ReconError(msg)
    try:
        template = client.read_work_pool(WORK_POOL).base_job_template
    except ObjectNotFound:
        template = {}
    variables = template.get("variables", {}).get("properties", {})
    known = {*template.get("job_configuration", {}), *variables}
    taken = [name for name in OPENING_VARIABLES if name in known]
    if taken:
        msg = (
            f"the pool {WORK_POOL} lets a run bring {', '.join(taken)}, and so a program of its "
            "own: `python -m flows files`, then the command that it prints"
        )
        raise ReconError(msg)
    return f"asks for a password, no other origin, a token for changes; {WORK_POOL} is fixed"


def _auth() -> str:
    """Return the credentials for the server in this environment, as `name:password`."""
    given = get_current_settings().api.auth_string
    return given.get_secret_value() if given else ""


def open_doors(api_url: str, *, auth: str) -> list[str]:
    """Return what a stranger may do, each with its setting; `auth` is only used to request a token.

    Raises:
        ReconError: the server does not answer.
    """
    asks = {"Origin": STRANGER, "Access-Control-Request-Method": "POST"}
    user, _, password = auth.partition(":")
    try:
        with httpx.Client(base_url=api_url, timeout=LOOK_TIMEOUT_SECONDS) as stranger:
            version = stranger.get("/admin/version")
            other = stranger.options("/deployments/filter", headers=asks)
            token = stranger.get(
                "/csrf-token?client=recon-doctor", auth=(user, password) if auth else None
            )
    except httpx.HTTPError as error:
        msg = f"{api_url} does not answer ({type(error).__name__}): is it running?"
        raise ReconError(msg) from None
    wrong = []
    if version.is_success:
        wrong.append("answers without a password: set PREFECT_SERVER_API_AUTH_STRING")
    if other.headers.get("Access-Control-Allow-Origin") in {"*", STRANGER}:
        wrong.append("lets pages of any origin call it: set PREFECT_SERVER_CORS_ALLOWED_ORIGINS")
    # Its answer where it wants no tokens.
    if token.status_code == httpx.codes.UNPROCESSABLE_ENTITY:
        wrong.append("takes changes without a token: PREFECT_SERVER_CSRF_PROTECTION_ENABLED=true")
    return wrong


def _works(client: SyncPrefectClient) -> str:
    try:
        workers = client.read_workers_for_work_pool(WORK_POOL)
    except ObjectNotFound:
        msg = f"there is no work pool {WORK_POOL}: `python -m flows files`, then what it prints"
        raise ReconError(msg) from None
    online = [worker.name for worker in workers if worker.status is WorkerStatus.ONLINE]
    if not online:
        msg = f"nobody works for the pool: prefect worker start --pool {WORK_POOL}"
        raise ReconError(msg)
    return f"{', '.join(online)} for the pool {WORK_POOL}"


def _deployments(client: SyncPrefectClient) -> str:
    settings = load_settings(os.environ)
    project = project_of(settings.accounts, retention=settings.retention)
    declared = {
        entry["name"]: [
            (planned["cron"], planned["timezone"], planned["parameters"])
            for planned in entry.get("schedules", ())
        ]
        for entry in project["deployments"]
    }
    there: dict[str, DeploymentResponse] = {}
    offset = 0
    while page := client.read_deployments(limit=DEPLOYMENTS_READ, offset=offset):
        there |= {each.name: each for each in page if (each.entrypoint or "").startswith(OURS)}
        offset += len(page)
    wrong = [f"{name} is missing" for name in sorted({*declared} - {*there})]
    for name, deployment in sorted(there.items()):
        active = [
            (
                *(getattr(each.schedule, name, "") for name in ("cron", "timezone")),
                each.parameters,
            )
            for each in deployment.schedules
            if each.active
        ]
        if active != declared.get(name, []):
            wrong.append(f"{name} has another schedule, or none is active")
        elif name in declared and deployment.paused:
            wrong.append(f"{name} is paused")
    if wrong:
        msg = f"{'; '.join(wrong)}: {DEPLOYMENTS_COMMANDS}"
        raise ReconError(msg)
    return f"{len(declared)} as the configuration has them"


def _automations(client: SyncPrefectClient) -> str:
    if missing := missing_automations(client):
        msg = f"missing or switched off: {', '.join(missing)}; {AUTOMATIONS_COMMAND}"
        raise ReconError(msg)
    return "all there"


CHECKS: Mapping[str, Callable[[SyncPrefectClient], str]] = {
    "Prefect": _answers,
    "Prefect's doors": _doors,
    "Prefect's worker": _works,
    "Prefect's deployments": _deployments,
    "Prefect's automations": _automations,
}
"""The checks, in order."""
