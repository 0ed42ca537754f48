"""The warm process: it has loaded the readers, and forks itself for each file.

It reads samples of our own (`priming`) and touches no foreign byte itself, so it lives as long as
the process that started it. A fork reads one file under its bounds and ends; whatever that file did
to it ends with it. No secret is in the environment of either: see `door`.

What the warm process reads before the first file comes, so that no fork pays for it anew.

Libraries load parts of themselves, and build caches, at their first use; in a fork each file would
be the first. The samples are our own: no foreign byte is read here. Nothing here may start a
thread, since the process is to be forked: rows over two lines keep them from Arrow's parser, which
starts one.
"""

import errno
import gc
import io
import json
import os
import pickle
import resource
import select
import signal
import tempfile
import traceback
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from multiprocessing.connection import Connection
from multiprocessing.reduction import recv_handle
from pathlib import Path
from typing import IO, Any, NoReturn

from recon.config.file_layouts import STANDARD
from recon.config.rules import Rules
from recon.files.reader import parcel, readings
from recon.files.reader.bounds import Bounds
from recon.files.typing.table_schema import LEDGER, ORDER_FILE
from recon.model.errors import ReconError
from recon.privacy.own_files import for_owner, tell_kernel

LOADED = readings
"""What is loaded before the first file comes."""
OUT_OF_MEMORY = 12
"""How a fork ends whose memory was refused."""
NO_ROOM = 28
"""How a fork ends for whose rows the disk has no room: not the file's fault."""
GAVE_UP = 70
"""How a fork ends whose reader met what it did not expect."""
FULL = frozenset({errno.ENOSPC, errno.EDQUOT})
SORRY_BYTES = 1_000
FRAMES_TOLD = 2
ADJUSTMENT = Path("/proc/self/oom_score_adj")
FIRST_TO_GO = "1000"


@dataclass(frozen=True, slots=True)
class Task:
    """What to do with one file."""

    work: Callable[..., Any]
    """A function of a module: it gets the file for the rows, and gives facts."""
    arguments: dict[str, Any]
    folder: str
    """Where paths begin that do not begin at the root; "" where that is nowhere."""


def serve(descriptor: int) -> None:
    """Answer until the other side is gone."""
    gc.freeze()  # no fork looks through what is loaded: it would get a copy of each page of it
    door, priming = Connection(descriptor), prime()
    while True:
        # A file that waits comes first: a sample is read only while nobody asks for anything.
        while not door.poll() and next(priming, None):
            pass
        try:
            bounds, task = pickle.loads(door.recv_bytes())  # noqa: S301 - of the process that started this one
            handles = [recv_handle(door) for _ in range(2)]
        except (EOFError, OSError):
            return
        ending = _in_a_fork(bounds, task, rows=handles[0], facts=handles[1], door=door)
        for handle in handles:
            os.close(handle)
        if ending is None:
            return
        door.send_bytes(json.dumps(ending).encode())


def _in_a_fork(
    bounds: Bounds, task: bytes, *, rows: int, facts: int, door: Connection
) -> dict[str, int | bool] | None:
    """How a fork ended that did a task; None when nobody waits for it any more."""
    process = os.fork()
    if not process:
        door.close()
        _do(bounds, task, rows=rows, facts=facts)
    watched = os.pidfd_open(process)
    waiting = select.poll()
    waiting.register(watched, select.POLLIN)
    waiting.register(door.fileno(), select.POLLIN | select.POLLHUP)
    ready = [handle for handle, _ in waiting.poll(bounds.wall_seconds * 1_000)]
    if watched not in ready:
        os.kill(process, signal.SIGKILL)
    _, status, used = os.wait4(process, 0)
    os.close(watched)
    if ready and watched not in ready:
        return None
    return {
        "exit": os.waitstatus_to_exitcode(status),
        "in_time": bool(ready),
        "peak_bytes": used.ru_maxrss * 1024,
        "milliseconds": int((used.ru_utime + used.ru_stime) * 1_000),
    }


def _do(bounds: Bounds, task: bytes, *, rows: int, facts: int) -> NoReturn:
    """Do one task and end this process, whatever comes."""
    code = GAVE_UP
    try:
        _bind(bounds)
        with os.fdopen(rows, "w+b") as row_file, os.fdopen(facts, "w+b") as fact_file:
            code = _answer(pickle.loads(task), rows=row_file, facts=fact_file)  # noqa: S301 - as above
    except MemoryError:
        code = OUT_OF_MEMORY
    except BaseException as error:  # noqa: BLE001 - there is nobody above
        # The system says it in its own way where Python had not to ask for memory itself.
        code = OUT_OF_MEMORY if _number_of(error) == errno.ENOMEM else GAVE_UP
    os._exit(code)


def _answer(task: Task, *, rows: IO[bytes], facts: IO[bytes]) -> int:
    try:
        if task.folder:
            os.chdir(task.folder)
        parcel.write_facts(task.work(rows, **task.arguments), of=task.work, into=facts)
    except MemoryError:
        return OUT_OF_MEMORY
    except BaseException as error:  # noqa: BLE001 - a panic of a library is no Exception
        number = _number_of(error)
        if number in FULL:
            return NO_ROOM
        if number == errno.ENOMEM:
            return OUT_OF_MEMORY
        if isinstance(error, ReconError) and number != errno.EFBIG:
            parcel.write_refusal(error, into=facts)
            return 0
        facts.write(_where(error).encode()[:SORRY_BYTES])
        return GAVE_UP
    return 0


def _number_of(error: BaseException) -> int | None:
    """What the system said, if that is where an error comes from."""
    cause = error if isinstance(error, OSError) else error.__cause__
    return cause.errno if isinstance(cause, OSError) else None


def _where(error: BaseException) -> str:
    """The kind of an unexpected error and where it rose; never its words, which quote the file."""
    steps = traceback.extract_tb(error.__traceback__)[-FRAMES_TOLD:]
    places = ", ".join(f"{Path(step.filename).name}:{step.lineno}" for step in steps)
    return f"{type(error).__name__} at {places}"


def _bind(bounds: Bounds) -> None:
    """Take no more than this from here on; the limits below were those of the whole process."""
    with suppress(OSError):
        tell_kernel(ADJUSTMENT, FIRST_TO_GO)  # where memory ends all the same, this process ends
    for what, most in (*limits_of(bounds), (resource.RLIMIT_CORE, 0)):
        # Where the process is held to less already, nobody may raise that again.
        least, last = (
            within(wanted, what=what) for wanted in (most, most + (what == resource.RLIMIT_CPU))
        )
        resource.setrlimit(what, (least, last))


def limits_of(bounds: Bounds) -> tuple[tuple[int, int], ...]:
    """The resources of the system that are bounded, and how much of each may be taken."""
    return (
        (resource.RLIMIT_DATA, bounds.data_bytes),
        (resource.RLIMIT_CPU, bounds.seconds),
        (resource.RLIMIT_FSIZE, bounds.out_bytes),
    )


def within(most: int, *, what: int) -> int:
    """So much of a resource of the system, or the less that this process is held to."""
    _, held_to = resource.getrlimit(what)
    return most if held_to == resource.RLIM_INFINITY else min(most, held_to)


ORDERS = """\
merchant_id,account_id,order_no,currency,amount,status,ordered_at,action,note
1,1,sample-1,EUR,10.00,paid,2026-01-01T00:00:00Z,capture,"two
lines"
1,1,sam"ple"-2,EUR,10.00,paid,2026-01-01T00:00:00Z,,
"""
LEDGER_ROWS = """\
entry_id,merchant_id,account_id,order_no,entry_type,currency,amount,booked_at,note
sample-1,1,1,sample-1,capture,EUR,10.00,2026-01-01T00:00:00Z,"two
lines"
sam"ple"-2,1,1,sample-1,capture,EUR,10.00,2026-01-01T00:00:00Z,
"""


def prime() -> Iterator[str]:
    """Read one sample after another; the name of each when it is read.

    Where they cannot be laid down nothing is read: files are read all the same.
    """
    with suppress(OSError), tempfile.TemporaryDirectory() as folder:
        for name, content, schema in SAMPLES:
            path = Path(folder) / name
            with open(path, "w", opener=for_owner) as file:
                file.write(content)
            how: dict[str, Any] = {"rules": Rules(), "layout": STANDARD, "keep": True}
            with suppress(ReconError):
                facts = readings.table(io.BytesIO(), path=path, schema=schema, **how)
                parcel.write_facts(facts, of=readings.table, into=io.BytesIO())
            yield name


SAMPLES = (("orders.csv", ORDERS, ORDER_FILE), ("ledger.csv", LEDGER_ROWS, LEDGER))
"""Name of the file, its content, its columns."""
