"""All commands under one name, and how the process ends.

Nothing heavy is imported here: typer and the standard library only.
"""

import sys
from collections.abc import Sequence
from typing import Annotated

import typer

from recon.cli import (
    bank_commands,
    demo,
    desk,
    diff_commands,
    gateway_calls,
    journal_commands,
    layout_proposals,
    night_commands,
    night_files,
    nights_command,
    opening_command,
    order_file_commands,
    parts,
    people_commands,
    prefect_pages,
    reconcile_commands,
    rejected_row_commands,
    servers,
    sql_command,
    upkeep,
)
from recon.cli.endings import INTERRUPTED, ending_of
from recon.cli.speaking import complain, say, speak_any_name
from recon.privacy.card_numbers import holds_card
from recon.privacy.own_files import keep_strangers_out

DEBUG_OPTION = "--debug"
FREE_TEXT_OPTIONS = frozenset({"--reason", "--skip", "--opening"})

app = typer.Typer(
    name="recon",
    help="Settle and reconcile a merchant's payments, night by night.",
    epilog=(
        "Exit codes: 0 reconciled, 1 error, 2 usage or configuration, 3 breaks open, "
        "4 not proven or incomplete, 5 money is in doubt or sending stopped, "
        "75 another run holds the night."
    ),
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
database = typer.Typer(help="The database.", no_args_is_help=True)
approvers = typer.Typer(help="The people who approve.", no_args_is_help=True)

app.command("demo")(demo.demo)
app.command("sandbox")(servers.sandbox)
app.command("nightly")(night_commands.nightly)
app.command("ingest")(parts.ingest)
app.command("query")(parts.query)
app.command("settle")(parts.settle)
app.command("payouts")(parts.payouts)
app.command("finish")(parts.finish)
app.command("reconcile")(reconcile_commands.reconcile)
app.command("status")(night_commands.status)
app.command("tell")(night_commands.tell)
app.command("withdraw")(night_commands.withdraw)
app.command("approve")(people_commands.approve)
app.command("reject")(people_commands.reject)
app.command("resolve")(people_commands.resolve)
app.command("release")(people_commands.release)
app.command("agree-write-off")(people_commands.agree_write_off)
app.command("sign-off")(people_commands.sign_off)
app.command("nights")(nights_command.nights)
app.command("index")(people_commands.index)
app.add_typer(approvers, name="approver")
approvers.command("enrol")(people_commands.enrol)
app.add_typer(desk.desk, name="desk")
app.command("stop-sending")(people_commands.stop_sending)
app.command("allow-sending")(people_commands.allow_sending)
app.command("set-aside")(upkeep.set_aside)
app.command("signer")(servers.signer)
app.command("notifications")(servers.notifications)
app.command("report")(reconcile_commands.report)
app.command("import-resolutions")(people_commands.import_resolutions)
app.command("verify")(reconcile_commands.verify)
app.command("sql")(sql_command.sql)
app.command("opening")(opening_command.opening)
app.command("diff")(diff_commands.nights_compared)
app.command("rebuild")(diff_commands.rebuild)
app.add_typer(journal_commands.journals, name="journals")
app.add_typer(rejected_row_commands.rejected_rows, name="rejected-rows")
app.command("housekeeping")(upkeep.housekeeping)
app.command("doctor")(upkeep.doctor)
app.add_typer(database, name="db")
app.add_typer(prefect_pages.prefect, name="prefect")
app.add_typer(order_file_commands.order_file, name="order-file")
order_file_commands.order_file.command("propose")(layout_proposals.propose)
app.add_typer(bank_commands.bank, name="bank")
app.add_typer(night_files.files, name="file")
app.add_typer(gateway_calls.calls, name="gateway")
database.command("upgrade")(upkeep.upgrade)
database.command("grants")(upkeep.grants)
database.command("accept-restore")(upkeep.accept_restore)


def _print_version(wanted: bool) -> None:
    if wanted:
        from importlib.metadata import version

        say(f"recon {version('recon')}")
        raise typer.Exit


@database.callback()
def _database() -> None:
    """The database: its tables are created and migrated here, never by a night."""


@approvers.callback()
def _approvers() -> None:
    """The people who approve, release and sign: declared in approvers.toml."""


@app.callback()
def _recon(
    *,
    version: Annotated[
        bool,
        typer.Option(
            "--version", help="Print the version and exit.", callback=_print_version, is_eager=True
        ),
    ] = False,
    debug: Annotated[
        bool, typer.Option(DEBUG_OPTION, help="Show the full text of an unexpected error.")
    ] = False,
) -> None:
    """Settle and reconcile a merchant's payments, night by night."""
    # Both did their work before: --version as it is read, --debug in `main`.
    del version, debug


def main(words: Sequence[str] | None = None) -> int:
    """Run one command; gives the exit code of the process."""
    keep_strangers_out()
    speak_any_name()
    words = sys.argv[1:] if words is None else list(words)
    debug = DEBUG_OPTION in words
    words = [word for word in words if word != DEBUG_OPTION]
    try:
        _refuse_cards(words)
        code = _exit_code_of(words)
        nights_command.tell_missed(words[0] if words else "")
    except (Exception, KeyboardInterrupt) as error:  # noqa: BLE001 - the last place that can speak
        ending = ending_of(error, debug=debug)
        complain(ending.sentence)
        return ending.exit_code
    if code == INTERRUPTED.exit_code:
        complain(INTERRUPTED.sentence)
    return code


def _refuse_cards(words: Sequence[str]) -> None:
    """A reason is kept for ever and shown to many: no card number may stand in one.

    Raises:
        UsageError: naming the option.
    """
    from recon.model.errors import UsageError

    for word, following in zip(words, [*words[1:], ""], strict=False):
        option, equals, value = word.partition("=")
        if option in FREE_TEXT_OPTIONS and holds_card(value if equals else following):
            msg = f"{option} holds a card number; say it without the number: nothing was done"
            raise UsageError(msg)


def _exit_code_of(words: Sequence[str]) -> int:
    """Run typer, which ends by SystemExit and has told wrong usage itself by then."""
    try:
        app(args=list(words), prog_name="recon")
    except SystemExit as end:
        return end.code if isinstance(end.code, int) else int(end.code is not None)
    return 0
