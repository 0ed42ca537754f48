"""`recon journals`: proposed journals, handed out once for import into the books."""

import os
from pathlib import Path
from typing import Annotated

import typer

from recon.cli.night_choices import Night, RunOption, run_of
from recon.cli.speaking import say

journals = typer.Typer(help="Journals that would put the books right.", no_args_is_help=True)


@journals.callback()
def _journals() -> None:
    """Journals that would put the books right."""


@journals.command("export")
def export(
    night: Night = "",
    *,
    out: Annotated[Path, typer.Option(help="Folder for the CSV file.")],
    run: RunOption = "",
    again: Annotated[
        list[str] | None,
        typer.Option(help="A journal whose file was lost, by its id; may repeat."),
    ] = None,
) -> None:
    """Write the journals that a night proposes as CSV; each is handed out once and never again."""
    from recon.steps.compare.journals import export_journals
    from recon.steps.ground.environment import environment_of, system_clock

    named = run_of(night, run)
    with environment_of(os.environ, clock=system_clock) as environment:
        handed = export_journals(named, out=out, environment=environment, again=again or ())
    for line in handed.kept_back:
        say(f"Kept back: {line}; its break is written off, or waits for a second person to agree.")
    if handed.path is None:
        say(f"Nothing to hand out: {handed.handed_before} proposed journals left before.")
        return
    say(f"{handed.journals} journals: {handed.path}")


@journals.command("list")
def list_out() -> None:
    """List the journals that were handed out and that no night's ledger shows yet."""
    from recon.model.money import Money
    from recon.steps.compare.journals import journals_out
    from recon.steps.ground.environment import environment_of, system_clock

    with environment_of(os.environ, clock=system_clock) as environment:
        handed_out = journals_out(environment)
    for out in handed_out:
        amount = Money.of_minor_units(out.amount, currency=out.currency)
        say(
            f"{out.journal_id}: {amount} for order {out.order_no or '-'} of {out.merchant_id}/"
            f"{out.account_id}, handed out {out.handed_out_at:%Y-%m-%d %H:%M} UTC of run "
            f"{out.run_id}"
        )
    say(f"{len(handed_out)} journals are out and not yet seen in the books.")
