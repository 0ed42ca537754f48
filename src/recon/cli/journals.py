"""`recon journals`: proposed journals, handed out once for import into the books."""

import os
from pathlib import Path
from typing import Annotated

import typer

from recon.cli.speaking import say

journals = typer.Typer(help="Journals that would put the books right.", no_args_is_help=True)


@journals.callback()
def _journals() -> None:
    """Journals that would put the books right."""


@journals.command("export")
def export(
    run: Annotated[str, typer.Argument(help="The run's id; `recon nights` lists them.")],
    out: Annotated[Path, typer.Option(help="Folder for the CSV file.")],
) -> None:
    """Write the journals that a night proposes as CSV; each is handed out once and never again."""
    from recon.steps.environment import environment_of, system_clock
    from recon.steps.journals import export_journals

    with environment_of(os.environ, clock=system_clock) as environment:
        handed = export_journals(run, out=out, environment=environment)
    if handed.path is None:
        say(f"Nothing to hand out: {handed.handed_before} proposed journals left before.")
        return
    say(f"{handed.journals} journals: {handed.path}")
