"""A TCP proxy before a real PostgreSQL that ends connections in the middle of a COMMIT."""

import socket
import threading
import time
from contextlib import closing, suppress
from typing import Self

COMMIT = b"COMMIT\x00"
ENDED_WITHIN_SECONDS = 5.0
DONE_WITHIN_SECONDS = 0.2


class DroppingProxy:
    """Passes bytes on; once armed, the n-th COMMIT loses its connection."""

    def __init__(self, server: str) -> None:
        self._server = server  # the path of its UNIX socket
        self._commits = 0
        self._mode = ""
        self._away = self._stays_away = False
        self._clients: list[socket.socket] = []
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = self._listener.getsockname()[1]

    def arm(self, *, commit: int, mode: str, stay_away: bool) -> None:
        """`before`: the server never sees that COMMIT; `after`: its answer is lost."""
        self._commits, self._mode, self._stays_away = commit, mode, stay_away

    def __enter__(self) -> Self:
        threading.Thread(target=self._accept, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._listener.close()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                if self._away:
                    client.close()
                    continue
                self._clients.append(client)
                threading.Thread(target=self._serve, args=(client,), daemon=True).start()

    def _serve(self, client: socket.socket) -> None:
        deaf = threading.Event()
        with closing(client), closing(socket.socket(socket.AF_UNIX)) as server:
            server.connect(self._server)
            back = threading.Thread(target=_pump, args=(server, client, deaf), daemon=True)
            back.start()
            while data := _received(client):
                if not self._is_due(data):
                    server.sendall(data)
                    continue
                self._away = self._stays_away
                if self._mode == "after":
                    deaf.set()
                    server.sendall(data)
                    time.sleep(DONE_WITHIN_SECONDS)
                break
            _end(server)
            for one in self._clients if self._away else [client]:
                _end(one)
            back.join(ENDED_WITHIN_SECONDS)

    def _is_due(self, data: bytes) -> bool:
        if COMMIT not in data or not self._mode:
            return False
        self._commits -= 1
        return self._commits == 0


def _pump(source: socket.socket, target: socket.socket, deaf: threading.Event) -> None:
    """Pass on what the server says, until nobody may hear it."""
    with suppress(OSError):
        while data := _received(source):
            if not deaf.is_set():
                target.sendall(data)


def _end(one: socket.socket) -> None:
    with suppress(OSError):
        one.shutdown(socket.SHUT_RDWR)


def _received(end: socket.socket) -> bytes:
    try:
        return end.recv(65_536)
    except OSError:
        return b""
