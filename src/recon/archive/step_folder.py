"""The folder of a night's step: written once, first its files, then its manifest; then read only.

An interrupted step is written again: files without a manifest belong to no step and are deleted. An
existing manifest with the same content is verified and used; one with other content is kept under
another name. Not more than one file is held in memory.
"""

import hashlib
import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass, field, replace
from io import RawIOBase
from typing import Any, BinaryIO, NamedTuple, cast

import pyarrow as pa

from recon.archive.rows_file import ordered_rows, write_ordered
from recon.archive.schemas import SCHEMAS, FileSchema
from recon.archive.storage import Storage, other_hash
from recon.model.errors import ArchiveBrokenError

FORMAT = "recon night/3"
MANIFEST = "manifest.json"
MANIFEST_BYTES_MAX = 16 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class About:
    """What a step belongs to: run, account, versions and earlier steps."""

    run_id: str
    merchant_id: str
    account_id: str
    business_date: str
    mode: str
    step: str
    predecessor: str
    """The run whose open breaks the night carries forward; "" if there is none."""
    rules_digest: str
    product_version: str
    history_before: str
    """`number:hash` of the newest link of the history when the manifest was written."""
    after: Mapping[str, str] = field(default_factory=dict)
    """Earlier step of the same night -> SHA-256 of its manifest."""
    absent: tuple[str, ...] = ()
    """Sources that the night did not have; their files have no rows."""


@dataclass(frozen=True, slots=True)
class FileEntry:
    """One file of a step."""

    name: str
    """Relative to the step's folder."""
    rows: int
    """0 for a document."""
    bytes: int
    sha256: str
    schema: str
    """Such as `orders/1`; "" for a document."""


@dataclass(frozen=True, slots=True)
class Manifest:
    """Description and files of a complete step."""

    about: About
    files: tuple[FileEntry, ...]

    def same_content(self, other: "Manifest") -> bool:
        """Return whether both are equal except for the link of the history."""
        own, theirs = (replace(each.about, history_before="") for each in (self, other))
        return own == theirs and {*self.files} == {*other.files}


def manifest_bytes(manifest: Manifest) -> bytes:
    """Return the manifest as JSON bytes."""
    files = [*map(asdict, manifest.files)]
    document = {"format": FORMAT, **asdict(manifest.about), "files": files}
    return (json.dumps(document, indent=2, sort_keys=True) + "\n").encode()


def manifest_hash(content: bytes) -> str:
    """Return the hash by which the history attests a manifest."""
    return hashlib.sha256(content).hexdigest()


def manifest_of(content: bytes, *, name: str) -> Manifest:
    """Parse a manifest; `name` is that of the file, for errors.

    Raises:
        ArchiveBrokenError: It is not a manifest, or has a format that this program does not know.
    """
    try:
        document = json.loads(content) if len(content) <= MANIFEST_BYTES_MAX else None
    except (ValueError, RecursionError):
        document = None
    if not isinstance(document, dict):
        msg = f"{name} of the archive is no manifest"
        raise ArchiveBrokenError(msg)
    written = document.pop("format", "nobody's")
    if written != FORMAT:
        msg = (
            f"{name} of the archive has the format {str(written)[:40]!r}, and this version of "
            f"recon knows {FORMAT!r}: read it with the version that wrote it, or a newer one"
        )
        raise ArchiveBrokenError(msg)
    try:
        files = tuple(FileEntry(**each) for each in document.pop("files"))
        return Manifest(About(**{**document, "absent": tuple(document["absent"])}), files)
    except (KeyError, TypeError) as error:
        msg = f"{name} of the archive is no manifest: {error}"
        raise ArchiveBrokenError(msg) from error


SUPERSEDED = ".superseded-"
"""Follows the step's name in the folder of an earlier attempt with other content."""
SUPERSEDED_MAX = 1_000


@dataclass(frozen=True, slots=True)
class Rows:
    """A table of a step in the order of its schema's key, so that equal rows give equal bytes."""

    rows: pa.Table
    schema: FileSchema
    number: int = 0
    """Number of this file if the table is split into several; 0 if it is not."""

    @classmethod
    def of(cls, table: pa.Table, *, schema: FileSchema, number: int = 0) -> "Rows":
        """Sort a table by its schema's key."""
        return cls(ordered_rows(table, schema=schema), schema, number)

    @property
    def name(self) -> str:
        """File name in the step's folder."""
        return f"{self.schema.name}{f'-{self.number:05}' if self.number else ''}.parquet"


def rows_of(tables: Iterable[tuple[str, pa.Table]]) -> Iterator[Rows]:
    """Yield tables, named by their schemas, as files of a step; each is sorted when requested."""

    def as_rows(named: tuple[str, pa.Table]) -> Rows:
        return Rows.of(named[1], schema=SCHEMAS[named[0]])

    # Unlike a loop, `map` holds no reference to a table while its rows are written.
    return map(as_rows, tables)


@dataclass(frozen=True, slots=True)
class Document:
    """A file of a step that is not a table."""

    name: str
    content: bytes


StepFile = Rows | Document


@dataclass(frozen=True, slots=True)
class Sealed:
    """A completed step."""

    folder: str
    """Relative to the archive."""
    sha256: str
    """Hash of its manifest."""
    manifest: Manifest


def write_step(
    storage: Storage,
    *,
    night: str,
    about: About,
    files: Iterable[StepFile],
    crash_point: Callable[[str], None] = lambda _: None,
) -> Sealed:
    """Write a step of a night, or return the existing one if its content is the same.

    Args:
        storage: The archive.
        night: The folder of the run, relative to the archive.
        about: What the step belongs to; `about.step` names its folder.
        files: Its files; all are in memory only if an earlier attempt has to be compared.
        crash_point: Called where tests end the process.

    Raises:
        OSError: The archive cannot be written; no sealed step is changed.
    """
    folder = f"{night}/{about.step}"
    try:
        saved = sealed_step(storage, folder=folder)
    except ArchiveBrokenError:
        supersede(storage, folder=folder)
        saved = None
    if saved is not None:
        files = [*files]
        expected = Manifest(about, tuple(map(expected_entry, files)))
        if saved.manifest.same_content(expected) and not step_problems(storage, saved):
            return saved
        supersede(storage, folder=folder)
    for name in storage.names(folder):
        storage.remove(name)  # left by an attempt without a manifest

    def write(step_file: StepFile) -> FileEntry:
        entry = write_file(storage, step_file, folder=folder, flushed=False)
        crash_point("archived a part")
        return entry

    # Unlike a loop, `map` holds no reference to a file while the next one is made.
    entries = tuple(map(write, files))
    if entries:
        # The manifest must not name files whose names a power failure could undo.
        storage.flush(folder)
    sealed = write_manifest(storage, Manifest(about, entries), folder=folder)
    crash_point("archived a manifest")
    return sealed


def seal_files(
    storage: Storage, *, night: str, about: About, entries: Sequence[FileEntry]
) -> Sealed:
    """Write the manifest of a step whose files were written one by one; see `write_file`.

    Other files in the folder are not referenced anywhere and are deleted. A manifest that the
    history does not attest is written again.

    Raises:
        OSError: The archive cannot be written.
    """
    folder = f"{night}/{about.step}"
    named = {f"{folder}/{entry.name}" for entry in entries}
    for stranger in sorted(set(storage.names(folder)) - named):
        storage.remove(stranger)
    return write_manifest(storage, Manifest(about, tuple(entries)), folder=folder)


def write_manifest(storage: Storage, manifest: Manifest, *, folder: str) -> Sealed:
    """Seal the files in a folder by writing their manifest.

    Raises:
        OSError: The archive cannot be written.
    """
    content = manifest_bytes(manifest)
    with storage.writing(f"{folder}/{MANIFEST}") as file:
        file.write(content)
    return Sealed(folder, manifest_hash(content), manifest)


def sealed_step(storage: Storage, *, folder: str) -> Sealed | None:
    """Return a step by its manifest; None if there is none.

    Raises:
        ArchiveBrokenError: The manifest cannot be parsed.
    """
    content = _manifest_in(storage, folder)
    return None if content is None else _sealed_by(content, folder=folder)


def _manifest_in(storage: Storage, folder: str) -> bytes | None:
    try:
        return storage.read(f"{folder}/{MANIFEST}")
    except (FileNotFoundError, NotADirectoryError):
        return None


def _sealed_by(content: bytes, *, folder: str) -> Sealed:
    manifest = manifest_of(content, name=f"{folder}/{MANIFEST}")
    return Sealed(folder, manifest_hash(content), manifest)


def find_sealed(storage: Storage, *, night: str, step: str, sha256: str) -> Sealed | None:
    """Return the step whose manifest has this hash, set aside or not; None if it is missing."""
    for folder in _attempts(storage, night=night, step=step):
        content = _manifest_in(storage, folder)
        if content is not None and manifest_hash(content) == sha256:
            return _sealed_by(content, folder=folder)
    return None


class FolderFile(NamedTuple):
    """A file in a folder of the archive."""

    name: str
    """Relative to the archive."""
    content: bytes | None
    """None if it is missing."""
    fault: str = ""
    """How it differs from what was sealed, as a sentence; "" if it does not."""


STRANGE = "lies there, and nobody sealed it: move it away"


def look_through(
    storage: Storage,
    folder: str,
    *,
    steps: Iterable[Sealed],
    is_left: Callable[[str], bool] = lambda _: False,
) -> Iterator[FolderFile]:
    """Yield every file in a folder, and those that its steps sealed and that are missing.

    `is_left` returns whether a file outside these steps (by its name in the folder) is a leftover.
    """
    sealed: dict[str, FileEntry | None] = {}
    for step in steps:
        sealed |= {f"{step.folder}/{entry.name}": entry for entry in step.manifest.files}
        sealed[f"{step.folder}/{MANIFEST}"] = None
    sealed_folders = {name.rpartition("/")[0] for name in sealed}
    for name in sorted({*storage.names(folder), *sealed}):
        try:
            content = storage.read(name)
        except FileNotFoundError:
            content = None
        fault = ""
        if name not in sealed:
            is_strange = name.rpartition("/")[0] in sealed_folders
            if is_strange or not is_left(name.removeprefix(f"{folder}/")):
                fault = f"{name} {STRANGE}"
        elif (entry := sealed[name]) is not None:
            size, sha256 = None if content is None else len(content), hashlib.sha256(content or b"")
            try:
                refuse_changed(name, entry=entry, size=size, sha256=sha256.hexdigest())
            except ArchiveBrokenError as error:
                fault = str(error)
        yield FolderFile(name, content, fault)


def step_problems(storage: Storage, sealed: Sealed) -> list[str]:
    """Return a sentence for each file of a sealed step that differs from what was sealed."""
    files = look_through(storage, sealed.folder, steps=[sealed])
    return [file.fault for file in files if file.fault]


def whole_file(storage: Storage, sealed: Sealed, *, name: str) -> bytes:
    """Return the content of a file of a sealed step, exactly as it was sealed.

    Raises:
        ArchiveBrokenError: It is missing, or differs from what was sealed.
    """
    entry, path = entry_of(sealed, name=name), f"{sealed.folder}/{name}"
    try:
        content = storage.read(path) if entry else None
    except FileNotFoundError:
        content = None
    sha256 = hashlib.sha256(content or b"").hexdigest()
    refuse_changed(path, entry=entry, size=None if content is None else len(content), sha256=sha256)
    return content or b""


def entry_of(sealed: Sealed, *, name: str) -> FileEntry | None:
    """Return a file's entry in the manifest; None if there is none."""
    return next((each for each in sealed.manifest.files if each.name == name), None)


def refuse_changed(path: str, *, entry: FileEntry | None, size: int | None, sha256: str) -> None:
    """Refuse a file that differs from what was sealed; `size` is None if it does not exist.

    Raises:
        ArchiveBrokenError: It is missing, or differs from what was sealed.
    """
    if size is None or entry is None:
        msg = f"{path} is gone from the archive"
    elif size != entry.bytes:
        msg = f"{path} has {size} bytes, and was sealed with {entry.bytes}"
    elif sha256 != entry.sha256:
        msg = f"{path} is not the file that was sealed: its content was changed"
    else:
        return
    raise ArchiveBrokenError(msg)


def _attempts(storage: Storage, *, night: str, step: str) -> Iterator[str]:
    """Yield the folder of a step, then those set aside, which are listed only if needed."""
    yield f"{night}/{step}"
    for folder in storage.folders(night):
        if folder.startswith(f"{night}/{step}{SUPERSEDED}"):
            yield folder


def supersede(storage: Storage, *, folder: str) -> None:
    """Rename the folder of a step so that it can be found only by the hash of its manifest.

    Raises:
        ArchiveBrokenError: This was done SUPERSEDED_MAX times already.
    """
    night, _, step = folder.rpartition("/")
    names = set(_attempts(storage, night=night, step=step))
    for number in range(1, SUPERSEDED_MAX):
        target = f"{folder}{SUPERSEDED}{number}"
        if target not in names:
            storage.move(folder, to=target)
            return
    msg = f"{folder} of the archive was written {SUPERSEDED_MAX} times; look at why"
    raise ArchiveBrokenError(msg)


def expected_entry(step_file: StepFile) -> FileEntry:
    """Return the manifest entry that a file will have when it is written."""
    return _filled(None, step_file)


def write_file(
    storage: Storage, step_file: StepFile, *, folder: str, flushed: bool = True
) -> FileEntry:
    """Write one file of a step, replacing any leftover of that name.

    `flushed` is as for Storage.writing.

    Raises:
        OSError: The archive cannot be written.
    """
    with storage.writing(f"{folder}/{step_file.name}", flushed=flushed) as file:
        return _filled(file, step_file)


def _filled(file: BinaryIO | None, step_file: StepFile) -> FileEntry:
    hashing, rows, schema = Hashing(file), 0, ""
    if isinstance(step_file, Rows):
        rows, schema = step_file.rows.num_rows, step_file.schema.label.decode()
        write_ordered(cast("BinaryIO", hashing), step_file.rows, schema=step_file.schema)
    else:
        hashing.write(step_file.content)
    return FileEntry(step_file.name, rows, hashing.size, hashing.digest.hexdigest(), schema)


class Hashing(RawIOBase):
    """A file that hashes what is written to it, from beginning to end.

    The caller flushes and closes the underlying file; without one the content is only hashed.
    """

    def __init__(self, file: BinaryIO | None) -> None:
        self._file = file
        self.digest = hashlib.sha256()
        self.size = 0

    def write(self, content: Any) -> int:
        """Write, count and hash."""
        if self._file is not None:
            self._file.write(content)
        self.digest.update(content)
        self.size += len(content)
        return len(content)

    def tell(self) -> int:
        """Return the position of the next byte."""
        return self.size

    def writable(self) -> bool:
        """Return True."""
        return True


@contextmanager
def opened_file(storage: Storage, sealed: Sealed, *, name: str) -> Iterator[BinaryIO]:
    """Open a file of a sealed step, verified to be as it was sealed, for random access.

    Raises:
        ArchiveBrokenError: It is missing, or differs from what was sealed.
    """
    entry, path = entry_of(sealed, name=name), f"{sealed.folder}/{name}"
    with ExitStack() as stack:
        try:
            opened = stack.enter_context(storage.reading(path))
        except FileNotFoundError:
            refuse_changed(path, entry=entry, size=None, sha256="")
            raise
        location = f"{storage.shown}/{path}"
        for size, sha256 in other_hash(
            opened, location=location, sha256=entry.sha256 if entry else ""
        ):
            refuse_changed(path, entry=entry, size=size, sha256=sha256)
        opened.file.seek(0)
        yield opened.file
