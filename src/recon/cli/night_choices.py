"""Which night a command is about: a business date, or a run; named the same way everywhere."""

import os
from datetime import timedelta
from typing import Annotated

import typer

from recon.cli.choices import date_of

Night = Annotated[
    str,
    typer.Argument(help="A run, or the business date of a night.", show_default=False),
]
RunOption = Annotated[
    str, typer.Option("--run", help="The same as an option: a run, or a business date.")
]


def closed_day(text: str = "") -> str:
    """A business date as people type it, or the last one that has closed where they name none.

    The calendar's own zone and cut-off count, as they do when a night refuses a day that is open.

    Raises:
        typer.BadParameter: no date.
        ConfigurationError: the rules cannot be read.
    """
    if text:
        return date_of(text).isoformat()
    from recon.config.settings import config_dir_of, load_rules
    from recon.steps.ground.environment import system_clock

    calendar = load_rules(config_dir=config_dir_of(os.environ)).business_calendar
    return (calendar.business_date_of(system_clock()) - timedelta(days=1)).isoformat()


def named_night(night: str, run: str) -> str:
    """The one name of a night that was given, as an argument or by `--run`.

    Raises:
        typer.BadParameter: none, or both and they differ.
    """
    if night and run and night != run:
        msg = f"{night} and --run {run} are two nights; name one"
        raise typer.BadParameter(msg)
    if name := night or run:
        return name
    msg = "name the night: a run, or its business date (`recon runs` lists them)"
    raise typer.BadParameter(msg)


def run_of(night: str, run: str) -> str:
    """The run that was named; of a business date its newest finished one.

    Raises:
        typer.BadParameter: none is named, or two.
        UsageError: no night of that date is finished, or several accounts have one.
    """
    name = named_night(night, run)
    if not _is_date(name):
        return name
    from recon.steps.compare.rebuild import run_named
    from recon.steps.ground.environment import environment_of, system_clock

    with (
        environment_of(os.environ, clock=system_clock, signs=False) as environment,
        environment.store.reading() as connection,
    ):
        return run_named(connection, name).run_id


def _is_date(name: str) -> bool:
    try:
        date_of(name)
    except typer.BadParameter:
        return False
    return True
