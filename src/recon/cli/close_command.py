"""`recon close`: whether a month may be closed, what blocks it, and the names of two people."""

import os
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from recon.cli.one_time_codes import Code, refuse_typed
from recon.cli.speaking import complain, say
from recon.cli.statement_command import declared_accounts, index_of_months, one_account
from recon.cli.tables import AsJson, show_json

if TYPE_CHECKING:
    from recon.period.business_month import BusinessMonth
    from recon.steps.care.closed_view import ClosedView
    from recon.steps.care.month_closes import PreparedClose
    from recon.steps.care.month_index import AccountMonth
    from recon.steps.care.signed_closes import MonthToSign
    from recon.steps.ground.environment import Environment

BLOCKERS_SHOWN_MAX = OPEN_SHOWN_MAX = MOVED_SHOWN_MAX = 20
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
    sign: Annotated[
        str, typer.Option(help="Sign it as reviewer or as approver: two people close a month.")
    ] = "",
    name: Annotated[str, typer.Option("--as", help="Your short name in approvers.toml.")] = "",
    digest: Annotated[
        str,
        typer.Option(help="Of what you looked at, its first 16 digits; without it what is shown."),
    ] = "",
    code: Code = "",
    as_json: AsJson = False,
) -> None:
    """Prepare the close of a month: NOT READY with what blocks it, or READY; or sign it.

    Preparing changes nothing. With --sign a reviewer and an approver, in any order, put their
    names under what was prepared; the second one closes the month and seals its folder. Of a closed
    month the sealed figures are shown, and what would be different today. Ends with 0 when it is
    ready or closed, 3 when it is ready with open items, 4 when something blocks it.
    """
    from recon.period.business_month import BusinessMonth
    from recon.steps.ground.environment import environment_of, system_clock

    wanted = BusinessMonth.named(month)
    with environment_of(os.environ, clock=system_clock, signs=False) as environment:
        refuse_typed(code, environment=environment)
        accounts = declared_accounts(environment.settings, merchant=merchant, account=account)
        if not sign:
            _show(wanted, accounts, out=out, environment=environment, as_json=as_json)
            return
        which = one_account(environment.settings, merchant=merchant, account=account)
        to_sign = _to_sign(wanted, which, digest=digest, environment=environment, role=sign)
    _sign(to_sign, name=name, code=code, out=out)


def _show(
    wanted: "BusinessMonth",
    accounts: list[tuple[str, str]],
    *,
    out: Path | None,
    environment: "Environment",
    as_json: bool,
) -> None:
    """Each account: closed as it was sealed, or prepared."""
    from recon.steps.care.closed_view import closed_view
    from recon.steps.care.month_index import of_closed

    documents, indexed, worst = [], [], 0
    for which in accounts:
        folder = out or _reports(which, environment=environment)
        view = closed_view(wanted, account=which, environment=environment)
        if view is not None:
            documents.append(_closed_document(view))
            workbook = None if as_json else _say_closed(view, folder=folder)
            indexed.append(of_closed(view, workbook=workbook))
            continue
        document, prepared, code = _prepared(
            wanted, which, folder=folder, environment=environment, is_told=not as_json
        )
        documents.append(document)
        indexed.append(prepared)
        worst = max(worst, code)
    pages = index_of_months(indexed, month=wanted, out=out, settings=environment.settings)
    for line in () if as_json else pages:
        say(line)
    if as_json:
        show_json(documents)
    if worst:
        raise typer.Exit(worst)


def _prepared(
    wanted: "BusinessMonth",
    which: tuple[str, str],
    *,
    folder: Path,
    environment: "Environment",
    is_told: bool,
) -> "tuple[dict[str, Any], AccountMonth, int]":
    from recon.steps.care.close_digest import seen_close
    from recon.steps.care.close_files import close_document, close_name, write_close_files
    from recon.steps.care.month_closes import prepared_close
    from recon.steps.care.month_index import of_prepared
    from reports.month_workbook import write_close_workbook

    prepared = prepared_close(wanted, account=which, environment=environment)
    seen = seen_close(prepared)
    digest = seen.digest
    files = write_close_files(prepared, files=seen.files, folder=folder)
    path = folder / f"{close_name(prepared)}.xlsx"
    workbook = write_close_workbook(prepared, path, seen=seen)
    if is_told:
        for line in _lines(prepared, digest=digest):
            say(line)
        say(f"Workbook: {workbook}")
        say(f"Tables and SQL: {files}")
        _complain(prepared)
    document = {**close_document(prepared), "digest": digest}
    return document, of_prepared(prepared, workbook=workbook), prepared.verdict.exit_code


def _reports(which: tuple[str, str], *, environment: "Environment") -> Path:
    return environment.settings.account(which[0], account_id=which[1]).reports


def _to_sign(
    wanted: "BusinessMonth",
    which: tuple[str, str],
    *,
    role: str,
    digest: str,
    environment: "Environment",
) -> "MonthToSign":
    """What is signed, said before the code is asked.

    Raises:
        UsageError: something blocks the month.
    """
    from recon.model.errors import UsageError
    from recon.steps.care.close_digest import seen_close
    from recon.steps.care.month_closes import prepared_close
    from recon.steps.care.signed_closes import MonthToSign

    if not digest:
        prepared = prepared_close(wanted, account=which, environment=environment)
        digest = seen_close(prepared).digest
        verdict = prepared.verdict.value
        if prepared.blockers:
            _complain(prepared)
            msg = (
                f"{wanted.name} is {verdict}, so nobody was asked and nothing was signed: "
                f"`recon close {wanted.name}` says it again, and writes the workbook"
            )
            raise UsageError(msg)
        say(f"To sign: {wanted.name} of {'/'.join(which)}, {verdict}, digest {digest}")
    return MonthToSign(wanted, which, role, digest)


def _sign(to_sign: "MonthToSign", *, name: str, code: str, out: Path | None) -> None:
    from recon.cli.people_commands import ask_desk_to
    from recon.cli.workbooks import signing_acts
    from recon.steps.care.closed_view import closed_view
    from recon.steps.care.months_at_desk import SIGN_CLOSE, close_body, close_word_of
    from recon.steps.care.signed_closes import other_role
    from recon.steps.ground.environment import environment_of, system_clock

    body, month = close_body(to_sign), to_sign.month
    word = close_word_of(ask_desk_to(SIGN_CLOSE, body, name=name, code=code, more=signing_acts()))
    if word.lapsed:
        complain(f"The signature of {word.lapsed} lapsed: what they signed is not what is there.")
        for sentence in word.moved[:MOVED_SHOWN_MAX]:
            complain(f"Moved: {sentence}")
    if word.closed is None:
        until = f"{word.valid_until:%Y-%m-%d %H:%M} UTC" if word.valid_until else "it lapses"
        other = other_role(to_sign.role)
        say(f"Signed as {to_sign.role}: the {other} must sign the same until {until}.")
        return
    with environment_of(os.environ, clock=system_clock, signs=False) as environment:
        view = closed_view(
            month, account=to_sign.account, environment=environment, is_compared=False
        )
        if view is not None:
            _say_closed(view, folder=out or _reports(to_sign.account, environment=environment))


def _closed_document(view: "ClosedView") -> dict[str, Any]:
    closed = asdict(view.closed) | {"at": view.closed.at.isoformat()}
    return {
        "verdict": "CLOSED",
        "closed": closed,
        "sealed": view.document,
        "would_differ": [*(view.differs or ())],
    }


def _say_closed(view: "ClosedView", *, folder: Path) -> Path:
    """Show a closed month, and put its workbook in the reports; where it lies."""
    from recon.model.money import format_minor_units
    from recon.period.month_statement import CLOSING
    from reports.drawing.in_place import put_in_place

    closed = view.closed
    which = "/".join(closed.account)
    say(f"Close of {which} for {closed.month}: {closed.in_words}")
    say(f"Sealed by what the night of {closed.known_by} knew; close {closed.number}.")
    owed: dict[str, int] = {}
    for figure in view.figures:
        if (figure.of, figure.at) == ("gateway", CLOSING):
            owed[figure.currency] = owed.get(figure.currency, 0) + figure.amount
    for currency, amount in sorted(owed.items()):
        shown = format_minor_units(amount, currency=currency)
        say(f"The gateway owes at the close, as sealed: {shown} {currency}")
    for line in differing_lines(view.differs):
        say(line)
    name = f"{view.name.removesuffix('.xlsx')}-closed.xlsx"
    workbook = put_in_place(view.workbook, path=folder / name)
    say(f"Workbook: {workbook}")
    say(f"Folder: {closed.folder}, manifest {closed.manifest}")
    return workbook


def differing_lines(differs: Sequence[str] | None) -> Iterator[str]:
    """What would be different today, for a terminal; nothing where nobody asked."""
    if differs is None:
        return
    for sentence in differs[:MOVED_SHOWN_MAX]:
        yield f"Would be different today: {sentence}"
    more = len(differs) - MOVED_SHOWN_MAX
    if more > 0:
        yield f"and {more} more that would be different today"
    if not differs:
        yield "Nothing would be different today."


def _lines(prepared: "PreparedClose", *, digest: str) -> Iterator[str]:
    from recon.model.money import format_minor_units
    from recon.steps.care.signed_closes import names_of
    from reports.sheets.words import in_words

    stated = prepared.stated
    statement = stated.statement
    which = "/".join(statement.account)
    yield f"Close of {which} for {statement.month.name}: {prepared.verdict.value}"
    if (reopened := prepared.state.reopened) is not None:
        at = f"{reopened.at:%Y-%m-%d %H:%M} UTC"
        yield f"REOPENED on {at} by {reopened.by}: {reopened.reason}"
    yield f"By what the night of {stated.known_by} knows."
    held = sum(each.holds for each in statement.equations)
    yield f"Proof: {held} of {len(statement.equations)} equations hold, in pandas and in SQL."
    for currency in statement.currencies:
        owed = statement.sum_of(currency, of="gateway", at="closing")
        shown = format_minor_units(owed, currency=currency)
        yield f"The gateway owes {statement.closing_words}: {shown} {currency}"
    for each in prepared.open_items[:OPEN_SHOWN_MAX]:
        amount = format_minor_units(each.amount, currency=each.currency) if each.currency else ""
        what = in_words(each.what, code=each.code)
        yield f"Open: {what}, {each.count}, {amount} {each.currency}".rstrip(", ")
    left = len(prepared.open_items) - OPEN_SHOWN_MAX
    if left > 0:
        yield f"and {left} more that are open: see the sheet Close"
    yield f"Digest: {digest}"
    for signed in names_of(prepared):
        yield f"Signed: {signed}"


def _complain(prepared: "PreparedClose") -> None:
    from reports.sheets.words import in_words

    for each in prepared.blockers[:BLOCKERS_SHOWN_MAX]:
        owner = f" Owner: {each.owner}." if each.owner else ""
        complain(f"Blocked: {in_words(each.what, code=each.code)}.{owner} Next: {each.where}")
    left = len(prepared.blockers) - BLOCKERS_SHOWN_MAX
    if left > 0:
        complain(f"and {left} more: see the sheet Close")
