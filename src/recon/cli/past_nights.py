"""What past nights tell: `breaks`, `sql`; nights under other rules, evidence of a span.

Nothing of a night changes.
"""

import os
from datetime import UTC, date
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from recon.cli.night_choices import Night, days_of, named_night, opened
from recon.cli.output import AsJson, echo, echo_error, show, show_json
from recon.model.money import Money, format_minor_units
from recon.model.terms import DIGITS_READ

if TYPE_CHECKING:
    from recon.steps.compare.what_if import WhatIf

BREAKS = (
    "severity",
    "order",
    "code",
    "currency",
    "money at risk",
    "owed to",
    "age in days",
    "reason",
)
CHANGES_DISPLAYED_MAX = 200
"""Lines of one difference; more have one cause, and the workbooks have them all."""


def breaks(
    night: Night = "",
    *,
    against: Annotated[
        str,
        typer.Option(
            help="An earlier night, as a run or a business date: list what is classified "
            "differently than then, and which side moved, instead.",
        ),
    ] = "",
    opening: Annotated[
        bool,
        typer.Option(
            "--opening",
            help="Instead: what the night did not compare because it is older than its window. "
            "Orders and payments by what they came to, ledger entries by what they book.",
        ),
    ] = False,
    out: Annotated[
        Path | None, typer.Option(help="With --opening: folder for the items, as opening.csv.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """List the open breaks of a night, the gravest first, as its workbook has them."""
    if opening:
        _echo_opening(named_night(night), out=out)
        return
    if against:
        _echo_difference(against, named_night(night))
        return
    from recon.steps.compare.listed_breaks import BREAKS_DISPLAYED_MAX, rows_of_breaks
    from recon.steps.compare.rebuild import run_named
    from recon.steps.runtime.night_folder import StoredResult

    name = named_night(night)
    with (
        opened(signs=False) as environment,
        environment.store.reading() as connection,
    ):
        of_night = run_named(connection, name)
        frame = StoredResult(connection, of_night.run_id, environment).open_breaks()
    rows = None if frame is None else rows_of_breaks(frame, grouped=not as_json)
    if as_json:
        show_json(
            {"run": of_night.run_id, "night": of_night.business_date.isoformat(), "breaks": rows}
        )
        return
    which = f"{of_night.business_date}, run {of_night.run_id}"
    if rows is None:
        echo(f"{which}: it never came to a result, so nobody knows its breaks.")
        return
    echo(f"{which}: {len(rows)} breaks are open.")
    if rows:
        show(rows[:BREAKS_DISPLAYED_MAX], columns=BREAKS)
    if len(rows) > BREAKS_DISPLAYED_MAX:
        echo(
            f"and {len(rows) - BREAKS_DISPLAYED_MAX} more, all in the workbook {of_night.workbook}"
        )


def _echo_difference(first: str, second: str) -> None:
    """Say what the second night judges otherwise than the first, and which side moved."""
    from recon.steps.compare.what_if import difference

    with opened() as environment:
        both = difference(first, second, environment=environment)
    echo(both.first)
    echo(both.second)
    echo(f"Rules: {'the same' if both.same_rules else 'CHANGED between the two'}")
    for rule in both.rules:
        echo(f"  {rule}")
    if both.moved_by_rules:
        echo(f"  {both.moved_by_rules}")
    echo(f"{len(both.changes)} changed, {both.unchanged} classified alike")
    for change in both.changes[:CHANGES_DISPLAYED_MAX]:
        merchant, account, name, currency = change.key
        money = Money.of_minor_units(change.exposure, currency=currency) if currency else "0"
        echo(
            f"{merchant}/{account} {name}: {change.before} -> {change.after} "
            f"({money}): {change.why}"
        )
    if len(both.changes) > CHANGES_DISPLAYED_MAX:
        echo(f"... and {len(both.changes) - CHANGES_DISPLAYED_MAX} more")


OPENING_COLUMNS = ("what", "currency", "items", "amount", "oldest", "newest")


def _echo_opening(night: str, *, out: Path | None) -> None:
    from recon.steps.compare.rebuild import opening_of, write_opening

    with opened() as environment:
        balance = opening_of(night, environment=environment)
    before = f", {balance.run.predecessor}" if balance.run.predecessor else ""
    echo(f"{balance.run.business_date}, run {balance.run.run_id}{before}")
    if not balance.lines:
        echo("Nothing is older than the window of this night: the opening balance is 0.")
    else:
        rows = [
            {
                "what": line.what,
                "currency": line.currency,
                "items": line.items,
                "amount": format_minor_units(line.amount, currency=line.currency, grouped=True),
                "oldest": line.oldest[:10],
                "newest": line.newest[:10],
            }
            for line in balance.lines
        ]
        show(rows, columns=OPENING_COLUMNS)
    if out is not None:
        echo(f"Items: {write_opening(balance, folder=out)}")


PURGED_DISPLAYED_MAX = 20
"""Sentences on the terminal; the others are counted."""


def sql(
    statement: Annotated[str, typer.Argument(help="One SELECT (config/examples/questions.sql).")],
    *,
    as_json: AsJson = False,
) -> None:
    """Answer one SELECT over all nights: nights, breaks, effects, totals, matches, decisions."""
    from recon.steps.admin.sql_questions import answer

    with opened() as environment:
        answered = answer(statement, environment=environment)
    rows = answered.rows.to_pylist()
    if as_json:
        show_json(rows)
    else:
        shown = [{name: "" if cell is None else cell for name, cell in row.items()} for row in rows]
        show(shown, columns=answered.rows.column_names)
        echo(f"{len(rows)} rows.")
    for sentence in answered.purged[:PURGED_DISPLAYED_MAX]:
        echo_error(f"Of this night only breaks, totals and decisions answer: {sentence}")
    if len(answered.purged) > PURGED_DISPLAYED_MAX:
        echo_error(f"… and {len(answered.purged) - PURGED_DISPLAYED_MAX} more nights like it.")
    if not answered.is_whole:
        echo_error(f"These are the first {len(rows)} rows; ask for fewer, or read the files.")


FAULTS_DISPLAYED_MAX = 20
"""Sentences on the terminal; the index has them all."""


def copy_evidence(out: Path, *, first: str, last: str, account: str) -> None:
    """Copy nights, closes, decisions, rules, people and history of a span into one folder.

    Every hash is verified while it is copied; README.txt says how to verify the folder with
    sha256sum and duckdb alone. Ends with 1 when a folder is not as it was sealed: it is copied with
    its fault named.
    """
    from recon.model.errors import UsageError
    from recon.steps.admin.evidence import Span, write_evidence
    from recon.steps.runtime.environment import named_accounts
    from reports.reading.evidence_workbook import evidence_index

    days = days_of(first, last)
    if days[0] > days[1]:
        msg = f"{days[0]} is after {days[1]}: nothing was written"
        raise UsageError(msg)
    with opened(signs=False) as environment:
        span = Span(*days, named_accounts(environment.settings, merchant="", account=account))
        written = write_evidence(span, out=out, drawn=evidence_index, environment=environment)
    index = written.index
    echo(f"{len(index.nights)} runs and {len(index.closes)} closes were copied to {out}.")
    for going in index.purged[:FAULTS_DISPLAYED_MAX]:
        echo(f"Let go: {going}.")
    echo(f"History up to {index.head.sequence}:{index.head.hash}")
    echo(f"manifest.json: {written.manifest}")
    for fault in index.faults[:FAULTS_DISPLAYED_MAX]:
        echo_error(fault)
    if index.faults:
        echo_error(f"{len(index.faults)} fault(s); all of them are in index.xlsx.")
        raise typer.Exit(1)


KINDS_DISPLAYED_MAX = 40
"""Lines on the terminal; the workbook of --out has all."""
TRIED_COLUMNS = ("night", "was", "would be", "sets", "money")


def under_other_rules(
    rules: Path,
    days: tuple[date, date],
    *,
    account: tuple[str, str],
    out: Path | None,
) -> None:
    """Compare past nights again under candidate rules, each on the simulated night before it.

    Args:
        rules: a file like rules.toml.
        days: the first and the last business date.
        account: merchant and account; empty where one is declared.
        out: the workbook to write.
    """
    from recon.config.settings import config_dir_of, load_rules
    from recon.steps.compare.what_if import note_answer
    from recon.steps.compare.what_if import what_if as ask
    from recon.steps.runtime.environment import one_account, system_clock

    candidate = load_rules(config_dir=config_dir_of(os.environ), rules_file=rules)
    with opened(signs=False) as environment:
        named = one_account(environment.settings, merchant=account[0], account=account[1])
        answer = ask(
            candidate,
            account=named,
            first=days[0],
            last=days[1],
            environment=environment,
            progress=echo,
        )
        note_answer(answer, account=named, environment=environment)
    _notify(answer)
    if out is not None:
        from reports.reading.what_if_workbook import write_what_if

        echo(f"Workbook: {write_what_if(answer, path=out, at=system_clock().astimezone(UTC))}")


def _notify(answer: "WhatIf") -> None:
    from recon.steps.compare.what_if import moved

    for rule in answer.rules:
        late = " (decides what a night reads: not in these figures)"
        echo(f"{rule}{late if rule in answer.not_played else ''}")
    if not answer.rules:
        echo("These are the rules of the last of these nights.")
    kinds = [*moved(answer.nights)]
    if kinds:
        rows = [
            {"night": str(kind.business_date), "was": kind.before, "would be": kind.after}
            | {"sets": kind.count, "money": kind.money}
            for kind in kinds[:KINDS_DISPLAYED_MAX]
        ]
        show(rows, columns=TRIED_COLUMNS)
    if len(kinds) > KINDS_DISPLAYED_MAX:
        echo(f"... and {len(kinds) - KINDS_DISPLAYED_MAX} more lines: --out has them all")
    count = len(answer.never_raised)
    echo(f"{count} answered breaks would never have been raised.")
    echo(f"Digest of this answer: {answer.digest[:DIGITS_READ]}")
