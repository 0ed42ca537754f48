"""`recon statement`: what the gateway owed, what moved and what it owes, of one month."""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from recon.cli.speaking import complain, say
from recon.cli.tables import AsJson, show_json

if TYPE_CHECKING:
    from recon.config.settings import Settings
    from recon.period.business_month import BusinessMonth
    from recon.steps.care.closed_view import ClosedView
    from recon.steps.care.month_index import AccountMonth
    from recon.steps.care.month_statements import StatedMonth
    from recon.steps.ground.environment import Environment

NOT_PROVEN_EXIT_CODE = 4
TROUBLES_SHOWN_MAX = 20
_NUMBER_WIDTH = 16
_COUNT_WIDTH = 7
_LABEL_WIDTH = 58


def statement(
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
    """State a month of the clearing account: opening, movements, closing, tied to lists and books.

    It changes nothing and may be asked on any day; of a closed month it shows the sealed figures,
    and what would be different today. Ends with 4 when a night is missing or NOT PROVEN, or a
    figure does not tie.
    """
    from recon.period.business_month import BusinessMonth
    from recon.steps.ground.environment import environment_of, system_clock

    wanted = BusinessMonth.named(month)
    documents: list[dict[str, Any]] = []
    troubled: list[StatedMonth] = []
    indexed: list[AccountMonth] = []
    with environment_of(os.environ, clock=system_clock, signs=False) as environment:
        settings = environment.settings
        for which in declared_accounts(settings, merchant=merchant, account=account):
            document, own, stated = _of_account(
                wanted, which, out=out, environment=environment, is_shown=not as_json
            )
            documents.append(document)
            indexed.append(own)
            troubled += [stated] if stated is not None and not stated.is_proven else []
        pages = index_of_months(indexed, month=wanted, out=out, settings=settings)
        for line in () if as_json else pages:
            say(line)
    if as_json:
        show_json(documents)
    for stated in troubled:
        for sentence in stated.troubles[:TROUBLES_SHOWN_MAX]:
            complain(f"{'/'.join(stated.statement.account)}: {sentence}")
    if troubled:
        raise typer.Exit(NOT_PROVEN_EXIT_CODE)


def _of_account(
    wanted: "BusinessMonth",
    which: tuple[str, str],
    *,
    out: Path | None,
    environment: "Environment",
    is_shown: bool,
) -> "tuple[dict[str, Any], AccountMonth, StatedMonth | None]":
    """One account: the document, its line over all accounts; the statement of an open month."""
    from recon.steps.care.closed_view import closed_view
    from recon.steps.care.month_index import of_closed, of_stated
    from recon.steps.care.month_statements import stated_month

    view = closed_view(wanted, account=which, environment=environment)
    if view is not None:
        return _of_closed(view, is_shown=is_shown), of_closed(view, workbook=None), None
    folder = out or environment.settings.account(which[0], account_id=which[1]).reports
    stated = stated_month(wanted, account=which, environment=environment)
    document, workbook = _of_open(stated, folder=folder, is_shown=is_shown)
    return document, of_stated(stated, workbook=workbook), stated


def index_of_months(
    accounts: "list[AccountMonth]",
    *,
    month: "BusinessMonth",
    out: Path | None,
    settings: "Settings",
) -> list[str]:
    """Write the page over the accounts of each merchant that has several; where it lies, said."""
    from recon.steps.care.month_index import merchants_of
    from reports.reading.months_index import write_months_index

    names = settings.rules.journal.accounts
    lines = []
    for _, own in merchants_of(accounts):
        merchant, first = own[0].account
        folder = out or settings.account(merchant, account_id=first).reports
        clearing = names.clearing if names else ""
        path = write_months_index(own, month=month, clearing=clearing, folder=folder)
        lines.append(f"All accounts of {merchant}: {path}")
    return lines


def _of_open(stated: "StatedMonth", *, folder: Path, is_shown: bool) -> tuple[dict[str, Any], Path]:
    """A month as it is known now, written and said; the document for programs, the workbook."""
    from recon.steps.care.month_files import document_of, month_files, name_of, write_month_files
    from reports.month_workbook import write_month_workbook

    content = month_files(stated)
    files = write_month_files(stated, files=content, folder=folder)
    path = folder / f"{name_of(stated)}.xlsx"
    workbook = write_month_workbook(stated, path, files=content)
    if is_shown:
        for line in _lines(stated):
            say(line)
        say(f"Workbook: {workbook}")
        say(f"Tables and SQL: {files}")
    return document_of(stated), workbook


def _of_closed(view: "ClosedView", *, is_shown: bool) -> dict[str, Any]:
    """A closed month with the figures that were sealed, and what would be different today."""
    closed, stated = view.closed, view.stated
    if is_shown and stated is not None:
        which = "/".join(closed.account)
        say(f"Statement of {which} for {closed.month}, {closed.in_words}.")
        for currency in stated.statement.currencies:
            say("")
            for line in _of_currency(stated, currency):
                say(line)
        say("")
        for sentence in view.differs or ("nothing",):
            say(f"Would be different today: {sentence}")
        say(f"The sealed workbook: recon close {closed.month}")
    elif is_shown:
        say(f"Statement of {'/'.join(closed.account)} for {closed.month}, {closed.in_words}.")
        for sentence in view.differs or ():
            say(f"Would be different today: {sentence}")
        say(f"Its figures stand in the sealed workbook: recon close {closed.month}")
    sealed: dict[str, Any] = view.document["statement"]
    return {**sealed, "closed_by": closed.by, "would_differ": [*(view.differs or ())]}


def declared_accounts(
    settings: "Settings", *, merchant: str, account: str
) -> list[tuple[str, str]]:
    """The accounts that are named, or all; `account` may be `merchant/account`, too.

    Raises:
        UsageError: none fits.
    """
    from recon.model.errors import UsageError
    from recon.steps.ground.environment import account_of

    every = [account_of(name) for name in sorted(settings.accounts)]
    chosen = [
        which
        for which in every
        if merchant in {"", which[0]} and account in {"", which[1], "/".join(which)}
    ]
    if not chosen:
        named = ", ".join("/".join(which) for which in every) or "none"
        wanted = account if "/" in account else f"{merchant or '*'}/{account or '*'}"
        msg = f"no declared account is {wanted}; declared: {named}"
        raise UsageError(msg)
    return chosen


def one_account(settings: "Settings", *, merchant: str, account: str) -> tuple[str, str]:
    """The one account that people speak about.

    Raises:
        UsageError: none fits, or several do.
    """
    from recon.model.errors import UsageError

    every = declared_accounts(settings, merchant=merchant, account=account)
    if len(every) > 1:
        named = ", ".join("/".join(which) for which in every)
        msg = f"say which account it is (--merchant, --account): {named}"
        raise UsageError(msg)
    return every[0]


def _lines(stated: "StatedMonth") -> Iterator[str]:
    """The statement for a console, currency by currency."""
    statement = stated.statement
    which = "/".join(statement.account)
    named = f"Statement of {which} for {statement.month.name}"
    yield f"{named}, by what the night of {stated.known_by} knows."
    due = [night for night in stated.nights if night.run_id or night.trouble]
    fine = sum(not night.trouble for night in due)
    yield f"Nights: {fine} of {len(due)} stand."
    if stated.is_first:
        yield "No night ran before: what was open then is what this month's nights still show."
    if not statement.is_settled:
        yield "No settlement file was given: fees, reserves and pay-outs are not covered."
    if len(stated.rules) > 1:
        since = ", ".join(f"{digest[:12]} from {day}" for digest, day in stated.rules.items())
        yield f"The rules changed: {since}. Dates are those of the newest."
    for currency in statement.currencies:
        yield ""
        yield from _of_currency(stated, currency)
    held = sum(each.holds for each in statement.equations)
    yield ""
    yield f"Proof: {held} of {len(statement.equations)} equations hold, in pandas and in SQL."
    if statement.unknown_refunds:
        from recon.period.unknown_refunds import untold_refunds

        yield from (f"{untold.sentence}." for untold in untold_refunds(statement.unknown_refunds))


def _of_currency(stated: "StatedMonth", currency: str) -> Iterator[str]:
    from recon.period.month_layout import blocks_of

    for block in blocks_of(stated.statement, currency=currency):
        for row in block:
            yield _row(row.label, row.count, row.amount, currency=currency, indent=row.depth)


def _row(label: str, count: int | None, amount: int, *, currency: str, indent: int) -> str:
    from recon.model.money import format_minor_units

    shown = f"{format_minor_units(amount, currency=currency)} {currency}"
    name = f"{'  ' * indent}{label}"
    counted = "" if count is None else str(count)
    return f"{name:<{_LABEL_WIDTH}}{counted:>{_COUNT_WIDTH}}{shown:>{_NUMBER_WIDTH + 4}}"
