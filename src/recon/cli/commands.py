"""All commands under one name, and how the process ends.

Nothing heavy is imported here: typer and the standard library only.
"""

import os
import sys
import tempfile
import traceback
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from recon import __version__
from recon.cli import (
    demo,
    file_commands,
    gateway_calls,
    init,
    month_commands,
    night_commands,
    past_nights,
    people_commands,
    reconcile_commands,
    upkeep,
)
from recon.cli.output import echo, echo_error, print_any_name
from recon.cli.people_commands import ActGroup, act
from recon.model.errors import ReconError
from recon.model.uptime import collect_seldom, pool_of
from recon.privacy.displayed_text import for_people
from recon.privacy.own_files import WITHOUT_PLUGINS, refuse_other_users

UNEXPECTED_EXIT_CODE = 1


@dataclass(frozen=True, slots=True)
class CommandEnding:
    """What is said on stderr, and what the shell gets."""

    sentence: str
    exit_code: int


INTERRUPTED = CommandEnding(
    "Interrupted. Everything committed so far is kept, and a batch that was under way counts as in "
    "doubt until the gateway is asked: start the same command again and it goes on; nothing is "
    "sent twice.",
    130,  # what a shell gives for SIGINT
)


def ending_of(error: BaseException, *, debug: bool) -> CommandEnding:
    """The ending that fits an exception."""
    if isinstance(error, KeyboardInterrupt):
        return INTERRUPTED
    if isinstance(error, ReconError):
        sentence = str(error) or (type(error).__doc__ or "").strip()
        return CommandEnding(
            f"{sentence}\n{_full_text(error)}" if debug else sentence, error.exit_code
        )
    where = _full_text(error) if debug else _in_a_file(error)
    return CommandEnding(
        f"Stopped by an unexpected {type(error).__name__}. Everything committed so far is kept: "
        f"start the same command again, and report this if it stops again. {where}",
        UNEXPECTED_EXIT_CODE,
    )


def _in_a_file(error: BaseException) -> str:
    """Write the full text to a file that only this user can read; says where it is."""
    try:
        handle, path = tempfile.mkstemp(prefix="recon-error-", suffix=".txt")
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            file.write(_full_text(error))
    except OSError:
        return "The full text could not be written; --debug shows it."
    return f"The full text is in {path}."


def _full_text(error: BaseException) -> str:
    return for_people("".join(traceback.format_exception(error)).rstrip())


DEBUG_OPTION = "--debug"

app = typer.Typer(
    name="recon",
    cls=ActGroup,
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
database = typer.Typer(
    help="The database: its tables are created and migrated here, never by a night.",
    no_args_is_help=True,
)
database.callback()(lambda: None)
database.command("upgrade")(upkeep.upgrade)

GROUPS: Mapping[str, Mapping[str, Callable[..., object] | typer.Typer]] = {
    "Every day": {
        "nightly": night_commands.nightly,
        "status": night_commands.status,
        "nights": night_commands.nights,
        "breaks": past_nights.breaks,
        "approve": act(
            "Approve ReleaseHold",
            "Show what waits for two people; say yes to that list, or lift what holds money back.",
        ),
        "resolve": act(
            "Resolve", "Decide a doubt that evidence cannot decide; two people say the same."
        ),
        "import-resolutions": act("ImportAnswers", "Take in the answers of a returned workbook."),
        "sign-off": act("SignOff", "Sign a night's workbook as its reviewer or its approver."),
    },
    "Nights": {
        "workbook": reconcile_commands.workbook,
        "verify": reconcile_commands.verify,
        "journals": month_commands.journals,
        "sql": past_nights.sql,
        "close": month_commands.close,
    },
    "People": {
        "reject": act(
            "RejectInstructions DismissFile DismissRow",
            "Say no, which is enough from one: to instructions that wait, a file, a row.",
        ),
        "withdraw": act("Withdraw", "Take back an instruction that was never sent."),
        "stop-sending": act("StopSending", "Stop all sending of money at once."),
        "enrol": people_commands.enrol,
    },
    "Files": {
        "init": init.init,
        "order-file": file_commands.order_files,
        "reconcile": reconcile_commands.reconcile,
    },
    "Gateway": {
        "gateway": gateway_calls.calls,
        "sandbox": upkeep.sandbox,
    },
    "Upkeep": {
        "doctor": upkeep.doctor,
        "db": database,
        "serve": upkeep.serve,
        "housekeeping": upkeep.housekeeping,
        "demo": demo.demo,
    },
}
"""Every command by its name, as the first screen groups them: daily work first."""


for _group, _commands in GROUPS.items():
    for _name, _command in _commands.items():
        if isinstance(_command, typer.Typer):
            app.add_typer(_command, name=_name, rich_help_panel=_group)
        else:
            app.command(_name, rich_help_panel=_group)(_command)


def _print_version(is_given: bool) -> None:
    if is_given:
        echo(f"recon {__version__}")
        raise typer.Exit


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


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; gives the exit code of the process."""
    collect_seldom()
    os.environ.update(pool_of(os.environ))
    refuse_other_users()
    os.environ.update(WITHOUT_PLUGINS)
    print_any_name()
    arguments = sys.argv[1:] if arguments is None else list(arguments)
    debug = DEBUG_OPTION in arguments
    arguments = [each for each in arguments if each != DEBUG_OPTION]
    try:
        _take_variables()
        code = _exit_code_of(arguments)
        night_commands.echo_missed(arguments[0] if arguments else "")
    except (Exception, KeyboardInterrupt) as error:  # noqa: BLE001 - the last place that can speak
        ending = ending_of(error, debug=debug)
        echo_error(ending.sentence)
        return ending.exit_code
    if code == INTERRUPTED.exit_code:
        echo_error(INTERRUPTED.sentence)
    return code


def _take_variables() -> None:
    """Those of the nearest `.env`, from this folder upward; what is set already stays.

    One without a variable of ours is another program's; one that others can read is refused.
    """
    from dotenv import dotenv_values, find_dotenv

    found = find_dotenv(usecwd=True)
    values = dotenv_values(found, interpolate=False) if found else {}
    if not any(name.startswith("RECON_") for name in values):
        return
    from recon.config.keys import key_of_file
    from recon.model.errors import ConfigurationError

    key_of_file(Path(found))
    if Path(found).stat().st_uid != os.geteuid():
        msg = f"{found} belongs to another user, who would say where money goes: take it away"
        raise ConfigurationError(msg)
    for name, text in values.items():
        os.environ.setdefault(name, text or "")


def _exit_code_of(arguments: Sequence[str]) -> int:
    """Run typer, which ends by SystemExit and has told wrong usage itself by then."""
    try:
        app(args=list(arguments), prog_name="recon")
    except SystemExit as end:
        return end.code if isinstance(end.code, int) else int(end.code is not None)
    return 0
