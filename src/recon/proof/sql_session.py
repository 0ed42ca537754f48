"""Sessions with DuckDB in a separate process: a crash or timeout there does not end the run.

A session is one connection that reads some folders and nothing else. Its process is reused by the
next session, unless it died or was ended by a timeout; the caller then gets an `SqlError` and
proves nothing. Statements are sent as JSON, rows come back as JSON and tables as Parquet; nothing
is unpickled, and the environment of the process holds no key, password or address.
"""

import atexit
import json
import os
import resource
import signal
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from time import monotonic
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from recon.privacy.own_files import folder_for_now
from recon.privacy.own_processes import OwnProcess

MEMORY_MB = 512
"""DuckDB's memory limit; the rest goes to temporary files."""
PROCESS_MB = 768
"""What its process may use in addition: Python, and what DuckDB does not count."""
SPILL_GB = 8
"""Size limit of its temporary files."""
THREADS = 1
SECONDS_MAX = 900
"""A run of a million orders takes a few."""
REASON_MAX = 200
"""Characters of DuckDB's error that are shown."""
START = (
    "import sys; sys.modules.update(dict.fromkeys(('numpy', 'pandas', 'pyarrow'))); "
    "from recon.proof.duckdb_process import serve; serve(int(sys.argv[1]))"
)
"""DuckDB loads these modules to check whether a parameter is one of their types, for up to a
second. None is, so they are marked as not installed."""
Given = Sequence[object] | Mapping[str, object] | None
"""Values for the parameters of a statement."""


class SqlError(RuntimeError):
    """DuckDB refused a statement, or its process died or took too long over one."""

    @property
    def reason(self) -> str:
        """Its first line, shortened for display."""
        return str(self).partition("\n")[0][:REASON_MAX]


class SqlSession:
    """A connection in the process; each method raises SqlError where it has no answer."""

    def __init__(self, process: "_Process", *, folder: Path, seconds_max: int) -> None:
        self._process = process
        self._folder = folder
        self._seconds_max = seconds_max
        self._until = monotonic() + seconds_max
        self._files = 0

    def execute(self, statement: str, given: Given = None) -> None:
        """Run a statement without returning rows."""
        self._ask("run", statement=statement, given=given)

    def rows(self, statement: str, given: Given = None) -> list[tuple[Any, ...]]:
        """Return the rows of a statement: whole numbers, texts, booleans, lists of these, None."""
        return [*map(tuple, self._ask("rows", statement=statement, given=given))]

    def table(
        self, statement: str, given: Given = None, *, encoded: Sequence[str] = ()
    ) -> pa.Table:
        """Return the rows of a statement as a table, for many rows or those with instants.

        `encoded`: columns of few different texts, which are read as dictionaries.
        """
        file = self._next_file()
        self._ask("table", statement=statement, given=given, into=quoted(str(file)))
        known = [name for name in pq.read_schema(file).names if name in encoded]
        return pq.ParquetFile(file, read_dictionary=known, memory_map=True).read()

    def register(self, name: str, table: pa.Table) -> None:
        """Make a table readable by statements under a name."""
        self.register_tables(name, iter([table]))

    def register_tables(self, name: str, tables: Iterator[pa.Table]) -> None:
        """Like `register`, for at least one table; each is released once it is written."""
        file, first = self._next_file(), next(tables)
        with pq.ParquetWriter(file, first.schema, compression="lz4") as writer:
            writer.write_table(first)
            for table in tables:
                writer.write_table(table)
        self._ask("register", name=name, source=quoted(str(file)))

    def kinds(self, text: str) -> list[str]:
        """Return the kind of each statement of a text, such as SELECT."""
        return [*self._ask("kinds", statement=text)]

    def open(self, **how: object) -> None:
        """Open the connection; see duckdb_process."""
        self._ask("open", **how)

    def close(self) -> None:
        """Close the connection; its process waits for the next one."""
        self._ask("close")

    def _next_file(self) -> Path:
        self._files += 1
        return self._folder / f"{self._files}.parquet"

    def _ask(self, do: str, **how: object) -> Any:
        seconds = max(0.0, self._until - monotonic())
        answer = self._process.ask({"do": do, **how}, wait_seconds=seconds)
        if answer is None:
            msg = f"not done within {self._seconds_max} s"
            raise SqlError(msg)
        if "error" in answer:
            raise SqlError(answer["error"])
        return answer["done"]


class _Process(OwnProcess):
    """One process that has DuckDB; after it has ended it is not reused."""

    def __init__(self) -> None:
        super().__init__(START, variables={})
        self.is_over = False
        self.held_to_mb = 0
        """Its memory limit; 0 before the first session."""

    def hold_to(self, memory_mb: int) -> None:
        """Limit all memory of the process, until the next limit."""
        self.held_to_mb, memory_bytes = memory_mb, memory_mb << 20
        with suppress(ProcessLookupError):
            pid = self.process.pid
            _, most = resource.prlimit(pid, resource.RLIMIT_DATA)
            least = memory_bytes if most == resource.RLIM_INFINITY else min(memory_bytes, most)
            resource.prlimit(pid, resource.RLIMIT_DATA, (least, most))

    def ask(self, request: Mapping[str, object], *, wait_seconds: float) -> dict[str, Any] | None:
        """Return its answer; None where it took too long and was ended.

        Raises:
            SqlError: it died during the request, or before.
        """
        try:
            self.pipe.send_bytes(json.dumps(request).encode())
            if not self.pipe.poll(wait_seconds):
                self.end()
                return None
            answer: dict[str, Any] = json.loads(self.pipe.recv_bytes())
        except (EOFError, OSError):
            code = self.end()
            how = signal.Signals(-code).name if code < 0 else f"exit code {code}"
            msg = f"the process that asks DuckDB ended ({how})"
            raise SqlError(msg) from None
        except BaseException:
            self.end()  # its answer must not be taken for that to the next request
            raise
        return answer

    def end(self) -> int:
        """End it and return its exit code."""
        self.is_over = True
        return super().end()


_WAITING: list[_Process] = []
"""Processes without a session; one is enough, as sessions follow each other."""


def _end_all() -> None:
    while _WAITING:
        _WAITING.pop().end()


atexit.register(_end_all)
os.register_at_fork(after_in_child=_WAITING.clear)  # they belong to the process that forked


def _started(memory_mb: int) -> _Process:
    """Return the waiting process, or a new one.

    One that had a higher limit is not reused: memory that DuckDB freed stays allocated and counts,
    so that under the new limit even a little more would be refused.
    """
    if _WAITING and _WAITING[-1].held_to_mb <= memory_mb:
        return _WAITING.pop()
    _end_all()
    return _Process()


@contextmanager
def reading(
    *folders: Path,
    seconds_max: int = SECONDS_MAX,
    memory_mb: int = MEMORY_MB,
) -> Iterator[SqlSession]:
    """Open DuckDB to read these folders and nothing else: no network, extension or setting.

    Args:
        folders: What it may read.
        seconds_max: After this time its process is ended.
        memory_mb: What it may hold; beyond it, it writes to its folder of temporary files.
    """
    with ExitStack() as last:
        # Created here, so that it is removed whatever becomes of the process.
        own = last.enter_context(folder_for_now("recon-sql-"))
        process = _started(memory_mb + PROCESS_MB)
        last.callback(lambda: None if process.is_over else _WAITING.append(process))
        process.hold_to(memory_mb + PROCESS_MB)
        session = SqlSession(process, folder=own, seconds_max=seconds_max)
        allowed = ", ".join(quoted(f"{folder.resolve()}/") for folder in (*folders, own))
        session.open(
            config={
                "threads": THREADS,
                "memory_limit": f"{memory_mb}MB",
                "temp_directory": str(own),
                "max_temp_directory_size": f"{SPILL_GB}GB",
                "autoinstall_known_extensions": False,
                "autoload_known_extensions": False,
                "preserve_insertion_order": False,
            },
            settings=[
                f"SET allowed_directories = [{allowed}]",
                "SET enable_external_access = false",
                # After two seconds DuckDB would draw a progress bar into our output.
                "SET enable_progress_bar = false",
                "SET parquet_metadata_cache = true",  # sealed files never change
                "SET lock_configuration = true",
            ],
        )
        try:
            yield session
        finally:
            if not process.is_over:
                session.close()


def quoted(text: str, *, quote: str = "'") -> str:
    """A text as SQL writes it; in double quotes it is a name.

    >>> print(quoted("O'Neill"), quoted("night", quote='"'))
    'O''Neill' "night"
    """
    return quote + text.replace(quote, quote + quote) + quote
