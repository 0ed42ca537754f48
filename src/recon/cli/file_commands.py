"""`recon order-file`: a file, before or after a night; `recon rejected-rows`: what was refused."""

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from recon.cli.night_choices import Merchant
from recon.cli.people_commands import ActGroup, act
from recon.cli.speaking import complain, say
from recon.model.errors import SourceUnreadableError

if TYPE_CHECKING:
    from recon.config.file_layouts import FileLayout
    from recon.config.settings import AccountSettings, FileSettings
    from recon.steps.files.order_files import CheckedFile

SHOWN_REJECTS_MAX = 20
REFUSED_EXIT_CODE = 1
WHOLE_FILE_REFUSED = (
    "A night takes nothing of it and leaves it where it is: ask for a correct file, and put it in "
    "its place."
)
ROWS_REFUSED = (
    "A night takes the other rows. Write these to a file with `recon order-file check --mend`, "
    "correct them there, and put it into the inbox."
)
INSTRUCTIONS_REFUSED = (
    "A night compares these rows, and sends nothing for them by itself: correct the file, or two "
    "people approve each instruction that is meant so (`recon approve`)."
)
SETTLEMENT_ROWS_REFUSED = "A night takes the other rows: ask the gateway for a correct file."

order_file = typer.Typer(help="One order file, before or after a night.", no_args_is_help=True)

File = Annotated[Path, typer.Argument(help="The order or instruction file.")]
Account = Annotated[
    str | None,
    typer.Option(
        envvar="RECON_ACCOUNT", help="The account's id; needed when the merchant has several."
    ),
]


@order_file.command("check")
def check(
    file: File,
    merchant: Merchant,
    account: Account = None,
    settlement: Annotated[
        bool, typer.Option("--settlement", help="It is a settlement file of the gateway.")
    ] = False,
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
) -> None:
    """Show what a night would read of a file and what it would refuse; nothing is stored.

    Ends with 0 when every row and instruction would be accepted, with 1 when one would be refused.
    """
    from recon.config.settings import load_file_settings
    from recon.steps.files.order_files import check_file, check_settlement_file, the_account

    settings = load_file_settings(os.environ)
    declared = the_account(settings, merchant_id=merchant, account_id=account)
    if mend:
        _write_mendable(file, out=out, declared=declared, settings=settings)
        return
    check_as = check_settlement_file if settlement else check_file
    try:
        checked = check_as(file, account=declared, settings=settings)
    except SourceUnreadableError as error:
        complain(f"{error}\n{WHOLE_FILE_REFUSED}")
        raise typer.Exit(REFUSED_EXIT_CODE) from None
    _tell(checked)
    left = _left(file, layouts=_layouts(declared, settlement=settlement))
    if checked.rejects:
        complain(SETTLEMENT_ROWS_REFUSED if settlement else ROWS_REFUSED)
    if checked.refused_actions:
        complain(INSTRUCTIONS_REFUSED)
    say("Nothing was stored.")
    if checked.rejects or checked.refused_actions or left:
        raise typer.Exit(REFUSED_EXIT_CODE)


def _layouts(account: "AccountSettings", *, settlement: bool) -> tuple["FileLayout", ...]:
    folder = account.settlement if settlement else account
    return folder.layouts if folder else ()


def _left(file: Path, *, layouts: tuple["FileLayout", ...]) -> str:
    """Say why a night would leave a file that can be read where it is; "" when it takes it."""
    from recon.files.inbox.arrived_files import WAITS_FOR, not_taken

    why = not_taken(file, layouts=layouts)
    if why:
        complain(f"A night does not take {file.name} as it lies here: {why}.")
    return "" if why.startswith(WAITS_FOR) else why


def _write_mendable(
    file: Path, *, out: Path | None, declared: "AccountSettings", settings: "FileSettings"
) -> None:
    """Write the refused rows as a file that can be corrected and put into the inbox."""
    from recon.steps.files.order_files import write_mendable

    written = write_mendable(file, out=out, account=declared, settings=settings)
    if written is None:
        say(f"{file.name} has no refused row; nothing was written.")
        return
    path, rows = written
    say(f"{rows} refused rows: {path}")


def _tell(checked: "CheckedFile") -> None:
    source = checked.source
    layout = f'the layout "{checked.layout}"' if checked.layout else "the columns of the contract"
    say(f"{source.name}: {source.size_bytes} bytes, SHA-256 {source.sha256}, read by {layout}.")
    say(
        f"{source.rows_read} rows: {source.rows_accepted} would be accepted, "
        f"{source.rows_rejected} refused."
    )
    for currency, total in checked.sums.items():
        say(f"Accepted: {total} {currency}")
    for kind, rows in sorted(checked.actions.items()):
        say(f"Instructions: {rows} {kind}")
    if checked.ignored_columns:
        say(f"Not read, because recon does not know them: {', '.join(checked.ignored_columns)}")
    for reject in checked.rejects[:SHOWN_REJECTS_MAX]:
        shown = f" ({reject.value!r})" if reject.value else ""
        complain(f"line {reject.line}, {reject.column}: {reject.reason}{shown}")
    more = len(checked.rejects) - SHOWN_REJECTS_MAX
    if more > 0:
        complain(f"and {more} more; `recon order-file check --mend` writes them all")
    for line, against in checked.refused_actions[:SHOWN_REJECTS_MAX]:
        complain(f"line {line}, action: refused, {against}")
    more = len(checked.refused_actions) - SHOWN_REJECTS_MAX
    if more > 0:
        complain(f"and {more} more refused instructions")


rejected_rows = typer.Typer(
    cls=ActGroup,
    help="Order rows that could not be read and still stand for their orders.",
    no_args_is_help=True,
)


@rejected_rows.command("list")
def listed() -> None:
    """Every rejected order row that was not delivered again, with its number, file and line."""
    from recon.steps.files.rejected_rows import outstanding_rows
    from recon.steps.ground.environment import environment_of, system_clock

    count = 0
    with environment_of(os.environ, clock=system_clock) as environment:
        for run, rows in outstanding_rows(environment):
            for row in rows:
                order = row.order_no or "an order whose number could not be read"
                where = f"{row.source} line {row.line}, {row.column}: {row.reason}"
                say(f"{row.reject_id}  {run.merchant_id}/{run.account_id}  {order}  {where}")
                count += 1
    say(f"{count} rejected rows stand for orders that are not verified.")


rejected_rows.command("dismiss")(act("DismissRow", "Decide that a row stands for no order."))
