"""Nights in a folder of this machine: written under another name, flushed, then renamed."""

import errno
import os
import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

from recon.archive.storage import UNFINISHED, Opened
from recon.model.durable import flush_folder
from recon.privacy.own_files import for_group, make_folder, open_unlinked


class LocalStorage:
    """See `recon.archive.storage.Storage`."""

    def __init__(self, root: Path) -> None:
        """Work below `root`, which is made when something is written."""
        self._root = root

    @property
    def shown(self) -> str:
        """See Storage."""
        return str(self._root)

    @contextmanager
    def writing(self, name: str, *, flushed: bool = True) -> Iterator[BinaryIO]:
        """See Storage."""
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
        """See Storage."""
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
        """See Storage."""
        with self._opened(name) as file:
            return file.read()

    @contextmanager
    def reading(self, name: str) -> Iterator[Opened]:
        """See Storage."""
        with self._opened(name) as file:
            kept = os.fstat(file.fileno())
            yield Opened(file, f"{kept.st_dev}/{kept.st_ino}/{kept.st_size}/{kept.st_ctime_ns}")

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
        """See Storage."""
        below = (self._root / folder).rglob("*")
        return sorted(str(path.relative_to(self._root)) for path in below if not path.is_dir())

    def folders(self, folder: str) -> Sequence[str]:
        """See Storage."""
        path = self._root / folder
        if not path.is_dir():
            return []
        return sorted(str(each.relative_to(self._root)) for each in path.iterdir() if each.is_dir())

    def move(self, folder: str, *, to: str) -> None:
        """See Storage."""
        target = self._root / to
        (self._root / folder).rename(target)
        flush_folder(target.parent)

    def remove(self, name: str) -> None:
        """See Storage."""
        (self._root / name).unlink()

    def clear(self, folder: str) -> None:
        """See Storage."""
        path = self._root / folder
        if path.is_dir():
            shutil.rmtree(path)
            flush_folder(path.parent)

    @contextmanager
    def local(self, folder: str) -> Iterator[Path]:
        """See Storage."""
        yield self._root / folder
