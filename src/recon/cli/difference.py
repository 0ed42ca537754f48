"""`recon diff`: what changed between two nights, and why."""

import os
from typing import Annotated

import typer

from recon.cli.speaking import say
from recon.money import format_minor_units

CHANGES_SHOWN_MAX = 200
"""Lines of one difference; more have one cause, and the workbooks have them all."""


def nights_compared(
    first: Annotated[str, typer.Argument(help="A run, or the business date of a night.")],
    second: Annotated[str, typer.Argument(help="The run or night to hold against it.")],
) -> None:
    """Say what the second night judges otherwise than the first, and which side moved."""
    from recon.steps.difference import difference
    from recon.steps.environment import environment_of, system_clock

    with environment_of(os.environ, clock=system_clock) as environment:
        found = difference(first, second, environment=environment)
    say(found.first)
    say(found.second)
    say(f"Rules: {'the same' if found.same_rules else 'CHANGED between the two'}")
    say(f"{len(found.changes)} changed, {found.unchanged} judged alike")
    for one in found.changes[:CHANGES_SHOWN_MAX]:
        merchant, account, name, currency = one.key
        money = format_minor_units(one.exposure, currency=currency) if currency else "0"
        say(
            f"{merchant}/{account} {name}: {one.before} -> {one.after} "
            f"({money} {currency}): {one.why}"
        )
    if len(found.changes) > CHANGES_SHOWN_MAX:
        say(f"... and {len(found.changes) - CHANGES_SHOWN_MAX} more")
