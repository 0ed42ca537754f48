"""Nights in an S3-compatible storage: an object is there whole or not at all, without a rename."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from http.client import HTTPException
from pathlib import Path, PurePosixPath
from tempfile import NamedTemporaryFile, TemporaryDirectory
from typing import Any, BinaryIO, TypeVar, cast

from recon.archive.storage import Opened
from recon.config.keys import storage_keys
from recon.config.night_archive import ArchiveSettings
from recon.model.errors import ArchiveError
from recon.model.headway import Way
from recon.privacy.own_files import for_owner, make_folder

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


class Patience:
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
                    why = error.strerror or str(error) or type(error).__name__
                    msg = f"{why}; it was waited for {self._seconds:.0f} s in all"
                    raise OSError(error.errno, msg) from error
            waited = Way(f"seconds waited for the archive {shown}", of=round(self._seconds))
            waited.came_to(round(self._seconds - self._left))
            self._pause(wait)
            wait = min(2 * wait, LONGEST_WAIT_SECONDS)


class RemoteStorage:
    """See `recon.archive.storage.Storage`."""

    def __init__(self, storage: Any, *, root: str, shown: str, patience: Patience) -> None:
        """Work below `root` (`bucket/prefix`) of a file system of fsspec."""
        self._storage = storage
        self._root = root.strip("/")
        self._shown = shown
        self._patience = patience

    def _ask(self, call: Callable[..., Answer], *arguments: Any, **options: Any) -> Answer:
        return self._patience.ask(partial(call, *arguments, **options), shown=self._shown)

    @property
    def shown(self) -> str:
        """See Storage."""
        return self._shown

    @contextmanager
    def writing(self, name: str, *, flushed: bool = True) -> Iterator[BinaryIO]:
        """See Storage; an object that is there stays there, `flushed` or not.

        It is asked for again: a storage may say that it kept what it did not.
        """
        del flushed
        with NamedTemporaryFile(prefix="recon-night-") as temporary:
            yield cast("BinaryIO", temporary.file)
            temporary.file.flush()
            self._ask(self._storage.put_file, temporary.name, self._path(name))
            temporary.file.seek(0)
            if not self._has(name, cast("BinaryIO", temporary.file)):
                msg = f"it said that it kept {name}, and has no such object, or another one"
                raise OSError(msg)

    def _has(self, name: str, wanted: BinaryIO) -> bool:
        try:
            with self.reading(name) as (kept, _):
                while block := wanted.read(CHECKED_BYTES):
                    if kept.read(CHECKED_BYTES) != block:
                        return False
                return not kept.read(1)
        except FileNotFoundError:
            return False

    def flush(self, folder: str) -> None:
        """See Storage; there is nothing to do."""

    def read(self, name: str) -> bytes:
        """See Storage."""
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
        """See Storage."""
        return sorted(map(self._name, self._ask(self._storage.find, self._path(folder))))

    def folders(self, folder: str) -> Sequence[str]:
        """See Storage."""
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
        """See Storage."""
        self._ask(self._storage.rm_file, self._path(name))

    def clear(self, folder: str) -> None:
        """See Storage."""
        for name in self.names(folder):
            self.remove(name)

    @contextmanager
    def local(self, folder: str) -> Iterator[Path]:
        """See Storage: copied for as long as the block lasts."""
        with TemporaryDirectory(prefix="recon-night-") as temporary:
            for name in self.names(folder):
                path = Path(temporary) / PurePosixPath(name).relative_to(folder)
                make_folder(path.parent)
                with open(path, "wb", opener=for_owner) as file:
                    file.write(self.read(name))
            yield Path(temporary)

    def _path(self, name: str) -> str:
        return f"{self._root}/{name}".rstrip("/")

    def _name(self, path: str) -> str:
        return path.removeprefix(f"{self._root}/").rstrip("/")


def s3_storage(
    settings: ArchiveSettings, *, keys: Mapping[str, str], patience: Patience
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
    return RemoteStorage(storage, root=root, shown=settings.path, patience=patience)


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
