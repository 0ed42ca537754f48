"""`recon opening`: what a night left out as opening balance."""

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from recon.cli.night_choices import Night, RunOption, named_night
from recon.cli.speaking import say
from recon.cli.tables import show
from recon.model.money import format_minor_units

if TYPE_CHECKING:
    from recon.steps.compare.opening import OpeningLine

COLUMNS = ("what", "currency", "items", "amount", "oldest", "newest")


def opening(
    night: Night = "",
    *,
    run: RunOption = "",
    out: Annotated[Path | None, typer.Option(help="Folder for the items, as opening.csv.")] = None,
) -> None:
    """Show what a night did not compare because it is older than its window: the opening balance.

    Orders and payments by what they came to, ledger entries by what they book; never breaks.
    """
    from recon.steps.compare.opening import opening_of, write_opening
    from recon.steps.ground.environment import environment_of, system_clock

    with environment_of(os.environ, clock=system_clock) as environment:
        balance = opening_of(named_night(night, run), environment=environment)
    word = f", {balance.run.predecessor}" if balance.run.predecessor else ""
    say(f"{balance.run.business_date}, run {balance.run.run_id}{word}")
    if not balance.lines:
        say("Nothing is older than the window of this night: the opening balance is 0.")
    else:
        show([_row(line) for line in balance.lines], columns=COLUMNS)
    if out is not None:
        say(f"Items: {write_opening(balance, folder=out)}")


def _row(line: "OpeningLine") -> dict[str, object]:
    return {
        "what": line.what,
        "currency": line.currency,
        "items": line.items,
        "amount": format_minor_units(line.amount, currency=line.currency),
        "oldest": line.oldest[:10],
        "newest": line.newest[:10],
    }
