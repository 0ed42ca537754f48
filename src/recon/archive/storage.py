"""Storage of the archive: a local folder, or an S3-compatible storage.

File names may contain `/`. Each file is there completely or not at all: a local file is written
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
from recon.model.step_progress import WorkProgress
from recon.privacy.own_files import folder_for_now, for_group, for_owner, make_folder, open_unlinked

MAKE_WRITABLE = (
    "make the archive writable, or move all of it to where there is room and name that place in "
    "archive.toml, then start the night again"
)
"""Advice in errors; nights need the files of earlier ones, so an empty archive does not help."""
UNFINISHED = ".unfinished-"
"""Prefix of the name of a file that is still being written."""


class Opened(NamedTuple):
    """A file opened for random access."""

    file: BinaryIO
    stamp: str
    """Changes each time that the file is written."""


BLOCK_BYTES = 4 * 2**20
"""Number of bytes hashed at once."""
FILES_MAX = 20_000
"""Maximum number of verified files remembered; beyond it all are forgotten and hashed again."""
_known: set[tuple[str, str, str]] = set()
"""Place, stamp and hash of files that this process has verified."""


def other_hash(opened: Opened, *, location: str, sha256: str) -> Iterator[tuple[int, str]]:
    """Yield size and hash of a file if its hash differs; nothing if it is equal.

    A verified file is hashed again only after it was written again.
    """
    seen = location, opened.stamp, sha256
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
    """A local folder, or an S3-compatible storage."""

    @property
    def shown(self) -> str:
        """Its address, for messages."""

    def writing(self, name: str, *, flushed: bool = True) -> AbstractContextManager[BinaryIO]:
        """Open a new file, which gets its name and survives a crash once the block ends normally.

        If not `flushed`, the name survives only once its folder is flushed; this suits folders
        whose files are needed only when all of them are written.
        """

    def flush(self, folder: str) -> None:
        """Make the names of all files directly in a folder survive a crash."""

    def read(self, name: str) -> bytes:
        """Return the content of a file.

        Raises:
            FileNotFoundError: It does not exist.
        """

    def reading(self, name: str) -> AbstractContextManager[Opened]:
        """Open a file of which only parts are read.

        Raises:
            FileNotFoundError: It does not exist.
        """

    def names(self, folder: str) -> Sequence[str]:
        """Return the full names of all files below a folder, sorted; none if it does not exist."""

    def folders(self, folder: str) -> Sequence[str]:
        """Return the full names of the folders directly in a folder, sorted."""

    def move(self, folder: str, *, to: str) -> None:
        """Rename a folder to a name that is not in use."""

    def remove(self, name: str) -> None:
        """Delete a file that nothing references."""

    def clear(self, folder: str) -> None:
        """Delete a folder, if it exists, with all its content, which nothing may reference."""

    def local(self, folder: str) -> AbstractContextManager[Path]:
        """Yield a local path of the folder, for readers that need file paths."""


@contextmanager
def reachable(storage: Storage, *, doing: str) -> Iterator[None]:
    """Translate errors of a storage to ArchiveError; `doing` describes the failed action.

    Raises:
        ArchiveError: It cannot be reached, is full or refuses access.
    """
    try:
        yield
    except OSError as error:
        msg = f"{doing}: the archive of nights {storage.shown} says: {_why(error)}"
        raise ArchiveError(msg) from error


def _why(error: OSError) -> str:
    return error.strerror or str(error) or type(error).__name__


class LocalStorage:
    """Storage in a local folder; see `Storage`."""

    def __init__(self, root: Path) -> None:
        """Use the folder `root`, which is created with the first file."""
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
        """Create a folder and its missing parents, so that their names survive a crash."""
        if folder.is_dir():
            return  # true for all files of a step but the first
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
            # A pipe or a device could block for ever, and a link leads outside the archive.
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
"""Total time for which a busy or failing storage is retried, over all requests."""
TRIES_AT_ONCE = 4
"""Number of tries of one request within a second by the library. Longer waits are made here, since
the library's are not reported and ignore the end of the night."""
FIRST_WAIT_SECONDS = 0.25
LONGEST_WAIT_SECONDS = 15.0
CHECKED_BYTES = 4 * 2**20
"""Number of bytes of an object compared at once when it is read back."""
Answer = TypeVar("Answer")


class RetryDeadline:
    """Total time for which a busy or failing storage is retried, shared by all requests."""

    def __init__(
        self,
        *,
        pause: Callable[[float], None],
        elapsed: Callable[[], float],
        seconds: float = WAITED_SECONDS_MAX,
    ) -> None:
        """Allow `seconds` in total; `elapsed` is a monotonic clock in seconds."""
        self._pause, self._elapsed = pause, elapsed
        self._seconds = self._left = seconds

    def ask(self, call: Callable[[], Answer], *, shown: str) -> Answer:
        """Retry a call until it succeeds, with growing pauses; failing calls use up time as well.

        Raises:
            FileNotFoundError: The object does not exist.
            OSError: Access was refused, or the call failed until no time was left.
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
            waited = WorkProgress(
                f"seconds waited for the archive {shown}", of=round(self._seconds)
            )
            waited.advance_to(round(self._seconds - self._left))
            self._pause(wait)
            wait = min(2 * wait, LONGEST_WAIT_SECONDS)


class RemoteStorage:
    """Storage on a file system of fsspec; see `Storage`."""

    def __init__(self, storage: Any, *, root: str, shown: str, deadline: RetryDeadline) -> None:
        """Use `root` (`bucket/prefix`) of a file system of fsspec."""
        self._storage = storage
        self._root = root.strip("/")
        self._shown = shown
        self._deadline = deadline

    def _ask(self, call: Callable[..., Answer], *arguments: Any, **options: Any) -> Answer:
        return self._deadline.ask(partial(call, *arguments, **options), shown=self._shown)

    @property
    def shown(self) -> str:
        return self._shown

    @contextmanager
    def writing(self, name: str, *, flushed: bool = True) -> Iterator[BinaryIO]:
        """See Storage; a written object is durable, `flushed` or not.

        It is read back, since a storage may report success without having stored the object.
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

    def _has(self, name: str, expected: BinaryIO) -> bool:
        try:
            with self.reading(name) as (saved, _):
                while block := expected.read(CHECKED_BYTES):
                    if saved.read(CHECKED_BYTES) != block:
                        return False
                return not saved.read(1)
        except FileNotFoundError:
            return False

    def flush(self, folder: str) -> None:
        """See Storage; nothing needs to be done."""

    def read(self, name: str) -> bytes:
        content: bytes = self._ask(self._storage.cat_file, self._path(name))
        return content

    @contextmanager
    def reading(self, name: str) -> Iterator[Opened]:
        """See Storage; only the requested bytes are fetched, without read-ahead."""
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
        """See Storage; objects are copied, then deleted, in both cases the manifest last."""
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
        """See Storage; a temporary copy that is deleted after the block."""
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
    """Return the S3 storage of the settings; `keys` are the environment's variables.

    Raises:
        ConfigurationError: An access key is missing.
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
    """Translate other errors of the client to OSError; ours and every OSError pass unchanged."""
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
    """Return the archive of an account's nights.

    Args:
        settings: Those of archive.toml, with a path.
        variables: The environment's variables, for access keys.
        deadline: How long a failing remote storage is retried.

    Raises:
        ConfigurationError: An access key of a remote storage is missing.
    """
    if settings.is_remote:
        return s3_storage(settings, keys=variables, deadline=deadline)
    return LocalStorage(Path(settings.path))
