"""The process that runs DuckDB: takes statements, returns rows as JSON and tables as Parquet.

It loads only DuckDB and this module, so it starts in a tenth of a second.
"""

import json
import os
import resource
import select
from contextlib import suppress
from multiprocessing.connection import Connection
from pathlib import Path
from threading import Thread
from typing import Any

import duckdb

from recon.privacy.own_files import advise_kernel

FIRST_TO_GO = "1000"
"""OOM score: if memory runs out, the kernel should kill this process rather than the run."""
NOT_IN_PARQUET = {"HUGEINT": "DECIMAL(38, 0)", "INTERVAL": "VARCHAR"}
"""Types that Parquet lacks, which DuckDB would write as floats, and their replacements."""
WHOLE = (int, str, bool, type(None), list)
"""Types allowed in cells of rows; money is never a float."""


def serve(descriptor: int) -> None:
    """Answer requests until the other side closes the connection."""
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))  # a core dump would contain merchant data
    with suppress(OSError):
        advise_kernel(Path("/proc/self/oom_score_adj"), FIRST_TO_GO)
    Thread(target=_end_with_asker, args=(descriptor,), daemon=True).start()
    # DuckDB comes with a connection of its own, whose idle thread gives memory back: once in ten
    # thousand sessions that ended the process (SIGSEGV, where its allocator takes a lock).
    duckdb.default_connection().close()
    asker, session = Connection(descriptor), _Session()
    with suppress(EOFError, OSError):
        while True:
            asker.send_bytes(_answer(session, json.loads(asker.recv_bytes())))


def _end_with_asker(descriptor: int) -> None:
    """Exit when the connection closes: no one waits for the running statement any more."""
    waiting = select.poll()
    waiting.register(descriptor, 0)  # only the end of the connection
    waiting.poll()
    os._exit(0)


def _answer(session: "_Session", request: dict[str, Any]) -> bytes:
    try:
        return json.dumps({"done": getattr(session, request.pop("do"))(**request)}).encode()
    except Exception as error:  # noqa: BLE001 - there is nobody above
        return json.dumps({"error": str(error) or type(error).__name__}).encode()


class _Session:
    """One connection at a time; each method is a kind of request."""

    _sql: duckdb.DuckDBPyConnection

    def open(self, *, config: dict[str, Any], settings: list[str]) -> None:
        self._sql = duckdb.connect(":memory:", config=config)
        for setting in settings:
            self._sql.execute(setting)

    def run(self, *, statement: str, given: Any) -> None:
        self._sql.execute(statement, given)

    def rows(self, *, statement: str, given: Any) -> list[tuple[Any, ...]]:
        rows = self._sql.execute(statement, given).fetchall()
        if odd := {type(cell) for row in rows for cell in row if not isinstance(cell, WHOLE)}:
            msg = f"cells of {odd} in rows"
            raise TypeError(msg)
        return rows

    def table(self, *, statement: str, given: Any, into: str) -> None:
        whole = f"SELECT * FROM (\n{statement}\n)"  # noqa: S608 - of whoever asks
        columns = self._sql.execute(f"DESCRIBE {whole}", given).fetchall()
        casts = (
            f'CAST("{name}" AS {NOT_IN_PARQUET[kind]}) AS "{name}"'
            for name, kind, *_ in columns
            if kind in NOT_IN_PARQUET
        )
        if cells := ", ".join(casts):
            statement = whole.replace("*", f"* REPLACE ({cells})", 1)
        self._sql.execute(
            f"COPY (\n{statement}\n) TO {into} (FORMAT parquet, COMPRESSION uncompressed)", given
        )

    def register(self, *, name: str, source: str) -> None:
        self._sql.execute(f"CREATE TEMP VIEW {name} AS FROM read_parquet({source})")

    def kinds(self, *, statement: str) -> list[str]:
        return [each.type.name for each in self._sql.extract_statements(statement)]

    def close(self) -> None:
        self._sql.close()
