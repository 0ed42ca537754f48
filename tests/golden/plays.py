"""Everything whose figures are frozen, by name, and how it is played."""

import os
import sys
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import redirect_stdout
from functools import partial
from multiprocessing import get_context

from tests.golden.commands import exit_codes
from tests.golden.figures import Figure, Tables
from tests.golden.machine_files import machine_files
from tests.golden.nights import DATABASES, SIZES, ends, night_of
from tests.golden.request_bodies import request_bodies

Played = dict[str, dict[str, Figure]]
QUICK: dict[str, Callable[[], Played]] = {
    "requests": request_bodies,
    "exit codes": exit_codes,
    "machine files": machine_files,
}
"""What takes seconds: a part of `make check`."""
PLAYS: dict[str, Callable[[], Played]] = {
    **QUICK,
    "ends of nights": ends,
    **{
        f"night of {size} orders, {database}": partial(night_of, size, database=database)
        for size in SIZES
        for database in DATABASES
    },
}
"""All, in the order in which their figures stand in the file."""
PROCESSES = 2


def play_all(plays: Sequence[str]) -> dict[str, Played]:
    """The figures of each of these plays; the longest begin first, two play at a time."""
    with ProcessPoolExecutor(PROCESSES, mp_context=get_context("spawn")) as pool:
        under_way = {name: pool.submit(play, name) for name in reversed(plays)}
        return {name: under_way[name].result() for name in plays}


def play(name: str) -> Played:
    """The figures of one play, apart from the settings of the shell and from what it prints."""
    for variable in [each for each in os.environ if each.startswith("RECON_")]:
        del os.environ[variable]  # a developer's shell may point at a real gateway
    with redirect_stdout(sys.stderr):
        return PLAYS[name]()


def of_play(name: str, tables: Tables) -> Played:
    """The tables that a play gave: each begins with its name."""
    return {
        key: dict(figures)
        for key, figures in tables.items()
        if key == name or key.startswith(f"{name}, ")
    }
