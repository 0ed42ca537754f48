"""Nights in an S3-compatible storage: an object is there whole or not at all, without a rename."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path, PurePosixPath
from tempfile import NamedTemporaryFile, TemporaryDirectory
from typing import Any, BinaryIO, cast

from recon.archive.storage import Opened
from recon.config.keys import storage_keys
from recon.config.night_archive import ArchiveSettings
from recon.model.errors import ArchiveError
from recon.privacy.own_files import for_owner, make_folder

CONNECT_SECONDS = 20
SILENCE_SECONDS = 60


class RemoteStorage:
    """See `recon.archive.storage.Storage`."""

    def __init__(self, storage: Any, *, root: str, shown: str) -> None:
        """Work below `root` (`bucket/prefix`) of a file system of fsspec."""
        self._storage = storage
        self._root = root.strip("/")
        self._shown = shown

    @property
    def shown(self) -> str:
        """See Storage."""
        return self._shown

    @contextmanager
    def writing(self, name: str, *, flushed: bool = True) -> Iterator[BinaryIO]:
        """See Storage; an object that is there stays there, `flushed` or not."""
        del flushed
        with NamedTemporaryFile(prefix="recon-night-") as temporary:
            yield cast("BinaryIO", temporary.file)
            temporary.file.flush()
            with _translated():
                self._storage.put_file(temporary.name, self._path(name))

    def flush(self, folder: str) -> None:
        """See Storage; there is nothing to do."""

    def read(self, name: str) -> bytes:
        """See Storage."""
        with _translated():
            content: bytes = self._storage.cat_file(self._path(name))
            return content

    @contextmanager
    def reading(self, name: str) -> Iterator[Opened]:
        """See Storage; what is asked for is asked of the storage, and nothing beside it."""
        with _translated(), self._storage.open(self._path(name), "rb", cache_type="none") as file:
            about = file.details
            yield Opened(file, f"{about.get('ETag')}/{about['size']}/{about.get('LastModified')}")

    def names(self, folder: str) -> Sequence[str]:
        """See Storage."""
        with _translated():
            return sorted(map(self._name, self._storage.find(self._path(folder))))

    def folders(self, folder: str) -> Sequence[str]:
        """See Storage."""
        with _translated():
            try:
                listed = self._storage.ls(self._path(folder), detail=True)
            except FileNotFoundError:
                return []
            return sorted(self._name(each["name"]) for each in listed if each["type"] != "file")

    def move(self, folder: str, *, to: str) -> None:
        """See Storage: each object is copied; the manifest goes last, in both folders."""
        names = sorted(self.names(folder), key=lambda name: name.endswith("/manifest.json"))
        with _translated():
            for name in names:
                target = to + name.removeprefix(folder)
                self._storage.cp_file(self._path(name), self._path(target))
            for name in names:
                self._storage.rm_file(self._path(name))

    def remove(self, name: str) -> None:
        """See Storage."""
        with _translated():
            self._storage.rm_file(self._path(name))

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


def s3_storage(settings: ArchiveSettings, *, keys: Mapping[str, str]) -> RemoteStorage:
    """The storage that the settings name; `keys` are the environment's variables.

    Raises:
        ConfigurationError: a key is missing.
    """
    from s3fs import S3FileSystem

    access_key, secret_key = storage_keys(settings, keys)
    client = {"region_name": settings.region} if settings.region else {}
    storage = S3FileSystem(
        key=access_key,
        secret=secret_key,
        endpoint_url=settings.endpoint or None,
        client_kwargs=client,
        config_kwargs={"connect_timeout": CONNECT_SECONDS, "read_timeout": SILENCE_SECONDS},
        use_listings_cache=False,
        skip_instance_cache=True,
    )
    return RemoteStorage(storage, root=settings.path.removeprefix("s3://"), shown=settings.path)


@contextmanager
def _translated() -> Iterator[None]:
    """Errors of the client that are no OSError, as one; ours and a file's absence stay."""
    from aiohttp import ClientError
    from botocore.exceptions import BotoCoreError

    try:
        yield
    except (BotoCoreError, ClientError) as error:
        if isinstance(error, ArchiveError | OSError):
            raise
        raise OSError(str(error) or type(error).__name__) from error
