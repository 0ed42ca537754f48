"""One step of a night, written once: its files, then its manifest; then it is only read.

A step that was stopped is written again: what lies there without a manifest is nobody's and goes.
A manifest that says the same is verified and used. One that says something else stays as it is,
under another name. No two files are held at once.
"""

import hashlib
import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass, field, replace
from io import RawIOBase
from typing import Any, BinaryIO, NamedTuple, cast

import pyarrow as pa

from recon.archive.rows_file import Ordered, ordered_rows, write_ordered
from recon.archive.schemas import SCHEMAS, FileSchema
from recon.archive.storage import Storage, other_hash
from recon.model.errors import ArchiveBrokenError

FORMAT = "recon night/2"
MANIFEST = "manifest.json"
MANIFEST_BYTES_MAX = 16 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class About:
    """Whose step it is."""

    run_id: str
    merchant_id: str
    account_id: str
    business_date: str
    mode: str
    step: str
    predecessor: str
    """The run whose open breaks the night carries forward; "" without one."""
    rules_digest: str
    product_version: str
    history_before: str
    """`number:hash` of the newest link when the manifest was written."""
    after: Mapping[str, str] = field(default_factory=dict)
    """Earlier step of the same night -> SHA-256 of its manifest."""
    absent: tuple[str, ...] = ()
    """Sources that the night did not have; their files hold no row."""


@dataclass(frozen=True, slots=True)
class FileEntry:
    """One file of a step."""

    name: str
    """Below the step's folder."""
    rows: int
    """0 for what has none."""
    bytes: int
    sha256: str
    schema: str
    """`orders/1`; "" for what is no table."""


@dataclass(frozen=True, slots=True)
class Manifest:
    """One step, whole."""

    about: About
    files: tuple[FileEntry, ...]

    def same_content(self, other: "Manifest") -> bool:
        """Whether both say the same, after whatever link."""
        own, theirs = (replace(each.about, history_before="") for each in (self, other))
        return own == theirs and {*self.files} == {*other.files}


def manifest_bytes(manifest: Manifest) -> bytes:
    """The manifest as it is written."""
    files = [*map(asdict, manifest.files)]
    document = {"format": FORMAT, **asdict(manifest.about), "files": files}
    return (json.dumps(document, indent=2, sort_keys=True) + "\n").encode()


def manifest_hash(content: bytes) -> str:
    """What the history keeps of it."""
    return hashlib.sha256(content).hexdigest()


def manifest_of(content: bytes, *, name: str) -> Manifest:
    """A manifest as it was read; `name` is the file's, for the sentence.

    Raises:
        ArchiveBrokenError: it is none, or of a format that this program does not know.
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


ASIDE = ".aside-"
"""Behind a step's name: an earlier attempt that said something else."""
ASIDE_MAX = 1_000


@dataclass(frozen=True, slots=True)
class Rows:
    """A table of a step in the order of its schema's key: the same rows are the same bytes."""

    rows: Ordered
    schema: FileSchema
    number: int = 0
    """Of a table that comes in several files; 0: it is one."""

    @classmethod
    def of(cls, table: pa.Table, *, schema: FileSchema, number: int = 0) -> "Rows":
        """Put a table in order."""
        return cls(ordered_rows(table, schema=schema), schema, number)

    @property
    def name(self) -> str:
        """Below the step's folder."""
        return f"{self.schema.name}{f'-{self.number:05}' if self.number else ''}.parquet"


def rows_of(tables: Iterable[tuple[str, pa.Table]]) -> Iterator[Rows]:
    """Tables by the names of their schemas as the files of a step, each made when it is asked."""

    def as_rows(named: tuple[str, pa.Table]) -> Rows:
        return Rows.of(named[1], schema=SCHEMAS[named[0]])

    # A map holds no table while its rows are written, as a loop would.
    return map(as_rows, tables)


@dataclass(frozen=True, slots=True)
class Document:
    """Any other file of a step."""

    name: str
    content: bytes


Part = Rows | Document


@dataclass(frozen=True, slots=True)
class Sealed:
    """A step that is written."""

    folder: str
    """Below the archive."""
    sha256: str
    """Of its manifest."""
    manifest: Manifest


def write_step(
    storage: Storage,
    *,
    night: str,
    about: About,
    parts: Iterable[Part],
    crash_point: Callable[[str], None] = lambda _: None,
) -> Sealed:
    """Write a step of a night, or use the one that is there and says the same.

    Args:
        storage: The archive.
        night: The folder of the run, below the archive.
        about: Whose step it is; `about.step` names its folder.
        parts: Its files; they are held together only where an earlier attempt has to be compared.
        crash_point: Where tests end the process.

    Raises:
        OSError: the archive cannot be written; nothing that was sealed is changed.
    """
    folder = f"{night}/{about.step}"
    try:
        saved = sealed_step(storage, folder=folder)
    except ArchiveBrokenError:
        set_aside(storage, folder=folder)
        saved = None
    if saved is not None:
        parts = [*parts]
        wanted = Manifest(about, tuple(map(expected_entry, parts)))
        if saved.manifest.same_content(wanted) and not step_problems(storage, saved):
            return saved
        set_aside(storage, folder=folder)
    for name in storage.names(folder):
        storage.remove(name)  # of an attempt that never had a manifest

    def write(part: Part) -> FileEntry:
        entry = write_part(storage, part, folder=folder, flushed=False)
        crash_point("archived a part")
        return entry

    # A map holds no file while the next one is made, as a loop would.
    entries = tuple(map(write, parts))
    if entries:
        # No manifest over names that a loss of power could take back.
        storage.flush(folder)
    sealed = write_manifest(storage, Manifest(about, entries), folder=folder)
    crash_point("archived a manifest")
    return sealed


def seal_parts(
    storage: Storage, *, night: str, about: About, entries: Sequence[FileEntry]
) -> Sealed:
    """Write the manifest of a step whose files were written one by one; see `write_part`.

    What else lies there was never named by anybody and goes. A manifest that no history binds is
    written anew.

    Raises:
        OSError: the archive cannot be written.
    """
    folder = f"{night}/{about.step}"
    named = {f"{folder}/{entry.name}" for entry in entries}
    for stranger in sorted(set(storage.names(folder)) - named):
        storage.remove(stranger)
    return write_manifest(storage, Manifest(about, tuple(entries)), folder=folder)


def write_manifest(storage: Storage, manifest: Manifest, *, folder: str) -> Sealed:
    """Seal the files that lie in a folder.

    Raises:
        OSError: the archive cannot be written.
    """
    content = manifest_bytes(manifest)
    with storage.writing(f"{folder}/{MANIFEST}") as file:
        file.write(content)
    return Sealed(folder, manifest_hash(content), manifest)


def sealed_step(storage: Storage, *, folder: str) -> Sealed | None:
    """A step by its manifest; None where there is none.

    Raises:
        ArchiveBrokenError: the manifest is none.
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
    """The step whose manifest has this hash, set aside or not; None where it is gone."""
    for folder in _attempts(storage, night=night, step=step):
        content = _manifest_in(storage, folder)
        if content is not None and manifest_hash(content) == sha256:
            return _sealed_by(content, folder=folder)
    return None


class SeenFile(NamedTuple):
    """A file below a folder of the archive."""

    name: str
    """Below the archive."""
    content: bytes | None
    """None: it is gone."""
    fault: str = ""
    """In what it is not as it was sealed, as a sentence."""


STRANGE = "lies there, and nobody sealed it: move it away"


def look_through(
    storage: Storage,
    folder: str,
    *,
    steps: Iterable[Sealed],
    is_left: Callable[[str], bool] = lambda _: False,
) -> Iterator[SeenFile]:
    """Every file below a folder, and those that its steps sealed and that are gone.

    `is_left` says of a file outside these steps (below the folder) that an attempt left it.
    """
    sealed: dict[str, FileEntry | None] = {}
    for step in steps:
        sealed |= {f"{step.folder}/{entry.name}": entry for entry in step.manifest.files}
        sealed[f"{step.folder}/{MANIFEST}"] = None
    places = {name.rpartition("/")[0] for name in sealed}
    for name in sorted({*storage.names(folder), *sealed}):
        try:
            content = storage.read(name)
        except FileNotFoundError:
            content = None
        fault = ""
        if name not in sealed:
            is_strange = name.rpartition("/")[0] in places
            if is_strange or not is_left(name.removeprefix(f"{folder}/")):
                fault = f"{name} {STRANGE}"
        elif (entry := sealed[name]) is not None:
            size, sha256 = None if content is None else len(content), hashlib.sha256(content or b"")
            try:
                refuse_changed(name, entry=entry, size=size, sha256=sha256.hexdigest())
            except ArchiveBrokenError as error:
                fault = str(error)
        yield SeenFile(name, content, fault)


def step_problems(storage: Storage, sealed: Sealed) -> list[str]:
    """What of a sealed step is not as it was written, each as a sentence; none when all is."""
    files = look_through(storage, sealed.folder, steps=[sealed])
    return [file.fault for file in files if file.fault]


def whole_file(storage: Storage, sealed: Sealed, *, name: str) -> bytes:
    """The content of a file of a sealed step, exactly as it was sealed.

    Raises:
        ArchiveBrokenError: it is gone, or is not the file that was sealed.
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
    """What the manifest says of a file; None where it names none."""
    return next((each for each in sealed.manifest.files if each.name == name), None)


def refuse_changed(path: str, *, entry: FileEntry | None, size: int | None, sha256: str) -> None:
    """Refuse a file that is not as it was sealed; `size` is None of one that is not there.

    Raises:
        ArchiveBrokenError: it is gone, or is not the file that was sealed.
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
    """The folder of a step, then those set aside: whoever finds it in the first lists nothing."""
    yield f"{night}/{step}"
    for folder in storage.folders(night):
        if folder.startswith(f"{night}/{step}{ASIDE}"):
            yield folder


def set_aside(storage: Storage, *, folder: str) -> None:
    """Give a step that is there another name, under which nobody is looked for but by its hash.

    Raises:
        ArchiveBrokenError: that was done very often.
    """
    night, _, step = folder.rpartition("/")
    names = set(_attempts(storage, night=night, step=step))
    for number in range(1, ASIDE_MAX):
        target = f"{folder}{ASIDE}{number}"
        if target not in names:
            storage.move(folder, to=target)
            return
    msg = f"{folder} of the archive was written {ASIDE_MAX} times; look at why"
    raise ArchiveBrokenError(msg)


def expected_entry(part: Part) -> FileEntry:
    """A file's entry as it will be when it is written."""
    return _filled(None, part)


def write_part(storage: Storage, part: Part, *, folder: str, flushed: bool = True) -> FileEntry:
    """Write one file of a step; what lies there under its name was nobody's.

    `flushed` is as for Storage.writing.

    Raises:
        OSError: the archive cannot be written.
    """
    with storage.writing(f"{folder}/{part.name}", flushed=flushed) as file:
        return _filled(file, part)


def _filled(file: BinaryIO | None, part: Part) -> FileEntry:
    hashing, rows, schema = Hashing(file), 0, ""
    if isinstance(part, Rows):
        rows, schema = part.rows.num_rows, part.schema.label.decode()
        write_ordered(cast("BinaryIO", hashing), part.rows, schema=part.schema)
    else:
        hashing.write(part.content)
    return FileEntry(part.name, rows, hashing.size, hashing.digest.hexdigest(), schema)


class Hashing(RawIOBase):
    """A file that is written once from its beginning to its end, with the hash of what went by.

    Whoever opened the file flushes and closes it; without one it is only hashed.
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
        """Where the next byte goes."""
        return self.size

    def writable(self) -> bool:
        """It is."""
        return True


@contextmanager
def opened_file(storage: Storage, sealed: Sealed, *, name: str) -> Iterator[BinaryIO]:
    """A file of a sealed step, exactly as it was sealed, to be read from any place.

    Raises:
        ArchiveBrokenError: it is gone, or is not the file that was sealed.
    """
    entry, path = entry_of(sealed, name=name), f"{sealed.folder}/{name}"
    with ExitStack() as stack:
        try:
            opened = stack.enter_context(storage.reading(path))
        except FileNotFoundError:
            refuse_changed(path, entry=entry, size=None, sha256="")
            raise
        place = f"{storage.shown}/{path}"
        for size, sha256 in other_hash(opened, place=place, sha256=entry.sha256 if entry else ""):
            refuse_changed(path, entry=entry, size=size, sha256=sha256)
        opened.file.seek(0)
        yield opened.file
