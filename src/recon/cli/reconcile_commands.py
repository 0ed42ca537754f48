"""`recon reconcile` on plain files, `recon workbook` again, `recon verify` of what is stored."""

import os
import re
from datetime import UTC, date, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from recon.cli.night_choices import Night, RunOption, date_of, last_closed, named_night, run_of
from recon.cli.speaking import complain, say, telling

if TYPE_CHECKING:
    from recon.cli.workbooks import Drawn
    from recon.matching.breaks.result import Reconciliation

Paths = list[Path]
AsOf = Annotated[
    str,
    typer.Option(
        help="Business date, of which the cut-off is the instant judged; without it the last "
        "one that has closed.",
        show_default=False,
    ),
]
Ledgers = Annotated[
    Paths | None, typer.Option(help="Ledger entries; without them leg B is not covered.")
]
Instructions = Annotated[
    Paths | None, typer.Option(help="Instructions and their states; may repeat.")
]
Settlements = Annotated[
    Paths | None, typer.Option(help="Settlement files of the gateway; may repeat.")
]
Statements = Annotated[
    Paths | None, typer.Option(help="Statements: camt.05x, MT940, CSV or XLSX; may repeat.")
]
Layouts = Annotated[
    Paths | None,
    typer.Option(
        help="How files are written that are not as ours, as `recon order-file propose` writes "
        "it; may repeat."
    ),
]
NIGHT = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}|[0-9]{8}-[0-9a-f]{8}")
"""A business date or the id of a run."""
LET_GO_SHOWN_MAX = 20
"""Sentences on the terminal; the others are counted."""


def reconcile(
    orders: Annotated[Paths, typer.Option(help="Order file: CSV, XLSX or Parquet; may repeat.")],
    gateway: Annotated[Paths, typer.Option(help="What the gateway answered; may repeat.")],
    out: Annotated[Path, typer.Option(help="Folder for the workbook and the result files.")],
    as_of: AsOf = "",
    ledger: Ledgers = None,
    instructions: Instructions = None,
    settlement: Settlements = None,
    bank: Statements = None,
    layout: Layouts = None,
    rules: Annotated[Path | None, typer.Option(help="Rules of reconciliation (TOML).")] = None,
    fees: Annotated[Path | None, typer.Option(help="The gateway's fee contract (TOML).")] = None,
    previous: Annotated[
        Path | None,
        typer.Option(help="Folder of an earlier result, so that breaks keep their age."),
    ] = None,
) -> None:
    """Compare orders, gateway and ledger from plain files; no gateway, database or money."""
    day = _judged_day(as_of, rules=rules)
    from recon.files.reader import file_reader

    file_reader().start()  # it loads its readers while this process loads the engine
    from recon.cli.workbooks import Drawn, totals
    from recon.model.collecting import look_past_loaded
    from recon.steps.compare.plain_files import PlainFilesRequest, reconcile_files

    look_past_loaded()
    request = PlainFilesRequest(
        orders=tuple(orders),
        gateway=tuple(gateway),
        ledger=tuple(ledger or ()),
        instructions=tuple(instructions or ()),
        settlement=tuple(settlement or ()),
        bank=tuple(bank or ()),
        layouts=tuple(layout or ()),
        rules_file=rules,
        fees_file=fees,
        previous=previous,
        as_of=day,
        out=out,
    )
    drawn = Drawn()
    with telling(["reconcile"]):
        result = reconcile_files(
            request, clock=_now, write_workbook=drawn.write, sheet_totals=totals
        )
    _say_result(result, out=out, drawn=drawn)
    raise typer.Exit(result.verdict.exit_code)


def _judged_day(as_of: str, *, rules: Path | None) -> date:
    """The business date that was named, or the last one that has closed by these rules."""
    if as_of:
        return date_of(as_of)
    from recon.config.settings import load_rules

    calendar = load_rules(config_dir=None, rules_file=rules).business_calendar
    day = last_closed(calendar, now=_now())
    say(f"As of {day}, the last business date that has closed (--as-of names another).")
    return day


def _say_result(result: "Reconciliation", *, out: Path, drawn: "Drawn") -> None:
    say(_in_words(result))
    for sentence in drawn.notes:
        say(sentence)
    for sentence in () if result.gateway_holds is None else result.gateway_holds.sentences():
        say(sentence)
    say(f"Result: {out}")
    say(f"Workbook: {drawn.path}")


def _in_words(result: "Reconciliation") -> str:
    """The verdict and what the rows came to."""
    failed = sum(not total.passed for total in result.control_totals)
    return (
        f"{result.verdict}: {len(result.matches)} matched, {len(result.breaks)} breaks, "
        f"{len(result.pending)} pending, {len(result.unverified)} unverified; "
        f"{failed} control totals failed"
    )


def _now() -> datetime:
    """The machine's clock, without the database that a night's environment opens."""
    return datetime.now(UTC)


def workbook(night: Night = "", *, run: RunOption = "") -> None:
    """Write the workbook of a night again, from what is stored alone."""
    from recon.cli.workbooks import workbooks
    from recon.steps.ground.environment import environment_of, system_clock
    from recon.steps.night.report import rebuild

    named = run_of(night, run)
    with environment_of(os.environ, clock=system_clock) as environment:
        path = rebuild(named, environment=environment, workbooks=workbooks())
    say(f"Workbook: {path}")


def verify(
    what: Annotated[
        str,
        typer.Argument(
            help="One workbook (a file), or one night (its run or business date) with every file "
            "of its folder; without it everything that is stored."
        ),
    ] = "",
    *,
    run: RunOption = "",
) -> None:
    """Check the hash chain, the stored totals, the folders and the workbooks of finished runs.

    Ends with 0 when they agree, whatever the verdicts were.
    """
    from recon.cli.workbooks import reading
    from recon.steps.care.verify import verify as check
    from recon.steps.care.verify import verify_night
    from recon.steps.ground.environment import environment_of, system_clock

    what = named_night(what, run) if run else what
    with environment_of(os.environ, clock=system_clock) as environment:
        if NIGHT.fullmatch(what):
            checked = verify_night(environment, name=what)
        else:
            workbook = Path(what) if what else None
            checked = check(environment, reading=reading(), workbook=workbook)
    for unfinished in checked.unfinished:
        say(f"Not finished: {unfinished}")
    for sentence in filter(None, (checked.compared, checked.replaced)):
        say(f"{sentence}.")
    for sentence in checked.answered:
        say(f"Answered: {sentence}.")
    for sentence in checked.let_go[:LET_GO_SHOWN_MAX]:
        say(f"Let go: {sentence}.")
    if len(checked.let_go) > LET_GO_SHOWN_MAX:
        say(f"… and {len(checked.let_go) - LET_GO_SHOWN_MAX} more folders that were let go.")
    for problem in checked.problems:
        complain(problem)
    if checked.problems:
        complain(f"{len(checked.problems)} problem(s) found; nothing was changed.")
        raise typer.Exit(1)
    say(f"All agree: {checked.checked_runs} finished run(s), history up to {checked.history_head}.")
