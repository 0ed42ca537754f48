"""The process that reads external files: it is given one file at a time and returns its content.

The reader's environment holds what Python needs and nothing else: no key, password or database
address. A preloaded server process ends when this one does, however that ends; it forks for each
file, and the fork is limited in memory and time by the size of the file. Time is CPU time, so that
a busy machine refuses no file that an idle one reads; a wall-clock limit bounds what waits instead
of working, such as a folder that no longer answers.

Rows come back as Arrow streams, everything else as JSON of one declared type. Both are in unnamed
files and are validated when read, as a reader that was compromised by its file may have written
anything. Neither format can execute code.
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
from functools import cache, partial
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
from recon.model.step_progress import WorkProgress
from recon.privacy.displayed_text import displayed_name, redacted
from recon.privacy.own_files import advise_kernel
from recon.privacy.own_processes import OwnProcess

MIB = 1024 * 1024

SMALL_BYTES = 10_000_000
"""Files below this size share one limit: 512 MiB and 20 s."""

DATA_BYTES_MIN = 432 * MIB
"""Data memory for the reader of a small file: 512 MiB including the libraries' code. The most
measured for valid files of this size is 387 MiB in all (Parquet with 300,000 rows)."""

DATA_BYTES_PER_BYTE = 40
"""Additional memory for each further byte; Parquet takes 30, CSV 12, workbooks 28."""

DATA_BYTES_MAX = 16 * 1024 * MIB

SECONDS_MIN = 20
"""CPU time for a small file; a workbook of 150,000 rows takes 9."""

SECONDS_PER_MIB = 3
"""Additional CPU time for each further MiB; workbooks, the slowest, take 1."""

WALL_SECONDS_PER_SECOND = 10
"""Wall-clock limit as a multiple of the CPU time, for busy machines."""

FACTS_BYTES_MAX = 256 * MIB
"""Maximum size of a file's rejects and counts as JSON; its rows are not included."""

OUT_BYTES_MIN = 512 * MIB
OUT_BYTES_PER_BYTE = 64
"""Maximum output of the reader, per byte of the file."""


@dataclass(frozen=True, slots=True)
class Bounds:
    """Resource limits for the reader of one file."""

    data_bytes: int
    seconds: int
    """CPU time."""
    wall_seconds: int
    out_bytes: int


def bounds_of(size_bytes: int) -> Bounds:
    """Return the limits for the reader of a file of this size."""
    further = max(0, size_bytes - SMALL_BYTES)
    seconds = SECONDS_MIN + SECONDS_PER_MIB * further // MIB
    return Bounds(
        data_bytes=min(DATA_BYTES_MIN + DATA_BYTES_PER_BYTE * further, DATA_BYTES_MAX),
        seconds=seconds,
        wall_seconds=WALL_SECONDS_PER_SECOND * seconds,
        out_bytes=OUT_BYTES_MIN + OUT_BYTES_PER_BYTE * further,
    )


def size_of(path: Path) -> int:
    """Return the size of a file; 0 if there is none, which its reader will report."""
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
"""Errors that a reader may report, by name."""
_REFUSED = b"!"
_READ = b"="


class BrokenPayloadError(ValueError):
    """The output is not what a reader writes."""


@cache
def _facts_of(work: Callable[..., Any]) -> TypeAdapter[Any]:
    return TypeAdapter(get_type_hints(work)["return"])


def write_facts(facts: object, *, of: Callable[..., Any], into: IO[bytes]) -> None:
    """Write the return value of the task `of`, serialised as its declared type."""
    content = _facts_of(of).dump_json(facts)
    if len(content) > FACTS_BYTES_MAX:
        msg = f"more than {FACTS_BYTES_MAX} bytes of rejects and counts; split the file"
        raise SourceUnreadableError(msg)
    into.write(_READ + content)


def write_refusal(error: ReconError, *, into: IO[bytes]) -> None:
    """Write why a file is refused, in place of the facts."""
    name = next((kind.__name__ for kind in type(error).__mro__ if kind.__name__ in REFUSALS), "")
    into.seek(0)
    into.truncate()
    into.write(_REFUSED + json.dumps([name, str(error)]).encode())


def read_facts(file: IO[bytes], *, of: Callable[..., Any]) -> Any:
    """Read the return value of the task `of`.

    Raises:
        ReconError: the reader refused the file.
        BrokenPayloadError: the content is not of the type that the task declares.
    """
    if os.fstat(file.fileno()).st_size > FACTS_BYTES_MAX + 1:
        raise BrokenPayloadError
    file.seek(0)
    kind, content = file.read(1), file.read()
    try:
        if kind == _READ:
            return _facts_of(of).validate_json(content)
        name, words = json.loads(content if kind == _REFUSED else b"")
    except (ValueError, TypeError):  # pydantic's error is a ValueError
        raise BrokenPayloadError from None
    raise REFUSALS.get(str(name), SourceUnreadableError)(str(words))


def write_batches(batches: Iterable[pa.RecordBatch], *, schema: pa.Schema, into: IO[bytes]) -> None:
    """Write the rows of one frame, which need not be in memory at once."""
    with pa.ipc.new_stream(into, schema) as stream:
        for batch in batches:
            stream.write_batch(batch)


def read_batches(rows: IO[bytes], *, schema: pa.Schema | None = None) -> Iterator[pa.RecordBatch]:
    """Yield the rows of the next frame in the batches they were written in.

    Raises:
        BrokenPayloadError: it is not a valid frame, or its columns differ from `schema`.
    """
    try:
        stream = pa.ipc.open_stream(rows)
        if schema is not None and not stream.schema.equals(schema):
            raise BrokenPayloadError
        for batch in stream:
            batch.validate(full=True)
            yield batch
    except (pa.ArrowException, OSError, ValueError, TypeError):
        raise BrokenPayloadError from None


def read_frame(rows: IO[bytes]) -> pd.DataFrame:
    """Read all rows; their texts stay memory-mapped in the file the reader wrote.

    Raises:
        BrokenPayloadError: it is not a valid frame.
    """
    try:
        # Reading it into memory first would take 60,000 more pages for a million rows.
        mapped = mmap.mmap(rows.fileno(), 0, access=mmap.ACCESS_READ)
        table = pa.ipc.open_stream(pa.py_buffer(mapped)).read_all()
        table.validate(full=True)
        frame: pd.DataFrame = table.to_pandas()
    except (pa.ArrowException, OSError, ValueError, TypeError):
        raise BrokenPayloadError from None
    return frame


OUT_OF_MEMORY = 12
"""Exit code of a fork that ran out of memory."""
NO_ROOM = 28
"""Exit code of a fork whose rows did not fit on the disk: not the file's fault."""
GAVE_UP = 70
"""Exit code of a fork that met an unexpected error."""
FULL = frozenset({errno.ENOSPC, errno.EDQUOT})
SORRY_BYTES = 1_000
FRAMES_REPORTED = 2
ADJUSTMENT = Path("/proc/self/oom_score_adj")
FIRST_TO_GO = "1000"


def serve(descriptor: int, *, usual: Callable[..., Any]) -> None:
    """Serve requests until the connection closes: main loop of the preloaded server process.

    `usual` is the most common task, whose fact types are prepared in advance.

    It touches no external data itself, so it lives as long as the process that started it. Each
    fork reads one file under its limits and ends; whatever the file did to it ends with it.
    """
    _facts_of(usual)
    gc.freeze()  # a collection in a fork would copy each page of the loaded objects
    pipe = Connection(descriptor)
    while True:
        try:
            bounds, folder, task = pickle.loads(pipe.recv_bytes())  # noqa: S301 - of the process that started this one
            handles = [recv_handle(pipe) for _ in range(2)]
        except (EOFError, OSError):
            return
        do = partial(_do, bounds, task, folder=folder, rows=handles[0], facts=handles[1])
        ending = _in_a_fork(do, pipe=pipe, seconds_max=bounds.wall_seconds)
        for handle in handles:
            os.close(handle)
        if ending is None:
            return
        pipe.send_bytes(json.dumps(ending).encode())


def _in_a_fork(
    do: Callable[[], NoReturn], *, pipe: Connection, seconds_max: int
) -> dict[str, int | bool] | None:
    """Run a task in a fork; return how it ended, or None if the caller is gone."""
    process = os.fork()
    if not process:
        pipe.close()
        do()
    watched = os.pidfd_open(process)
    ready = wait([watched, pipe], timeout=seconds_max)
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


def _do(bounds: Bounds, task: bytes, *, folder: str, rows: int, facts: int) -> NoReturn:
    """Run one task and end this process in any case."""
    code = GAVE_UP
    try:
        _bind(bounds)
        work: partial[Any] = pickle.loads(task)  # noqa: S301 - as above
        with os.fdopen(rows, "w+b") as row_file, os.fdopen(facts, "w+b") as fact_file:
            try:
                if folder:
                    os.chdir(folder)
                write_facts(work(row_file), of=work.func, into=fact_file)
                code = 0
            except BaseException as error:  # a panic of a Rust or C library is not an Exception
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
    """Return the exit code for an error."""
    number = _number_of(error)
    # A library's failed allocation is an OSError rather than a MemoryError.
    if isinstance(error, MemoryError) or number == errno.ENOMEM:
        return OUT_OF_MEMORY
    return NO_ROOM if number in FULL else GAVE_UP


def _number_of(error: BaseException) -> int | None:
    """Return the errno behind an error, if it has one."""
    cause = error if isinstance(error, OSError) else error.__cause__
    return cause.errno if isinstance(cause, OSError) else None


def _where(error: BaseException) -> str:
    """Return type and location of an unexpected error; its text may quote the file."""
    steps = traceback.extract_tb(error.__traceback__)[-FRAMES_REPORTED:]
    frames = ", ".join(f"{Path(step.filename).name}:{step.lineno}" for step in steps)
    return f"{type(error).__name__} at {frames}"


def _bind(bounds: Bounds) -> None:
    """Apply the limits to this process."""
    with suppress(OSError):
        advise_kernel(ADJUSTMENT, FIRST_TO_GO)  # killed first if memory runs out
    for what, most in (*limits_of(bounds), (resource.RLIMIT_CORE, 0)):
        # A process cannot raise limits above those it has inherited.
        least, last = (
            within(limit, what=what) for limit in (most, most + (what == resource.RLIMIT_CPU))
        )
        resource.setrlimit(what, (least, last))


def limits_of(bounds: Bounds) -> tuple[tuple[int, int], ...]:
    """Return (resource, maximum) for the limited system resources."""
    return (
        (resource.RLIMIT_DATA, bounds.data_bytes),
        (resource.RLIMIT_CPU, bounds.seconds),
        (resource.RLIMIT_FSIZE, bounds.out_bytes),
    )


def within(most: int, *, what: int) -> int:
    """Return the given maximum, or this process's own hard limit if that is lower."""
    _, held_to = resource.getrlimit(what)
    return most if held_to == resource.RLIM_INFINITY else min(most, held_to)


OWN_VARIABLES = {
    "OPENBLAS_NUM_THREADS": "1",
    "ARROW_DEFAULT_MEMORY_POOL": "system",
    "MALLOC_ARENA_MAX": "2",
    "MALLOC_MMAP_THRESHOLD_": "262144",
}
"""No thread before the fork, and no memory pool that allocates ahead. Freed blocks of 256 KiB and
more go back to the system: a million rows took 525 MiB, and take 450."""
START = (
    "from recon.model.uptime import collect_seldom; collect_seldom(); "
    "import sys; from recon.files.reader import table; "
    f"from {__name__} import serve; serve(int(sys.argv[1]), usual=table)"
)
"""`collect_seldom` must be called before the first import, so not in a module of the reader."""
LIMITS = {
    resource.RLIMIT_DATA: "ulimit -d: memory of {} bytes, not {}",
    resource.RLIMIT_CPU: "ulimit -t: {} s of the processor, not {}",
    resource.RLIMIT_FSIZE: "ulimit -f: files of {} bytes, not {}",
}
"""Message for a limit of this process that is lower than a reader's."""
LOOK_SECONDS = 1.0
"""Interval of progress reports for a file that takes longer."""


class Read(NamedTuple):
    """The result of a reader."""

    facts: Any
    rows: IO[bytes]
    """Positioned at the start; closed at the end of the block."""


class Ending(NamedTuple):
    """How the reader of a file ended, and what it used."""

    exit: int
    in_time: bool
    peak_bytes: int
    milliseconds: int


class FileReader:
    """Client of the server process, which starts on first use; reads one file at a time."""

    def __init__(self, *, bounds: Callable[[int], Bounds] = bounds_of) -> None:
        self._bounds = bounds
        self._turn = threading.Lock()
        self._process: OwnProcess | None = None
        self._owner = 0
        self.ended: Ending | None = None
        """How the reader of the last file ended."""

    def start(self) -> None:
        """Start the server process early, so that it loads in parallel to other work."""
        with self._turn:
            self._started()

    def close(self) -> None:
        """End the server process."""
        with self._turn:
            self._end_process()

    @contextmanager
    def read(self, file: Path, work: Callable[..., Any], /, **arguments: object) -> Iterator[Read]:
        """Run `work` on one file in a separate process.

        Args:
            file: Its size decides the limits, its name is used in messages.
            work: A module-level function that takes a file for rows, and `arguments`.
            arguments: Further arguments of `work`.

        Raises:
            ReconError: raised by `work`.
            ReaderBrokenError: the file exceeded its limits or crashed its reader.
            SourceUnreadableError: the reader was killed, or does not end.
            OutputError: there is no disk space for the rows.
        """
        size = size_of(file)
        bounds, name = self._bounds(size), displayed_name(file.name)
        progress = WorkProgress(f"MiB of {name} read", of=size // MIB)
        # Facts stay in memory: those of a payout contain its payee in clear text.
        try:
            unnamed = tempfile.TemporaryFile()  # noqa: SIM115 - closed by the block below
        except OSError as error:
            place = tempfile.gettempdir()
            msg = f"nothing can be laid aside in {place}: {error.strerror}; set TMPDIR"
            raise OutputError(msg) from error
        with unnamed as rows, os.fdopen(os.memfd_create("facts"), "w+b") as facts:
            task = pickle.dumps(partial(work, **arguments))
            request = pickle.dumps((bounds, _folder(), task))
            with self._turn:
                ended = self._ask(request, rows=rows, facts=facts, progress=progress)
            self.ended = ended
            _refuse_broken(name, ended, facts=facts, bounds=bounds)
            try:
                found = read_facts(facts, of=work)
                rows.seek(0)
                yield Read(found, rows)
            except BrokenPayloadError:
                msg = f"{name} broke its reader, which returned what no reader writes"
                raise ReaderBrokenError(msg) from None

    def _ask(
        self, request: bytes, *, rows: IO[bytes], facts: IO[bytes], progress: WorkProgress
    ) -> Ending | None:
        """Send a request and wait; return None if the server process itself is gone."""
        process = self._started()
        pipe = process.pipe
        try:
            pipe.send_bytes(request)
            for file in (rows, facts):
                send_handle(pipe, file.fileno(), None)
            while not pipe.poll(LOOK_SECONDS):
                progress.advance_to(_bytes_read(process.process.pid) // MIB)
            return Ending(**json.loads(pipe.recv_bytes()))
        except (EOFError, OSError):
            self._end_process()
            return None
        except BaseException:
            self._end_process()  # a late answer must not be taken for that of the next file
            raise

    def _started(self) -> OwnProcess:
        if self._process is None or self._owner != os.getpid():
            self._process, self._owner = OwnProcess(START, variables=OWN_VARIABLES), os.getpid()
        return self._process

    def _end_process(self) -> None:
        process, self._process = self._process, None
        if process is not None and self._owner == os.getpid():
            process.end()


def _bytes_read(pid: int) -> int:
    """Return how many bytes the current fork has read; 0 if the system does not report it."""
    with suppress(OSError, LookupError, ValueError):
        fork = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()[0]
        counts = Path(f"/proc/{fork}/io").read_text().splitlines()
        return int(dict(line.split(": ") for line in counts)["rchar"])
    return 0


def _folder() -> str:
    """Return the current folder, base of relative paths; "" if it no longer exists."""
    try:
        return str(Path.cwd())
    except OSError:
        return ""


def _refuse_broken(name: str, ended: Ending | None, *, facts: IO[bytes], bounds: Bounds) -> None:
    """Raise an error if the reader did not end normally.

    Raises:
        ReaderBrokenError: the file crashed its reader or exceeded its limits.
        SourceUnreadableError: the file was not read, possibly through no fault of its own.
        OutputError: there is no disk space for its rows.
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
    held_to = ((within(most, what=what), most, LIMITS[what]) for what, most in limits_of(bounds))
    lower = [words.format(least, most) for least, most, words in held_to if least < most]
    if ended.exit and lower:
        msg = (
            f"{name} was not read: its reader ended, and this process is held to less than a "
            f"reader may take ({'; '.join(lower)}); raise that, then run again"
        )
        raise SourceUnreadableError(msg)
    if ended.exit:
        facts.seek(0)
        where = redacted(facts.read(SORRY_BYTES).decode(errors="replace"))
        msg = f"{name} {_broken(ended.exit, where=where, bounds=bounds)}"
        raise ReaderBrokenError(msg)


def _broken(code: int, *, where: str, bounds: Bounds) -> str:
    """Describe how a reader failed, by its exit code."""
    memory = f"{bounds.data_bytes // MIB} MiB of memory"
    time = f"{bounds.seconds} s of the processor"
    reasons = {
        OUT_OF_MEMORY: f"needs more than {memory} to be read; split it",
        GAVE_UP: f"broke its reader ({where or 'it could not say why'})",
        -signal.SIGXCPU: f"needs more than {time} to be read; split it",
        -signal.SIGKILL: f"ended its reader, perhaps for want of memory (it may take {memory})",
    }
    return reasons.get(code, f"broke its reader (signal {-code})")


@cache
def file_reader() -> FileReader:
    """Return the reader of this process, which runs from the first file until the process ends."""
    reader = FileReader()
    atexit.register(reader.close)
    return reader
