"""`recon reconcile` on plain files, `recon workbook` again, `recon verify` of what is stored."""

import re
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Annotated

import typer

from recon.cli.night_choices import (
    First,
    Last,
    Named,
    Night,
    closed_day,
    date_of,
    named_night,
    opened,
    run_of,
)
from recon.cli.output import echo, echo_error, progress_of
from recon.cli.past_nights import copy_evidence

Paths = list[Path]
AsOf = Annotated[
    str,
    typer.Option(
        help="Business date, of which the cut-off is the instant compared at; without it the last "
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
        help="How files are written that are not as ours, as `recon init` writes it "
        "(config/merchants.toml); may repeat."
    ),
]
NIGHT = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}|[0-9]{8}-[0-9a-f]{8}")
"""A business date or the id of a run."""
PURGED_DISPLAYED_MAX = 20
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
    day = _business_day(as_of, rules=rules)
    from recon.files.reader_process import file_reader

    file_reader().start()  # it loads its readers while this process loads the engine
    from recon.model.uptime import look_past_loaded
    from recon.steps.compare.plain_files import PlainFilesRequest, reconcile_files
    from reports.workbook_io import Drawn, totals

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
    with progress_of(["reconcile"]):
        result = reconcile_files(
            request, clock=_now, write_workbook=drawn.write, sheet_totals=totals
        )
    # The verdict and what the rows came to.
    failed = sum(not total.passed for total in result.control_totals)
    echo(
        f"{result.verdict}: {len(result.matches)} matched, {len(result.breaks)} breaks, "
        f"{len(result.pending)} pending, {len(result.unverified)} unverified; "
        f"{failed} control totals failed"
    )
    for sentence in drawn.notes:
        echo(sentence)
    for sentence in () if result.gateway_holds is None else result.gateway_holds.sentences():
        echo(sentence)
    echo(f"Result: {out}")
    echo(f"Workbook: {drawn.path}")
    raise typer.Exit(result.verdict.exit_code)


def _business_day(as_of: str, *, rules: Path | None) -> date:
    """The business date that was named, or the last one that has closed by these rules."""
    if as_of:
        return date_of(as_of)
    from recon.config.settings import load_rules

    calendar = load_rules(config_dir=None, rules_file=rules).business_calendar
    day = calendar.last_closed(_now())
    echo(f"As of {day}, the last business date that has closed (--as-of names another).")
    return day


def _now() -> datetime:
    """The machine's clock, without the database that a night's environment opens."""
    return datetime.now(UTC)


def workbook(
    night: Night = "",
    *,
    run: Named = "",
    owner: Annotated[
        str, typer.Option(help="Fill in who looks after breaks, for import-resolutions.")
    ] = "",
    comment: Annotated[str, typer.Option(help="With --owner: what is being done.")] = "",
    breaks: Annotated[
        list[str] | None,
        typer.Option(
            "--break",
            help="With --owner: a break's id; may be repeated. Without it every break of severity "
            "high or above that has no owner or no comment.",
        ),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(help="With --owner: the workbook; else answers-… in the account's reports."),
    ] = None,
    index: Annotated[
        Path | None,
        typer.Option(help="Instead: write the page over all accounts of the date to this folder."),
    ] = None,
) -> None:
    """Write the workbook of a night again, from what is stored alone.

    With --owner and --comment it is a copy with these answers, which changes nothing until
    `recon import-resolutions` takes it in, as it takes a workbook that people filled.
    """
    from recon.steps.night.report import rebuild
    from reports.workbook_io import workbooks

    if index is not None:
        _write_index(index, business_date=night)
        return
    named = run_of(night or run)
    with opened() as environment:
        if owner or comment:
            from recon.steps.admin.answered_workbook import AnswerToEnter, answered_workbook

            to_enter = AnswerToEnter(owner, comment, breaks or ())
            path, count = answered_workbook(
                named, to_enter, path=out, environment=environment, workbooks=workbooks()
            )
            echo(f"Answered: {count} break{'s' * (count != 1)}, in {path}")
            echo(f"To take them in: recon import-resolutions {path} --as NAME")
            return
        echo(f"Workbook: {rebuild(named, environment=environment, workbooks=workbooks())}")


def _write_index(folder: Path, *, business_date: str) -> None:
    """One workbook over all accounts of a night, each linked to its own workbook."""
    from recon.steps.night.monitor import index_of
    from reports.reading.index_workbook import write_index

    day = closed_day(business_date)
    with opened(signs=False) as environment:
        lines = index_of(day, environment=environment)
    echo(f"Index: {write_index(lines, day=day, folder=folder)}")


def verify(
    what: Annotated[
        str,
        typer.Argument(
            help="One workbook (a file), or one night (its run or business date) with every file "
            "of its folder; without it everything that is stored."
        ),
    ] = "",
    *,
    compare: Annotated[
        bool,
        typer.Option(
            "--compare", help="Compare that night again, and say whether its result is the same."
        ),
    ] = False,
    copy: Annotated[
        bool,
        typer.Option(
            "--copy",
            help="Instead: copy nights, closes, decisions, rules, people and history of a span "
            "into the empty folder of --out, every hash verified, so that it proves itself.",
        ),
    ] = False,
    out: Annotated[
        Path | None,
        typer.Option(help="With --compare: folder for the result files; with --copy: of it all."),
    ] = None,
    first: First = "",
    last: Last = "",
    account: Annotated[
        str, typer.Option(help="Of --copy: this account, as merchant/account; else every one.")
    ] = "",
) -> None:
    """Check the hash chain, the stored totals, the folders and the workbooks of finished runs.

    Ends with 0 when they agree, whatever the verdicts were. What came after a night does not count
    where it is compared again: later files, answers, instructions and rules.
    """
    if copy:
        if out is None:
            msg = "name the folder for the copy (--out)"
            raise typer.BadParameter(msg)
        copy_evidence(out, first=first, last=last, account=account)
        return
    if compare:
        _compare_again(named_night(what), out=out)
        return
    from recon.steps.admin.verify import verify as check
    from recon.steps.admin.verify import verify_night
    from reports.workbook_io import reading

    with opened() as environment:
        if NIGHT.fullmatch(what):
            checked = verify_night(environment, name=what)
        else:
            workbook = Path(what) if what else None
            checked = check(environment, reading=reading(), workbook=workbook)
    for unfinished in checked.unfinished:
        echo(f"Not finished: {unfinished}")
    for sentence in filter(None, (checked.compared, checked.replaced)):
        echo(f"{sentence}.")
    for sentence in checked.answered:
        echo(f"Answered: {sentence}.")
    for sentence in checked.purged[:PURGED_DISPLAYED_MAX]:
        echo(f"Let go: {sentence}.")
    if len(checked.purged) > PURGED_DISPLAYED_MAX:
        echo(f"… and {len(checked.purged) - PURGED_DISPLAYED_MAX} more folders that were purged.")
    for problem in checked.problems:
        echo_error(problem)
    if checked.problems:
        echo_error(f"{len(checked.problems)} problem(s) found; nothing was changed.")
        raise typer.Exit(1)
    echo(
        f"All agree: {checked.checked_runs} finished run(s), history up to {checked.history_head}."
    )


def _compare_again(night: str, *, out: Path | None) -> None:
    """Compare a past night again from what is stored; ends with 1 when its result is another."""
    from recon import __version__
    from recon.steps.compare.rebuild import rebuild_night

    with opened() as environment:
        again = rebuild_night(night, out=out, environment=environment)
    echo(
        f"{again.run.business_date}, run {again.run.run_id}, as of {again.run.as_of:%Y-%m-%d %H:%M}"
    )
    if out is not None:
        echo(f"Result: {out}")
    if again.same:
        echo(f"The same result as that night: {again.digest_then}")
        return
    versions = f"recon {again.version_then} compared then, recon {__version__} now"
    echo_error(
        f"NOT the result of that night: {again.result.digest}, it was {again.digest_then}. Its "
        f"inputs are all there; {versions}. Its workbook and the files of --out show what differs."
    )
    raise typer.Exit(1)
