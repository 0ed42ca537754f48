"""Real servers on loopback that take mail and webhooks, for tests of what is told to people."""

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from email import message_from_bytes, policy
from email.message import EmailMessage
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from aiosmtpd.controller import Controller

from tests.loopback import Answer, answering


@dataclass
class Webhook:
    """What arrived at an HTTP server, and how it answers."""

    port: int = 0
    status: int = 200
    bodies: list[dict[str, Any]] = field(default_factory=list)
    location: str = ""
    silent: threading.Event | None = None
    """Given: no answer before it is set."""

    @property
    def address(self) -> str:
        """As notices.toml's variable would hold it, with a token in it."""
        return f"json://user:token-of-the-hook@127.0.0.1:{self.port}/night"


@contextmanager
def webhook() -> Iterator[Webhook]:
    """An HTTP server that keeps what is posted."""
    heard = Webhook()

    def keep(_: BaseHTTPRequestHandler, body: bytes) -> Answer:
        heard.bodies.append(json.loads(body))
        if heard.silent:
            heard.silent.wait(30)
        return heard.status, {"Location": heard.location} if heard.location else {}, b""

    with answering(keep) as url:
        heard.port = int(url.rpartition(":")[2])
        yield heard
        if heard.silent:
            heard.silent.set()


@dataclass
class Mailbox:
    """Mails that an SMTP server took, and whether it takes any."""

    port: int = 0
    refusing: bool = False
    arrived: threading.Event = field(default_factory=threading.Event)
    mails: list[EmailMessage] = field(default_factory=list)

    @property
    def address(self) -> str:
        """As notices.toml's variable would hold it."""
        return (
            f"mailto://127.0.0.1:{self.port}?from=recon@northwind.example&to=anna@northwind.example"
        )


@contextmanager
def mailbox() -> Iterator[Mailbox]:
    """An SMTP server that keeps what it takes."""
    box = Mailbox()

    class Taking:
        async def handle_DATA(self, _server: object, _session: object, envelope: Any) -> str:  # noqa: N802
            if box.refusing:
                return "554 refused"
            box.mails.append(message_from_bytes(envelope.content, policy=policy.default))
            box.arrived.set()
            return "250 taken"

    # Port 0 would be asked for a greeting at port 0; a free one is found first.
    with ThreadingHTTPServer(("127.0.0.1", 0), BaseHTTPRequestHandler) as free:
        box.port = free.server_port
    controller = Controller(Taking(), hostname="127.0.0.1", port=box.port)
    controller.start()
    yield box
    controller.stop()
