"""A gateway that nobody can reach: for a while no connection to its port is accepted."""

import asyncio
import socket
from typing import Any

import uvicorn

BACKLOG = 256


class Outage:
    """Closes the door of one running server and opens it again; lives as long as the server."""

    def __init__(self, server: uvicorn.Server) -> None:
        self.server = server
        self._task: asyncio.Task[None] | None = None

    def begin(self, seconds: float) -> None:
        """From now on refuse every connection for so many real seconds; one outage at a time."""
        if self._task is not None and not self._task.done():
            return
        places = [door.getsockname() for server in self.server.servers for door in server.sockets]
        # Closed before the reply leaves: whoever reads it finds the door shut.
        for server in self.server.servers:
            server.close()
        self._task = asyncio.get_running_loop().create_task(self._reopen(places, after=seconds))

    async def _reopen(self, places: list[tuple[str, int]], *, after: float) -> None:
        await asyncio.sleep(after)
        if not self.server.should_exit:
            self.server.servers = [await self._listen(address) for address in places]

    async def _listen(self, address: tuple[str, int]) -> asyncio.Server:
        door = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
        door.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        door.bind(address)
        loop = asyncio.get_running_loop()
        return await loop.create_server(self._protocol, sock=door, backlog=BACKLOG)

    def _protocol(self) -> asyncio.Protocol:
        """A connection as uvicorn makes them."""
        protocol_class: Any = self.server.config.http_protocol_class
        made: asyncio.Protocol = protocol_class(
            config=self.server.config,
            server_state=self.server.server_state,
            app_state=self.server.lifespan.state,
        )
        return made
