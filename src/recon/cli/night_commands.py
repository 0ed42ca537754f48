"""`recon nightly`, parts of a night by themselves, `finish`, and `status`: what needs a person."""

import os
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Annotated, NamedTuple, NoReturn

import typer

from recon.cli.night_choices import (
    Account,
    BusinessDate,
    Live,
    Merchant,
    closed_day,
    date_of,
    mode_of,
    run_of,
)
from recon.cli.speaking import AsJson, Tell, complain, say, show_json, telling
from recon.model.nights import Mode, NightRequest, Part
from recon.model.words import Verdict

if TYPE_CHECKING:
    from recon.model.figures import Attention
    from recon.model.nights import StepSummary
    from recon.store.nights.runs import Run
    from recon.store.people.agreement_rows import FirstWord

Opening = Annotated[bool, typer.Option("--opening", help="The first night of the account.")]
Skip = Annotated[
    str, typer.Option(help="Why the nights that are missing before this one were not run.")
]

ATTENTION_SHOWN_MAX = 20
"""Lines of one account; the workbook has them all."""


def nightly(
    merchant: Merchant,
    account: Account,
    business_date: BusinessDate = "",
    *,
    live: Live = None,
    opening: Opening = False,
    skip: Skip = "",
) -> None:
    """Run one night: ingest, query, settle, query again, reconcile, report.

    Starting the same night again is safe: it goes on where it stopped and sends nothing twice.
    """
    day = closed_day(business_date)
    from recon.steps.night import whole_night as night

    mode = mode_of(live)
    request = night.request_of(
        account=(merchant, account),
        business_date=day,
        live=mode is Mode.LIVE,
        opening=opening,
        skip=skip,
    )
    with telling(night.STEP_NAMES) as tell:
        figures = played(request, variables=os.environ, tell=tell)
    dry = " (dry run, nothing was sent)" * (mode is Mode.DRY_RUN)
    end_with(figures, account=f"{merchant}/{account}, {day}{dry}")


def played(
    request: "NightRequest", *, variables: Mapping[str, str], tell: Tell
) -> dict[str, int | str]:
    """One whole night in this process, and the workbook over all accounts; its figures.

    `tell` takes the sentence of each step of the night.
    """
    from recon.model.collecting import look_past_loaded
    from recon.steps.ground.environment import environment_of, system_clock
    from recon.steps.night import whole_night as night
    from recon.steps.night.night_index import index_after
    from reports.handed import index, workbooks

    look_past_loaded()
    figures: dict[str, int | str] = {}

    def progress(summary: "StepSummary") -> None:
        figures.update(summary.figures)
        tell(summary.sentence)

    with environment_of(variables, clock=system_clock) as environment:
        night.run(
            request,
            environment=environment,
            workbooks=workbooks(),
            progress=progress,
            complain=complain,
        )
        index_after(request, environment=environment, write=index, say=say)
    return figures


def end_with(figures: Mapping[str, int | str], *, account: str) -> NoReturn:
    """Say where the workbook is, and last how the night ended and why; its exit code.

    Raises:
        typer.Exit: always.
    """
    say(f"Workbook: {figures.get('workbook', 'none')}")
    end, verdict = figures["end"], figures["verdict"]
    beside = f", and the workbook says {verdict}" if end != verdict else ""
    say(f"{end}: {account}{beside}")
    if sentence := figures["told"]:
        say(str(sentence))
    raise typer.Exit(int(figures["exit_code"]))


@dataclass(frozen=True, slots=True)
class _Standings:
    """What `recon status` shows, read at one instant."""

    accounts: Sequence[tuple["Run", str, Sequence["Attention"]]]
    not_told: Mapping[str, Mapping[str, str]]
    """Run -> who has not been told of it -> why."""
    stopped: str
    """Who stopped sending and why; "" where money may be sent."""
    words: Sequence["FirstWord"]
    missed: list[str]
    exit_code: int
    at: datetime


def status(
    *,
    as_json: AsJson = False,
    tell: Annotated[
        str,
        typer.Option(
            help="A run or a business date: tell the people of notices.toml how it ended who have "
            "not been told yet, and nothing else."
        ),
    ] = "",
) -> None:
    """Show what needs a person: the newest night of each account and its open instructions.

    Ends with the code of the worst night: 5 money, 4 not proven, incomplete, stopped or missing, 3
    breaks open, 0.
    """
    if tell:
        _tell_again(tell)
        return
    standings = _standings()
    if as_json:
        show_json(_document_of(standings))
    else:
        _say_standings(standings)
    raise typer.Exit(standings.exit_code)


def _standings() -> _Standings:
    from recon.steps.ground.environment import environment_of, system_clock
    from recon.steps.ground.two_words import waiting_words
    from recon.steps.money.sending import sending_stopped
    from recon.steps.night import lookout
    from recon.steps.night.notices import untold
    from recon.steps.people import people

    with environment_of(os.environ, clock=system_clock) as environment:
        accounts = [
            (run, people.standing_of(run, environment=environment), attention)
            for run, attention in people.status(environment)
        ]
        watched = lookout.watched(environment)
        return _Standings(
            accounts=accounts,
            not_told={run.run_id: untold(run, environment=environment) for run, _, _ in accounts},
            stopped=str(sending_stopped(environment) or ""),
            words=waiting_words(environment),
            missed=list(lookout.missed_told(watched)),
            exit_code=int(lookout.worst(watched)),
            at=environment.clock(),
        )


def _say_standings(standings: _Standings) -> None:
    if stopped := standings.stopped:
        say(f"{stopped[:1].upper()}{stopped[1:]}.")
    for word in standings.words:
        at = f"{word.by.at:%Y-%m-%d %H:%M} UTC"
        say(f"{word.by.in_words} said at {at}: {word.what} ({word.reason}).")
        say(f"  A second person must say the same until {word.valid_until:%Y-%m-%d %H:%M} UTC.")
    if not standings.accounts:
        say("No night has run yet.")
    for run, standing, attention in standings.accounts:
        say(f"{run.merchant_id}/{run.account_id}: night of {run.business_date}, run {run.run_id}")
        say(f"  {standing}")
        for name, problem in standings.not_told[run.run_id].items():
            say(f"  Not told: {name} ({problem}); `recon status --tell {run.run_id}` tries again.")
        _say_attention(attention, now=standings.at)
    for sentence in standings.missed:
        say(sentence)


def _document_of(standings: _Standings) -> dict[str, object]:
    """The same for programs; amounts in minor units."""
    return {
        "sending_stopped": standings.stopped,
        "words_that_wait": [word.what for word in standings.words],
        "accounts": [
            {
                "merchant": run.merchant_id,
                "account": run.account_id,
                "night": run.business_date.isoformat(),
                "run": run.run_id,
                "standing": standing,
                "not_told": [*standings.not_told[run.run_id]],
                "needs_a_person": [asdict(entry) for entry in attention],
            }
            for run, standing, attention in standings.accounts
        ],
        "missed": standings.missed,
        "exit_code": standings.exit_code,
    }


def _say_attention(attention: Sequence["Attention"], *, now: datetime) -> None:
    from recon.steps.people.people import in_groups

    for next_step, entries in in_groups(attention[:ATTENTION_SHOWN_MAX]):
        if len(entries) == 1:
            say(f"  {_what_of(entries[0], now=now)}. {next_step}{_id_of(entries[0])}")
            continue
        for entry in entries:
            say(f"  {_what_of(entry, now=now)}{_id_of(entry)}")
        say(f"  Each of these {len(entries)}: {next_step}")
    if not attention:
        say("  No instruction needs a person.")
    if len(attention) > ATTENTION_SHOWN_MAX:
        more = len(attention) - ATTENTION_SHOWN_MAX
        say(f"  and {more} more; `recon status --json` has all of them")


def _tell_again(night: str) -> None:
    """Tell the people of notices.toml how a night ended who have not been told yet."""
    from recon.steps.ground.environment import environment_of, system_clock
    from recon.steps.night import notices

    named = run_of(night, "")
    with environment_of(os.environ, clock=system_clock) as environment:
        again = notices.tell_again(named, environment=environment)
    say(f"Told: {', '.join(again)}." if again else f"Nobody is still to be told of run {named}.")


def _what_of(entry: "Attention", *, now: datetime) -> str:
    """What it is, the money at risk and its age."""
    from recon.model.money import Money

    days = max(0, (now - entry.since).days)
    money = (
        f", {Money.of_minor_units(entry.amount, currency=entry.currency)}" if entry.currency else ""
    )
    of_what = f": {entry.subject}" if entry.subject else ""
    return f"{entry.what}{of_what}{money}, since {entry.since:%Y-%m-%d %H:%M} ({days} days)"


def _id_of(entry: "Attention") -> str:
    return f" [{entry.instruction_id}]" if entry.instruction_id else ""


CHANGES_SHOWN_MAX = 100
"""Lines of changed answers; more have one cause."""

FilesDate = Annotated[
    str,
    typer.Option(
        envvar="RECON_BUSINESS_DATE",
        help="The night that the files belong to; without it the next one to come.",
    ),
]


def ingest(merchant: Merchant, account: Account, business_date: FilesDate = "") -> None:
    """Take in what lies in the inbox now, so that what is wrong with it is known before the night.

    Nothing is asked or sent. The next night, or the night of the date, compares it. Ends with 4
    where a file was refused as a whole: that night would be INCOMPLETE.
    """
    from recon.steps.ground.environment import environment_of, system_clock
    from recon.steps.night.part import next_night

    with environment_of(os.environ, clock=system_clock) as environment:
        calendar = environment.settings.rules.business_calendar
        closed = calendar.business_date_of(environment.clock()) - timedelta(days=1)
        day = (
            date_of(business_date)
            if business_date
            else next_night((merchant, account), last_closed=closed, environment=environment)
        )
    done = _do(Part.INGEST, merchant, account, day.isoformat(), mode=Mode.DRY_RUN)
    if refused := done.figures["refused"]:
        say(f"{Verdict.INCOMPLETE}: {refused} files of inboxes were refused whole.")
        raise typer.Exit(Verdict.INCOMPLETE.exit_code)


def query(merchant: Merchant, account: Account, business_date: BusinessDate = "") -> None:
    """Ask the gateway again, and tell what it shows otherwise than in the night of the date.

    The night stays as it is. The answers are kept, and count as evidence when a doubt is decided.
    """
    from recon.steps.ground.environment import environment_of, system_clock
    from recon.steps.night.part import moved_since

    done = _do(Part.QUERY, merchant, account, business_date, mode=Mode.DRY_RUN)
    with environment_of(os.environ, clock=system_clock) as environment:
        moved = moved_since(done.run_id, environment=environment)
    say(f"{len(moved)} orders are shown otherwise than in the night.")
    for change in moved[:CHANGES_SHOWN_MAX]:
        say(f"  {change.order_no}: {change.then} -> {change.now}")
    if len(moved) > CHANGES_SHOWN_MAX:
        say(f"  and {len(moved) - CHANGES_SHOWN_MAX} more")


def settle(
    merchant: Merchant,
    account: Account,
    business_date: BusinessDate = "",
    *,
    live: Live = None,
    payouts: Annotated[
        bool,
        typer.Option("--payouts", help="Payouts alone; everything else waits for its night."),
    ] = False,
) -> None:
    """Ask, pass the gate and send what is approved, for a night that is still to come or stopped.

    Nothing is taken in and nothing compared: the night itself still has to run, and sends nothing
    twice.
    """
    part = Part.PAYOUTS if payouts else Part.SETTLE
    _end_sent(_do(part, merchant, account, business_date, mode=mode_of(live)).run_id)


def finish(merchant: Merchant, account: Account, business_date: BusinessDate = "") -> None:
    """Bring a stopped night to its end from what is stored: compare and report, ask nothing.

    Only where everything had been asked and sent, and nothing happened to the account since.
    """
    from recon.steps.ground.environment import environment_of, system_clock
    from recon.steps.night import finish as finishing
    from recon.steps.night import notices
    from recon.steps.night.night_index import index_after
    from reports.handed import index, workbooks

    day = closed_day(business_date)
    request = NightRequest(merchant, account, day, Mode.LIVE)
    figures: dict[str, int | str] = {}
    with environment_of(os.environ, clock=system_clock) as environment:
        with (
            telling(finishing.STEPS) as tell,
            notices.telling(environment, say=complain) as night,
        ):

            def progress(summary: "StepSummary") -> None:
                figures.update(summary.figures)
                tell(summary.sentence)

            night.run_id = finishing.finish(
                request, environment=environment, workbooks=workbooks(), progress=progress
            )
        index_after(request, environment=environment, write=index, say=say)
    end_with(figures, account=f"{merchant}/{account}, {day}")


def _end_sent(run_id: str) -> None:
    """Say last what a part that sends left for a person, and end with the code of it.

    Raises:
        typer.Exit: money is in doubt, or sending stopped.
    """
    from recon.steps.ground.environment import environment_of, system_clock
    from recon.steps.ground.night_end import undone_by
    from recon.store.nights import runs

    with environment_of(os.environ, clock=system_clock) as environment:
        with environment.store.reading() as connection:
            run = runs.get(connection, run_id)
        undone = undone_by(run, environment=environment)
    if undone.kind is not None:
        say(f"{undone.kind}: {undone.sentence}")
        raise typer.Exit(undone.kind.exit_code)


class _Done(NamedTuple):
    """A part that was done."""

    run_id: str
    figures: Mapping[str, int | str]
    """Of its steps."""


def _do(part: Part, merchant: str, account: str, business_date: str, *, mode: Mode) -> _Done:
    """Do the part and say what it did."""
    from recon.steps.ground.environment import environment_of, system_clock
    from recon.steps.night.part import STEPS, run_part
    from reports.handed import workbooks

    day = closed_day(business_date)
    figures: dict[str, int | str] = {}
    with (
        environment_of(os.environ, clock=system_clock) as environment,
        telling(STEPS[part]) as tell,
    ):

        def progress(done: "StepSummary") -> None:
            figures.update(done.figures)
            tell(done.sentence)

        run_id = run_part(
            NightRequest(merchant, account, day, mode),
            part=part,
            environment=environment,
            workbooks=workbooks(),
            progress=progress,
        )
    say(
        f"Done: {part} of {merchant}/{account} for {day}, run {run_id}. The night is not run by it."
    )
    return _Done(run_id, figures)
