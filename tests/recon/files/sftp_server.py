"""An SFTP server of one folder on loopback, with everything a stranger's server may have in it."""

import os
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import paramiko

USER = "northwind"
PASSWORD = "correct horse"


@dataclass
class Served:
    """A running server."""

    port: int
    host_key: paramiko.PKey
    user_key: paramiko.PKey
    on_read: list[str] = field(default_factory=list)
    """Names of files that are replaced while they are read."""

    def known_hosts(self, path: Path, *, key: paramiko.PKey | None = None) -> Path:
        """Write the file of known hosts that names this server's key, or another one."""
        shown = key or self.host_key
        path.write_text(f"[127.0.0.1]:{self.port} {shown.get_name()} {shown.get_base64()}\n")
        return path


@contextmanager
def sftp_server(root: Path) -> Iterator[Served]:
    """Serve a folder until the end of the block."""
    listener = socket.create_server(("127.0.0.1", 0))
    served = Served(
        listener.getsockname()[1], paramiko.RSAKey.generate(2048), paramiko.RSAKey.generate(2048)
    )
    transports: list[paramiko.Transport] = []

    def serve() -> None:
        while True:
            try:
                connection, _ = listener.accept()
            except OSError:
                return
            transport = paramiko.Transport(connection)
            transports.append(transport)
            transport.add_server_key(served.host_key)
            transport.set_subsystem_handler("sftp", paramiko.SFTPServer, _Folder, root, served)
            # With an event it returns at once; a visitor who leaves early ends its own thread.
            transport.start_server(event=threading.Event(), server=_Door(served))

    thread = threading.Thread(target=serve, daemon=True)
    thread.start()
    try:
        yield served
    finally:
        listener.shutdown(socket.SHUT_RDWR)
        listener.close()
        for transport in transports:
            transport.close()
        thread.join(5)


class _Door(paramiko.ServerInterface):
    def __init__(self, served: Served) -> None:
        self._served = served

    def get_allowed_auths(self, username: str) -> str:  # noqa: ARG002 - paramiko's signature
        return "password,publickey"

    def check_auth_password(self, username: str, password: str) -> int:
        right = (username, password) == (USER, PASSWORD)
        return paramiko.AUTH_SUCCESSFUL if right else paramiko.AUTH_FAILED

    def check_auth_publickey(self, username: str, key: paramiko.PKey) -> int:
        right = username == USER and key == self._served.user_key
        return paramiko.AUTH_SUCCESSFUL if right else paramiko.AUTH_FAILED

    def check_channel_request(self, kind: str, chanid: int) -> int:  # noqa: ARG002 - as above
        return paramiko.OPEN_SUCCEEDED


class _Folder(paramiko.SFTPServerInterface):
    def __init__(self, server: _Door, root: Path, served: Served) -> None:
        super().__init__(server)
        self._root = root
        self._served = served

    def _place(self, path: str) -> Path:
        return self._root / self.canonicalize(path).lstrip("/")

    def list_folder(self, path: str) -> list[paramiko.SFTPAttributes] | int:
        try:
            entries = list(os.scandir(self._place(path)))
        except OSError as error:
            return paramiko.SFTPServer.convert_errno(error.errno)
        return [
            paramiko.SFTPAttributes.from_stat(
                entry.stat(follow_symlinks=False), entry.name.encode(errors="surrogateescape")
            )
            for entry in entries
        ]

    def lstat(self, path: str) -> paramiko.SFTPAttributes | int:
        try:
            return paramiko.SFTPAttributes.from_stat(self._place(path).lstat())
        except OSError as error:
            return paramiko.SFTPServer.convert_errno(error.errno)

    stat = lstat

    def open(self, path: str, flags: int, attr: object) -> paramiko.SFTPHandle | int:  # noqa: ARG002 - as above
        place = self._place(path)
        handle = paramiko.SFTPHandle(flags)
        try:
            handle.readfile = place.open("rb")
        except OSError as error:
            return paramiko.SFTPServer.convert_errno(error.errno)
        handle.stat = lambda: paramiko.SFTPAttributes.from_stat(place.lstat())
        if place.name in self._served.on_read:
            place.write_text("something else")
        return handle
