"""Options that commands share; a night is a date or a run, named the same way everywhere."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import date
from typing import TYPE_CHECKING, Annotated

import typer

from recon.cli.output import echo
from recon.model.nights import Mode

if TYPE_CHECKING:
    from recon.config.cluster import Workers
    from recon.steps.runtime.environment import Environment

Night = Annotated[
    str,
    typer.Argument(
        help="A run, or the business date of a night; without it the last that has closed.",
        show_default=False,
    ),
]

Named = Annotated[str, typer.Option("--run", help="The same, by an option.", show_default=False)]

Live = Annotated[
    bool | None,
    typer.Option(
        "--live/--dry-run",
        help="Send what is approved, or list what would be sent; live only towards the sandbox "
        "without either.",
        show_default=False,
    ),
]

First = Annotated[
    str,
    typer.Option(
        "--from", help="The first business date; without it that of --to.", show_default=False
    ),
]
Last = Annotated[
    str,
    typer.Option(
        "--to", help="The last; without it the last one that has closed.", show_default=False
    ),
]


@contextmanager
def opened(*, signs: bool = True, workers: "Workers | None" = None) -> "Iterator[Environment]":
    """The environment of this process, by the machine's clock.

    Args:
        signs: whether it may have to sign what goes to the gateway.
        workers: instead of those that are configured.
    """
    from recon.steps.runtime.environment import environment_of, system_clock

    with environment_of(
        os.environ, clock=system_clock, signs=signs, workers=workers
    ) as environment:
        yield environment


def mode_of(live: bool | None) -> Mode:
    """How a night runs: as was said; else live towards the sandbox, and dry towards all others.

    Raises:
        ConfigurationError: a variable or file is missing or wrong.
    """
    if live is None:
        from recon.config.settings import load_settings

        live = load_settings(os.environ).is_sandbox
        if not live:
            echo("A dry run, for the gateway is not the sandbox: nothing is sent without --live.")
    return Mode.LIVE if live else Mode.DRY_RUN


def closed_day(text: str = "") -> date:
    """A business date as people type it, or the last one that has closed where they name none.

    The calendar's own zone and cut-off count, as they do when a night refuses a day that is open,
    and the nights' own time.

    Raises:
        typer.BadParameter: no date.
        ConfigurationError: the rules cannot be read, or the time is moved where it may not be.
    """
    if text:
        return date_of(text)
    from recon.config.settings import config_dir_of, load_rules
    from recon.steps.runtime.environment import clock_shift, system_clock

    calendar = load_rules(config_dir=config_dir_of(os.environ)).business_calendar
    return calendar.last_closed(system_clock() + clock_shift(os.environ))


def days_of(first: str, last: str) -> tuple[date, date]:
    """The first and the last business date of a span.

    Raises:
        typer.BadParameter: no date.
        ConfigurationError: the last day is not given, and the rules cannot be read.
    """
    to = closed_day(last)
    return date_of(first) if first else to, to


def named_night(night: str) -> str:
    """The name of a night; without one the last closed day.

    Raises:
        ConfigurationError: none is given, and the rules cannot be read.
    """
    return night or str(closed_day())


def run_of(night: str) -> str:
    """The run that was named; of a business date its newest finished one.

    Raises:
        UsageError: no night of that date is finished, or several accounts have one.
    """
    name = named_night(night)
    try:
        date_of(name)
    except typer.BadParameter:
        return name
    from recon.steps.compare.rebuild import run_named

    with (
        opened(signs=False) as environment,
        environment.store.reading() as connection,
    ):
        return run_named(connection, name).run_id


Merchant = Annotated[
    str, typer.Option(envvar="RECON_MERCHANT", help="The merchant's number at the gateway.")
]
Account = Annotated[
    str, typer.Option(envvar="RECON_ACCOUNT", help="The account's number at the gateway.")
]
OneMerchant = Annotated[
    str, typer.Option(envvar="RECON_MERCHANT", help="The merchant; without it every one.")
]
OneAccount = Annotated[
    str, typer.Option(envvar="RECON_ACCOUNT", help="The account; without it every one.")
]
BusinessDate = Annotated[
    str,
    typer.Option(
        envvar="RECON_BUSINESS_DATE",
        help="The day to settle, such as 2026-11-20; without it the last one that has closed.",
        show_default=False,
    ),
]


def date_of(text: str) -> date:
    """A date as people type it.

    Raises:
        typer.BadParameter: anything but year, month and day with hyphens.
    """
    from recon.model.business_date import date_of_text

    try:
        return date_of_text(text)
    except ValueError as error:
        msg = f"{text!r} is not a date such as 2026-11-20"
        raise typer.BadParameter(msg) from error
