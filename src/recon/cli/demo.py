"""`recon demo`: a sandbox gateway, a sample night's files and one whole night, under one folder."""

import shutil
import sys
import time
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from recon.cli.output import echo, progress_of
from recon.model.nights import STEPS

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from recon.cli.demo_work import DemoFolder, DemoMemory

ORDERS_MAX = 200_000
"""More is a load test, not a demo: the sample is made in memory."""

FOUND_ON_PURPOSE = frozenset({0, 3})
"""Exit codes of the sample night's verdict with which the demo has done what it should."""


def demo(
    *,
    folder: Annotated[
        Path, typer.Option("--dir", help="Where everything goes; again on it continues.")
    ] = Path("out/demo"),
    orders: Annotated[
        int | None,
        typer.Option(help="Payments of the sandbox; 2000 unless given.", min=1, max=ORDERS_MAX),
    ] = None,
    seed: Annotated[
        int | None, typer.Option(help="The same seed makes the same night; 42 unless given.")
    ] = None,
    prepare_only: Annotated[
        bool, typer.Option("--prepare-only", help="Stop before the night.")
    ] = False,
    deliver: Annotated[
        bool,
        typer.Option(
            "--deliver",
            help="Write the files of each next day once it has closed there, until stopped.",
        ),
    ] = False,
    to: Annotated[
        str,
        typer.Option(help="Nights of the business days after the newest one, up to this date."),
    ] = "",
    fresh: Annotated[
        bool, typer.Option("--fresh", help="Start over; takes away only what the demo made.")
    ] = False,
) -> None:
    """Run one whole night against the sandbox, and show where the workbook is.

    The sample night has breaks and bad rows on purpose: the demo ends with 0 when they are found.
    """
    started = time.monotonic()
    from recon.cli.demo_work import agree, empty, folder_at, recall, refuse_if_running

    demo_folder = folder_at(folder)
    if fresh:
        refuse_if_running(demo_folder)
        empty(demo_folder)
    if deliver:
        # As `make serve` has it beside the sandbox: its scheduled nights find files of their day.
        from recon.cli.demo_work import deliver_until_stopped
        from recon.steps.runtime.environment import system_clock

        deliver_until_stopped(demo_folder, clock=system_clock, sleep=time.sleep, report=echo)
    memory = agree(recall(demo_folder), orders=orders, seed=seed)
    with _or_fresh():
        if prepare_only:
            _prepare(demo_folder, memory)
            return
        figures = _nights(demo_folder, memory, to=to)
    echo(f"{figures['end']} in {time.monotonic() - started:.1f} seconds.")
    for sentence in _look_first(demo_folder, workbook=str(figures.get("workbook", "none"))):
        echo(sentence)
    if figures["exit_code"] not in FOUND_ON_PURPOSE:
        raise typer.Exit(int(figures["exit_code"]))


@contextmanager
def _or_fresh() -> "Iterator[None]":
    """Say of what another version left in the folder that the demo can start over."""
    from recon.model.errors import ConfigurationError, StoreError

    try:
        yield
    except (ConfigurationError, StoreError) as error:
        if "--fresh" in str(error):
            raise
        msg = f"{error}; where another version of recon made this demo, start over with --fresh"
        raise type(error)(msg) from error


def _prepare(folder: "DemoFolder", memory: "DemoMemory") -> None:
    from recon.cli.demo_work import prepared

    with prepared(folder, memory) as ready:
        port = ready.port
    echo(f"Prepared: {folder.root}")
    echo(f"Gateway: recon sandbox --state {folder.sandbox_state} --port {port}")
    echo(f"Night: cd {folder.root} && {_program()} nightly")


def _nights(folder: "DemoFolder", memory: "DemoMemory", *, to: str) -> "Mapping[str, int | str]":
    """The newest night again, or those that are left up to a date; the figures of the last."""
    from recon.cli.demo_work import days_after, recall, whole_night
    from recon.cli.night_choices import date_of

    *before, newest = days_after(memory, to=date_of(to)) if to else [None]
    for day in before:
        with progress_of(["prepare", *STEPS]) as report:
            end = whole_night(folder, memory, report=report, day=day)["end"]
        echo(f"{end}: night of {day}")
        memory = recall(folder) or memory
    with progress_of(["prepare", *STEPS]) as report:
        return whole_night(folder, memory, report=report, day=newest)


def _program() -> str:
    """What to type for this program: its name, or its path where the shell does not find it."""
    started = Path(sys.argv[0])
    by_its_name = started.name != "recon" or shutil.which(started.name)
    return "recon" if by_its_name else str(started.absolute())


def _look_first(folder: "DemoFolder", *, workbook: str) -> tuple[str, ...]:
    """What to open, in this order."""
    return (
        "Look first at",
        f"  1. {workbook}: its sheet Summary says how the night ended and what needs a person,",
        "     and the sheet Breaks has every difference with its next step",
        f"  2. {folder.answer_key}: what was planted, to hold the breaks against",
        f"  3. `cd {folder.root} && {_program()} status`: the same by command",
        "`make serve` shows a night in Prefect. The same command again continues and sends nothing",
        "twice; --fresh starts over.",
    )
