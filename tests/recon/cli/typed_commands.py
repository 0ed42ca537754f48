"""The commands of the program as people type them."""

from collections.abc import Iterator
from typing import Any

from typer.main import get_command

from recon.cli.commands import app
from recon.cli.people_commands import command_of


def commands() -> Iterator[tuple[str, Any]]:
    """Every command of the program, by its words; of acts the whole one."""
    open_groups: list[tuple[str, Any]] = [("", get_command(app))]
    for words, command in open_groups:
        inner = getattr(command, "commands", None)
        if inner is None:
            models = getattr(command.callback, "models", "")
            yield words, command_of(words, models) if models else command
            continue
        open_groups.extend((f"{words} {name}".strip(), below) for name, below in inner.items())
