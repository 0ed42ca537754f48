"""Prefect's API as somebody with the password calls it, without Prefect's own client."""

import uuid
from collections.abc import Iterator
from contextlib import contextmanager

import httpx


@contextmanager
def prefect_api(api_url: str, *, auth: str) -> Iterator[httpx.Client]:
    """A client with the password, and with the token that each change needs."""
    name, _, password = auth.partition(":")
    with httpx.Client(base_url=api_url, auth=(name, password), timeout=30) as api:
        ours = str(uuid.uuid4())
        token = api.get("/csrf-token", params={"client": ours}).raise_for_status().json()["token"]
        api.headers.update({"Prefect-Csrf-Token": token, "Prefect-Csrf-Client": ours})
        yield api
