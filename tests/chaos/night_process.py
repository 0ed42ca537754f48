"""Nights as real processes, quickly: one process imports everything once and forks a child a night.

Started as a script. Reads one JSON order a line: `{"start": {...}}` forks a night and answers its
process id, `{"wait": pid}` answers how that process ended. A night reads the clock it is given,
moved on by real time; everything else is the real thing: files, sockets, locks, signals. It may be
told to strike at its n-th point: to kill itself, or to run a command against the database.
"""

import gc
import json
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import date, datetime, timedelta
from pathlib import Path
from typing import Any

from plain_sheets import listed
from sqlalchemy import Connection

from recon.cli.commands import ending_of
from recon.model.errors import UsageError
from recon.model.figures import NightFigures
from recon.model.nights import Mode, NightRequest
from recon.model.terms import Verdict
from recon.steps.night import whole_night as night
from recon.steps.night.report import SheetTotals, Workbooks
from recon.steps.runtime.environment import Environment, environment_of
from recon.steps.runtime.predecessor import stated_of_predecessor
from recon.store.database.engine import Store

KILL = "kill"
"""The strike that ends the night's own process."""
STOP = "stop"
"""The strike that stops it where it stands, until somebody lets it go on."""
SIGNALS = {KILL: signal.SIGKILL, STOP: signal.SIGSTOP}
BARRIER_SECONDS_MAX = 30
REAL_WRITING = Store.writing
MONEY_STEPS = ("ingest", "query", "settle", "query again")


def serve() -> None:
    """Obey until the input ends."""
    for line in sys.stdin:
        order = json.loads(line)
        if "warm" in order:
            answer: Any = _night(order["warm"])
        elif "start" in order:
            answer = _fork(order["start"])
        else:
            _, ended = os.waitpid(order["wait"], 0)
            answer = os.waitstatus_to_exitcode(ended)
        sys.stdout.write(json.dumps(answer) + "\n")
        sys.stdout.flush()


def _fork(order: dict[str, Any]) -> int:
    gc.freeze()
    child = os.fork()
    if child:
        return child
    code = 1
    try:
        told = os.open(order["told"], os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        os.dup2(told, 1)
        os.dup2(told, 2)
        code = _night(order, say=sys.stdout.write)
    except BaseException as error:  # noqa: BLE001 - what the command line does with any error
        ending = ending_of(error, debug=True)
        sys.stdout.write(ending.sentence)
        code = ending.exit_code
    finally:
        sys.stdout.flush()
        os._exit(code)


def _night(order: dict[str, Any], *, say: Callable[[str], object] = str) -> int:
    began, base = time.monotonic(), datetime.fromisoformat(order["now"])

    def clock() -> datetime:
        return base + timedelta(seconds=time.monotonic() - began)

    reach = _points(order.get("strike"), count=Path(order["told"] + ".points"))
    _mark_commits(reach)
    with environment_of(
        order["variables"], clock=clock, randomness=random.Random(order["now"])
    ) as opened:
        environment = replace(opened, crash_point=reach)
        _await_others(order.get("barrier"))
        request = _request(order, environment=environment)
        if order.get("money_only"):
            return _money(request, environment=environment)
        ended = night.run(
            request,
            environment=environment,
            workbooks=PLAIN,
            progress=lambda _: None,
        )
        verdict = Verdict(ended.verdict)
        say(f"{verdict}\n")
    return verdict.exit_code


def _request(order: dict[str, Any], *, environment: Environment) -> NightRequest:
    """The night; where those before it only moved money, with the reason why they never ended."""
    request = NightRequest(*order["account"], date.fromisoformat(order["date"]), Mode.LIVE)
    try:
        with environment.store.reading() as connection:
            stated_of_predecessor(connection, request, rules=environment.settings.rules)
    except UsageError:
        return replace(request, skip="only money moved")
    return request


def _money(request: NightRequest, *, environment: Environment) -> int:
    """The steps of a night up to the report, which takes longer than all others together."""
    with night.hold(request, environment=environment) as run_id:
        for name in MONEY_STEPS:
            night.ORDER[name](run_id, environment=environment)
    return 0


def _points(strike: dict[str, Any] | None, *, count: Path) -> Callable[[str], None]:
    """Counts the points that a night reaches; strikes at the chosen one."""
    passed: dict[str, int] = {}

    def reach(point: str) -> None:
        for name in (point, "any"):
            passed[name] = passed.get(name, 0) + 1
            if strike and (strike["at"], strike["nth"]) == (name, passed[name]):
                count.write_text(point)
                _strike(strike["do"])

    return reach


def _strike(what: str | list[str]) -> None:
    if isinstance(what, str):
        os.kill(os.getpid(), SIGNALS[what])
    else:
        subprocess.run(what, check=False, capture_output=True)


def _mark_commits(reach: Callable[[str], None]) -> None:
    """Points on either side of every commit, beside those that the sender names."""

    @contextmanager
    def writing(store: Store, **how: Any) -> Iterator[Connection]:
        with REAL_WRITING(store, **how) as connection:
            yield connection
            reach("before commit")
        reach("after commit")

    Store.writing = writing


def _await_others(barrier: dict[str, Any] | None) -> None:
    """Wait, without sleeping, until as many stand at the barrier as are expected."""
    if barrier is None:
        return
    folder = Path(barrier["folder"])
    (folder / str(os.getpid())).touch()
    until = time.monotonic() + BARRIER_SECONDS_MAX
    while len(list(folder.iterdir())) < barrier["count"] and time.monotonic() < until:
        pass


def _write(figures: NightFigures, path: Path) -> Path:
    """The totals of what a workbook would show, where building real ones is not what is tried."""
    path.write_text(json.dumps(listed(figures)))
    return path


def _totals(path: Path) -> SheetTotals:
    return {name: (rows, sums) for name, (rows, sums) in json.loads(path.read_text()).items()}


PLAIN = Workbooks(write=_write, totals=_totals)
"""Quick ones, where the workbook is not what is tried."""

if __name__ == "__main__":
    serve()
