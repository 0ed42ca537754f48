"""What people read: results and short tables on stdout, progress and complaints on stderr.

On a terminal the last line is the step at work and the rows or parts that are done; elsewhere each
step is one plain sentence, so that a log of a scheduler reads like a diary, and a step that takes
minutes says how far it is. A program reads the same tables as JSON.
"""

import json
import os
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from datetime import timedelta
from io import TextIOWrapper
from typing import TYPE_CHECKING, Annotated, Any

import typer

from recon.model.step_progress import StepProgress, reported_to
from recon.notify.night_log import PacedLines, since_start
from recon.privacy.displayed_text import for_people, printable

if TYPE_CHECKING:
    from recon.steps.admin.doctor import Check

Echo = Callable[[str], None]
NO_TERMINALS = frozenset({"", "dumb"})
"""Kinds of terminal (TERM) that cannot draw a line anew."""


def print_any_name() -> None:
    """Let no name of a file end a command: what a terminal cannot take is written by its number."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def echo(sentence: str) -> None:
    """A result, on its lines; what a terminal would obey is written by its number, digits stay."""
    typer.echo("\n".join(map(printable, sentence.split("\n"))))


def echo_error(sentence: str) -> None:
    """Why a command could not do its work, or a step of long work, as a line."""
    typer.echo(for_people(sentence), err=True)


@contextmanager
def progress_of(
    steps: Sequence[str], *, elapsed: Callable[[], timedelta] = since_start
) -> Iterator[Echo]:
    """Tell the progress of work in steps: a line that changes on a terminal, else plain lines.

    What is yielded takes the sentence of each step that is done. Lines that cannot be written (a
    full disk, a closed stderr) never end the work: how many were lost is a result at its end.
    """
    at_terminal = sys.stderr is not None and sys.stderr.isatty()
    draws = at_terminal and os.environ.get("TERM", "") not in NO_TERMINALS
    with _drawn(steps) if draws else _written(steps, elapsed=elapsed) as report:
        yield report


@contextmanager
def _written(steps: Sequence[str], *, elapsed: Callable[[], timedelta]) -> Iterator[Echo]:
    lost: list[str] = []

    def echo_or_lose(sentence: str) -> None:
        _echo_or_lose(sentence, lost=lost)

    lines = PacedLines(echo_or_lose, elapsed=elapsed)
    waiting = iter(steps)
    lines.begin(next(waiting, ""))

    def report(sentence: str) -> None:
        echo_or_lose(sentence)
        lines.begin(next(waiting, ""))

    with reported_to(lines):
        yield report
    if lost:
        echo(f"{len(lost)} lines of progress are lost: stderr could not be written.")


@contextmanager
def _drawn(steps: Sequence[str]) -> Iterator[Echo]:
    from rich.console import Console
    from rich.text import Text

    console = Console(stderr=True, highlight=False, markup=False)
    waiting = iter([f"{step} ({n}/{len(steps)})" for n, step in enumerate(steps, 1)])
    step = next(waiting, "")
    with console.status(Text(step)) as status:

        def report(sentence: str) -> None:
            nonlocal step
            console.print(for_people(sentence))
            step = next(waiting, "done")
            status.update(Text(step))

        def follow(step_progress: StepProgress) -> None:
            status.update(Text(for_people(f"{step}: {step_progress}")))

        with reported_to(follow):
            yield report


def _echo_or_lose(sentence: str, *, lost: list[str]) -> None:
    if sys.stderr is None or lost:
        lost.append(sentence)
        return
    try:
        echo_error(sentence)
    except (OSError, ValueError):
        lost.append(sentence)
        # What waits in its buffer would fail once more at the end and change the exit code.
        with suppress(OSError, ValueError):
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stderr.fileno())


AsJson = Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")]


def show(rows: Sequence[Mapping[str, Any]], *, columns: Sequence[str]) -> None:
    """Print rows under their column names, as wide as they are, so that a pipe loses nothing."""
    lines = [list(columns), *([str(row.get(name, "")) for name in columns] for row in rows)]
    widths = [max(map(len, cells)) for cells in zip(*lines, strict=True)]
    for line in lines:
        cells = (cell.ljust(width) for cell, width in zip(line, widths, strict=True))
        echo("  ".join(cells).rstrip())


def show_json(document: Any) -> None:
    """Print one JSON document; dates and amounts as text."""
    echo(json.dumps(document, indent=2, default=str))


def show_checks(checks: "Iterable[Check]", *, wrong: str, as_json: bool, exit_code: int) -> None:
    """Print each line of a doctor as soon as it is known, `wrong` before one that is not ok.

    Raises:
        typer.Exit: with this code, where one is wrong.
    """
    rows = []
    for check in checks:
        rows.append({"name": check.name, "ok": check.ok, "sentence": check.sentence})
        if not as_json:
            sentence = check.sentence.replace("\n", "\n      ")
            echo(f"{'ok' if check.ok else wrong:{len(wrong)}} {check.name}: {sentence}")
    if as_json:
        show_json(rows)
    if not all(row["ok"] for row in rows):
        raise typer.Exit(exit_code)
