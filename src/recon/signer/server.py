"""The signer on its socket, until somebody ends it."""

import grp
import os
import signal
import socket
import stat
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager
from datetime import datetime
from pathlib import Path

import uvicorn

from recon.model.errors import ConfigurationError
from recon.signer.app import SignerApp
from recon.signer.asked_log import AskedLog
from recon.signer.configured import SignerFile, signer_settings
from recon.signer.judging import Judge
from recon.signer.signed_book import SignedBook
from recon.signer.turnstile import Turnstile

CONNECTIONS_MAX = 64
KEEP_ALIVE_SECONDS = 5
DRAIN_SECONDS = 5
BACKLOG = 64
SOCKET_PATH_BYTES_MAX = 100
"""What every system takes; Linux takes 107."""
ENDING = (signal.SIGINT, signal.SIGTERM)
OTHERS_MASK = 0o177
"""Leaves a new socket to its owner alone."""
WITH_GROUP = 0o660


def sign_until_ended(
    path: Path, *, clock: Callable[[], datetime], ready: Callable[[str], None]
) -> None:
    """Sign until SIGINT or SIGTERM; tells `ready` the socket once it can be asked.

    Raises:
        ConfigurationError: the signer's file, a key or the socket cannot be used.
    """
    settings = signer_settings(path)
    with ExitStack() as opened:
        book = opened.enter_context(closing(SignedBook(settings.file.book)))
        log = opened.enter_context(closing(AskedLog(settings.file.log)))
        app = SignerApp(
            Judge(settings, book=book, clock=clock),
            log=log,
            turnstile=Turnstile(settings.file.calls_per_second, seconds=time.monotonic),
            clock=clock,
            about={
                "uid": os.geteuid(),
                "accounts": sorted(settings.keys),
                "desk": settings.desk_key is not None,
                "by_rule": sorted(_by_rule(settings.file)),
            },
        )
        listener = opened.enter_context(closing(listening(settings.file)))
        opened.callback(settings.file.socket.unlink, missing_ok=True)
        log.note("started", at=clock(), uid=os.geteuid(), accounts=sorted(settings.keys))
        # Connections wait in the backlog from here on, so it may be told before the first one.
        ready(str(settings.file.socket))
        with ending_in_order():
            uvicorn.Server(_config(app.routes)).run(sockets=[listener])
        log.note("ended", at=clock())


@contextmanager
def ending_in_order() -> Iterator[None]:
    """The server raises the signal that ended it once more; what is open is closed before that."""
    before = {name: signal.signal(name, lambda *_: None) for name in ENDING}
    try:
        yield
    finally:
        for name, action in before.items():
            signal.signal(name, action)


def _by_rule(given: SignerFile) -> set[str]:
    return {
        f"{name} {kind.value} {currency}"
        for name, account in given.accounts.items()
        for kind, tables in account.by_rule.items()
        for currency in tables
    }


def listening(given: SignerFile) -> socket.socket:
    """The listening socket, for the owner and the group that the file names.

    Raises:
        ConfigurationError: somebody listens there already, or it cannot be made.
    """
    path = given.socket
    if len(os.fsencode(path)) > SOCKET_PATH_BYTES_MAX:
        msg = f"the socket {path} has a path of more than {SOCKET_PATH_BYTES_MAX} bytes"
        raise ConfigurationError(msg)
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        _end_left_behind(path)
        before = os.umask(OTHERS_MASK)  # nobody gets in between the socket's making and its group's
        try:
            listener.bind(str(path))
        finally:
            os.umask(before)
        if given.group:
            os.chown(path, -1, grp.getgrnam(given.group).gr_gid)
            path.chmod(WITH_GROUP)
        listener.listen(BACKLOG)
    except (OSError, KeyError) as error:
        listener.close()
        why = getattr(error, "strerror", None) or f"no group {given.group}"
        msg = f"the socket {path} cannot be used ({why}); name another, or its folder and group"
        raise ConfigurationError(msg) from error
    return listener


def _end_left_behind(path: Path) -> None:
    """Remove the socket of a signer that was killed; one that answers stays.

    Raises:
        ConfigurationError: a signer listens there, or it is no socket.
    """
    if not path.exists():
        return
    if not stat.S_ISSOCK(path.lstat().st_mode):
        msg = f"{path} is there and is no socket; nothing was changed"
        raise ConfigurationError(msg)
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        try:
            probe.connect(str(path))
        except OSError:
            path.unlink()
            return
    msg = f"a signer listens at {path} already"
    raise ConfigurationError(msg)


def _config(app: object) -> uvicorn.Config:
    return uvicorn.Config(
        app,  # type: ignore[arg-type] # a Starlette application, which uvicorn types more narrowly
        ws="none",
        lifespan="off",
        log_level="error",
        access_log=False,
        proxy_headers=False,
        server_header=False,
        limit_concurrency=CONNECTIONS_MAX,
        timeout_keep_alive=KEEP_ALIVE_SECONDS,
        timeout_graceful_shutdown=DRAIN_SECONDS,
    )
