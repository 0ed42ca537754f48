"""Read-only access to a folder on an SFTP server, which is authenticated by its host key."""

import stat
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from io import StringIO
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

import paramiko
from paramiko.hostkeys import InvalidHostKey
from paramiko.sftp import CMD_CLOSE, CMD_OPENDIR, CMD_READDIR

from recon.config.file_sources import RemoteSource
from recon.config.keys import key_of_file
from recon.files.inbox.fetching import NAMES_MAX, RemoteFile
from recon.model.errors import ConfigurationError, SourceUnreadableError

CONNECT_SECONDS = 20
SILENCE_SECONDS = 60
"""Maximum time without any data from the server."""

PIECE_BYTES = 1024 * 1024
_PORT = 22
_KEYS: tuple[type[paramiko.PKey], ...] = (
    paramiko.Ed25519Key,
    paramiko.ECDSAKey,
    paramiko.RSAKey,
)


class SftpSession(paramiko.SFTPClient):  # type: ignore[misc]  # paramiko has no types
    """A session that can list names that are not UTF-8, at which paramiko's own listing stops."""

    def listed(self, folder: str) -> Iterator[paramiko.SFTPAttributes]:
        """Yield every entry; bytes that are not UTF-8 become surrogate escapes in its name."""
        handle = self._request(CMD_OPENDIR, folder)[1].get_string()
        try:
            while True:
                entries = self._request(CMD_READDIR, handle)[1]
                for _ in range(entries.get_int()):
                    name = entries.get_string().decode(errors="surrogateescape")
                    entries.get_string()  # the line that `ls -l` would print
                    entry = paramiko.SFTPAttributes._from_msg(entries, name, "")  # noqa: SLF001
                    if name not in {".", ".."}:
                        yield entry
        except EOFError:
            return
        finally:
            self._request(CMD_CLOSE, handle)


class SftpFolder:
    """An open folder; implements `recon.files.inbox.fetching.RemoteFolder`."""

    def __init__(self, client: "SftpSession", *, folder: str) -> None:
        """Use `folder` of an open session."""
        self._client = client
        self._folder = folder.rstrip("/") or "/"

    def entries(self) -> Sequence[RemoteFile]:
        """List the entries of the folder; links are not followed, and are not regular files."""
        files: list[RemoteFile] = []
        for entry in self._client.listed(self._folder):
            if len(files) == NAMES_MAX:
                msg = f"{self._folder} holds more than {NAMES_MAX} entries; move old ones away"
                raise SourceUnreadableError(msg)
            files.append(_file(entry.filename, entry))
        return files

    def again(self, name: str) -> RemoteFile | None:
        """Return the current state of one entry; None if it is gone."""
        try:
            return _file(name, self._client.lstat(f"{self._folder}/{name}"))
        except FileNotFoundError:
            return None

    def parts(self, name: str) -> Iterator[bytes]:
        """Yield the content of a file, one megabyte at a time."""
        with self._client.open(f"{self._folder}/{name}", "rb") as file:
            while piece := file.read(PIECE_BYTES):
                yield piece


@contextmanager
def sftp_folder(source: RemoteSource, *, environment: Mapping[str, str]) -> Iterator[SftpFolder]:
    """Open the folder of a source; the connection is closed at the end of the block.

    Raises:
        ConfigurationError: a key, a password or the known-hosts file is missing or unsafe.
        SourceUnreadableError: the server cannot be reached, has another key, or denies access.
    """
    parts = urlsplit(source.url)
    secrets = _secrets(source, environment=environment)
    client = paramiko.SSHClient()
    client.set_missing_host_key_policy(paramiko.RejectPolicy())
    try:
        _load_known_hosts(client, source)
        client.connect(
            parts.hostname or "",
            port=parts.port or _PORT,
            username=unquote(parts.username or ""),
            timeout=CONNECT_SECONDS,
            banner_timeout=CONNECT_SECONDS,
            auth_timeout=CONNECT_SECONDS,
            channel_timeout=SILENCE_SECONDS,
            allow_agent=False,
            look_for_keys=False,
            **secrets,
        )
        session = SftpSession.from_transport(client.get_transport())
        session.get_channel().settimeout(SILENCE_SECONDS)
        yield SftpFolder(session, folder=unquote(parts.path))
    except (paramiko.SSHException, OSError, EOFError, UnicodeError) as error:
        msg = f"{source.shown} cannot be read: {_reported(error)}"
        raise SourceUnreadableError(msg) from error
    finally:
        client.close()


def _load_known_hosts(client: paramiko.SSHClient, source: RemoteSource) -> None:
    path = source.known_hosts_file
    try:
        client.load_host_keys(str(path))
    except OSError as error:
        msg = f"the file of known hosts {path} cannot be read: {error.strerror}"
        raise ConfigurationError(msg) from error
    except (InvalidHostKey, ValueError) as error:
        msg = f"the file of known hosts {path} holds a line that is none of OpenSSH's: {error}"
        raise ConfigurationError(msg) from error


def _secrets(source: RemoteSource, *, environment: Mapping[str, str]) -> dict[str, Any]:
    if source.key_file is not None:
        return {"pkey": _private_key(source.key_file)}
    if source.password_file is not None:
        return {"password": key_of_file(source.password_file)}
    password = environment.get(source.password_env, "")
    if not password:
        msg = f"the environment variable {source.password_env}, a password, is not set"
        raise ConfigurationError(msg)
    return {"password": password}


def _private_key(path: Path) -> paramiko.PKey:
    text = key_of_file(path) + "\n"
    for kind in _KEYS:
        try:
            return kind.from_private_key(StringIO(text))
        except (paramiko.SSHException, ValueError, IndexError):
            continue
    msg = f"the key file {path} holds no Ed25519, ECDSA or RSA key without passphrase"
    raise ConfigurationError(msg)


def _reported(error: BaseException) -> str:
    if isinstance(error, paramiko.BadHostKeyException):
        return "its host key is another than the known one; somebody may stand in between"
    if isinstance(error, paramiko.AuthenticationException):
        return "it refuses our key or password"
    return str(error) or type(error).__name__


def _file(name: str, attributes: paramiko.SFTPAttributes) -> RemoteFile:
    size, changed = attributes.st_size or 0, attributes.st_mtime or 0
    return RemoteFile(
        name=name,
        size_bytes=size,
        changed_at=datetime.fromtimestamp(changed, UTC),
        etag=f"{size}/{changed}",
        regular=stat.S_ISREG(attributes.st_mode or 0),
    )
