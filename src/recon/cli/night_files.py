"""`recon file`: the files that nights took or refused, and what people say of them."""

import os
from typing import TYPE_CHECKING, Annotated

import typer

from recon.cli.night_choices import Account, Merchant
from recon.cli.one_time_codes import Code
from recon.cli.people_commands import As, ask_desk_to
from recon.cli.speaking import say

if TYPE_CHECKING:
    from recon.store.nights.file_words import KnownFile

files = typer.Typer(help="The files that nights took or refused, by account.", no_args_is_help=True)

Name = Annotated[str, typer.Argument(help="The file's name, as `recon file list` shows it.")]
Reason = Annotated[str, typer.Option(help="Why, in two words at least; kept in the history.")]


@files.command("list")
def listed(merchant: Merchant, account: Account) -> None:
    """Show the newest version of each file: its night, its rows, and what was said of it."""
    from recon.steps.files.words_on_files import files_of
    from recon.steps.ground.environment import environment_of, system_clock

    with environment_of(os.environ, clock=system_clock) as environment:
        files = files_of((merchant, account), environment=environment)
    for file in files:
        say(_line_of(file))
    if not files:
        say("No night has met a file yet.")


@files.command("again")
def again(
    name: Name, merchant: Merchant, account: Account, *, by: As, reason: Reason, code: Code = ""
) -> None:
    """Let the next night read a file once more though its content is known.

    For a file that is still in the inbox, after its layout or the rules were corrected. What it
    asks for and was planned already is not planned twice.
    """
    ask_desk_to("read-again", _body(name, merchant, account, reason=reason), name=by, code=code)
    say(f"Noted: {name} is read again by the next night that finds it in the inbox.")


@files.command("dismiss")
def dismissed(
    name: Name, merchant: Merchant, account: Account, *, by: As, reason: Reason, code: Code = ""
) -> None:
    """Let go of a file that was refused whole, or that was expected and never came.

    Its night no longer lacks it: start that night again. Another content under the name counts.
    """
    gone = ask_desk_to(
        "dismiss-file", _body(name, merchant, account, reason=reason), name=by, code=code
    )
    say(f"Let go: {name}. Start the night of {gone['business_date']} again.")


def _body(name: str, merchant: str, account: str, *, reason: str) -> dict[str, str]:
    return {"file": name, "merchant_id": merchant, "account_id": account, "reason": reason}


def _line_of(file: "KnownFile") -> str:
    """Its night, name and version, then what became of it."""
    source, word = file.source, file.word
    text = (
        f"{source.rows_accepted} of {source.rows_read} rows taken, {source.rows_rejected} refused"
    )
    if file.refused:
        text = f"refused whole: {file.refused}"
    if word is not None:
        at = f"{word.at:%Y-%m-%d %H:%M} UTC"
        text = f"{text}; {word.decision}, said {word.by} at {at}: {word.reason}"
    return f"{file.business_date} {source.name} (version {file.version}, run {file.run_id}): {text}"
