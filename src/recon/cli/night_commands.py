"""`recon nightly`, parts of a night by themselves, and `status`: what needs a person."""

import os
from collections.abc import Callable, Mapping
from dataclasses import asdict
from datetime import date
from enum import IntEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, NoReturn

import typer

from recon.cli.night_choices import (
    Account,
    BusinessDate,
    First,
    Last,
    Live,
    Merchant,
    closed_day,
    days_of,
    mode_of,
    opened,
    run_of,
)
from recon.cli.output import AsJson, Echo, echo, echo_error, progress_of, show, show_json
from recon.cli.past_nights import under_other_rules
from recon.model.nights import NIGHT, PLANS, Mode, NightPlan, NightRequest, Part
from recon.model.terms import Verdict

if TYPE_CHECKING:
    from recon.model.nights import StepSummary
    from recon.steps.approvals.sign_off import Night
    from recon.steps.runtime.environment import Environment
    from recon.store.nights.runs import Run

RUNS = ("run", "night", "account", "mode", "status", "verdict", "started", "problem")
REPORTED_BY = frozenset(
    {
        *("nightly", "housekeeping", "approve", "reject", "resolve", "sign-off", "verify"),
        *("withdraw", "import-resolutions", "stop-sending"),
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
    rules: Annotated[
        Path | None,
        typer.Option(
            help="Instead: what candidate rules, a file like rules.toml, would change of these "
            "nights. They are compared again from their sealed folders; nothing is moved or "
            "signed, and the history keeps the digest of the answer, which page one quotes when "
            "these become the rules.",
        ),
    ] = None,
    merchant: Annotated[str, typer.Option(help="With --rules, where several are declared.")] = "",
    account: Annotated[str, typer.Option(help="With --rules, where several are declared.")] = "",
    out: Annotated[
        Path | None, typer.Option(help="With --rules: the workbook to write (.xlsx).")
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
    days = days_of(first, last)
    if rules is not None:
        under_other_rules(rules, days, account=(merchant, account), out=out)
        return
    from recon.steps.approvals.sign_off import nights as nights_of
    from recon.steps.night.monitor import watched

    with opened() as environment:
        night_rows = nights_of(days[0], last=days[1], environment=environment)
        accounts = watched(environment)
    listed = [night for night in night_rows if night.due]
    for night in () if as_json else listed:
        echo(line_of(night))
    shown = {night.run_id for night in listed} - {""}
    newest = [account for account in accounts if account.newest and account.newest.run_id in shown]
    for line in newest:
        for trouble in () if as_json else line.troubles:
            echo(f"{line.account}: {trouble}")
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
        rows = [
            {
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
            for run in newest(connection, count=count)
        ]
    if as_json:
        show_json(rows)
    elif rows:
        show(rows, columns=RUNS)
    else:
        echo("No night has run yet.")


def document_of(night: "Night") -> dict[str, object]:
    """One night for programs."""
    return {
        "merchant": night.merchant_id,
        "account": night.account_id,
        "night": night.business_date.isoformat(),
        "run": night.run_id,
        "status": night.status,
        "exit_code": night.exit_code,
        "signed": [{"role": each.role, "by": each.by} for each in night.signed],
        "void_because": night.void_because,
        "unsigned_days": night.unsigned_days,
        "workbook": night.workbook,
    }


def line_of(night: "Night") -> str:
    """One night: account, date, verdict, who signed it, and what is missing."""
    void = f"; earlier signatures are void: {night.void_because}" if night.void_because else ""
    run = f" ({night.run_id})" if night.run_id else ""
    which = f"{night.merchant_id}/{night.account_id} {night.business_date}"
    return f"{which}: {night.status}{run}, {night.signed_text}{void}"


def echo_missed(command: str, *, report: Callable[[str], None] = echo_error) -> None:
    """After a command: say which nights never ran, so that cron's mail of the next one says it."""
    if command not in REPORTED_BY:
        return
    from recon.config.cluster import IN_PROCESS
    from recon.model.errors import ReconError
    from recon.steps.night.monitor import missed_reported, watched

    try:
        with opened(workers=IN_PROCESS) as environment:
            accounts = watched(environment)
    except ReconError:
        return  # the command itself said what is wrong with the settings or the database
    for sentence in missed_reported(accounts):
        report(sentence)


def _check() -> None:
    """One line and an exit code, as monitoring plugins give them."""
    from recon.config.cluster import IN_PROCESS
    from recon.model.errors import ReconError
    from recon.steps.night.monitor import counted, watched

    try:
        with opened(workers=IN_PROCESS) as environment:
            accounts = watched(environment)
    except ReconError as error:
        echo(_one_line(Plugin.UNKNOWN, str(error)))
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
    echo(f"{_one_line(code, ' '.join(sentences) or fine)} | {figures}")
    raise typer.Exit(code)


def _one_line(code: Plugin, sentence: str) -> str:
    """What stands before the figures: the bar is theirs alone."""
    return f"NIGHTS {code.name} - {' '.join(sentence.replace('|', '/').split())}"


Opening = Annotated[bool, typer.Option("--opening", help="The first night of the account.")]
Skip = Annotated[
    str, typer.Option(help="Why the nights that are missing before this one were not run.")
]


def nightly(
    merchant: Merchant,
    account: Account,
    business_date: BusinessDate = "",
    *,
    live: Live = None,
    opening: Opening = False,
    skip: Skip = "",
    only: Annotated[
        Literal["ingest", "query", "settle", "payouts", "finish"] | None,
        typer.Option(help="A part of it alone.", show_default=False),
    ] = None,
) -> None:
    """Run one night: ingest, query, settle, query again, reconcile, report.

    Starting the same night again is safe: it goes on where it stopped and sends nothing twice.

    A part (--only) never counts as the night. ingest takes in what lies in the inbox, without a
    date for the next night to come, and ends with 4 where a file was refused whole; query asks
    again, and tells what is shown otherwise than in the night; settle and payouts ask, pass the
    gate and send what is approved; finish compares and reports a stopped night from what is stored.
    """
    plan = PLANS[only] if only else NIGHT
    if (only and (opening or skip)) or (live is not None and (plan.resumes or not plan.sends)):
        msg = "--opening and --skip are of a whole night, --live and --dry-run of what sends"
        raise typer.BadParameter(msg)
    day = closed_day(business_date)
    mode = mode_of(live) if plan.sends else Mode.LIVE if plan.resumes else Mode.DRY_RUN
    if plan.part is Part.INGEST and not business_date:
        from recon.steps.night.whole_night import next_night

        with opened() as environment:
            day = next_night((merchant, account), last_closed=day, environment=environment)
    request = NightRequest(merchant, account, day, mode, opening=opening, skip=skip.strip())
    with progress_of(plan.steps) as report:
        run, figures = played(request, variables=os.environ, report=report, plan=plan)
    if plan.part:
        _end_part(run, figures, part=plan.part)
        return
    dry = " (dry run, nothing was sent)" * (mode is Mode.DRY_RUN)
    end_with(figures, account=f"{merchant}/{account}, {day}{dry}")


def played(
    request: NightRequest, *, variables: Mapping[str, str], report: Echo, plan: NightPlan = NIGHT
) -> "tuple[Run, dict[str, int | str]]":
    """A night, or a part, in this process, and the workbook over all accounts: run and figures.

    Args:
        request: which night.
        variables: of the environment.
        report: takes the sentence of each step.
        plan: what of the night is done.
    """
    from recon.model.uptime import look_past_loaded
    from recon.steps.night.monitor import index_after
    from recon.steps.night.whole_night import run
    from recon.steps.runtime.environment import environment_of, system_clock
    from reports.reading.index_workbook import write_index
    from reports.workbook_io import workbooks

    look_past_loaded()
    figures: dict[str, int | str] = {}

    def progress(summary: "StepSummary") -> None:
        figures.update(summary.figures)
        report(summary.sentence)

    with environment_of(variables, clock=system_clock) as environment:
        ended = run(
            request,
            environment=environment,
            workbooks=workbooks(),
            progress=progress,
            plan=plan,
            echo_error=echo_error,
        )
        if plan.part is None:
            index_after(request, environment=environment, write=write_index, echo=echo)
    return ended, figures


def end_with(figures: Mapping[str, int | str], *, account: str) -> NoReturn:
    """Say where the workbook is, and last how the night ended and why; its exit code.

    Raises:
        typer.Exit: always.
    """
    echo(f"Workbook: {figures.get('workbook', 'none')}")
    end, verdict = figures["end"], figures["verdict"]
    verdict_note = f", and the workbook says {verdict}" if end != verdict else ""
    echo(f"{end}: {account}{verdict_note}")
    if sentence := figures["why"]:
        echo(str(sentence))
    raise typer.Exit(int(figures["exit_code"]))


def status(
    *,
    as_json: AsJson = False,
    report: Annotated[
        str,
        typer.Option(
            "--tell",
            help="A run or a business date: notify the people of notices.toml who do not know yet "
            "how it ended, and do nothing else.",
        ),
    ] = "",
) -> None:
    """Show what needs a person: the newest night of each account and its open instructions.

    Ends with the code of the worst night: 5 money, 4 not proven, incomplete, stopped or missing, 3
    breaks open, 0.
    """
    if report:
        _notify_again(report)
        return
    from recon.steps.approvals import people
    from recon.steps.approvals.sign_off import nights
    from recon.steps.money.gate import sending_stopped
    from recon.steps.night import monitor
    from recon.steps.runtime.identity import waiting_decisions

    with opened() as environment:
        accounts = [
            (_status(run, environment=environment), attention)
            for run, attention in people.status(environment)
        ]
        days = {str(account["night"]) for account, _ in accounts}
        signed = {
            night.run_id: night.signed_text
            for day in sorted(map(date.fromisoformat, days))
            for night in nights(day, last=day, environment=environment)
        }
        waiting, stopped = waiting_decisions(environment), str(sending_stopped(environment) or "")
        watched, now = monitor.watched(environment), environment.clock()
    missed, code = [*monitor.missed_reported(watched)], int(monitor.worst(watched))
    if as_json:
        show_json(
            {
                "sending_stopped": stopped,
                "waiting_decisions": [each.kind.value for each in waiting],
                "accounts": [
                    {
                        **account,
                        "not_reported": [*account["not_reported"]],
                        "needs_a_person": [asdict(entry) for entry in attention],
                    }
                    for account, attention in accounts
                ],
                "missed": missed,
                "exit_code": code,
            }
        )
        raise typer.Exit(code)
    if stopped:
        echo(f"{stopped[:1].upper()}{stopped[1:]}.")
    for decision in waiting:
        at = f"{decision.made_at:%Y-%m-%d %H:%M} UTC"
        what = f"{decision.kind.value} ({decision.says['reason']})"
        echo(f"{decision.as_text} said at {at}: {what}.")
        echo(f"  A second person must say the same until {decision.ends_at:%Y-%m-%d %H:%M} UTC.")
    if not accounts:
        echo("No night has run yet.")
    for account, attention in accounts:
        _echo_status(account, signed=signed)
        for is_below, line in people.attention_lines(attention, now=now):
            echo(f"{'    ' if is_below else '  '}{line}")
        if not attention:
            echo("  No instruction needs a person.")
    for sentence in missed:
        echo(sentence)
    raise typer.Exit(code)


def _status(run: "Run", *, environment: "Environment") -> dict[str, Any]:
    """The newest night of an account, as programs read it; `not_reported`: who -> why."""
    from recon.steps.approvals import people
    from recon.steps.approvals.sign_off import to_sign
    from recon.steps.night import monitor
    from recon.steps.night.notices import unreported

    return {
        "merchant": run.merchant_id,
        "account": run.account_id,
        "night": run.business_date.isoformat(),
        "run": run.run_id,
        "status": people.status_of(run, environment=environment),
        "breaks": monitor.breaks_of(run, environment=environment),
        "to_sign": to_sign(run.run_id, environment=environment),
        "workbook": run.workbook,
        "not_reported": unreported(run, environment=environment),
    }


def _echo_status(account: Mapping[str, Any], *, signed: Mapping[str, str]) -> None:
    """The same for people; `signed`: run of a live night -> who signed its workbook."""
    run = account["run"]
    echo(f"{account['merchant']}/{account['account']}: night of {account['night']}, run {run}")
    echo(f"  {account['status']}")
    if breaks := account["breaks"]:
        signatures = signed.get(run, "nobody signs a dry run")
        severe = f"{breaks['high_or_critical']} of them high or critical"
        echo(f"  {breaks['open']} break{'s' * (breaks['open'] != 1)} open, {severe}; {signatures}.")
    if account["to_sign"]:
        echo(f"  {account['to_sign']}")
    if account["workbook"]:
        echo(f"  Workbook: {account['workbook']}")
    for name, problem in account["not_reported"].items():
        echo(f"  Not notified: {name} ({problem}); `recon status --tell {run}` tries again.")


def _notify_again(night: str) -> None:
    """Notify the people of notices.toml who do not know yet how a night ended."""
    from recon.steps.night import notices

    named = run_of(night)
    with opened() as environment:
        again = notices.notify_again(named, environment=environment)
    none = f"Nobody is still to be notified of run {named}."
    echo(f"Notified: {', '.join(again)}." if again else none)


CHANGES_DISPLAYED_MAX = 100
"""Lines of changed answers; more have one cause."""


def _end_part(run: "Run", figures: Mapping[str, int | str], *, part: Part) -> None:
    """Say what a part did, and what it left for a person; ends with its exit code."""
    from recon.steps.night.whole_night import moved_since
    from recon.steps.runtime.night_end import undone_by

    with opened() as environment:
        moved = moved_since(run.run_id, environment=environment) if part is Part.QUERY else ()
        undone = undone_by(run, environment=environment)
    account, day = "/".join(run.account), run.business_date
    echo(f"Done: {part} of {account} for {day}, run {run.run_id}. The night is not run by it.")
    if part is Part.QUERY:
        echo(f"{len(moved)} orders are shown otherwise than in the night.")
    for change in moved[:CHANGES_DISPLAYED_MAX]:
        echo(f"  {change.order_no}: {change.then} -> {change.now}")
    if len(moved) > CHANGES_DISPLAYED_MAX:
        echo(f"  and {len(moved) - CHANGES_DISPLAYED_MAX} more")
    if refused := figures.get("refused") if part is Part.INGEST else 0:
        echo(f"{Verdict.INCOMPLETE}: {refused} files of inboxes were refused whole.")
        raise typer.Exit(Verdict.INCOMPLETE.exit_code)
    if undone.kind is not None:
        echo(f"{undone.kind}: {undone.sentence}")
        raise typer.Exit(undone.kind.exit_code)
