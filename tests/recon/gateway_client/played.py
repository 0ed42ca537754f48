"""Replies as documents, and a raw HTTP server that plays each situation of the wire."""

import asyncio
import contextlib
import json
import socket
import struct
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from pydantic import SecretStr

from recon.gateway_client import Connection, OurAccount, PreparedRequest, RawReply, ReplyPolicy
from recon.gateway_client.messages import PreparedCall
from recon.gateway_client.queries import QUERY

NOW = datetime(2026, 11, 20, 22, 0, tzinfo=UTC)


def success_of(prepared: PreparedRequest) -> dict[str, Any]:
    """The gateway's reply when every row of a batch went well."""
    reply: dict[str, Any] = json.loads(prepared.body)
    operation = str(prepared.operation)
    for row in reply[f"{operation}_orders"]:
        row[f"{operation}_status"] = "1"
        if operation == "refund":
            row["refund_message"] = "V0000:OK"
            row["refund_reference"] = ""
            row["refund_reference_id"] = f"{row['transaction_id']}-01"
        else:
            row["error_message"] = ""
    return reply | {"return_status": "1", "return_message": "OK"}


def raw_of(reply: object, *, status: int = 200, headers: dict[str, str] | None = None) -> RawReply:
    """A reply as it came: a document, or bytes as they are."""
    body = reply if isinstance(reply, bytes) else json.dumps(reply).encode()
    return RawReply(status, headers or {}, body, NOW)


def under(prepared: Any, policy: ReplyPolicy) -> Any:
    """A call whose reply is judged by this policy."""
    return replace(prepared, account=replace(prepared.account, policy=policy))


def asked(account: OurAccount, *, operation: str = QUERY) -> PreparedCall:
    """A query signed by abab..., against which its reply is held."""
    return PreparedCall.of(
        {},
        described=getattr(account.interface.profile.query, operation),
        account=account,
        signature="ab" * 32,
        operation=operation,
    )


def reached(base_url: str, **changes: Any) -> Connection:
    """A connection to a played gateway."""
    fields: dict[str, Any] = {
        "base_url": base_url,
        "merchant_id": "100042",
        "account_id": "100042001",
        "sign_key": SecretStr("sandbox"),
        "clock": lambda: NOW,
    }
    return Connection(**fields | changes)


Play = Callable[[bytes, asyncio.StreamWriter], Awaitable[None]]


class Player:
    """A raw HTTP server of one loop: keeps every request it read, answers as told."""

    def __init__(self) -> None:
        self.requests: list[bytes] = []
        self.connections = 0
        self.port = 0
        self._serving: set[asyncio.Task[None]] = set()
        self._writers: set[asyncio.StreamWriter] = set()
        self._play: Play = answer(200, b"{}")

    @property
    def base_url(self) -> str:
        """Where it listens."""
        return f"http://127.0.0.1:{self.port}"

    @contextlib.asynccontextmanager
    async def playing(self, play: Play) -> AsyncIterator[None]:
        """Listen while inside."""
        self._play = play
        server = await asyncio.start_server(self._accept, "127.0.0.1", 0)
        self.port = server.sockets[0].getsockname()[1]
        try:
            yield
        finally:
            server.close()
            await asyncio.sleep(0)  # what was accepted before is known after this
            for task in self._serving:
                task.cancel()
            await asyncio.gather(*self._serving, return_exceptions=True)
            for writer in self._writers:
                writer.close()  # a task that was ended before it began closed nothing
            await asyncio.sleep(0)

    def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        self._writers.add(writer)
        self._serving.add(asyncio.get_running_loop().create_task(self._serve(reader, writer)))

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while not writer.is_closing():
                request, body = await _read(reader)
                self.requests.append(request)
                await self._play(body, writer)
        except (asyncio.IncompleteReadError, ConnectionError, asyncio.CancelledError):
            pass
        finally:
            writer.close()


async def _read(reader: asyncio.StreamReader) -> tuple[bytes, bytes]:
    """One whole request, and its body alone."""
    head = await reader.readuntil(b"\r\n\r\n")
    lines = head.lower().split(b"\r\n")
    length = next(line.split(b":")[1] for line in lines if line.startswith(b"content-length"))
    body = await reader.readexactly(int(length))
    return head + body, body


def answer(status: int, body: bytes, *, headers: str = "", close: bool = False) -> Play:
    """Give this reply to every request."""

    async def play(_request: bytes, writer: asyncio.StreamWriter) -> None:
        head = f"HTTP/1.1 {status} Said\r\nContent-Length: {len(body)}\r\n{headers}\r\n"
        writer.write(head.encode() + body)
        await writer.drain()
        if close:
            writer.close()

    return play


def reset() -> Play:
    """A real TCP RST after the whole request was read."""

    async def play(_request: bytes, writer: asyncio.StreamWriter) -> None:
        raw: socket.socket = writer.get_extra_info("socket")
        raw.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        writer.transport.abort()
        await asyncio.sleep(0)

    return play


def pieces(*parts: bytes, pause: float = 0.0) -> Play:
    """Write these bytes one after the other, then close."""

    async def play(_request: bytes, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(ConnectionError):
            for part in parts:
                writer.write(part)
                await writer.drain()
                await asyncio.sleep(pause)
        writer.close()

    return play


def silence(seconds: float) -> Play:
    """Say nothing for a while, then close."""

    async def play(_request: bytes, writer: asyncio.StreamWriter) -> None:
        await asyncio.sleep(seconds)
        writer.close()

    return play
