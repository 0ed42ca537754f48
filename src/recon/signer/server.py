"""The signer on its socket, until somebody ends it."""

import os
import signal
import socket
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager
from datetime import datetime
from pathlib import Path

import uvicorn

from recon.model.errors import ConfigurationError
from recon.privacy import own_servers
from recon.privacy.own_servers import HeardError, NoSocketError, server_config
from recon.signer.app import SignerApp
from recon.signer.asked_log import AskedLog
from recon.signer.configured import SignerFile, signer_settings
from recon.signer.judging import Judge
from recon.signer.signed_book import SignedBook
from recon.signer.turnstile import Turnstile

ENDING = (signal.SIGINT, signal.SIGTERM)


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
            config = server_config(app.routes)
            uvicorn.Server(config).run(sockets=[listener])
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
    try:
        return own_servers.listening(path, group=given.group)
    except NoSocketError as error:
        msg = f"{error}; nothing was changed"
    except HeardError:
        msg = f"a signer listens at {path} already"
    except (OSError, KeyError) as error:
        why = getattr(error, "strerror", None) or f"no group {given.group}"
        msg = f"the socket {path} cannot be used ({why}); name another, or its folder and group"
    raise ConfigurationError(msg)
