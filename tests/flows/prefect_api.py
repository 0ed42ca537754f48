"""A Prefect server for a test, and its API as somebody with the password calls it."""

import uuid
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import httpx

from flows.serve import PrefectServer, end_process, start_server

REPLY_SECONDS_MAX = 180
"""A server that shares its machine with a night and a browser answers late, and answers."""


@contextmanager
def prefect_server(
    home: Path, *, variables: Mapping[str, str] | None = None
) -> Iterator[PrefectServer]:
    """A server with its state in `home`, ended with the block."""
    server = start_server(home, variables=variables)
    try:
        yield server
    finally:
        end_process(server.process)


@contextmanager
def prefect_api(api_url: str, *, auth: str) -> Iterator[httpx.Client]:
    """A client with the password, and with the token that each change needs."""
    name, _, password = auth.partition(":")
    with httpx.Client(
        base_url=api_url,
        auth=(name, password),
        timeout=REPLY_SECONDS_MAX,
        # The server ends an idle connection after some seconds, maybe just as the next one begins.
        limits=httpx.Limits(max_keepalive_connections=0),
    ) as api:
        ours = str(uuid.uuid4())
        token = api.get("/csrf-token", params={"client": ours}).raise_for_status().json()["token"]
        api.headers.update({"Prefect-Csrf-Token": token, "Prefect-Csrf-Client": ours})
        yield api
