"""What a reader hands back: rows as Arrow streams, all else as JSON of one declared type.

Both lie in files without a name, and both are checked when they are taken out again: a reader that
was broken by its file may have written anything. Neither can run code.
"""

import json
import mmap
import os
from collections.abc import Callable, Iterable, Iterator
from functools import cache
from typing import IO, Any, get_type_hints

import pandas as pd
import pyarrow as pa
from pydantic import TypeAdapter, ValidationError

from recon.files.reader.bounds import FACTS_BYTES_MAX
from recon.model.errors import (
    ConfigurationError,
    OutputError,
    ReconError,
    SourceMissingError,
    SourceUnreadableError,
    UsageError,
)

ROWS_AT_ONCE = 65_536
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
        if kind == _REFUSED:
            raise _refusal(content)
        if kind != _READ:
            raise BrokenParcelError
        return _facts_of(of).validate_json(content)
    except ValidationError:
        raise BrokenParcelError from None


def _refusal(content: bytes) -> ReconError:
    try:
        name, words = json.loads(content)
    except ValueError:
        raise BrokenParcelError from None
    return REFUSALS.get(name, SourceUnreadableError)(str(words))


def write_frame(frame: pd.DataFrame, *, into: IO[bytes]) -> None:
    """One frame behind those that were written before."""
    table = pa.Table.from_pandas(frame, preserve_index=False)
    batches = table.to_batches(max_chunksize=ROWS_AT_ONCE)
    write_batches(batches, schema=table.schema, into=into)


def write_batches(batches: Iterable[pa.RecordBatch], *, schema: pa.Schema, into: IO[bytes]) -> None:
    """The rows of one frame, which need not be in memory together."""
    with pa.ipc.new_stream(into, schema) as stream:
        for batch in batches:
            stream.write_batch(batch)


def read_batches(rows: IO[bytes], *, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    """The rows of the next frame, as they were written: so many at once.

    Raises:
        BrokenParcelError: it is none, or has other columns.
    """
    try:
        stream = pa.ipc.open_stream(rows)
        if not stream.schema.equals(schema):
            raise BrokenParcelError
        for batch in stream:
            batch.validate(full=True)
            yield batch
    except (pa.ArrowException, OSError, ValueError, TypeError):
        raise BrokenParcelError from None


def read_parts(rows: IO[bytes]) -> Iterator[pd.DataFrame]:
    """The next frame, so many rows of it at once.

    Raises:
        BrokenParcelError: it is none.
    """
    try:
        for batch in pa.ipc.open_stream(rows):
            batch.validate(full=True)
            yield batch.to_pandas()
    except (pa.ArrowException, OSError, ValueError, TypeError):
        raise BrokenParcelError from None


def read_frame(rows: IO[bytes]) -> pd.DataFrame:
    """The next frame; its texts stay where its reader, which has ended, laid them.

    Raises:
        BrokenParcelError: it is none.
    """
    start = rows.tell()
    try:
        # Copied into memory first, a million rows would take 60,000 pages for a second time.
        mapped = mmap.mmap(rows.fileno(), 0, access=mmap.ACCESS_READ)
        stream = pa.BufferReader(pa.py_buffer(mapped).slice(start))
        table = pa.ipc.open_stream(stream).read_all()
        table.validate(full=True)
        frame: pd.DataFrame = table.to_pandas()
    except (pa.ArrowException, OSError, ValueError, TypeError):
        raise BrokenParcelError from None
    rows.seek(start + stream.tell())
    return frame
