"""What strangers, pages of other origins and people with the password can make Prefect do."""

import asyncio
import json
import re
import uuid
from contextlib import suppress

import httpx
import pytest
from prefect.exceptions import ParameterTypeError, SignatureMismatchError
from websockets import Origin, Subprotocol
from websockets.exceptions import WebSocketException
from websockets.sync.client import connect

from flows import prefect_health
from flows.deployments import pool_text
from flows.nightly import nightly
from flows.prefect_health import open_doors
from flows.serve import auth_of, prefect_variables
from recon.model.errors import ReconError
from tests.flows.prefect_api import REPLY_SECONDS_MAX, prefect_api
from tests.loopback import answering

pytestmark = pytest.mark.flow

STOLEN = "stolen"
"""A file that the attack would write."""


def attack(folder):
    """What a run may say of its process, if it is let: a program, variables, a folder."""
    return {
        "job_variables": {
            "command": f"sh -c 'env > {folder / STOLEN}'",
            "env": {"PYTHONSTARTUP": str(folder / "evil.py")},
            "working_dir": str(folder),
        }
    }


def deployment(api, name):
    found = api.post("/deployments/filter", json={}).raise_for_status().json()
    return next(str(one["id"]) for one in found if one["name"] == name)


def runs(api, deployment_id):
    """How many runs of it somebody started."""
    wanted = {"deployments": {"id": {"any_": [deployment_id]}}}
    found = api.post("/flow_runs/filter", json=wanted).raise_for_status().json()
    return sum(not run["auto_scheduled"] for run in found)


@pytest.fixture
def api(server, deployed):
    """The API of a server with deployments, for somebody who has the password."""
    assert deployed
    with prefect_api(server.api_url, auth=server.auth) as opened:
        yield opened


@pytest.mark.parametrize("auth", [None, ("recon", "guess"), ("", "")])
def test_nobody_without_the_password_is_heard(server, api, tmp_path, auth):
    wanted = deployment(api, "housekeeping")
    with httpx.Client(base_url=server.api_url, auth=auth, timeout=REPLY_SECONDS_MAX) as stranger:
        started = stranger.post(f"/deployments/{wanted}/create_flow_run", json=attack(tmp_path))
        read = stranger.get(f"/deployments/{wanted}")
        token = stranger.get("/csrf-token", params={"client": "x"})
    assert {started.status_code, read.status_code, token.status_code} <= {401, 403}
    assert runs(api, wanted) == 0


def test_the_password_alone_starts_nothing_from_a_page(server, api, tmp_path):
    """A browser that remembers the password sends it along; without the token nothing changes."""
    wanted = deployment(api, "housekeeping")
    name, _, password = server.auth.partition(":")
    with httpx.Client(
        base_url=server.api_url, auth=(name, password), timeout=REPLY_SECONDS_MAX
    ) as browser:
        started = browser.post(f"/deployments/{wanted}/create_flow_run", json=attack(tmp_path))
    assert started.status_code == 403
    assert runs(api, wanted) == 0


def test_a_run_brings_no_program_variables_or_folder(api, tmp_path):
    wanted = deployment(api, "housekeeping")
    for said in attack(tmp_path)["job_variables"].items():
        sent = {"job_variables": dict([said])}
        reply = api.post(f"/deployments/{wanted}/create_flow_run", json=sent)
        assert (reply.status_code, "Additional properties are not allowed" in reply.text) == (
            422,
            True,
        )
    assert runs(api, wanted) == 0


def test_what_is_not_in_the_template_never_reaches_the_process(server, tmp_path):
    from prefect.client.orchestration import PrefectClient
    from prefect.workers.process import ProcessJobConfiguration

    async def made():
        async with PrefectClient(server.api_url, auth_string=server.auth) as client:
            template, given = json.loads(pool_text()), attack(tmp_path)["job_variables"]
            return await ProcessJobConfiguration.from_template_and_values(
                template, given, client=client
            )

    found = asyncio.run(made())
    assert (found.command, found.env, found.working_dir) == (None, {}, None)


SOCKETS = ("events/in", "events/out", "logs/out", "task_runs/subscriptions/scheduled")
FILTER = {"type": "filter", "filter": {}, "keys": ["x"], "client_id": "x"}
OPEN_PATHS = {"/health", "/ready"}
"""For whoever watches whether the server lives; they say nothing else."""


@pytest.mark.parametrize("path", SOCKETS)
@pytest.mark.parametrize("token", [None, "", "recon:guess"])
def test_no_socket_of_the_web_tells_or_takes_anything_without_the_password(server, path, token):
    address = f"{server.api_url.replace('http', 'ws', 1)}/{path}"
    heard = []
    with suppress(WebSocketException):
        subprotocols = None if token is None else [Subprotocol("prefect")]
        origin = Origin("https://elsewhere.example")
        with connect(address, subprotocols=subprotocols, origin=origin) as stranger:
            if token is not None:
                stranger.send(json.dumps({"type": "auth", "token": token}))
            stranger.send(json.dumps(FILTER))
            heard.append(stranger.recv(timeout=20))
    assert heard == []


def test_every_call_asks_for_the_password(server, api):
    described = api.get("/openapi.json").raise_for_status().json()["paths"]
    calls = [(verb, path) for path, verbs in described.items() for verb in verbs]
    name = str(uuid.uuid4())
    with httpx.Client(base_url=server.api_url, timeout=REPLY_SECONDS_MAX) as stranger:
        heard = {
            path
            for verb, path in calls
            if stranger.request(verb, re.sub(r"\{.*?\}", name, path), json={}).status_code
            not in {401, 403}
        }
    assert len(calls) > 150
    assert heard <= OPEN_PATHS


ACCOUNT = {"merchant_id": "100042", "account_id": "100042001"}


@pytest.mark.parametrize(
    "given",
    [{"merchant_id": "../../etc"}, {"account_id": "1/../../x"}, {"mode": "sh -c env"}],
)
def test_a_run_brings_no_path(api, given):
    wanted = deployment(api, "100042-100042001")
    before, sent = runs(api, wanted), {"parameters": ACCOUNT | given}
    reply = api.post(f"/deployments/{wanted}/create_flow_run", json=sent)
    assert (reply.status_code, runs(api, wanted)) == (409, before)


@pytest.mark.parametrize("given", [{"business_date": "/etc/passwd"}, {"config_dir": "/etc"}])
def test_what_the_server_lets_pass_the_night_refuses(given):
    with pytest.raises((ParameterTypeError, SignatureMismatchError)):
        nightly.validate_parameters(ACCOUNT | given)


def test_the_password_is_for_its_owner_alone(server):
    path = server.home / "password"
    assert path.stat().st_mode & 0o777 == 0o600
    assert server.auth == f"recon:{path.read_text().strip()}" == auth_of(server.home)
    assert len(path.read_text().strip()) >= 24
    variables = prefect_variables(server.home, api_url=server.api_url)
    assert variables["PREFECT_API_AUTH_STRING"] == server.auth
    assert auth_of(server.home / "nowhere") == ""


def test_the_doctor_sees_closed_doors(server, api, monkeypatch):
    assert api
    monkeypatch.setattr(prefect_health, "_client", lambda: _client_of(server))
    monkeypatch.setattr(prefect_health, "_auth", lambda: server.auth)
    told = dict(prefect_health.health_checks())["Prefect's doors"]()
    assert "asks for a password" in told


def _client_of(server):
    from prefect.client.orchestration import SyncPrefectClient

    return SyncPrefectClient(server.api_url, auth_string=server.auth)


OPEN = {
    "password": "answers without a password: set PREFECT_SERVER_API_AUTH_STRING",
    "origin": "lets pages of any origin call it: set PREFECT_SERVER_CORS_ALLOWED_ORIGINS",
    "token": "takes changes without a token: PREFECT_SERVER_CSRF_PROTECTION_ENABLED=true",
}


def test_the_doctor_names_a_pool_that_takes_programs(server, api, monkeypatch):
    pool = api.get("/work_pools/recon").raise_for_status().json()
    kept = pool["base_job_template"]
    opened = {
        "job_configuration": {"command": "{{ command }}", "env": "{{ env }}"},
        "variables": {"properties": {"command": {"type": "string"}, "env": {"type": "object"}}},
    }
    monkeypatch.setattr(prefect_health, "_client", lambda: _client_of(server))
    monkeypatch.setattr(prefect_health, "_auth", lambda: server.auth)
    try:
        api.patch("/work_pools/recon", json={"base_job_template": opened}).raise_for_status()
        with pytest.raises(ReconError, match=r"command, env.*flows files"):
            dict(prefect_health.health_checks())["Prefect's doors"]()
    finally:
        api.patch("/work_pools/recon", json={"base_job_template": kept}).raise_for_status()


def played_server(*, open_reader):
    """Answers as Prefect does with all doors closed but one."""

    def answer(request, _):
        origin = {"Access-Control-Allow-Origin": "*"} if open_reader == "origin" else {}
        if request.command == "OPTIONS":
            return 200 if origin else 400, origin, b""
        if request.path.startswith("/csrf-token"):
            known = 200 if request.headers.get("Authorization") else 401
            return 422 if open_reader == "token" else known, {}, b""
        return 200 if open_reader == "password" else 401, {}, b""

    return answering(answer)


@pytest.mark.parametrize("door", ["", *OPEN])
def test_the_doctor_names_an_open_door(door):
    with played_server(open_reader=door) as url:
        assert open_doors(url, auth="recon:x") == ([OPEN[door]] if door else [])
