"""What a night would take of a file, what nights took and refused: `recon order-file check`."""

import os
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from recon.cli.night_choices import OneAccount, OneMerchant, date_of, opened
from recon.cli.output import echo, echo_error
from recon.cli.people_commands import NAME_HELP, Code, perform
from recon.model.errors import SourceUnreadableError

if TYPE_CHECKING:
    from recon.config.file_layouts import FileLayout
    from recon.config.settings import AccountSettings, FileSettings
    from recon.matching.frames.bank_sources import BankStatement
    from recon.steps.files.order_files import CheckedFile
    from recon.store.nights.order_rows import KnownFile

DISPLAYED_REJECTS_MAX = 20
REFUSED_EXIT_CODE = 1
WHOLE_FILE_REFUSED = (
    "A night takes nothing of it and leaves it where it is: ask for a correct file, and put it in "
    "its place."
)
ROWS_REFUSED = (
    "A night takes the other rows. Write these to a file with `recon order-file check FILE "
    "--mend`, correct them there, and put it into the inbox."
)
INSTRUCTIONS_REFUSED = (
    "A night compares these rows, and sends nothing for them by itself: correct the file, or two "
    "people approve each instruction that is meant so (`recon approve`)."
)
SETTLEMENT_ROWS_REFUSED = "A night takes the other rows: ask the gateway for a correct file."


order_files = typer.Typer(
    help="What a night would take of a file, and what nights took.", no_args_is_help=True
)
order_files.callback()(lambda: None)


@order_files.command("check")
def check(
    files: Annotated[
        list[Path] | None,
        typer.Argument(
            help="A file, or statements of a bank together; without one what nights met is listed."
        ),
    ] = None,
    *,
    kind: Annotated[
        Literal["orders", "settlement", "bank"], typer.Option(help="What it is.")
    ] = "orders",
    mend: Annotated[
        bool,
        typer.Option(
            "--mend",
            help="Only write the refused rows as a file for the inbox: correct its rows, leave the "
            "columns rejected_… as they are, keep mended- in its name.",
        ),
    ] = False,
    out: Annotated[
        Path | None,
        typer.Option(help="With --mend: where to; mended-<name>.csv in this folder without it."),
    ] = None,
    merchant: OneMerchant = "",
    account: OneAccount = "",
    rules: Annotated[
        Path | None, typer.Option(help="Of a bank: rules that name it; else rules.toml.")
    ] = None,
    as_of: Annotated[
        str, typer.Option(help="Of a bank: a later statement is refused. Today.")
    ] = "",
    again: Annotated[
        str,
        typer.Option(
            help="Instead: why the next night reads a file of the inbox once more though its "
            "content is known, such as a corrected layout. What it asks for and was planned "
            "already is not planned twice."
        ),
    ] = "",
    by: Annotated[str, typer.Option("--as", help=NAME_HELP)] = "",
    code: Code = "",
) -> None:
    """Show what a night would read of a file and what it would refuse; nothing is stored.

    Of a bank's statements what they prove: opening, movements, closing, gaps. Ends with 0 when
    every row, instruction or statement would count, with 1 when one would not. Without a file the
    newest version of each that nights met is listed, with what was decided of it, then every
    refused order row that was not delivered again (`recon reject` is of both).
    """
    if not files:
        _list(merchant, account)
        return
    if kind == "bank":
        _check_statements(files, rules=rules, as_of=as_of)
        return
    if len(files) > 1:
        msg = "one file at a time; only statements of a bank (--kind bank) are checked together"
        raise typer.BadParameter(msg)
    if again:
        from recon.acts import ReadAgain

        of_file = {"file": files[0].name, "merchant_id": merchant, "account_id": account}
        perform(ReadAgain, of_file | {"reason": again}, name=by, code=code)
        return
    from recon.config.settings import load_file_settings
    from recon.steps.runtime.environment import one_account

    settings = load_file_settings(os.environ)
    declared = settings.accounts[
        "/".join(one_account(settings, merchant=merchant, account=account))
    ]
    if mend:
        from recon.steps.files.order_files import write_mendable

        written = write_mendable(files[0], out=out, account=declared, settings=settings)
        nothing = f"{files[0].name} has no refused row; nothing was written."
        echo(nothing if written is None else f"{written[1]} refused rows: {written[0]}")
        return
    _check(files[0], settlement=kind == "settlement", declared=declared, settings=settings)


def _check(
    file: Path, *, settlement: bool, declared: "AccountSettings", settings: "FileSettings"
) -> None:
    """Say what a night would read of a file; ends with 1 when it would refuse anything."""
    from recon.steps.files.order_files import check_file, check_settlement_file

    check_as = check_settlement_file if settlement else check_file
    try:
        checked = check_as(file, account=declared, settings=settings)
    except SourceUnreadableError as error:
        echo_error(f"{error}\n{WHOLE_FILE_REFUSED}")
        raise typer.Exit(REFUSED_EXIT_CODE) from None
    _notify(checked)
    folder = declared.settlement if settlement else declared
    left = _left(file, layouts=folder.layouts if folder else ())
    if checked.rejects:
        echo_error(SETTLEMENT_ROWS_REFUSED if settlement else ROWS_REFUSED)
    if checked.refused_actions:
        echo_error(INSTRUCTIONS_REFUSED)
    echo("Nothing was stored.")
    if checked.rejects or checked.refused_actions or left:
        raise typer.Exit(REFUSED_EXIT_CODE)


def _left(file: Path, *, layouts: tuple["FileLayout", ...]) -> str:
    """Say why a night would leave a file that can be read where it is; "" when it takes it."""
    from recon.files.inbox.arrived_files import WAITS_FOR, not_taken

    why = not_taken(file, layouts=layouts)
    if why:
        echo_error(f"A night does not take {file.name} as it lies here: {why}.")
    return "" if why.startswith(WAITS_FOR) else why


def _notify(checked: "CheckedFile") -> None:
    source = checked.source
    layout = f'the layout "{checked.layout}"' if checked.layout else "the columns of the contract"
    echo(f"{source.name}: {source.size_bytes} bytes, SHA-256 {source.sha256}, read by {layout}.")
    skipped = f", {source.rows_skipped} skipped ({source.skipped_by})" if source.skipped_by else ""
    echo(
        f"{source.rows_read} rows: {source.rows_accepted} would be accepted, "
        f"{source.rows_rejected} refused{skipped}."
    )
    for currency, total in checked.sums.items():
        echo(f"Accepted: {total} {currency}")
    for kind, rows in sorted(checked.actions.items()):
        echo(f"Instructions: {rows} {kind}")
    if checked.ignored_columns:
        echo(f"Not read, because recon does not know them: {', '.join(checked.ignored_columns)}")
    for reject in checked.rejects[:DISPLAYED_REJECTS_MAX]:
        shown = f" ({reject.value!r})" if reject.value else ""
        echo_error(f"line {reject.line}, {reject.column}: {reject.reason}{shown}")
    more = len(checked.rejects) - DISPLAYED_REJECTS_MAX
    if more > 0:
        echo_error(f"and {more} more; `recon order-file check FILE --mend` writes them all")
    for line, against in checked.refused_actions[:DISPLAYED_REJECTS_MAX]:
        echo_error(f"line {line}, action: refused, {against}")
    more = len(checked.refused_actions) - DISPLAYED_REJECTS_MAX
    if more > 0:
        echo_error(f"and {more} more refused instructions")


def _check_statements(files: Sequence[Path], *, rules: Path | None, as_of: str) -> None:
    """Say what statements prove before a night counts them; nothing is stored."""
    from recon.config.settings import config_dir_of, load_rules
    from recon.matching.bank.statements import classify_statements
    from recon.steps.files.bank_files import read_bank_files

    read_rules = load_rules(config_dir=config_dir_of(os.environ), rules_file=rules)
    day = date_of(as_of) if as_of else datetime.now(UTC).date()
    source = read_bank_files(files, rules=read_rules).source
    classified = classify_statements(source, rules=read_rules, day=day)
    for number, statement in enumerate(source.statements):
        counts = number in classified.counted
        echo(f"{_reported_of(statement)} {'It counts.' if counts else 'It does not count.'}")
    for note in source.notes:
        echo(note)
    for name, cover in classified.covers.items():
        days = f"{cover.first_day} to {cover.to_day}" if cover.to_day else "no day"
        echo(f"{name}: covered {days}.")
    for problem in classified.problems:
        echo_error(problem)
    echo("Nothing was stored.")
    if classified.problems:
        raise typer.Exit(REFUSED_EXIT_CODE)


def _reported_of(statement: "BankStatement") -> str:
    """A statement in a line, its account cut to its ends."""
    from recon.matching.bank.statements import named
    from recon.model.money import Money
    from recon.privacy.displayed_text import redacted

    def shown(amount: int) -> str:
        return str(Money.of_minor_units(amount, currency=statement.currency))

    moved = f"{statement.entries} booked entries of {shown(statement.booked)}"
    proof = f"{moved}, without balances"
    if statement.opening is not None and statement.closing is not None:
        proof = f"opening {shown(statement.opening)}, {moved}, closing {shown(statement.closing)}"
    days = (
        statement.from_date
        if statement.from_date == statement.to_date
        else f"{statement.from_date} to {statement.to_date}"
    )
    return f"{named(statement)} of {redacted(statement.iban)}, {days}: {proof}."


def _list(merchant: str, account: str) -> None:
    from recon.steps.files.file_decisions import files_of
    from recon.steps.files.order_files import outstanding_rows
    from recon.steps.runtime.environment import named_accounts

    with opened() as environment:
        accounts = named_accounts(environment.settings, merchant=merchant, account=account)
        known = [(which, files_of(which, environment=environment)) for which in accounts]
        status = [(run.account, row) for run, rows in outstanding_rows(environment) for row in rows]
    for which, met in known:
        for file in met:
            echo(f"{'/'.join(which)} {_line_of(file)}")
        if not met:
            echo(f"{'/'.join(which)}: no night has met a file yet.")
    is_all = not (merchant or account)
    refused = [(which, row) for which, row in status if is_all or which in accounts]
    for which, row in refused:
        order = row.order_no or "an order whose number could not be read"
        where = f"{row.source} line {row.line}, {row.column}: {row.reason}"
        echo(f"{row.reject_id}  {'/'.join(which)}  {order}  {where}")
    echo(f"{len(refused)} rejected rows belong to orders that are not verified.")


def _line_of(file: "KnownFile") -> str:
    """Its night, name and version, then what became of it."""
    source, decision = file.source, file.decision
    text = (
        f"{source.rows_accepted} of {source.rows_read} rows taken, {source.rows_rejected} refused"
    )
    if file.refused:
        text = f"refused whole: {file.refused}"
    if decision is not None:
        at = f"{decision.at:%Y-%m-%d %H:%M} UTC"
        by, reason = decision.data["by"], decision.data["reason"]
        text = f"{text}; {decision.event}, said {by} at {at}: {reason}"
    return f"{file.business_date} {source.name} (version {file.version}, run {file.run_id}): {text}"
