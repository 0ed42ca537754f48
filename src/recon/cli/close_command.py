"""`recon close`: whether a month may be closed, what blocks it, and the workbook of the close."""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from recon.cli.speaking import complain, say
from recon.cli.statement_command import declared_accounts
from recon.cli.tables import AsJson, show_json

if TYPE_CHECKING:
    from recon.steps.care.month_closes import PreparedClose

BLOCKERS_SHOWN_MAX = OPEN_SHOWN_MAX = 20
"""Lines of each on the terminal; the workbook has them all."""


def close(
    month: Annotated[str, typer.Argument(help="The month, such as 2026-11.", show_default=False)],
    *,
    merchant: Annotated[
        str, typer.Option(envvar="RECON_MERCHANT", help="The merchant; without it every one.")
    ] = "",
    account: Annotated[
        str, typer.Option(envvar="RECON_ACCOUNT", help="The account; without it every one.")
    ] = "",
    out: Annotated[
        Path | None, typer.Option(help="Where workbook and files go; else the account's reports.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Prepare the close of a month: NOT READY with what blocks it, or READY; nothing is changed.

    Ends with 0 when it is ready, 3 when it is with open items, 4 when something blocks it.
    """
    from recon.period.business_month import BusinessMonth
    from recon.steps.care.close_files import close_document, close_name, write_close_files
    from recon.steps.care.month_closes import prepared_close
    from recon.steps.ground.environment import environment_of, system_clock
    from reports.month_workbook import write_close_workbook

    wanted = BusinessMonth.named(month)
    every: list[PreparedClose] = []
    with environment_of(os.environ, clock=system_clock, signs=False) as environment:
        settings = environment.settings
        for which in declared_accounts(settings, merchant=merchant, account=account):
            prepared = prepared_close(wanted, account=which, environment=environment)
            folder = out or settings.account(which[0], account_id=which[1]).reports
            files = write_close_files(prepared, folder=folder)
            workbook = write_close_workbook(prepared, folder / f"{close_name(prepared)}.xlsx")
            every.append(prepared)
            if not as_json:
                for line in _lines(prepared):
                    say(line)
                say(f"Workbook: {workbook}")
                say(f"Tables and SQL: {files}")
                _complain(prepared)
    if as_json:
        show_json([close_document(prepared) for prepared in every])
    if worst := max(prepared.verdict.exit_code for prepared in every):
        raise typer.Exit(worst)


def _lines(prepared: "PreparedClose") -> Iterator[str]:
    from recon.model.money import format_minor_units

    stated = prepared.stated
    statement = stated.statement
    which = "/".join(statement.account)
    yield f"Close of {which} for {statement.month.name}: {prepared.verdict.value}"
    yield f"By what the night of {stated.known_by} knows."
    held = sum(each.holds for each in statement.equations)
    yield f"Proof: {held} of {len(statement.equations)} equations hold, in pandas and in SQL."
    for currency in statement.currencies:
        owed = statement.sum_of(currency, of="gateway", at="closing")
        shown = format_minor_units(owed, currency=currency)
        yield f"The gateway owes {statement.closing_words}: {shown} {currency}"
    for each in prepared.open_items[:OPEN_SHOWN_MAX]:
        amount = format_minor_units(each.amount, currency=each.currency) if each.currency else ""
        yield f"Open: {each.what}, {each.count}, {amount} {each.currency}".rstrip(", ")
    left = len(prepared.open_items) - OPEN_SHOWN_MAX
    if left > 0:
        yield f"and {left} more that are open: see the sheet Close"


def _complain(prepared: "PreparedClose") -> None:
    for each in prepared.blockers[:BLOCKERS_SHOWN_MAX]:
        owner = f" Owner: {each.owner}." if each.owner else ""
        complain(f"Blocked: {each.what}.{owner} Next: {each.where}")
    left = len(prepared.blockers) - BLOCKERS_SHOWN_MAX
    if left > 0:
        complain(f"and {left} more: see the sheet Close")
