"""What runs until Ctrl-C: the gateway played on this machine, the signer, the receiver."""

import os
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Annotated, Literal

import typer

from recon.cli.speaking import say


def sandbox(
    *,
    port: Annotated[int, typer.Option(help="0 takes a free port.", min=0, max=65535)] = 0,
    seed: Annotated[int, typer.Option(help="The same seed gives the same population.")] = 42,
    orders: Annotated[int, typer.Option(help="Payments of the population.", min=0)] = 2000,
    state: Annotated[
        Path | None,
        typer.Option(help="File that keeps population, clock and faults; none: in memory."),
    ] = None,
    fault_plan: Annotated[Path | None, typer.Option(help="What goes wrong, and when.")] = None,
    merchant: Annotated[str, typer.Option(help="The merchant it knows.")] = "100042",
    account: Annotated[str, typer.Option(help="The default account.")] = "100042001",
    sign_key: Annotated[str, typer.Option(help="The key that signs.")] = "sandbox",
    profile: Annotated[
        Literal["base", "extended"], typer.Option(help="Which rules of the interface hold.")
    ] = "base",
    registered_ip: Annotated[
        str, typer.Option(help="The one address that may query.")
    ] = "127.0.0.1",
    capture_mode: Annotated[
        Literal["manual", "auto"],
        typer.Option(help="Whether an authorisation is captured at once."),
    ] = "manual",
    real_clock: Annotated[
        bool, typer.Option("--real-clock", help="Its clock moves with real time.")
    ] = False,
    notify_url: Annotated[
        str,
        typer.Option(help="Where notifications go; {merchant_id} and {account_id} are filled."),
    ] = "",
) -> None:
    """Play the gateway on this machine until Ctrl-C; prints its address and what to set."""
    from recon.sandbox import SandboxOptions, serve

    options = SandboxOptions(
        port=port,
        seed=seed,
        orders=orders,
        state=state,
        fault_plan=fault_plan,
        merchant=merchant,
        account=account,
        sign_key=sign_key,
        profile=profile,
        registered_ip=registered_ip,
        capture_mode=capture_mode,
        real_clock=real_clock,
        notify_url=notify_url,
    )
    serve(options)


def signer(
    rules: Annotated[
        Path,
        typer.Option(
            "--rules",
            envvar="RECON_SIGNER_RULES",
            help="The signer's own file: socket, keys, the desk's key, its limits.",
        ),
    ],
) -> None:
    """Hold the sign keys apart from nights and workers, and sign for them over a Unix socket.

    Queries are signed freely; money only where two people endorsed the very row at the desk, or
    within the limits of the signer's own file.
    """
    from recon.signer.server import sign_until_ended

    sign_until_ended(rules, clock=partial(datetime.now, UTC), ready=say)


def notifications(
    *,
    host: Annotated[
        str, typer.Option(help="The address to listen on; elsewhere a proxy must do TLS.")
    ] = "127.0.0.1",
    port: Annotated[int, typer.Option(help="0 takes a free port.", min=0, max=65535)] = 8420,
) -> None:
    """Receive the gateway's notifications, verify them and keep them as evidence."""
    from recon.config.settings import load_settings
    from recon.notifications.receiver_server import receive_until_ended
    from recon.steps.ground.environment import system_clock

    settings = load_settings(os.environ)

    def ready(base_url: str) -> None:
        say(base_url)
        for key in sorted(settings.accounts):
            say(f"{base_url}/notifications/{key}")

    receive_until_ended(settings, host=host, port=port, clock=system_clock, ready=ready)
