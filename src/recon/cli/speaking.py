"""What people read: results on stdout, progress and complaints on stderr.

On a terminal long work shows a bar; elsewhere each step is one plain sentence, so that a log of a
scheduler reads like a diary.
"""

import os
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from io import TextIOWrapper

import typer

from recon.privacy.shown_text import for_people

Tell = Callable[[str], None]


def speak_any_name() -> None:
    """Let no name of a file end a command: what a terminal cannot take is written by its number."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def say(sentence: str) -> None:
    """A result."""
    typer.echo(sentence)


def complain(sentence: str) -> None:
    """Why a command could not do its work."""
    typer.echo(for_people(sentence), err=True)


def tell_plainly(sentence: str) -> None:
    """One step of long work, as a line."""
    typer.echo(for_people(sentence), err=True)


@contextmanager
def telling(steps: Sequence[str]) -> Iterator[Tell]:
    """Tell the progress of work in these steps: a bar on a terminal, otherwise plain lines.

    Lines that cannot be written (a full disk, a closed stderr) never end the work: how many were
    lost is a result at its end.
    """
    if sys.stderr is None or not sys.stderr.isatty():
        lost: list[str] = []
        yield lambda sentence: _tell_or_lose(sentence, lost=lost)
        if lost:
            say(f"{len(lost)} lines of progress are lost: stderr could not be written.")
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    console = Console(stderr=True, highlight=False, markup=False)
    columns = (
        SpinnerColumn(),
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        TextColumn("{task.completed:.0f} of {task.total:.0f}"),
        TimeElapsedColumn(),
    )
    with Progress(*columns, console=console, transient=True) as progress:
        bar = progress.add_task(steps[0], total=len(steps))
        waiting = iter(steps[1:])

        def tell(sentence: str) -> None:
            console.print(for_people(sentence))
            progress.update(bar, advance=1, description=next(waiting, "done"))

        yield tell


def _tell_or_lose(sentence: str, *, lost: list[str]) -> None:
    if sys.stderr is None or lost:
        lost.append(sentence)
        return
    try:
        tell_plainly(sentence)
    except (OSError, ValueError):
        lost.append(sentence)
        # What waits in its buffer would fail once more at the end and change the exit code.
        with suppress(OSError, ValueError):
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stderr.fileno())
