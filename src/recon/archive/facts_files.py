"""Facts files in the archive, each named by its own hash and complete before it is referenced.

A file whose hash no database has does not count: a process that was killed before storing the hash
leaves such a file, and writes it again under the same name.
"""

import hashlib
import io
import shutil
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, cast

import pyarrow as pa

from recon.archive.rows_file import write_tables
from recon.archive.schemas import FileSchema
from recon.archive.step_folder import Hashing
from recon.archive.storage import LocalStorage, Storage, other_hash, reachable
from recon.model.errors import FactsLostError, OutputError

SUFFIX = ".parquet"


@dataclass(frozen=True, slots=True)
class FactsFile:
    """A facts file in the archive."""

    folder: str
    """Relative to the archive."""
    sha256: str
    size_bytes: int

    @property
    def path(self) -> str:
        """Relative to the archive."""
        return f"{self.folder}/{self.sha256}{SUFFIX}"


def write_facts(
    storage: Storage,
    tables: Iterable[pa.Table],
    *,
    folder: str,
    schema: FileSchema,
    doing: str,
) -> FactsFile:
    """Write tables one after another as one file; `doing` describes the failed action in errors.

    Raises:
        ArchiveError: The archive cannot be written.
        OutputError: There is no space for the temporary file.
    """
    with tempfile.TemporaryFile() as temporary:
        with _room():
            hashing = Hashing(temporary)
            write_tables(cast("BinaryIO", hashing), tables, schema=schema)
            temporary.seek(0, io.SEEK_SET)
        file = FactsFile(folder, hashing.digest.hexdigest(), hashing.size)
        with reachable(storage, doing=doing), storage.writing(file.path) as out:
            shutil.copyfileobj(temporary, out)
    return file


@contextmanager
def _room() -> Iterator[None]:
    try:
        yield
    except OSError as error:
        msg = (
            f"rows of a file cannot be laid aside in {tempfile.gettempdir()}: "
            f"{error.strerror or error}; nothing of it was stored: make room there, or set TMPDIR"
        )
        raise OutputError(msg) from error


def whole_facts(storage: Storage, file: FactsFile, *, doing: str) -> bytes:
    """Return the content of a file, exactly as it was written.

    Raises:
        ArchiveError: It cannot be read, or its hash differs from the one in the database.
    """
    with reachable(storage, doing=doing):
        try:
            content = storage.read(file.path)
        except FileNotFoundError:
            content = b""
    if hashlib.sha256(content).hexdigest() != file.sha256:
        raise _lost(file, storage=storage, doing=doing)
    return content


@contextmanager
def facts_at(files: Iterable[tuple[Storage, FactsFile]], *, doing: str) -> Iterator[list[Path]]:
    """Yield paths at which files can be read, exactly as written, while the block lasts.

    Raises:
        ArchiveError: One cannot be read, or its hash differs from the one in the database.
    """
    folders: dict[tuple[str, str], Path] = {}
    paths: list[Path] = []
    with ExitStack() as stack:
        for storage, file in files:
            location = storage.shown, file.folder
            with reachable(storage, doing=doing):
                if location not in folders:
                    folders[location] = stack.enter_context(storage.local(file.folder))
                here, name = folders[location], f"{file.sha256}{SUFFIX}"
                is_whole = False
                with suppress(FileNotFoundError), LocalStorage(here).reading(name) as opened:
                    of_one = other_hash(opened, location=f"{here}/{name}", sha256=file.sha256)
                    is_whole = not any(of_one)
            if not is_whole:
                raise _lost(file, storage=storage, doing=doing)
            paths.append(here / name)
        yield paths


def _lost(file: FactsFile, *, storage: Storage, doing: str) -> FactsLostError:
    msg = (
        f"{doing}: {file.path} is not in the archive {storage.shown}, or is not the file whose "
        "hash the database keeps: the next night reads it again from the file that it came in; "
        "`recon doctor` says whether that is still there"
    )
    return FactsLostError(msg, path=file.path)
