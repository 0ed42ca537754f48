"""`recon notifications`: receive what the gateway tells by itself, until Ctrl-C."""

import os
from typing import Annotated

import typer

from recon.cli.speaking import say


def notifications(
    *,
    host: Annotated[
        str, typer.Option(help="The address to listen on; elsewhere a proxy must do TLS.")
    ] = "127.0.0.1",
    port: Annotated[int, typer.Option(help="0 takes a free port.", min=0, max=65535)] = 8420,
) -> None:
    """Receive the gateway's notifications, verify them and keep them as evidence."""
    from recon.config.settings import load_settings
    from recon.notifications.server import receive_until_ended
    from recon.steps.ground.environment import system_clock

    settings = load_settings(os.environ)

    def ready(base_url: str) -> None:
        say(base_url)
        for key in sorted(settings.accounts):
            say(f"{base_url}/notifications/{key}")

    receive_until_ended(settings, host=host, port=port, clock=system_clock, ready=ready)
