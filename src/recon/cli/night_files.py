"""`recon file`: the files that nights took or refused, and what people say of them."""

import os
from typing import TYPE_CHECKING

import typer

from recon.cli.night_choices import Account, Merchant
from recon.cli.people_commands import ActGroup, act
from recon.cli.speaking import say

if TYPE_CHECKING:
    from recon.store.nights.file_words import KnownFile

files = typer.Typer(
    cls=ActGroup, help="The files that nights took or refused, by account.", no_args_is_help=True
)


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


files.command("again")(
    act("ReadAgain", "Let the next night read a file once more though its content is known.")
)
files.command("dismiss")(
    act("DismissFile", "Let go of a file that was refused whole, or expected and never came.")
)


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
