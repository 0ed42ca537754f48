"""The query in shards: what a worker is handed, and that it answers what one process would."""

import http.client
import threading
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from recon.model.words import KeyAnswer
from recon.steps.night import query_shards
from recon.steps.night.query_shards import (
    asked_in_shards,
)

ACCOUNT = ("100042", "100042001")


def test_nothing_is_asked_after_the_deadline_of_the_run(merchant: Any) -> None:
    """Every key has an answer all the same: none that can be used, and why."""
    with merchant.environment() as environment:
        (found,) = asked_in_shards(
            ["A", "B"], account=ACCOUNT, environment=environment, ends_in_seconds=0.0
        )

    why = "not asked any more: the time for asking the gateway was over"
    assert found.answers.answers == dict.fromkeys("AB", (KeyAnswer.FAILED, why))


@dataclass
class Watch:
    """A gateway between the workers and the sandbox: asks one caller to wait, notes all."""

    port: int
    refused: int
    """The number of the call that gets 429, from 1; 0 for none."""
    wait_seconds: int = 2
    began: list[float] = field(default_factory=list)
    """When each call came."""
    refused_at: float = 0.0
    lock: threading.Lock = field(default_factory=threading.Lock)
    connections: int = 0
    closed: int = 0

    def answer(self, path: str, body: bytes, kind: str) -> tuple[int, dict[str, str], bytes]:
        """What the sandbox says, or 429."""
        with self.lock:
            self.began.append(time.monotonic())
            if len(self.began) == self.refused:
                self.refused_at = time.monotonic()
                return 429, {"Retry-After": str(self.wait_seconds)}, b""
        behind = http.client.HTTPConnection("127.0.0.1", self.port, timeout=10)
        behind.request("POST", path, body, {"Content-Type": kind})
        reply = behind.getresponse()
        content = reply.read()
        behind.close()
        return reply.status, {"Content-Type": "application/json"}, content


THIRD = 3
"""When all workers are at work."""


@contextmanager
def watched(port: int, *, refused: int = THIRD) -> Iterator[tuple[str, Watch]]:
    """The address of that gateway, and what it saw."""
    watch = Watch(port, refused)

    class Front(BaseHTTPRequestHandler):
        """The calls of one connection."""

        protocol_version = "HTTP/1.1"

        def setup(self) -> None:
            with watch.lock:
                watch.connections += 1
            super().setup()

        def finish(self) -> None:
            with watch.lock:
                watch.closed += 1
            super().finish()

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            status, headers, content = watch.answer(self.path, body, self.headers["Content-Type"])
            self.send_response(status)
            for name, value in headers.items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, *_: object) -> None: ...

    server = ThreadingHTTPServer(("127.0.0.1", 0), Front)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}", watch
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def test_all_shards_of_this_process_go_over_the_same_connections(
    merchant: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nine keys, two a shard, one call in flight: one connection, closed with the iterator."""
    monkeypatch.setattr(query_shards, "KEYS_PER_SHARD_MAX", 2)
    gateway = Path(merchant.variables["RECON_CONFIG_DIR"]) / "gateway.toml"
    gateway.write_text("queries_in_flight = 1\ncalls_per_second = 1000\n")
    keys = [payment.order_no for payment in merchant.payments("captured")[:9]]
    port = urlsplit(merchant.variables["RECON_GATEWAY_BASE_URL"]).port
    assert port is not None

    with watched(port, refused=0) as (url, watch):
        merchant.variables["RECON_GATEWAY_BASE_URL"] = url
        with merchant.environment() as environment:
            asked = [*asked_in_shards(keys, account=ACCOUNT, environment=environment)]
        with closing(asked_in_shards(keys, account=ACCOUNT, environment=environment)) as some:
            next(some)
        waited_until = time.monotonic() + CLOSED_WITHIN_SECONDS
        while watch.closed < watch.connections and time.monotonic() < waited_until:
            time.sleep(0.01)

    found = {key for each in asked for key in each.answers.answers}
    assert (len(asked), found) == (5, set(keys))
    assert (len(watch.began), watch.connections, watch.closed) == (6, 2, 2)


CLOSED_WITHIN_SECONDS = 5
