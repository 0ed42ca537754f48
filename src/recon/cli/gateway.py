"""`recon sandbox`: the gateway, played, on this machine."""

from pathlib import Path
from typing import Annotated, Literal

import typer


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
