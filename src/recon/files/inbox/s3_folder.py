"""Read-only access to a folder of an S3-compatible storage."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime
from typing import Any
from urllib.parse import urlsplit

from aiohttp import ClientError
from botocore.exceptions import BotoCoreError
from s3fs import S3FileSystem

from recon.config.file_sources import RemoteSource
from recon.config.keys import storage_keys
from recon.files.inbox.fetching import NAMES_MAX, RemoteFile
from recon.model.errors import SourceUnreadableError

CONNECT_SECONDS = 20
SILENCE_SECONDS = 60
PIECE_BYTES = 8 * 1024 * 1024


class S3Folder:
    """A folder in a bucket; implements `recon.files.inbox.fetching.RemoteFolder`."""

    def __init__(self, storage: Any, *, folder: str) -> None:
        """Use `folder` (`bucket/prefix`) of an `s3fs` file system."""
        self._storage = storage
        self._folder = folder.rstrip("/")

    def entries(self) -> Sequence[RemoteFile]:
        """List the objects directly below the folder."""
        listed = self._storage.ls(self._folder, detail=True, refresh=True)
        if len(listed) > NAMES_MAX:
            msg = f"{self._folder} holds more than {NAMES_MAX} entries; move old ones away"
            raise SourceUnreadableError(msg)
        prefix = f"{self._folder}/"
        return [
            _file(str(entry["name"]).removeprefix(prefix), entry)
            for entry in listed
            if entry.get("type") == "file" and entry["name"] != prefix
        ]

    def again(self, name: str) -> RemoteFile | None:
        """Return the current state of one object; None if it is gone."""
        try:
            return _file(name, self._storage.info(f"{self._folder}/{name}", refresh=True))
        except FileNotFoundError:
            return None

    def parts(self, name: str) -> Iterator[bytes]:
        """Yield the content of the object as it was when opened, PIECE_BYTES at a time."""
        path = f"{self._folder}/{name}"
        with self._storage.open(path, "rb", block_size=PIECE_BYTES, cache_type="none") as file:
            while piece := file.read(PIECE_BYTES):
                yield piece


@contextmanager
def s3_folder(source: RemoteSource, *, environment: Mapping[str, str]) -> Iterator[S3Folder]:
    """Open the folder of a source.

    Raises:
        ConfigurationError: a key is missing, or others can read its file.
        SourceUnreadableError: the storage cannot be reached or denies access.
    """
    parts = urlsplit(source.url)
    access_key, secret_key = storage_keys(source, environment)
    try:
        storage = S3FileSystem(
            key=access_key,
            secret=secret_key,
            endpoint_url=source.endpoint or None,
            client_kwargs={"region_name": source.region} if source.region else {},
            config_kwargs={"connect_timeout": CONNECT_SECONDS, "read_timeout": SILENCE_SECONDS},
            use_listings_cache=False,
            skip_instance_cache=True,
        )
        yield S3Folder(storage, folder=f"{parts.netloc}{parts.path}")
    except FileNotFoundError as error:
        # Object storage has no folders, only objects whose names share a prefix.
        msg = f"{source.shown} cannot be read: there is no such bucket, or nothing at {error}"
        raise SourceUnreadableError(msg) from error
    except (BotoCoreError, ClientError, OSError) as error:
        msg = f"{source.shown} cannot be read: {error or type(error).__name__}"
        raise SourceUnreadableError(msg) from error


def _file(name: str, entry: Mapping[str, Any]) -> RemoteFile:
    changed: datetime = entry["LastModified"]
    return RemoteFile(
        name=name,
        size_bytes=int(entry["size"]),
        changed_at=changed,
        etag=f"{entry['size']}/{entry.get('ETag', '')}/{changed.timestamp()}",
    )
