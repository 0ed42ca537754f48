"""The receiver on a socket, until somebody ends it."""

import socket
from collections.abc import Callable
from contextlib import closing

import uvicorn

from recon.config.settings import Settings
from recon.model.errors import ConfigurationError
from recon.model.words import Clock
from recon.notifications.receiver import Receiver
from recon.notifications.receiver_app import create_app
from recon.privacy.own_servers import server_config
from recon.store.database.engine import open_store
from recon.store.database.migrate import check_revision

BACKLOG = 256


def receive_until_ended(
    settings: Settings, *, host: str, port: int, clock: Clock, ready: Callable[[str], None]
) -> None:
    """Receive until SIGINT or SIGTERM; tells `ready` the address once it accepts connections.

    Raises:
        ConfigurationError: the address cannot be used.
        StoreError: the database cannot be used.
    """
    with closing(open_store(settings.database_url.get_secret_value())) as store:
        check_revision(store)
        app = create_app(Receiver(settings, store=store, clock=clock))
        with listening(host, port=port) as listener:
            bound, at = listener.getsockname()[:2]
            # Connections wait in the backlog from here on, so it may be told before the first one.
            ready(f"http://{f'[{bound}]' if ':' in bound else bound}:{at}")
            uvicorn.Server(server_config(app)).run(sockets=[listener])


def listening(host: str, *, port: int) -> socket.socket:
    """A listening socket.

    Raises:
        ConfigurationError: host or port cannot be used.
    """
    try:
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        return socket.create_server((host, port), family=family, backlog=BACKLOG)
    except OSError as error:
        msg = f"{host}, port {port} cannot be used ({error.strerror or error}); name another"
        raise ConfigurationError(msg) from error
