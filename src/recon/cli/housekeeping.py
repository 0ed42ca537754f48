"""`recon housekeeping`: what is older than retention.toml keeps."""

import os
from typing import Annotated

import typer

from recon.cli.speaking import complain, say


def housekeeping(
    *,
    delete: Annotated[
        bool, typer.Option("--delete", help="Delete it; without this it is only shown.")
    ] = False,
    name: Annotated[str, typer.Option("--as", help="Who deletes; kept in the history.")] = "",
) -> None:
    """Show what is older than retention.toml keeps, or delete it with a line in the history.

    The journal, the history, results, signed workbooks and the newest workbook of a night are never
    deleted.
    """
    from recon.steps.care import housekeeping as keeping
    from recon.steps.ground.environment import environment_of, system_clock

    with environment_of(os.environ, clock=system_clock) as environment:
        spared = keeping.housekeeping(environment)
        stayed: tuple[str, ...] = ()
        if delete:
            spared, stayed = keeping.delete(spared, by=name, environment=environment)
    if not spared:
        say("Nothing to delete." if delete else "retention.toml names no age: everything is kept.")
    for kind in spared:
        say(f"{'Deleted: ' if delete else ''}{kind}")
    for sentence in stayed:
        complain(sentence)
    if stayed:
        raise typer.Exit(1)
