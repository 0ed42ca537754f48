"""Files of facts: each under the name of its own hash, written whole before anybody names it.

Nobody's are those whose hash no database has: whoever is killed before that leaves a file that
counts for nothing, and writes it again under the same name.
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

from recon.archive.rows_file import write_parts
from recon.archive.schemas import FileSchema
from recon.archive.step_folder import Hashing
from recon.archive.storage import LocalStorage, Storage, other_hash, reachable
from recon.model.errors import FactsLostError, OutputError

SUFFIX = ".parquet"


@dataclass(frozen=True, slots=True)
class FactsFile:
    """A file that is written."""

    folder: str
    """Below the archive."""
    sha256: str
    size_bytes: int

    @property
    def path(self) -> str:
        """Below the archive."""
        return f"{self.folder}/{self.sha256}{SUFFIX}"


def write_facts(
    storage: Storage,
    parts: Iterable[pa.Table],
    *,
    folder: str,
    schema: FileSchema,
    doing: str,
) -> FactsFile:
    """Write tables one after another as one file; `doing` says what was not done where it fails.

    Raises:
        ArchiveError: the archive cannot be written.
        OutputError: there is no room to lay the rows aside.
    """
    with tempfile.TemporaryFile() as temporary:
        with _room():
            hashing = Hashing(temporary)
            write_parts(cast("BinaryIO", hashing), parts, schema=schema)
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
    """The bytes of a file, exactly as they were written.

    Raises:
        ArchiveError: it cannot be read, or is not the file whose hash the database has.
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
    """Where files can be read by path, each exactly as it was written, while the block lasts.

    Raises:
        ArchiveError: one cannot be read, or is not the file whose hash the database has.
    """
    folders: dict[tuple[str, str], Path] = {}
    paths: list[Path] = []
    with ExitStack() as stack:
        for storage, file in files:
            place = storage.shown, file.folder
            with reachable(storage, doing=doing):
                if place not in folders:
                    folders[place] = stack.enter_context(storage.local(file.folder))
                here, name = folders[place], f"{file.sha256}{SUFFIX}"
                is_whole = False
                with suppress(FileNotFoundError), LocalStorage(here).reading(name) as opened:
                    of_one = other_hash(opened, place=f"{here}/{name}", sha256=file.sha256)
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
