"""Where nights lie, a folder of this machine or an S3-compatible storage.

Files have names with `/`, and each is there whole or not at all: on this machine they are written
under another name, flushed, then renamed; an object needs no rename.
"""

import errno
import hashlib
import os
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from functools import partial
from http.client import HTTPException
from pathlib import Path, PurePosixPath
from typing import Any, BinaryIO, NamedTuple, Protocol, TypeVar

from recon.config.keys import storage_keys
from recon.config.night_archive import ArchiveSettings
from recon.model.durable import flush_folder
from recon.model.errors import ArchiveError
from recon.model.step_progress import Way
from recon.privacy.own_files import folder_for_now, for_group, for_owner, make_folder, open_unlinked

MAKE_WRITABLE = (
    "make the archive writable, or move all of it to where there is room and name that place in "
    "archive.toml, then start the night again"
)
"""What to do; nights need what earlier ones wrote, so an empty archive helps nobody."""
UNFINISHED = ".unfinished-"
"""How the name of a file begins that is still being written."""


class Opened(NamedTuple):
    """A file that can be read from any place."""

    file: BinaryIO
    stamp: str
    """Another one each time that the file is written."""


BLOCK_BYTES = 4 * 2**20
"""So much is hashed at once."""
FILES_MAX = 20_000
"""So many files are known as they were written; behind them all are looked at once more."""
_known: set[tuple[str, str, str]] = set()
"""Place, stamp and hash of files that this process has hashed."""


def other_hash(opened: Opened, *, place: str, sha256: str) -> Iterator[tuple[int, str]]:
    """Size and hash of a file that is not the one with this hash; nothing where it is.

    Until it is written again it is looked at once.
    """
    seen = place, opened.stamp, sha256
    if seen in _known:
        return
    digest, size = hashlib.sha256(), 0
    while block := opened.file.read(BLOCK_BYTES):
        digest.update(block)
        size += len(block)
    if digest.hexdigest() != sha256:
        yield size, digest.hexdigest()
        return
    if len(_known) >= FILES_MAX:
        _known.clear()
    _known.add(seen)


class Storage(Protocol):
    """A folder of this machine, or of an S3-compatible storage."""

    @property
    def shown(self) -> str:
        """Its address for people."""

    def writing(self, name: str, *, flushed: bool = True) -> AbstractContextManager[BinaryIO]:
        """A new file; it has its name once the block ended well, and then it outlives a crash.

        Not `flushed`, its content does, and its name once its folder is flushed: of many files of
        one folder nobody needs one before all are there.
        """

    def flush(self, folder: str) -> None:
        """Let the names of all files right below a folder outlive a crash."""

    def read(self, name: str) -> bytes:
        """The content of a file.

        Raises:
            FileNotFoundError: there is none.
        """

    def reading(self, name: str) -> AbstractContextManager[Opened]:
        """A file of which only parts are read.

        Raises:
            FileNotFoundError: there is none.
        """

    def names(self, folder: str) -> Sequence[str]:
        """Every file below a folder by its whole name, sorted; none where there is no folder."""

    def folders(self, folder: str) -> Sequence[str]:
        """The folders right below a folder by their whole names, sorted."""

    def move(self, folder: str, *, to: str) -> None:
        """Give a folder another name that nobody has."""

    def remove(self, name: str) -> None:
        """Remove a file that nothing names."""

    def clear(self, folder: str) -> None:
        """Remove a folder with all that lies below it and that nothing names, if it is there."""

    def local(self, folder: str) -> AbstractContextManager[Path]:
        """The folder as one of this machine, for whoever reads files by path."""


@contextmanager
def reachable(storage: Storage, *, doing: str) -> Iterator[None]:
    """What a storage says when it fails, as a sentence; `doing` is what was not done.

    Raises:
        ArchiveError: it cannot be reached, is full or refuses.
    """
    try:
        yield
    except OSError as error:
        msg = f"{doing}: the archive of nights {storage.shown} says: {_why(error)}"
        raise ArchiveError(msg) from error


def _why(error: OSError) -> str:
    return error.strerror or str(error) or type(error).__name__


class LocalStorage:
    """See `recon.archive.storage.Storage`."""

    def __init__(self, root: Path) -> None:
        """Work below `root`, which is made when something is written."""
        self._root = root

    @property
    def shown(self) -> str:
        return str(self._root)

    @contextmanager
    def writing(self, name: str, *, flushed: bool = True) -> Iterator[BinaryIO]:
        path = self._root / name
        unfinished = path.with_name(f"{UNFINISHED}{path.name}")
        self._make(path.parent)
        unfinished.unlink(missing_ok=True)
        try:
            with open(unfinished, "xb", opener=for_group) as file:
                yield file
                file.flush()
                os.fsync(file.fileno())
            unfinished.replace(path)
            if flushed:
                flush_folder(path.parent)
        except BaseException:
            with suppress(OSError):
                unfinished.unlink(missing_ok=True)
            raise

    def flush(self, folder: str) -> None:
        flush_folder(self._root / folder)

    def _make(self, folder: Path) -> None:
        """Make a folder; the names of it and of those above it are on the disk afterwards."""
        if folder.is_dir():
            return  # as for all files of a step but the first
        missing = [each for each in (folder, *folder.parents) if not each.exists()]
        make_folder(folder)
        for each in missing:
            flush_folder(each.parent)

    def read(self, name: str) -> bytes:
        with self._opened(name) as file:
            return file.read()

    @contextmanager
    def reading(self, name: str) -> Iterator[Opened]:
        with self._opened(name) as file:
            saved = os.fstat(file.fileno())
            yield Opened(file, f"{saved.st_dev}/{saved.st_ino}/{saved.st_size}/{saved.st_ctime_ns}")

    def _opened(self, name: str) -> BinaryIO:
        try:
            descriptor = open_unlinked(self._root / name, os.O_RDONLY)
        except OSError as error:
            if error.errno not in {errno.ELOOP, errno.EINVAL}:
                raise
            # A pipe or a device would be read for ever, and a link leads elsewhere.
            raise OSError(errno.EINVAL, f"{name} is no regular file") from error
        return os.fdopen(descriptor, "rb")

    def names(self, folder: str) -> Sequence[str]:
        below = (self._root / folder).rglob("*")
        return sorted(str(path.relative_to(self._root)) for path in below if not path.is_dir())

    def folders(self, folder: str) -> Sequence[str]:
        path = self._root / folder
        if not path.is_dir():
            return []
        return sorted(str(each.relative_to(self._root)) for each in path.iterdir() if each.is_dir())

    def move(self, folder: str, *, to: str) -> None:
        target = self._root / to
        (self._root / folder).rename(target)
        flush_folder(target.parent)

    def remove(self, name: str) -> None:
        (self._root / name).unlink()

    def clear(self, folder: str) -> None:
        path = self._root / folder
        if path.is_dir():
            shutil.rmtree(path)
            flush_folder(path.parent)

    @contextmanager
    def local(self, folder: str) -> Iterator[Path]:
        yield self._root / folder


CONNECT_SECONDS = 20
SILENCE_SECONDS = 60
WAITED_SECONDS_MAX = 300
"""So long a storage that is busy or fails is waited for, over all of what is asked of it."""
TRIES_AT_ONCE = 4
"""So often one request is sent within a second; what asks for something may need several of them.
Longer waits are ours: those of the libraries are silent and know no end of the night."""
FIRST_WAIT_SECONDS = 0.25
LONGEST_WAIT_SECONDS = 15.0
CHECKED_BYTES = 4 * 2**20
"""So much of an object is held while it is asked for again."""
Answer = TypeVar("Answer")


class RetryDeadline:
    """How long a storage that is busy or fails is waited for, by whoever asks it for anything."""

    def __init__(
        self,
        *,
        pause: Callable[[float], None],
        elapsed: Callable[[], float],
        seconds: float = WAITED_SECONDS_MAX,
    ) -> None:
        """Wait `seconds` in all; `elapsed` is a clock in seconds that nobody sets."""
        self._pause, self._elapsed = pause, elapsed
        self._seconds = self._left = seconds

    def ask(self, call: Callable[[], Answer], *, shown: str) -> Answer:
        """Call until it is answered, with growing pauses; what each failure took counts as well.

        Raises:
            FileNotFoundError: there is no such object.
            OSError: it was refused, or failed until no patience was left.
        """
        wait = FIRST_WAIT_SECONDS
        while True:
            began = self._elapsed()
            try:
                with _translated():
                    return call()
            except (FileNotFoundError, PermissionError):
                raise
            except OSError as error:
                self._left -= self._elapsed() - began + wait
                if self._left <= 0:
                    msg = f"{_why(error)}; it was waited for {self._seconds:.0f} s in all"
                    raise OSError(error.errno, msg) from error
            waited = Way(f"seconds waited for the archive {shown}", of=round(self._seconds))
            waited.came_to(round(self._seconds - self._left))
            self._pause(wait)
            wait = min(2 * wait, LONGEST_WAIT_SECONDS)


class RemoteStorage:
    """See `recon.archive.storage.Storage`."""

    def __init__(self, storage: Any, *, root: str, shown: str, deadline: RetryDeadline) -> None:
        """Work below `root` (`bucket/prefix`) of a file system of fsspec."""
        self._storage = storage
        self._root = root.strip("/")
        self._shown = shown
        self._patience = deadline

    def _ask(self, call: Callable[..., Answer], *arguments: Any, **options: Any) -> Answer:
        return self._patience.ask(partial(call, *arguments, **options), shown=self._shown)

    @property
    def shown(self) -> str:
        return self._shown

    @contextmanager
    def writing(self, name: str, *, flushed: bool = True) -> Iterator[BinaryIO]:
        """See Storage; an object that is there stays there, `flushed` or not.

        It is asked for again: a storage may say that it kept what it did not.
        """
        del flushed
        with folder_for_now("recon-night-") as folder, (folder / "file").open("w+b") as temporary:
            yield temporary
            temporary.flush()
            self._ask(self._storage.put_file, temporary.name, self._path(name))
            temporary.seek(0)
            if not self._has(name, temporary):
                msg = f"it said that it kept {name}, and has no such object, or another one"
                raise OSError(msg)

    def _has(self, name: str, wanted: BinaryIO) -> bool:
        try:
            with self.reading(name) as (saved, _):
                while block := wanted.read(CHECKED_BYTES):
                    if saved.read(CHECKED_BYTES) != block:
                        return False
                return not saved.read(1)
        except FileNotFoundError:
            return False

    def flush(self, folder: str) -> None:
        """See Storage; there is nothing to do."""

    def read(self, name: str) -> bytes:
        content: bytes = self._ask(self._storage.cat_file, self._path(name))
        return content

    @contextmanager
    def reading(self, name: str) -> Iterator[Opened]:
        """See Storage; what is asked for is asked of the storage, and nothing beside it."""
        opened = partial(self._storage.open, self._path(name), "rb", cache_type="none")
        with self._ask(opened) as file:
            file.cache.fetcher = partial(self._ask, file.cache.fetcher)
            about = file.details
            yield Opened(file, f"{about.get('ETag')}/{about['size']}/{about.get('LastModified')}")

    def names(self, folder: str) -> Sequence[str]:
        return sorted(map(self._name, self._ask(self._storage.find, self._path(folder))))

    def folders(self, folder: str) -> Sequence[str]:
        try:
            listed = self._ask(self._storage.ls, self._path(folder), detail=True)
        except FileNotFoundError:
            return []
        return sorted(self._name(each["name"]) for each in listed if each["type"] != "file")

    def move(self, folder: str, *, to: str) -> None:
        """See Storage: each object is copied; the manifest goes last, in both folders."""
        names = sorted(self.names(folder), key=lambda name: name.endswith("/manifest.json"))
        targets = {name: to + name.removeprefix(folder) for name in names}
        for name, target in targets.items():
            self._ask(self._storage.cp_file, self._path(name), self._path(target))
        if lost := sorted({*targets.values()} - {*self.names(to)}):
            msg = f"it said that it copied {lost[0]}, and has no such object"
            raise OSError(msg)
        for name in names:
            self.remove(name)

    def remove(self, name: str) -> None:
        self._ask(self._storage.rm_file, self._path(name))

    def clear(self, folder: str) -> None:
        for name in self.names(folder):
            self.remove(name)

    @contextmanager
    def local(self, folder: str) -> Iterator[Path]:
        """See Storage: copied for as long as the block lasts."""
        with folder_for_now("recon-night-") as temporary:
            for name in self.names(folder):
                path = temporary / PurePosixPath(name).relative_to(folder)
                make_folder(path.parent)
                with open(path, "wb", opener=for_owner) as file:
                    file.write(self.read(name))
            yield temporary

    def _path(self, name: str) -> str:
        return f"{self._root}/{name}".rstrip("/")

    def _name(self, path: str) -> str:
        return path.removeprefix(f"{self._root}/").rstrip("/")


def s3_storage(
    settings: ArchiveSettings, *, keys: Mapping[str, str], deadline: RetryDeadline
) -> RemoteStorage:
    """The storage that the settings name; `keys` are the environment's variables.

    Raises:
        ConfigurationError: a key is missing.
    """
    from s3fs import S3FileSystem

    access_key, secret_key = storage_keys(settings, keys)
    client = {"region_name": settings.region} if settings.region else {}
    checksums = "when_supported" if settings.checksums else "when_required"
    storage = S3FileSystem(
        key=access_key,
        secret=secret_key,
        endpoint_url=settings.endpoint or None,
        client_kwargs=client,
        config_kwargs={
            "connect_timeout": CONNECT_SECONDS,
            "read_timeout": SILENCE_SECONDS,
            "retries": {"total_max_attempts": 1},
            "request_checksum_calculation": checksums,
            "response_checksum_validation": checksums,
        },
        use_listings_cache=False,
    )
    storage.retries = TRIES_AT_ONCE
    root = settings.path.removeprefix("s3://")
    return RemoteStorage(storage, root=root, shown=settings.path, deadline=deadline)


@contextmanager
def _translated() -> Iterator[None]:
    """Errors of the client that are no OSError, as one; ours and a file's absence stay."""
    from aiohttp import ClientError
    from botocore.exceptions import BotoCoreError

    try:
        yield
    except (BotoCoreError, ClientError, HTTPException) as error:
        if isinstance(error, ArchiveError | OSError):
            raise
        raise OSError(str(error) or type(error).__name__) from error


def open_storage(
    settings: ArchiveSettings, *, variables: Mapping[str, str], deadline: RetryDeadline
) -> Storage:
    """The archive of an account's nights.

    Args:
        settings: What archive.toml says, with a path.
        variables: The environment's, for keys.
        deadline: How long a remote storage that fails is waited for.

    Raises:
        ConfigurationError: a key of a remote storage is missing.
    """
    if settings.is_remote:
        return s3_storage(settings, keys=variables, deadline=deadline)
    return LocalStorage(Path(settings.path))
