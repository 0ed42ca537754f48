"""The demo's own gateway: the sandbox in a thread, or one that already runs for the folder."""

import http.client
import json
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import date, datetime
from typing import Any

from recon.cli.demo_folder import DemoFolder, DemoMemory, recall
from recon.model.errors import ConfigurationError, UsageError

LOOPBACK = "127.0.0.1"
ANSWER_SECONDS_MAX = 60


@contextmanager
def demo_gateway(folder: DemoFolder, memory: DemoMemory) -> Iterator[int]:
    """The port of a sandbox over the folder's state: the remembered one where it can be had."""
    running = health(memory.port)
    if running and (running.get("orders"), running.get("seed")) == (memory.orders, memory.seed):
        yield memory.port  # somebody started `recon sandbox` beside us, as `env` invites to
        return
    from recon.sandbox import SandboxOptions, serving

    options = SandboxOptions(
        port=memory.port if _is_free(memory.port) else 0,
        seed=memory.seed,
        orders=memory.orders,
        state=folder.sandbox_state,
    )
    with serving(options) as sandbox:
        yield sandbox.port


def refuse_if_running(folder: DemoFolder) -> None:
    """Refuse to take the ground from under a sandbox that still runs.

    Raises:
        UsageError: one answers at the remembered port.
    """
    try:
        memory = recall(folder)
    except ConfigurationError:
        return  # nothing that could be asked; what is not ours is left alone anyway
    if memory is not None and health(memory.port):
        msg = f"a sandbox still runs at port {memory.port}; end it first, then start over"
        raise UsageError(msg)


def health(port: int) -> dict[str, Any]:
    """What a sandbox at this port says of itself; nothing when none answers."""
    if not port:
        return {}
    try:
        answer = json.loads(_get(port, "/_sandbox/health"))
    except (OSError, http.client.HTTPException, ValueError):
        return {}
    return answer if isinstance(answer, dict) and answer.get("status") == "ok" else {}


def effects(port: int) -> list[dict[str, str]]:
    """The truth so far, from the sandbox's ledger of effects.

    Raises:
        ConfigurationError: the sandbox does not answer.
    """
    try:
        lines = _get(port, "/_sandbox/effects").splitlines()
    except (OSError, http.client.HTTPException) as error:
        msg = f"the sandbox at port {port} does not answer ({error}); start the demo again"
        raise ConfigurationError(msg) from error
    return [json.loads(line) for line in lines]


def handed_out(port: int, *, account_id: str, day: date) -> dict[str, str]:
    """Name -> text of what the sandbox hands out of a business date, after those before it.

    Raises:
        ConfigurationError: the sandbox does not answer, or handed out a later date before.
    """
    texts: dict[str, str] = _asked(port, f"/_sandbox/files/{account_id}/{day}/", body=b"")
    return texts


def move_clock(port: int, *, to: datetime) -> None:
    """Let the time of the sandbox come to an instant; it never goes back.

    Raises:
        ConfigurationError: the sandbox does not answer.
    """
    now = datetime.fromisoformat(_asked(port, "/_sandbox/clock")["now"])
    seconds = max(int((to - now).total_seconds()), 0)
    _asked(port, "/_sandbox/clock", body=json.dumps({"seconds": seconds}).encode())


def _asked(port: int, path: str, *, body: bytes | None = None) -> Any:
    try:
        return json.loads(_get(port, path, body=body))
    except (OSError, http.client.HTTPException, ValueError) as error:
        msg = (
            f"the sandbox at port {port} does not answer {path} ({error}): start the demo again, "
            "or over with --fresh"
        )
        raise ConfigurationError(msg) from error


def _get(port: int, path: str, *, body: bytes | None = None) -> bytes:
    # Plain http.client: no proxy of the environment may stand between us and loopback.
    connection = http.client.HTTPConnection(LOOPBACK, port, timeout=ANSWER_SECONDS_MAX)
    try:
        connection.request("GET" if body is None else "POST", path, body=body)
        return connection.getresponse().read()
    finally:
        connection.close()


def _is_free(port: int) -> bool:
    import socket

    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((LOOPBACK, port))
        except OSError:
            return False
    return True
