"""The process that reads foreign files: it is handed one at a time, and gives what it read.

The environment of the reader holds what Python needs and nothing of ours: no key, no password, no
address of a database. The warm process ends by itself when this one does, however that ends; it
forks itself for each file, and the fork is held to memory and time by the size of the file alone.
Time is that of the processor, so that a busy machine refuses no file that an idle one reads; the
clock on the wall bounds what waits instead of working, such as a folder that no longer answers.

What comes back is rows as Arrow streams, all else as JSON of one declared type. Both lie in files
without a name, and are checked when they are taken out: a reader that was broken by its file may
have written anything. Neither can run code.
"""

import atexit
import errno
import gc
import json
import mmap
import os
import pickle
import resource
import signal
import tempfile
import threading
import traceback
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cache
from multiprocessing.connection import Connection, wait
from multiprocessing.reduction import recv_handle, send_handle
from pathlib import Path
from typing import IO, Any, NamedTuple, NoReturn, get_type_hints

import pandas as pd
import pyarrow as pa
from pydantic import TypeAdapter

from recon.model.errors import (
    ConfigurationError,
    OutputError,
    ReaderBrokenError,
    ReconError,
    SourceMissingError,
    SourceUnreadableError,
    UsageError,
)
from recon.model.step_progress import Way
from recon.privacy.own_files import advise_kernel
from recon.privacy.own_processes import OwnProcess
from recon.privacy.shown_text import redacted, shown_name

MIB = 1024 * 1024

SMALL_BYTES = 10_000_000
"""Files below this have one bound, that of 512 MiB and 20 s."""

DATA_BYTES_MIN = 432 * MIB
"""Memory of the reader of a small file that is its own: with the libraries' code 512 MiB. The most
that was measured of honest files of this size is 387 MiB in all (Parquet of 300,000 rows)."""

DATA_BYTES_PER_BYTE = 40
"""More of it for each further byte; Parquet takes 30, CSV 12, workbooks 28."""

DATA_BYTES_MAX = 16 * 1024 * MIB

SECONDS_MIN = 20
"""Processor time for a small file; a workbook of 150,000 rows takes 9."""

SECONDS_PER_MIB = 3
"""More of it for each further MiB; workbooks, the slowest, take 1."""

WALL_SECONDS_PER_SECOND = 10
"""How much longer than its processor time a file may take on a busy machine."""

FACTS_BYTES_MAX = 256 * MIB
"""Rejects and counts of one file, as JSON; its rows are not among them."""

OUT_BYTES_MIN = 512 * MIB
OUT_BYTES_PER_BYTE = 64
"""What the reader may lay aside, per byte of the file."""


@dataclass(frozen=True, slots=True)
class Bounds:
    """What the reader of one file may take."""

    data_bytes: int
    seconds: int
    """Of the processor."""
    wall_seconds: int
    out_bytes: int


def bounds_of(size_bytes: int) -> Bounds:
    """The bounds of the reader of a file of so many bytes."""
    further = max(0, size_bytes - SMALL_BYTES)
    seconds = SECONDS_MIN + SECONDS_PER_MIB * further // MIB
    return Bounds(
        data_bytes=min(DATA_BYTES_MIN + DATA_BYTES_PER_BYTE * further, DATA_BYTES_MAX),
        seconds=seconds,
        wall_seconds=WALL_SECONDS_PER_SECOND * seconds,
        out_bytes=OUT_BYTES_MIN + OUT_BYTES_PER_BYTE * further,
    )


def size_of(path: Path) -> int:
    """Bytes of a file, 0 of what is none: its reader says what is the matter with it."""
    try:
        return path.lstat().st_size
    except (OSError, ValueError):
        return 0


REFUSALS = {
    kind.__name__: kind
    for kind in (
        ConfigurationError,
        OutputError,
        SourceMissingError,
        SourceUnreadableError,
        UsageError,
    )
}
"""What a reader may say of a file, by name."""
_REFUSED = b"!"
_READ = b"="


class BrokenParcelError(ValueError):
    """What came back is not what a reader writes."""


@cache
def _facts_of(work: Callable[..., Any]) -> TypeAdapter[Any]:
    return TypeAdapter(get_type_hints(work)["return"])


def write_facts(facts: object, *, of: Callable[..., Any], into: IO[bytes]) -> None:
    """What a task gives, in the type that it declares."""
    content = _facts_of(of).dump_json(facts)
    if len(content) > FACTS_BYTES_MAX:
        msg = f"more than {FACTS_BYTES_MAX} bytes of rejects and counts; split the file"
        raise SourceUnreadableError(msg)
    into.write(_READ + content)


def write_refusal(error: ReconError, *, into: IO[bytes]) -> None:
    """Why a file is refused, in place of facts."""
    name = next((kind.__name__ for kind in type(error).__mro__ if kind.__name__ in REFUSALS), "")
    into.seek(0)
    into.truncate()
    into.write(_REFUSED + json.dumps([name, str(error)]).encode())


def read_facts(file: IO[bytes], *, of: Callable[..., Any]) -> Any:
    """The facts of a task.

    Raises:
        ReconError: the reader refused the file.
        BrokenParcelError: they are not what the task declares.
    """
    if os.fstat(file.fileno()).st_size > FACTS_BYTES_MAX + 1:
        raise BrokenParcelError
    file.seek(0)
    kind, content = file.read(1), file.read()
    try:
        if kind == _READ:
            return _facts_of(of).validate_json(content)
        name, words = json.loads(content if kind == _REFUSED else b"")
    except (ValueError, TypeError):  # pydantic's is a ValueError
        raise BrokenParcelError from None
    raise REFUSALS.get(str(name), SourceUnreadableError)(str(words))


def write_batches(batches: Iterable[pa.RecordBatch], *, schema: pa.Schema, into: IO[bytes]) -> None:
    """The rows of one frame, which need not be in memory together."""
    with pa.ipc.new_stream(into, schema) as stream:
        for batch in batches:
            stream.write_batch(batch)


def read_batches(rows: IO[bytes], *, schema: pa.Schema | None = None) -> Iterator[pa.RecordBatch]:
    """The rows of the next frame, as they were written: so many at once.

    Raises:
        BrokenParcelError: it is none, or has other columns than those of `schema`.
    """
    try:
        stream = pa.ipc.open_stream(rows)
        if schema is not None and not stream.schema.equals(schema):
            raise BrokenParcelError
        for batch in stream:
            batch.validate(full=True)
            yield batch
    except (pa.ArrowException, OSError, ValueError, TypeError):
        raise BrokenParcelError from None


def read_frame(rows: IO[bytes]) -> pd.DataFrame:
    """All rows; their texts stay where their reader, which has ended, laid them.

    Raises:
        BrokenParcelError: they are none.
    """
    try:
        # Copied into memory first, a million rows would take 60,000 pages for a second time.
        mapped = mmap.mmap(rows.fileno(), 0, access=mmap.ACCESS_READ)
        table = pa.ipc.open_stream(pa.py_buffer(mapped)).read_all()
        table.validate(full=True)
        frame: pd.DataFrame = table.to_pandas()
    except (pa.ArrowException, OSError, ValueError, TypeError):
        raise BrokenParcelError from None
    return frame


OUT_OF_MEMORY = 12
"""How a fork ends whose memory was refused."""
NO_ROOM = 28
"""How a fork ends for whose rows the disk has no room: not the file's fault."""
GAVE_UP = 70
"""How a fork ends whose reader met what it did not expect."""
FULL = frozenset({errno.ENOSPC, errno.EDQUOT})
SORRY_BYTES = 1_000
FRAMES_REPORTED = 2
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


def serve(descriptor: int, *, usual: Callable[..., Any]) -> None:
    """Answer until the other side is gone: the warm process, which has loaded the readers.

    `usual` is the task of most files, whose facts are made ready for.

    It touches no foreign byte itself, so it lives as long as the process that started it. A fork
    reads one file under its bounds and ends; whatever that file did to it ends with it.
    """
    _facts_of(usual)
    gc.freeze()  # no fork looks through what is loaded: it would get a copy of each page of it
    door = Connection(descriptor)
    while True:
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
    ready = wait([watched, door], timeout=bounds.wall_seconds)
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
        own: Task = pickle.loads(task)  # noqa: S301 - as above
        with os.fdopen(rows, "w+b") as row_file, os.fdopen(facts, "w+b") as fact_file:
            try:
                if own.folder:
                    os.chdir(own.folder)
                found = own.work(row_file, **own.arguments)
                write_facts(found, of=own.work, into=fact_file)
                code = 0
            except BaseException as error:  # a panic of a library is no Exception
                if _ending(error) != GAVE_UP:
                    raise
                if isinstance(error, ReconError) and _number_of(error) != errno.EFBIG:
                    write_refusal(error, into=fact_file)
                    code = 0
                else:
                    fact_file.write(_where(error).encode()[:SORRY_BYTES])
    except BaseException as error:  # noqa: BLE001 - there is nobody above
        code = _ending(error)
    os._exit(code)


def _ending(error: BaseException) -> int:
    """How the process ends over an error."""
    number = _number_of(error)
    # The system says it in its own way where Python had not to ask for memory itself.
    if isinstance(error, MemoryError) or number == errno.ENOMEM:
        return OUT_OF_MEMORY
    return NO_ROOM if number in FULL else GAVE_UP


def _number_of(error: BaseException) -> int | None:
    """What the system said, if that is where an error comes from."""
    cause = error if isinstance(error, OSError) else error.__cause__
    return cause.errno if isinstance(cause, OSError) else None


def _where(error: BaseException) -> str:
    """The kind of an unexpected error and where it rose; never its words, which quote the file."""
    steps = traceback.extract_tb(error.__traceback__)[-FRAMES_REPORTED:]
    places = ", ".join(f"{Path(step.filename).name}:{step.lineno}" for step in steps)
    return f"{type(error).__name__} at {places}"


def _bind(bounds: Bounds) -> None:
    """Take no more than this from here on; the limits below were those of the whole process."""
    with suppress(OSError):
        advise_kernel(ADJUSTMENT, FIRST_TO_GO)  # where memory ends all the same, this process ends
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


OWN_VARIABLES = {
    "OPENBLAS_NUM_THREADS": "1",
    "ARROW_DEFAULT_MEMORY_POOL": "system",
    "MALLOC_ARENA_MAX": "2",
    "MALLOC_MMAP_THRESHOLD_": "262144",
}
"""No thread before the fork, and no pool that takes memory before it is needed. What is let go of a
file goes back to the system from 256 KiB on: a million rows took 525 MiB, and take 450."""
START = (
    "from recon.model.uptime import collect_seldom; collect_seldom(); "
    "import sys; from recon.files.reader import table; "
    f"from {__name__} import serve; serve(int(sys.argv[1]), usual=table)"
)
"""Collecting seldom begins before the first import; a module of the reader would come after it."""
LIMITS = {
    resource.RLIMIT_DATA: "ulimit -d: memory of {} bytes, not {}",
    resource.RLIMIT_CPU: "ulimit -t: {} s of the processor, not {}",
    resource.RLIMIT_FSIZE: "ulimit -f: files of {} bytes, not {}",
}
"""How a limit of this process is named that is below a bound."""
LOOK_SECONDS = 1.0
"""How often it is told how far a file is that takes longer."""


class Read(NamedTuple):
    """What came through the door."""

    facts: Any
    rows: IO[bytes]
    """At its beginning; it goes with the block."""


class Ending(NamedTuple):
    """How the reader of one file ended, and what it took."""

    exit: int
    in_time: bool
    peak_bytes: int
    milliseconds: int


class FileReader:
    """The warm process, started at the first file or by `start`; one file at a time."""

    def __init__(self, *, bounds: Callable[[int], Bounds] = bounds_of) -> None:
        self._bounds = bounds
        self._turn = threading.Lock()
        self._process: OwnProcess | None = None
        self._owner = 0
        self.ended: Ending | None = None
        """The reader of the last file."""

    def start(self) -> None:
        """Let the readers be loaded while this process does something else."""
        with self._turn:
            self._started()

    def close(self) -> None:
        """End the warm process."""
        with self._turn:
            self._let_go()

    @contextmanager
    def read(self, file: Path, work: Callable[..., Any], /, **arguments: object) -> Iterator[Read]:
        """What `work` makes of one file, in a process of its own.

        Args:
            file: Its size decides the bounds, its name is in every sentence.
            work: A function of a module: it gets a file for rows, and `arguments`.
            arguments: What it needs beside.

        Raises:
            ReconError: what `work` says of the file.
            ReaderBrokenError: the file broke its bounds or its reader.
            SourceUnreadableError: its reader was ended, or does not end.
            OutputError: there is no room for the rows.
        """
        size = size_of(file)
        bounds, name = self._bounds(size), shown_name(file.name)
        way = Way(f"MiB of {name} read", of=size // MIB)
        # Facts lie in memory alone: those of a payout have its payee in clear.
        with _unnamed() as rows, os.fdopen(os.memfd_create("facts"), "w+b") as facts:
            task = pickle.dumps(Task(work, arguments, _folder()))
            with self._turn:
                ended = self._ask(pickle.dumps((bounds, task)), rows=rows, facts=facts, way=way)
            self.ended = ended
            _refuse_broken(name, ended, facts=facts, bounds=bounds)
            try:
                found = read_facts(facts, of=work)
                rows.seek(0)
                yield Read(found, rows)
            except BrokenParcelError:
                msg = f"{name} broke its reader, which gave back what no reader writes"
                raise ReaderBrokenError(msg) from None

    def _ask(self, request: bytes, *, rows: IO[bytes], facts: IO[bytes], way: Way) -> Ending | None:
        """How the fork ended; nothing when the warm process itself is gone."""
        process = self._started()
        door = process.door
        try:
            door.send_bytes(request)
            for file in (rows, facts):
                send_handle(door, file.fileno(), None)
            while not door.poll(LOOK_SECONDS):
                way.came_to(_bytes_read(process.process.pid) // MIB)
            return Ending(**json.loads(door.recv_bytes()))
        except (EOFError, OSError):
            self._let_go()
            return None
        except BaseException:
            self._let_go()  # an answer that nobody took must not be taken for the next file's
            raise

    def _started(self) -> OwnProcess:
        if self._process is None or self._owner != os.getpid():
            self._process, self._owner = OwnProcess(START, variables=OWN_VARIABLES), os.getpid()
        return self._process

    def _let_go(self) -> None:
        process, self._process = self._process, None
        if process is not None and self._owner == os.getpid():
            process.end()


def _bytes_read(pid: int) -> int:
    """What the fork of the warm process has read so far; 0 where the system does not tell."""
    with suppress(OSError, LookupError, ValueError):
        fork = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()[0]
        counts = Path(f"/proc/{fork}/io").read_text().splitlines()
        return int(dict(line.split(": ") for line in counts)["rchar"])
    return 0


def _folder() -> str:
    """The folder that this process is in, unless somebody took it away."""
    try:
        return str(Path.cwd())
    except OSError:
        return ""


def _refuse_broken(name: str, ended: Ending | None, *, facts: IO[bytes], bounds: Bounds) -> None:
    """Say what a file did to its reader, unless that ended in order.

    Raises:
        ReaderBrokenError: the file broke it.
        SourceUnreadableError: it was not read, perhaps by no fault of its own.
        OutputError: there is no room for its rows.
    """
    if ended is None or not ended.in_time:
        why = "was not read: its reader was ended from outside"
        if ended is not None:
            why = f"was not read within {bounds.wall_seconds} s"
        msg = f"{name} {why}; run again"
        raise SourceUnreadableError(msg)
    if ended.exit == NO_ROOM:
        msg = (
            f"the rows of {name} cannot be laid aside in {tempfile.gettempdir()}, which is full; "
            "nothing of it was stored: make room there, or set TMPDIR"
        )
        raise OutputError(msg)
    if ended.exit and (limits := _lower_limits(bounds)):
        msg = (
            f"{name} was not read: its reader ended, and this process is held to less than a "
            f"reader may take ({limits}); raise that, then run again"
        )
        raise SourceUnreadableError(msg)
    if ended.exit:
        facts.seek(0)
        where = redacted(facts.read(SORRY_BYTES).decode(errors="replace"))
        msg = f"{name} {_broken(ended.exit, where=where, bounds=bounds)}"
        raise ReaderBrokenError(msg)


def _lower_limits(bounds: Bounds) -> str:
    """The limits of this process, inherited by a reader, that are below its bounds, if any."""
    held_to = ((within(most, what=what), most, LIMITS[what]) for what, most in limits_of(bounds))
    return "; ".join(words.format(least, most) for least, most, words in held_to if least < most)


def _broken(code: int, *, where: str, bounds: Bounds) -> str:
    """What a file did to its reader, by how that ended."""
    memory = f"{bounds.data_bytes // MIB} MiB of memory"
    time = f"{bounds.seconds} s of the processor"
    reasons = {
        OUT_OF_MEMORY: f"needs more than {memory} to be read; split it",
        GAVE_UP: f"broke its reader ({where or 'it could not say why'})",
        -signal.SIGXCPU: f"needs more than {time} to be read; split it",
        -signal.SIGKILL: f"ended its reader, perhaps for want of memory (it may take {memory})",
    }
    return reasons.get(code, f"broke its reader (signal {-code})")


@contextmanager
def _unnamed() -> Iterator[IO[bytes]]:
    try:
        file = tempfile.TemporaryFile()  # noqa: SIM115 - closed below, whatever is unwritten
    except OSError as error:
        msg = f"nothing can be laid aside in {tempfile.gettempdir()}: {error.strerror}; set TMPDIR"
        raise OutputError(msg) from error
    try:
        yield file
    finally:
        with suppress(OSError):
            file.close()


_OF_THIS_PROCESS = FileReader()
atexit.register(_OF_THIS_PROCESS.close)


def file_reader() -> FileReader:
    """The one of this process: warm from its first file to its end."""
    return _OF_THIS_PROCESS
