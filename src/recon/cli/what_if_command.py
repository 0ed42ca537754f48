"""`recon what-if`: past nights under candidate rules, before anybody changes the real ones."""

import os
from datetime import UTC
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from recon.cli.night_choices import First, Last, days_of
from recon.cli.speaking import say
from recon.cli.statement_command import one_account
from recon.cli.tables import show
from recon.model.words import DIGITS_READ

if TYPE_CHECKING:
    from recon.steps.compare.what_if import WhatIf

KINDS_SHOWN_MAX = 40
"""Lines on the terminal; the workbook of --out has all."""
COLUMNS = ("night", "was", "would be", "sets", "money")


def what_if(
    rules: Annotated[Path, typer.Argument(help="The candidate rules, a file like rules.toml.")],
    *,
    first: First = "",
    last: Last = "",
    merchant: Annotated[str, typer.Option(help="Needed where several are declared.")] = "",
    account: Annotated[str, typer.Option(help="Needed where several are declared.")] = "",
    out: Annotated[Path | None, typer.Option(help="The workbook to write (.xlsx).")] = None,
) -> None:
    """Judge past nights again under other rules, each on the simulated night before it.

    Reads the nights' sealed folders alone. Nothing is moved or signed; the history keeps the digest
    of the answer, which page one quotes when these become the rules.
    """
    from recon.config.settings import config_dir_of, load_rules
    from recon.steps.compare.what_if import note_answer
    from recon.steps.compare.what_if import what_if as ask
    from recon.steps.ground.environment import environment_of, system_clock

    candidate = load_rules(config_dir=config_dir_of(os.environ), rules_file=rules)
    days = days_of(first, last)
    with environment_of(os.environ, clock=system_clock, signs=False) as environment:
        named = one_account(environment.settings, merchant=merchant, account=account)
        answer = ask(
            candidate,
            account=named,
            first=days[0],
            last=days[1],
            environment=environment,
            progress=say,
        )
        note_answer(answer, rules=candidate, account=named, environment=environment)
    _tell(answer)
    if out is not None:
        from recon.cli.workbooks import write_what_if

        say(f"Workbook: {write_what_if(answer, path=out, at=system_clock().astimezone(UTC))}")


def _tell(answer: "WhatIf") -> None:
    from recon.steps.compare.what_if import moved

    for rule in answer.rules:
        late = " (decides what a night reads: not in these figures)"
        say(f"{rule}{late if rule in answer.not_played else ''}")
    if not answer.rules:
        say("These are the rules of the last of these nights.")
    kinds = [*moved(answer.nights)]
    if kinds:
        rows = [
            {"night": str(kind.business_date), "was": kind.before, "would be": kind.after}
            | {"sets": kind.count, "money": kind.money}
            for kind in kinds[:KINDS_SHOWN_MAX]
        ]
        show(rows, columns=COLUMNS)
    if len(kinds) > KINDS_SHOWN_MAX:
        say(f"... and {len(kinds) - KINDS_SHOWN_MAX} more lines: --out has them all")
    count = len(answer.never_raised)
    say(f"{count} answered breaks would never have been raised.")
    say(f"Digest of this answer: {answer.digest[:DIGITS_READ]}")
