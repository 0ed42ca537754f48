"""This side of the door: starts the warm process, hands it one file at a time, takes what it read.

The environment of the reader holds what Python needs and nothing of ours: no key, no password, no
address of a database. It ends by itself when this process does, however that ends.
"""

import atexit
import json
import os
import pickle
import resource
import signal
import socket
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from multiprocessing.connection import Connection
from multiprocessing.reduction import send_handle
from pathlib import Path
from typing import IO, Any, NamedTuple

from recon.files.reader import child, parcel
from recon.files.reader.bounds import MIB, Bounds, bounds_of, size_of
from recon.model.errors import OutputError, ReaderBrokenError, SourceUnreadableError
from recon.model.headway import Way
from recon.privacy.own_files import WITHOUT_PLUGINS, program_variables
from recon.privacy.shown_text import scrubbed, shown_name

OWN_VARIABLES = {
    "OPENBLAS_NUM_THREADS": "1",
    "ARROW_DEFAULT_MEMORY_POOL": "system",
    "MALLOC_ARENA_MAX": "2",
    "MALLOC_MMAP_THRESHOLD_": "262144",
    **WITHOUT_PLUGINS,
}
"""No thread before the fork, and no pool that takes memory before it is needed. What is let go of a
file goes back to the system from 256 KiB on: a million rows took 525 MiB, and take 450."""
START = (
    "from recon.model.uptime import collect_seldom; collect_seldom(); "
    f"import sys; from {child.__name__} import serve; serve(int(sys.argv[1]))"
)
"""Collecting seldom begins before the first import; a module of the reader would come after it."""
LIMITS = {
    resource.RLIMIT_DATA: "ulimit -d: memory of {} bytes, not {}",
    resource.RLIMIT_CPU: "ulimit -t: {} s of the processor, not {}",
    resource.RLIMIT_FSIZE: "ulimit -f: files of {} bytes, not {}",
}
"""How a limit of this process is named that is below a bound."""
END_SECONDS = 5
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
        self._door: Connection | None = None
        self._process: subprocess.Popen[bytes] | None = None
        self._owner = 0
        self.ended: Ending | None = None
        """The reader of the last file."""

    def start(self) -> None:
        """Let the readers be loaded while this process does something else."""
        with self._turn:
            self._connected()

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
            task = pickle.dumps(child.Task(work, arguments, _folder()))
            with self._turn:
                ended = self._ask(pickle.dumps((bounds, task)), rows=rows, facts=facts, way=way)
            self.ended = ended
            _refuse_broken(name, ended, facts=facts, bounds=bounds)
            try:
                parcel_facts = parcel.read_facts(facts, of=work)
                rows.seek(0)
                yield Read(parcel_facts, rows)
            except parcel.BrokenParcelError:
                msg = f"{name} broke its reader, which gave back what no reader writes"
                raise ReaderBrokenError(msg) from None

    def _ask(self, request: bytes, *, rows: IO[bytes], facts: IO[bytes], way: Way) -> Ending | None:
        """How the fork ended; nothing when the warm process itself is gone."""
        door = self._connected()
        try:
            door.send_bytes(request)
            for file in (rows, facts):
                send_handle(door, file.fileno(), None)
            while not door.poll(LOOK_SECONDS):
                way.came_to(_bytes_read(self._process) // MIB)
            return Ending(**json.loads(door.recv_bytes()))
        except (EOFError, OSError):
            self._let_go()
            return None
        except BaseException:
            self._let_go()  # an answer that nobody took must not be taken for the next file's
            raise

    def _connected(self) -> Connection:
        if self._door is None or self._owner != os.getpid():
            ours, theirs = socket.socketpair()
            with theirs:
                self._process = subprocess.Popen(  # noqa: S603 - this very Python, our own module
                    [sys.executable, "-P", "-c", START, str(theirs.fileno())],
                    pass_fds=(theirs.fileno(),),
                    env=_variables(os.environ),
                    stdin=subprocess.DEVNULL,
                    start_new_session=True,
                )
            self._door, self._owner = Connection(ours.detach()), os.getpid()
        return self._door

    def _let_go(self) -> None:
        if self._door is None or self._owner != os.getpid():
            return
        door, process = self._door, self._process
        self._door = self._process = None
        door.close()
        assert process is not None  # noqa: S101 - they come and go together
        try:
            process.wait(END_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _bytes_read(warm: "subprocess.Popen[bytes] | None") -> int:
    """What the fork of the warm process has read so far; 0 where the system does not tell."""
    with suppress(OSError, LookupError, ValueError):
        pid = warm.pid if warm else 0
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


def _variables(all_of_them: Mapping[str, str]) -> dict[str, str]:
    kept = program_variables(all_of_them)
    return kept | OWN_VARIABLES | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))}


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
    if ended.exit == child.NO_ROOM:
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
        where = scrubbed(facts.read(child.SORRY_BYTES).decode(errors="replace"))
        msg = f"{name} {_broken(ended.exit, where=where, bounds=bounds)}"
        raise ReaderBrokenError(msg)


def _lower_limits(bounds: Bounds) -> str:
    """The limits of this process, inherited by a reader, that are below its bounds, if any."""
    held_to = (
        (child.within(most, what=what), most, LIMITS[what])
        for what, most in child.limits_of(bounds)
    )
    return "; ".join(words.format(least, most) for least, most, words in held_to if least < most)


def _broken(code: int, *, where: str, bounds: Bounds) -> str:
    """What a file did to its reader, by how that ended."""
    memory = f"{bounds.data_bytes // MIB} MiB of memory"
    time = f"{bounds.seconds} s of the processor"
    reasons = {
        child.OUT_OF_MEMORY: f"needs more than {memory} to be read; split it",
        child.GAVE_UP: f"broke its reader ({where or 'it could not say why'})",
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
