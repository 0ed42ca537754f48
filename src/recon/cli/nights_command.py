"""`recon nights`: every expected night of every account, what ran, or one line for a monitor.

Also the line of a dead man that other commands leave: a night that never started can tell nobody.
"""

from collections.abc import Callable
from enum import IntEnum
from typing import TYPE_CHECKING, Annotated

import typer

from recon.cli.night_choices import First, Last, days_of, opened
from recon.cli.speaking import AsJson, complain, say, show, show_json

if TYPE_CHECKING:
    from recon.steps.people.sign_off import Night
    from recon.store.nights.runs import Run

RUNS = ("run", "night", "account", "mode", "status", "verdict", "started", "problem")
TOLD_BY = frozenset(
    {
        *("nightly", "housekeeping", "approve", "reject", "resolve", "release", "sign-off"),
        *("withdraw", "import-resolutions", "notifications", "verify", "stop-sending"),
    }
)
"""Commands that say at their end which nights are missing; `status` and its like say it anyway."""


class Plugin(IntEnum):
    """Exit codes of monitoring plugins, as Nagios and its heirs read them."""

    OK = 0
    WARNING = 1
    CRITICAL = 2
    UNKNOWN = 3


def nights(
    *,
    first: First = "",
    last: Last = "",
    check: Annotated[
        bool,
        typer.Option("--check", help="One line for a monitor: OK, WARNING, CRITICAL or UNKNOWN."),
    ] = False,
    runs: Annotated[
        int | None,
        typer.Option(
            help="Instead: so many runs, the newest first, parts too; each with why it stopped.",
            min=1,
        ),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """List every expected night of every account: its verdict, who signed, how long unsigned.

    Ends with the code of the worst night that is listed. With --check the codes are those of
    monitoring plugins: 0 OK, 1 WARNING (incomplete), 2 CRITICAL (money, not proven, stopped,
    missing), 3 UNKNOWN.
    """
    if check:
        _check()
    if runs:
        _list_runs(runs, as_json=as_json)
        return
    from recon.steps.night.lookout import watched
    from recon.steps.people.sign_off import nights as nights_of

    days = days_of(first, last)
    with opened() as environment:
        night_rows = nights_of(days[0], last=days[1], environment=environment)
        accounts = watched(environment)
    listed = [night for night in night_rows if night.due]
    for night in () if as_json else listed:
        say(line_of(night))
    shown = {night.run_id for night in listed} - {""}
    newest = [account for account in accounts if account.newest and account.newest.run_id in shown]
    for line in newest:
        for trouble in () if as_json else line.troubles:
            say(f"{line.account}: {trouble}")
    if as_json:
        troubles = {line.account: list(line.troubles) for line in newest if line.troubles}
        show_json({"nights": [document_of(night) for night in listed], "troubles": troubles})
    codes = [*(night.exit_code for night in listed), *(night.exit_code for night in newest)]
    if code := max(codes, default=0):
        raise typer.Exit(code)


def _list_runs(count: int, *, as_json: bool) -> None:
    """The newest runs of all accounts: nights and parts, how each ended and why it stopped."""
    from recon.store.nights.runs import newest

    with (
        opened(signs=False) as environment,
        environment.store.reading() as connection,
    ):
        rows = [_run_row(run) for run in newest(connection, count=count)]
    if as_json:
        show_json(rows)
    elif rows:
        show(rows, columns=RUNS)
    else:
        say("No night has run yet.")


def _run_row(run: "Run") -> dict[str, str]:
    return {
        "run": run.run_id,
        "night": run.business_date.isoformat(),
        "account": f"{run.merchant_id}/{run.account_id}",
        "mode": f"{run.mode}, {run.part} alone" if run.part else run.mode.value,
        "status": run.status,
        "verdict": run.verdict,
        "started": f"{run.started_at:%Y-%m-%d %H:%M} UTC",
        "problem": run.problem,
        "workbook": run.workbook,
    }


def document_of(night: "Night") -> dict[str, object]:
    """One night for programs."""
    return {
        "merchant": night.merchant_id,
        "account": night.account_id,
        "night": night.business_date.isoformat(),
        "run": night.run_id,
        "standing": night.standing,
        "exit_code": night.exit_code,
        "signed": [{"role": each.role, "by": each.by} for each in night.signed],
        "void_because": night.void_because,
        "unsigned_days": night.unsigned_days,
        "workbook": night.workbook,
    }


def line_of(night: "Night") -> str:
    """One night: account, date, verdict, who signed it, and what is missing."""
    names = ", ".join(f"{signature.role} {signature.by}" for signature in night.signed)
    sentence = f"signed by {names}" if names else "not signed"
    waits = f", unsigned for {night.unsigned_days} days" if night.unsigned_days else ""
    void = f"; earlier signatures are void: {night.void_because}" if night.void_because else ""
    run = f" ({night.run_id})" if night.run_id else ""
    which = f"{night.merchant_id}/{night.account_id} {night.business_date}"
    return f"{which}: {night.standing}{run}, {sentence}{waits}{void}"


def tell_missed(command: str, *, tell: Callable[[str], None] = complain) -> None:
    """After a command: say which nights never ran, so that cron's mail of the next one says it."""
    if command not in TOLD_BY:
        return
    from recon.config.cluster import IN_PROCESS
    from recon.model.errors import ReconError
    from recon.steps.night.lookout import missed_told, watched

    try:
        with opened(workers=IN_PROCESS) as environment:
            accounts = watched(environment)
    except ReconError:
        return  # the command itself said what is wrong with the settings or the database
    for sentence in missed_told(accounts):
        tell(sentence)


def _check() -> None:
    """One line and an exit code, as monitoring plugins give them.

    Raises:
        typer.Exit: always.
    """
    from recon.config.cluster import IN_PROCESS
    from recon.model.errors import ReconError
    from recon.steps.night.lookout import counted, watched

    try:
        with opened(workers=IN_PROCESS) as environment:
            accounts = watched(environment)
    except ReconError as error:
        say(_one_line(Plugin.UNKNOWN, str(error)))
        raise typer.Exit(Plugin.UNKNOWN) from None
    sentences = [
        f"{account.account}: {trouble}" for account in accounts for trouble in account.troubles
    ]
    never = [account.account for account in accounts if account.newest is None]
    sentences += [f"{account_key}: no night has run yet" for account_key in never]
    incomplete = all(account.only_incomplete for account in accounts if account.troubles)
    code = Plugin.OK if not sentences else Plugin.WARNING if incomplete else Plugin.CRITICAL
    dates = [account.newest.business_date for account in accounts if account.newest]
    fine = f"{len(accounts)} accounts, newest night {max(dates, default='none')}"
    figures = " ".join(f"{name}={count}" for name, count in counted(accounts).items())
    say(f"{_one_line(code, ' '.join(sentences) or fine)} | {figures}")
    raise typer.Exit(code)


def _one_line(code: Plugin, sentence: str) -> str:
    """What stands before the figures: the bar is theirs alone."""
    return f"NIGHTS {code.name} - {' '.join(sentence.replace('|', '/').split())}"
