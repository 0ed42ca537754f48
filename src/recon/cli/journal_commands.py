"""`recon journals`: proposed journals, handed out once for import into the books."""

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated

import typer

from recon.cli.night_choices import Night, RunOption, run_of
from recon.cli.speaking import say
from recon.cli.statement_command import one_account

OWN_FORMAT = "csv"
KEPT_A_LINE = 20
"""Ids of journals that are kept back for one reason, on a line."""
AGAIN = " Whatever the format: `--again ID` writes a lost one once more (`recon journals list`)."

Again = Annotated[
    list[str] | None, typer.Option(help="A journal whose file was lost, by its id; may repeat.")
]
DayOfNight = Annotated[
    bool,
    typer.Option(
        "--day-of-night", help="Of a night: book what may be of the month before on its day, too."
    ),
]

journals = typer.Typer(help="Journals that would put the books right.", no_args_is_help=True)


@journals.callback()
def _journals() -> None:
    """Journals that would put the books right."""


@journals.command("export")
def export(
    night: Night = "",
    *,
    out: Annotated[Path, typer.Option(help="Folder for the files.")],
    run: RunOption = "",
    period: Annotated[
        str, typer.Option(help="A closed month instead of a night, such as 2026-11.")
    ] = "",
    written_as: Annotated[
        str,
        typer.Option(
            "--format", help="Of a month: csv, datev, xero, netsuite, sap-csv, beancount, hledger."
        ),
    ] = OWN_FORMAT,
    merchant: Annotated[
        str, typer.Option(envvar="RECON_MERCHANT", help="Of a month: the merchant's number.")
    ] = "",
    account: Annotated[
        str, typer.Option(envvar="RECON_ACCOUNT", help="Of a month: the account's number.")
    ] = "",
    currency: Annotated[
        list[str] | None,
        typer.Option(help="Of a month: journals in this currency alone; may repeat."),
    ] = None,
    again: Again = None,
    day_of_night: DayOfNight = False,
) -> None:
    """Write journals for the books; each is handed out once and never again.

    Of a night those that it proposes, as CSV, but for what may be of the month before. With
    --period those of a closed month: the proposed ones, and what is accrued and taken back, as its
    two people signed them.
    """
    if period:
        if night or run or day_of_night:
            msg = "name a night (--day-of-night is of one) or a month (--period), not both"
            raise typer.BadParameter(msg)
        which, only = (merchant, account), currency or ()
        _export_month(
            period, which, out=out, written_as=written_as, again=again or (), currencies=only
        )
        return
    if written_as != OWN_FORMAT or currency:
        msg = (
            "the journals of a night are CSV of all currencies; --format and --currency are of a "
            "closed month (--period)"
        )
        raise typer.BadParameter(msg)
    _export_night(run_of(night, run), out=out, again=again or (), is_of_night=day_of_night)


def _export_night(named: str, *, out: Path, again: Sequence[str], is_of_night: bool) -> None:
    from recon.steps.care.night_books import export_of_night
    from recon.steps.ground.environment import environment_of, system_clock

    with environment_of(os.environ, clock=system_clock) as environment:
        handed = export_of_night(
            named, out=out, environment=environment, again=again, is_of_night=is_of_night
        )
    _say_kept_back(handed.kept_back)
    if handed.path is None:
        say(nothing_left(f"{handed.handed_before} proposed journals", before=handed.handed_before))
        return
    say(f"{handed.journals} journals: {handed.path}")


def _say_kept_back(kept_back: Mapping[str, str]) -> None:
    """Each with its reason; one that many share is said once a line of them."""
    by_reason: dict[str, list[str]] = {}
    for name, why in kept_back.items():
        by_reason.setdefault(why, []).append(name)
    for why, names in by_reason.items():
        for first in range(0, len(names), KEPT_A_LINE):
            say(f"Kept back: {', '.join(names[first : first + KEPT_A_LINE])}; {why}.")


def nothing_left(what: str, *, before: int) -> str:
    """That no journal leaves, and how one is written again where some left before."""
    return f"Nothing to hand out: {what} left before.{AGAIN if before else ''}"


def _export_month(
    period: str,
    which: tuple[str, str],
    *,
    out: Path,
    written_as: str,
    again: Sequence[str],
    currencies: Sequence[str],
) -> None:
    from recon.period.business_month import BusinessMonth
    from recon.steps.care.month_books import MonthBooks, export_month
    from recon.steps.ground.environment import environment_of, system_clock

    month = BusinessMonth.named(period)
    with environment_of(os.environ, clock=system_clock) as environment:
        own = one_account(environment.settings, merchant=which[0], account=which[1])
        wanted = MonthBooks(month, own, written_as, out, again, currencies)
        handed = export_month(wanted, environment=environment)
    _say_kept_back(handed.kept_back)
    if not handed.paths:
        what = f"{handed.handed_before} journals of {period}"
        say(nothing_left(what, before=handed.handed_before))
        return
    say(f"{handed.journals} journals of {period}, close {handed.closed.number}:")
    for path in handed.paths:
        say(f"  {path}")


@journals.command("list")
def list_out() -> None:
    """List the journals that were handed out and that no night's ledger shows yet.

    Also accruals and reversals of closed months, which no night looks for in the books: until the
    month after theirs is closed.
    """
    from recon.model.money import Money
    from recon.period.month_journals import PERMANENT
    from recon.steps.compare.journals import journals_out
    from recon.steps.ground.environment import environment_of, system_clock

    with environment_of(os.environ, clock=system_clock) as environment:
        handed_out = journals_out(environment)
    for out in handed_out:
        amount = Money.of_minor_units(out.amount, currency=out.currency)
        what = f"for order {out.order_no or '-'}" if out.kind == PERMANENT else out.kind
        source = "run" if out.kind == PERMANENT else "the close of"
        say(
            f"{out.journal_id}: {amount} {what} of {out.merchant_id}/{out.account_id}, dated "
            f"{out.day or 'by a night that is not kept'}, handed out as {out.format} "
            f"{out.handed_out_at:%Y-%m-%d %H:%M} UTC of {source} {out.handed_out_of}"
        )
    say(f"{len(handed_out)} journals are out and not yet seen in the books.")
