"""`recon diff`: what changed between two nights, and why. `recon compare-again`: a night again."""

import os
from pathlib import Path
from typing import Annotated

import typer

from recon.cli.night_choices import Night, RunOption, closed_day, named_night
from recon.cli.speaking import complain, say
from recon.model.money import format_minor_units

CHANGES_SHOWN_MAX = 200
"""Lines of one difference; more have one cause, and the workbooks have them all."""


def nights_compared(
    first: Annotated[str, typer.Argument(help="A run, or the business date of a night.")],
    second: Night = "",
) -> None:
    """Say what the second night judges otherwise than the first, and which side moved."""
    from recon.steps.compare.difference import difference
    from recon.steps.ground.environment import environment_of, system_clock

    with environment_of(os.environ, clock=system_clock) as environment:
        both = difference(first, second or str(closed_day()), environment=environment)
    say(both.first)
    say(both.second)
    say(f"Rules: {'the same' if both.same_rules else 'CHANGED between the two'}")
    for rule in both.rules:
        say(f"  {rule}")
    if both.moved_by_rules:
        say(f"  {both.moved_by_rules}")
    say(f"{len(both.changes)} changed, {both.unchanged} judged alike")
    for change in both.changes[:CHANGES_SHOWN_MAX]:
        merchant, account, name, currency = change.key
        money = format_minor_units(change.exposure, currency=currency) if currency else "0"
        say(
            f"{merchant}/{account} {name}: {change.before} -> {change.after} "
            f"({money} {currency}): {change.why}"
        )
    if len(both.changes) > CHANGES_SHOWN_MAX:
        say(f"... and {len(both.changes) - CHANGES_SHOWN_MAX} more")


def compare_again(
    night: Night = "",
    *,
    run: RunOption = "",
    out: Annotated[
        Path | None, typer.Option(help="Folder for the result files of that night.")
    ] = None,
) -> None:
    """Compare a past night again from what is stored, and say whether its result is the same.

    What came after that night does not count: later files, answers, instructions and rules.
    Ends with 0 when the result is the same, with 1 when it is not.
    """
    from recon import __version__
    from recon.steps.compare.rebuild import rebuild_night
    from recon.steps.ground.environment import environment_of, system_clock

    with environment_of(os.environ, clock=system_clock) as environment:
        again = rebuild_night(named_night(night, run), out=out, environment=environment)
    say(
        f"{again.run.business_date}, run {again.run.run_id}, as of {again.run.as_of:%Y-%m-%d %H:%M}"
    )
    if out is not None:
        say(f"Result: {out}")
    if again.same:
        say(f"The same result as that night: {again.digest_then}")
        return
    versions = f"recon {again.version_then} compared then, recon {__version__} now"
    complain(
        f"NOT the result of that night: {again.result.digest}, it was {again.digest_then}. Its "
        f"inputs are all there; {versions}. Its workbook and the files of --out show what differs."
    )
    raise typer.Exit(1)
