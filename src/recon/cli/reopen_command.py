"""`recon reopen`: two people open a closed month again, and first see what would move."""

import os
from typing import TYPE_CHECKING, Annotated

import typer

from recon.cli.close_command import differing_lines
from recon.cli.one_time_codes import Code, refuse_typed
from recon.cli.speaking import complain, say
from recon.cli.statement_command import one_account

if TYPE_CHECKING:
    from recon.period.business_month import BusinessMonth
    from recon.steps.ground.environment import Environment


def reopen(
    month: Annotated[str, typer.Argument(help="The month, such as 2026-11.", show_default=False)],
    *,
    merchant: Annotated[
        str, typer.Option(envvar="RECON_MERCHANT", help="The merchant; may be left out for one.")
    ] = "",
    account: Annotated[
        str, typer.Option(envvar="RECON_ACCOUNT", help="The account; may be left out for one.")
    ] = "",
    reason: Annotated[str, typer.Option(help="Why; kept in the history.")] = "",
    name: Annotated[str, typer.Option("--as", help="Your short name in approvers.toml.")] = "",
    code: Code = "",
) -> None:
    """Show what of a closed month would move; with --reason and --as open it again, two people do.

    Its sealed folder stays; closing it again makes a second one.
    """
    from recon.cli.people_commands import ask_desk_to
    from recon.cli.workbooks import signing_acts
    from recon.period.business_month import BusinessMonth
    from recon.steps.care.months_at_desk import REOPEN_MONTH, reopen_body, reopen_word_of
    from recon.steps.ground.environment import environment_of, system_clock

    wanted = BusinessMonth.named(month)
    with environment_of(os.environ, clock=system_clock, signs=False) as environment:
        refuse_typed(code, environment=environment)
        which = one_account(environment.settings, merchant=merchant, account=account)
        _show(wanted, which, environment=environment)
    if not name:
        say(f"To open it again: recon reopen {wanted.name} --reason WHY --as NAME (two people)")
        return
    body = reopen_body(wanted, account=which, reason=reason)
    word = reopen_word_of(
        ask_desk_to(REOPEN_MONTH, body, name=name, code=code, more=signing_acts())
    )
    if word.reopened:
        say(f"REOPENED: {wanted.name}. Its folder {word.closed.folder} stays.")
    else:
        say("Noted: a second person must say the same. The month is still closed.")


def _show(month: "BusinessMonth", which: tuple[str, str], *, environment: "Environment") -> None:
    """What would move; a folder that cannot be read keeps nobody from opening the month.

    Raises:
        UsageError: the month is not closed.
    """
    from recon.model.errors import ArchiveError, UsageError
    from recon.steps.care.closed_view import closed_view

    try:
        view = closed_view(month, account=which, environment=environment)
    except ArchiveError as error:
        complain(f"What would move cannot be shown: {error}")
        return
    if view is None:
        msg = f"{month.name} of {'/'.join(which)} is not closed; nothing was changed"
        raise UsageError(msg)
    say(f"{month.name} of {'/'.join(which)}: {view.closed.in_words}")
    for line in differing_lines(view.differs):
        say(line)
