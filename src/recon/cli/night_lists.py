"""`recon breaks` and `recon runs`: what is open in a night, and what ran."""

import os
from typing import TYPE_CHECKING, Annotated

import typer

from recon.cli.night_choices import Night, RunOption, named_night
from recon.cli.speaking import AsJson, say, show, show_json

if TYPE_CHECKING:
    from recon.store.nights.runs import Run

BREAKS = ("severity", "order", "code", "currency", "exposure", "owed to", "age in days", "reason")
RUNS = ("run", "night", "account", "mode", "status", "verdict", "started", "problem")
RUNS_SHOWN = 20


def breaks(
    night: Night = "",
    *,
    run: RunOption = "",
    as_json: AsJson = False,
) -> None:
    """List the open breaks of a night, the gravest first, as its workbook has them."""
    from recon.steps.compare.rebuild import run_named
    from recon.steps.compare.shown_breaks import BREAKS_SHOWN_MAX, rows_of_breaks
    from recon.steps.ground import kept_results
    from recon.steps.ground.environment import environment_of, system_clock

    name = named_night(night, run)
    with (
        environment_of(os.environ, clock=system_clock, signs=False) as environment,
        environment.store.reading() as connection,
    ):
        of_night = run_named(connection, name)
        frame = kept_results.open_breaks(connection, of_night.run_id, environment=environment)
    rows = None if frame is None else rows_of_breaks(frame)
    if as_json:
        show_json(
            {"run": of_night.run_id, "night": of_night.business_date.isoformat(), "breaks": rows}
        )
        return
    which = f"{of_night.business_date}, run {of_night.run_id}"
    if rows is None:
        say(f"{which}: it never came to a result, so nobody knows its breaks.")
        return
    say(f"{which}: {len(rows)} breaks are open.")
    if rows:
        show(rows[:BREAKS_SHOWN_MAX], columns=BREAKS)
    if len(rows) > BREAKS_SHOWN_MAX:
        say(f"and {len(rows) - BREAKS_SHOWN_MAX} more, all in the workbook {of_night.workbook}")


def runs(
    *,
    last: Annotated[int, typer.Option(help="How many, the newest first.", min=1)] = RUNS_SHOWN,
    as_json: AsJson = False,
) -> None:
    """List the newest runs of all accounts: nights and parts, how each ended and why it stopped."""
    from recon.steps.ground.environment import environment_of, system_clock
    from recon.store.nights.runs import newest

    with (
        environment_of(os.environ, clock=system_clock, signs=False) as environment,
        environment.store.reading() as connection,
    ):
        rows = [_run_row(run) for run in newest(connection, count=last)]
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
