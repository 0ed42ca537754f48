"""Parts of a night by themselves: `recon ingest`, `query`, `settle`, `payouts`, and `finish`."""

import os
from collections.abc import Mapping
from datetime import timedelta
from typing import TYPE_CHECKING, Annotated, NamedTuple

import typer

from recon.cli.choices import Account, BusinessDate, Merchant, date_of
from recon.cli.night_choices import Live, closed_day, mode_of
from recon.cli.night_commands import end_with
from recon.cli.speaking import complain, say, telling
from recon.model.nights import Mode, NightRequest, Part
from recon.model.words import Verdict

if TYPE_CHECKING:
    from recon.model.nights import StepSummary

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
) -> None:
    """Ask, pass the gate and send what is approved, for a night that is still to come or stopped.

    Nothing is taken in and nothing compared: the night itself still has to run, and sends nothing
    twice.
    """
    _end_sent(_do(Part.SETTLE, merchant, account, business_date, mode=mode_of(live)).run_id)


def payouts(
    merchant: Merchant,
    account: Account,
    business_date: BusinessDate = "",
    *,
    live: Live = None,
) -> None:
    """As `recon settle`, but send payouts alone; everything else waits for its night."""
    _end_sent(_do(Part.PAYOUTS, merchant, account, business_date, mode=mode_of(live)).run_id)


def finish(merchant: Merchant, account: Account, business_date: BusinessDate = "") -> None:
    """Bring a stopped night to its end from what is stored: compare and report, ask nothing.

    Only where everything had been asked and sent, and nothing happened to the account since.
    """
    from recon.cli.workbooks import index, workbooks
    from recon.steps.ground.environment import environment_of, system_clock
    from recon.steps.night import finish as finishing
    from recon.steps.night import notices
    from recon.steps.night.night_index import index_after

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
    from recon.cli.workbooks import workbooks
    from recon.steps.ground.environment import environment_of, system_clock
    from recon.steps.night.part import STEPS, run_part

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
