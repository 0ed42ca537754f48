"""`recon order-file check --as bank`: what statements prove, before a night counts them."""

import os
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from recon.cli.night_choices import date_of
from recon.cli.speaking import complain, say

if TYPE_CHECKING:
    from recon.matching.frames.bank_sources import BankStatement

REFUSED_EXIT_CODE = 1


def check_statements(files: Sequence[Path], *, rules: Path | None, as_of: str) -> None:
    """Say what statements prove before a night counts them; nothing is stored.

    Raises:
        typer.Exit: one of them would not count.
    """
    from recon.config.settings import config_dir_of, load_rules
    from recon.steps.files.bank_files import check_bank_files

    read_rules = load_rules(config_dir=config_dir_of(os.environ), rules_file=rules)
    day = date_of(as_of) if as_of else datetime.now(UTC).date()
    checked = check_bank_files(files, rules=read_rules, day=day)
    for number, statement in enumerate(checked.source.statements):
        counts = number in checked.judged.counted
        say(f"{_told(statement)} {'It counts.' if counts else 'It does not count.'}")
    for note in checked.source.notes:
        say(note)
    for name, cover in checked.judged.covers.items():
        days = f"{cover.first_day} to {cover.to_day}" if cover.to_day else "no day"
        say(f"{name}: covered {days}.")
    for problem in checked.judged.problems:
        complain(problem)
    say("Nothing was stored.")
    if checked.judged.problems:
        raise typer.Exit(REFUSED_EXIT_CODE)


def _told(statement: "BankStatement") -> str:
    """A statement in a line, its account cut to its ends."""
    from recon.matching.bank.statements import named
    from recon.model.money import format_minor_units
    from recon.privacy.shown_text import scrubbed

    def shown(amount: int) -> str:
        return f"{format_minor_units(amount, currency=statement.currency)} {statement.currency}"

    moved = f"{statement.entries} booked entries of {shown(statement.booked)}"
    proof = f"{moved}, without balances"
    if statement.opening is not None and statement.closing is not None:
        proof = f"opening {shown(statement.opening)}, {moved}, closing {shown(statement.closing)}"
    days = (
        statement.from_date
        if statement.from_date == statement.to_date
        else f"{statement.from_date} to {statement.to_date}"
    )
    return f"{named(statement)} of {scrubbed(statement.iban)}, {days}: {proof}."
