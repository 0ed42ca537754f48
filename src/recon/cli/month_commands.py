"""A month of the clearing account: `recon close`, `recon journals`.

Two people close a month and two open it again; they first see what blocks it, or what would move.
"""

from collections.abc import Iterator, Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NoReturn

import typer

from recon.cli.night_choices import Night, OneAccount, OneMerchant, opened, run_of
from recon.cli.output import AsJson, echo, echo_error, show_json
from recon.cli.people_commands import NAME_HELP, Code, perform, refuse_typed

if TYPE_CHECKING:
    from recon.model.business_date import BusinessMonth
    from recon.month.stated import StatedMonth
    from recon.steps.runtime.environment import Environment

Month = Annotated[str, typer.Argument(help="The month, such as 2026-11.", show_default=False)]
Folder = Annotated[
    Path | None, typer.Option(help="Where workbook and files go; else the account's reports.")
]
_NUMBER_WIDTH = 20
_COUNT_WIDTH = 7
_LABEL_WIDTH = 58


def close(
    month: Month,
    *,
    merchant: OneMerchant = "",
    account: OneAccount = "",
    out: Folder = None,
    sign: Annotated[
        str, typer.Option(help="Sign it as reviewer or as approver: two people close a month.")
    ] = "",
    digest: Annotated[
        str,
        typer.Option(help="Of what you looked at, its first 16 digits; without it what is shown."),
    ] = "",
    reopen: Annotated[
        str,
        typer.Option(
            help="Why a closed month is opened again: two people open it. Its sealed folder stays."
        ),
    ] = "",
    take_back: Annotated[
        bool, typer.Option("--take-back", help="With --sign or --reopen: take your word back.")
    ] = False,
    name: Annotated[str, typer.Option("--as", help=NAME_HELP)] = "",
    code: Code = "",
    as_json: AsJson = False,
) -> None:
    """State a month, tied to lists and ledger: NOT READY with what blocks its close, or READY.

    That changes nothing. With --sign a reviewer and an approver, in any order, put their names
    under what was prepared; the second one closes the month and seals its folder. Of a closed month
    the sealed figures are shown, and what would be different today. Ends with 0 when it is ready or
    closed, 3 when it is ready with open items, 4 when something blocks it.
    """
    from recon import acts
    from recon.model.business_date import BusinessMonth
    from recon.month.close import CloseVerdict
    from recon.steps.runtime.environment import named_accounts, one_account
    from reports.close_preview import close_preview

    if (sign and reopen) or (take_back and not (sign or reopen)):
        msg = "a month is signed (--sign) or opened again (--reopen); --take-back is of one of them"
        raise typer.BadParameter(msg)
    if take_back:
        subject = acts.subject_of(acts.CLOSED if sign else acts.REOPENED)
        perform(acts.TakeBack, {"subject": subject}, name=name, code=code)
        return
    fields = {"month": month, "merchant_id": merchant, "account_id": account}
    if reopen:
        perform(acts.ReopenMonth, {**fields, "reason": reopen}, name=name, code=code)
        return
    business_month = BusinessMonth.named(month)
    with opened(signs=False) as environment:
        refuse_typed(code, environment=environment)
        settings = environment.settings
        if not sign:
            accounts = named_accounts(settings, merchant=merchant, account=account)
            _show(business_month, accounts, out=out, as_json=as_json, environment=environment)
        which = one_account(settings, merchant=merchant, account=account)
        digest = digest or _to_sign(business_month, which, environment=environment)
    done = perform(acts.SignClose, {**fields, "role": sign, "digest": digest}, name=name, code=code)
    if done is None or done.ending != CloseVerdict.CLOSED:
        return
    with opened(signs=False) as environment:
        sealed = close_preview(
            business_month, account=which, folder=out, environment=environment, is_compared=False
        )
    echo("\n".join(sealed.lines))


def _show(
    business_month: "BusinessMonth",
    accounts: Sequence[tuple[str, str]],
    *,
    out: Path | None,
    as_json: bool,
    environment: "Environment",
) -> NoReturn:
    """Say and write what a month came to, and what keeps it from being closed."""
    from reports.close_preview import close_preview, index_of_months

    shown = [
        close_preview(business_month, account=which, folder=out, environment=environment)
        for which in accounts
    ]
    own = [each.own for each in shown]
    pages = index_of_months(own, month=business_month, out=out, settings=environment.settings)
    if as_json:
        show_json([each.document for each in shown])
    for each in () if as_json else shown:
        echo("\n".join(each.lines))
        is_closed = "closed" in each.document
        if each.stated is not None:
            echo("\n".join(_statement_lines(each.stated, is_closed=is_closed)))
        if is_closed:
            echo(
                f"To open it again: recon close {business_month.name} --reopen WHY --as NAME, two "
                "people"
            )
    for line in chain.from_iterable(each.blocked for each in shown):
        echo_error(line)
    for page in () if as_json else pages:
        echo(page)
    raise typer.Exit(max(each.exit_code for each in shown))


def _to_sign(
    business_month: "BusinessMonth", which: tuple[str, str], *, environment: "Environment"
) -> str:
    """The digest of what is signed, said before the code is asked."""
    from recon.model.errors import UsageError
    from recon.month.close import prepared_close, reviewed_close
    from reports.close_preview import blocked

    prepared = prepared_close(business_month, account=which, environment=environment)
    digest, verdict = reviewed_close(prepared).digest, prepared.verdict.value
    if prepared.blockers:
        for line in blocked(prepared):
            echo_error(line)
        msg = (
            f"{business_month.name} is {verdict}, so nobody was asked and nothing was signed: "
            f"`recon close {business_month.name}` says it again, and writes the workbook"
        )
        raise UsageError(msg)
    echo(f"To sign: {business_month.name} of {'/'.join(which)}, {verdict}, digest {digest}")
    return digest


OWN_FORMAT = "csv"
HELD_BACK_A_LINE = 20
"""Ids of journals that are kept back for one reason, on a line."""
AGAIN = " Whatever the format: `--again ID` writes a lost one once more (`recon journals`)."

Again = Annotated[
    list[str] | None, typer.Option(help="A journal whose file was lost, by its id; may repeat.")
]
DayOfNight = Annotated[
    bool,
    typer.Option(
        "--day-of-night", help="Of a night: book what may be of the month before on its day, too."
    ),
]


def journals(
    night: Night = "",
    *,
    out: Annotated[
        Path | None, typer.Option(help="Folder for the files; without it journals are only listed.")
    ] = None,
    period: Annotated[
        str, typer.Option(help="A closed month instead of a night, such as 2026-11.")
    ] = "",
    written_as: Annotated[
        str,
        typer.Option("--format", help="csv, datev, xero, netsuite, sap-csv, beancount or hledger."),
    ] = OWN_FORMAT,
    merchant: Annotated[
        str, typer.Option(envvar="RECON_MERCHANT", help="Of a month: the merchant's number.")
    ] = "",
    account: Annotated[
        str, typer.Option(envvar="RECON_ACCOUNT", help="Of a month: the account's number.")
    ] = "",
    currency: Annotated[
        list[str] | None,
        typer.Option(help="Journals in this currency alone; may repeat."),
    ] = None,
    again: Again = None,
    day_of_night: DayOfNight = False,
) -> None:
    """List the journals that are out, or write them for the ledger (--out): each once, never again.

    Listed is what was handed out and no night's ledger shows yet; also accruals and reversals of
    closed months, which no night looks for, until the month after theirs is closed.

    Written are of a night those that it proposes, but for what may be of the month before;
    with --period those of a closed month, as its two people signed them.
    """
    if out is None:
        if night or period or again:
            msg = "name the folder for the files (--out); without it journals are only listed"
            raise typer.BadParameter(msg)
        _list_out()
        return
    if period and (night or day_of_night):
        msg = "name a night (--day-of-night is of one) or a month (--period), not both"
        raise typer.BadParameter(msg)
    from recon.model.business_date import BusinessMonth
    from recon.month.journal_exports import HandOut, export_month, export_of_night
    from recon.steps.runtime.environment import one_account

    named = "" if period else run_of(night)
    hand_out = HandOut(out, written_as, again or (), currency or (), day_of_night)
    with opened() as environment:
        if period:
            month = BusinessMonth.named(period)
            own = one_account(environment.settings, merchant=merchant, account=account)
            export = export_month(month, account=own, hand_out=hand_out, environment=environment)
        else:
            export = export_of_night(named, hand_out=hand_out, environment=environment)
    _echo_held_back(export.held_back_journals)
    if not export.paths:
        what = f"journals of {period}" if period else "proposed journals"
        echo(nothing_left(f"{export.exported_before} {what}", before=export.exported_before))
        return
    of = f" of {period}, close {export.close}" if period else ""
    echo(f"{export.journals} journals{of}:")
    for path in export.paths:
        echo(f"  {path}")


def _echo_held_back(held_back_journals: Mapping[str, str]) -> None:
    """Each with its reason; one that many share is said once a line of them."""
    by_reason: dict[str, list[str]] = {}
    for name, why in held_back_journals.items():
        by_reason.setdefault(why, []).append(name)
    for why, names in by_reason.items():
        for first in range(0, len(names), HELD_BACK_A_LINE):
            echo(f"Kept back: {', '.join(names[first : first + HELD_BACK_A_LINE])}; {why}.")


def nothing_left(what: str, *, before: int) -> str:
    """That no journal leaves, and how one is written again where some left before."""
    return f"Nothing to hand out: {what} left before.{AGAIN if before else ''}"


def _list_out() -> None:
    """The journals that were handed out and that no night's ledger shows yet."""
    from recon.model.money import Money
    from recon.model.terms import PERMANENT
    from recon.month.journal_exports import journals_out

    with opened() as environment:
        handed_out = journals_out(environment)
    for out in handed_out:
        amount = Money.of_minor_units(out.amount, currency=out.currency)
        what = f"for order {out.order_no or '-'}" if out.kind == PERMANENT else out.kind
        source = "run" if out.kind == PERMANENT else "the close of"
        echo(
            f"{out.journal_id}: {amount} {what} of {out.merchant_id}/{out.account_id}, dated "
            f"{out.day or 'by a night that is not kept'}, handed out as {out.format} "
            f"{out.exported_at:%Y-%m-%d %H:%M} UTC of {source} {out.exported_of}"
        )
    echo(f"{len(handed_out)} journals are out and not yet seen in the ledger.")


def _statement_lines(stated: "StatedMonth", *, is_closed: bool) -> Iterator[str]:
    """The statement for a console, currency by currency; of a closed month its figures alone."""
    from recon.model.money import Money
    from recon.month.statement import blocks_of, unreported_refunds

    if not is_closed:
        due = [night for night in stated.nights if night.run_id or night.trouble]
        yield f"Nights: {sum(not night.trouble for night in due)} of {len(due)} stand."
        yield from stated.notes
        if len(stated.rules) > 1:
            since = ", ".join(f"{digest[:12]} from {day}" for digest, day in stated.rules.items())
            yield f"The rules changed: {since}. Dates are those of the newest."
        unknown = unreported_refunds(stated.statement.unknown_refunds)
        yield from (f"{unreported.sentence}." for unreported in unknown)
    for currency in stated.statement.currencies:
        yield ""
        for row in chain.from_iterable(blocks_of(stated.statement, currency=currency)):
            shown = str(Money.of_minor_units(row.amount, currency=currency))
            name, count = f"{'  ' * row.depth}{row.label}", "" if row.count is None else row.count
            yield f"{name:<{_LABEL_WIDTH}}{count:>{_COUNT_WIDTH}}{shown:>{_NUMBER_WIDTH}}"
